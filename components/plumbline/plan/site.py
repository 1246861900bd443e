"""The plan of a whole site."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Network

from plumbline.catalog import AwsCatalogue, aws_catalogue
from plumbline.plan import labels
from plumbline.plan.pool import PoolPlan, plan_pool
from plumbline.plan.subnets import SubnetPlan, plan_subnets
from plumbline.site import Site


@dataclass(frozen=True, kw_only=True)
class PluginPlan:
    """A device plugin: one DaemonSet for all pools that need it."""

    key: str
    """Its name under `plugins` in the declaration."""
    name: str
    """Name of the DaemonSet."""
    namespace: str
    image: str
    resource: str
    """What it advertises."""
    node_selector: Mapping[str, str]
    """Labels of ours: never a list of machine types, which is out of date with the next type."""
    setting: str
    """Where the image is set, for messages."""


@dataclass(frozen=True, kw_only=True)
class SitePlan:
    """Everything that is created for a site."""

    name: str
    region: str
    cidr: IPv4Network
    kubernetes_version: str
    subnets: tuple[SubnetPlan, ...]
    pools: tuple[PoolPlan, ...]
    plugins: tuple[PluginPlan, ...]
    within: timedelta
    stable: timedelta
    valid: timedelta

    @property
    def generations(self) -> dict[str, str]:
        """The generation that each pool is declared to have."""
        return {pool.name: pool.generation for pool in self.pools}


def plan_site(site: Site, catalogue: AwsCatalogue | None = None) -> SitePlan:
    """The plan of a site that `read_site` accepted."""
    facts = catalogue or aws_catalogue()
    pools = tuple(plan_pool(site, pool, facts) for pool in site.pools)
    zones = {pool.zone for pool in pools} | set(site.network.zones)
    return SitePlan(
        name=site.name,
        region=site.region,
        cidr=site.network.cidr,
        kubernetes_version=site.cluster.version,
        subnets=plan_subnets(site.network.cidr, zones),
        pools=pools,
        plugins=_plugins(site, facts),
        within=site.proof.within,
        stable=site.proof.stable,
        valid=site.proof.valid,
    )


def _plugins(site: Site, catalogue: AwsCatalogue) -> tuple[PluginPlan, ...]:
    selectors = {"nvidia": {labels.ACCELERATOR: "nvidia"}}
    images = {"nvidia": site.plugins.nvidia.image, "efa": site.plugins.efa.image}
    if any(pool.fabric == "efa" for pool in site.pools):
        selectors["efa"] = {labels.FABRIC: "efa"}
    return tuple(
        PluginPlan(
            key=key,
            name=f"{key}-device-plugin",
            namespace="kube-system",
            image=images[key] or catalogue.plugins[key].image,
            resource=catalogue.plugins[key].resource,
            node_selector=selector,
            setting=f"plumbline:site.plugins.{key}.image",
        )
        for key, selector in sorted(selectors.items())
    )
