"""Pure functions from a site and the catalogue to a plan: what to create, and what has to be seen afterwards."""

from plumbline.plan.interfaces import Interface, interfaces
from plumbline.plan.pool import PoolPlan, plan_pool
from plumbline.plan.site import PluginPlan, SitePlan, plan_site
from plumbline.plan.subnets import SubnetPlan, plan_subnets

__all__ = [
    "Interface",
    "PluginPlan",
    "PoolPlan",
    "SitePlan",
    "SubnetPlan",
    "interfaces",
    "plan_pool",
    "plan_site",
    "plan_subnets",
]
