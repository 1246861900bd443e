"""Pure functions from a site and the catalogue to a plan: what to create, and what has to be seen afterwards."""

from plumbline.plan.account import (
    SeenAccount,
    SeenCluster,
    SeenMachine,
    SeenReservation,
    SeenSubnet,
    account_problems,
)
from plumbline.plan.interfaces import Interface, interfaces
from plumbline.plan.pool import PoolPlan, plan_pool
from plumbline.plan.site import AddonPlan, ClusterPlan, NetworkPlan, PluginPlan, SitePlan, plan_site
from plumbline.plan.subnets import SubnetPlan, plan_subnets

__all__ = [
    "AddonPlan",
    "ClusterPlan",
    "Interface",
    "NetworkPlan",
    "PluginPlan",
    "PoolPlan",
    "SeenAccount",
    "SeenCluster",
    "SeenMachine",
    "SeenReservation",
    "SeenSubnet",
    "SitePlan",
    "SubnetPlan",
    "account_problems",
    "interfaces",
    "plan_pool",
    "plan_site",
    "plan_subnets",
]
