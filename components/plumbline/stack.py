"""From the stack's configuration to a plan, inside a Pulumi program."""

import pulumi

from plumbline.catalog import aws_catalogue
from plumbline.plan import SeenAccount, SitePlan, account_problems, plan_site
from plumbline.site import Problem, Site, SiteError, read_site


def load() -> SitePlan:
    """The plan of the site that the stack declares under `plumbline:site`, checked against its account.

    Raises:
        pulumi.RunError: the declaration is wrong, or does not agree with the account, or the account cannot be read;
            the message lists everything that is. Nothing was created.
    """
    try:
        site, warnings = read_site(pulumi.Config("plumbline").get_object("site"))
        seen, more = _account(site)
    except SiteError as error:
        raise pulumi.RunError(str(error)) from None
    for warning in (*warnings, *more):
        pulumi.log.warn(str(warning))
    return plan_site(site, seen=seen)


def kubeconfig() -> pulumi.Output[str] | None:
    """The kubeconfig of a cluster that exists, where the stack has one as the secret `plumbline:kubeconfig`."""
    return pulumi.Config("plumbline").get_secret("kubeconfig")


def _account(site: Site) -> tuple[SeenAccount, list[Problem]]:
    """What was read in the account, and warnings.

    Raises:
        SiteError: the site and the account do not agree, or it could not be read and has to be.
    """
    # boto3 comes with the extra of this cloud, and takes a moment to import.
    from plumbline.aws.account import read_account

    seen, unread = read_account(site)
    catalogue = aws_catalogue()
    problems = [
        Problem(
            path=("proof", "account"),
            found=f"{each.part} could not be read ({each.cause}): {each.why}",
            needed=f"{each.right}, to see before anything is paid for that capacity and machines are as declared",
            next=f"{each.next}; or set proof.account: warn to go on without looking",
            warns=site.proof.account == "warn",
        )
        for each in unread
    ]
    problems += account_problems(site, plan_site(site, catalogue, seen).generations, seen, catalogue)
    if errors := [problem for problem in problems if not problem.warns]:
        raise SiteError(errors)
    return seen, problems
