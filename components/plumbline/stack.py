"""From the stack's configuration to a plan, inside a Pulumi program."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import pulumi

from plumbline.catalog import aws_catalogue
from plumbline.plan import SeenAccount, SitePlan, account_problems, plan_site
from plumbline.site import Problem, Site, SiteError, read_site

if TYPE_CHECKING:
    from plumbline.aws.account import Unread


def load() -> SitePlan:
    """The plan of the site that the stack declares under `plumbline:site`, checked against its account.

    Raises:
        pulumi.RunError: the declaration is wrong, or does not agree with the account, or the account cannot be read;
            the message lists everything that is. Nothing was created.
    """
    try:
        site, warnings = read_site(pulumi.Config("plumbline").get_object("site"))
        # boto3 comes with the extra of this cloud, and takes a moment to import.
        from plumbline.aws.account import read_account

        seen, unread = read_account(site)
        more = agreed(site, seen, unread)
        plan = plan_site(site, seen=seen)
        more += _not_doubled(site, plan, seen)
    except SiteError as error:
        raise pulumi.RunError(str(error)) from None
    for warning in (*warnings, *more):
        pulumi.log.warn(str(warning))
    return plan


def kubeconfig() -> pulumi.Output[str] | None:
    """The kubeconfig of a cluster that exists, where the stack has one as the secret `plumbline:kubeconfig`."""
    return pulumi.Config("plumbline").get_secret("kubeconfig")


def agreed(site: Site, seen: SeenAccount, unread: "Sequence[Unread]") -> list[Problem]:
    """Warnings about a site and the account that it is for.

    Raises:
        SiteError: they do not agree, or what could not be read has to be.
    """
    catalogue = aws_catalogue()
    # One cause, no credentials for example, is said once.
    causes = groupby(sorted(unread, key=_why), key=_why)
    problems = [_unreadable(list(each), warns=site.proof.account == "warn") for _, each in causes]
    problems += account_problems(site, plan_site(site, catalogue, seen).generations, seen, catalogue)
    if errors := [problem for problem in problems if not problem.warns]:
        raise SiteError(errors)
    return problems


def _why(unread: "Unread") -> tuple[str, str]:
    """Rights are missing each for itself; what else stops one call stops them all."""
    return unread.cause, unread.right if unread.cause == "no right" else ""


def _unreadable(unread: "Sequence[Unread]", *, warns: bool) -> Problem:
    rights = ", ".join(each.right for each in unread)
    return Problem(
        path=("proof", "account"),
        found=f"{', '.join(each.part for each in unread)} could not be read ({unread[0].cause}): {unread[0].why}",
        needed=f"{rights}, to see before anything is paid for that capacity and machines are as declared",
        next=f"{unread[0].next}; or set proof.account: warn to go on without looking",
        warns=warns,
    )


def _not_doubled(site: Site, plan: SitePlan, seen: SeenAccount) -> list[Problem]:
    """Warnings about what an adopted cluster runs already.

    Raises:
        SiteError: it has a plugin that would be installed a second time, or it cannot be read and has to be.
    """
    if seen.cluster is None or not plan.plugins:
        return []
    from plumbline.aws.kubeconfig import kubeconfig as made
    from plumbline.kubernetes.connection import Unreachable
    from plumbline.kubernetes.survey import doubled, survey

    cluster = seen.cluster
    # Not by Config, which would say that a secret is read in plain: it goes nowhere from here.
    text = pulumi.runtime.get_config("plumbline:kubeconfig") or made(
        plan.cluster.name, plan.region, cluster.endpoint, cluster.certificate_authority
    )
    try:
        problems = list(doubled(plan, survey(text)))
    except Unreachable as lost:
        problems = [
            Problem(
                path=("cluster", "existing"),
                found=f"{plan.cluster.name}, whose DaemonSets cannot be read: {lost}",
                needed="to see whether it has device plugins already, before a second one is installed",
                next="see that you reach its API server and have an access entry; or set proof.account: warn",
                warns=site.proof.account == "warn",
            )
        ]
    if errors := [problem for problem in problems if not problem.warns]:
        raise SiteError(errors)
    return problems
