"""From the stack's configuration to a plan, inside a Pulumi program."""

import pulumi

from plumbline.plan import SitePlan, plan_site
from plumbline.site import SiteError, read_site


def load() -> SitePlan:
    """The plan of the site that the stack declares under `plumbline:site`.

    Raises:
        pulumi.RunError: the declaration is wrong; the message lists everything that is. Nothing was created.
    """
    try:
        site, warnings = read_site(pulumi.Config("plumbline").get_object("site"))
    except SiteError as error:
        raise pulumi.RunError(str(error)) from None
    for warning in warnings:
        pulumi.log.warn(str(warning))
    return plan_site(site)
