"""The plan of a whole site."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Network
from typing import Literal

from plumbline.catalog import AwsCatalogue, aws_catalogue
from plumbline.plan import labels
from plumbline.plan.account import SeenAccount
from plumbline.plan.pool import PoolPlan, plan_pool
from plumbline.plan.subnets import SubnetPlan, plan_subnets
from plumbline.site import Network, Pool, Site, Storage
from plumbline.site.rules import GENERATION_LENGTH


@dataclass(frozen=True, kw_only=True)
class NetworkPlan:
    """The VPC: one to build, or one that exists."""

    cidr: IPv4Network | None
    """Range of the VPC to build."""
    vpc: str | None
    """Id of the VPC that exists."""
    subnets: tuple[SubnetPlan, ...]
    """Of the VPC to build, sorted by zone."""
    existing_subnets: Mapping[str, str]
    """Ids of private subnets that exist, by zone."""
    egress: Literal["nat", "endpoints"]
    endpoints: tuple[str, ...]
    """Services that get an interface endpoint; empty where there is another way out."""

    @property
    def zones(self) -> tuple[str, ...]:
        """Zones with a private subnet, sorted."""
        return tuple(sorted(self.existing_subnets)) or tuple(subnet.zone for subnet in self.subnets)


@dataclass(frozen=True, kw_only=True)
class AddonPlan:
    """An EKS add-on."""

    key: str
    """Its field under `cluster.addons`."""
    name: str
    """EKS's name for it."""
    version: str | None
    """None where nothing pins one, and EKS chooses."""


@dataclass(frozen=True, kw_only=True)
class ClusterPlan:
    """The cluster: one to build, or one that exists."""

    name: str
    exists: bool
    version: str
    public: bool
    """Whether a new cluster's API server is reached from outside the VPC."""
    public_cidrs: tuple[str, ...]
    administrators: tuple[str, ...]
    logs: tuple[str, ...]
    log_days: int
    secrets_key: str | None
    addons: tuple[AddonPlan, ...]
    system_machine: str
    system_nodes: int


@dataclass(frozen=True, kw_only=True)
class PluginPlan:
    """What makes devices known to Kubernetes: one DaemonSet for all pools that need it."""

    key: str
    """Its name under `plugins` in the declaration."""
    name: str
    """Name of the DaemonSet."""
    namespace: str
    image: str
    resource: str
    """The extended resource that it advertises, or the DRA driver that it is."""
    node_selector: Mapping[str, str]
    """Labels of ours: never a list of machine types, which is out of date with the next type."""
    setting: str
    """Where the image is set, for messages."""


@dataclass(frozen=True, kw_only=True)
class SitePlan:
    """Everything that is created for a site."""

    name: str
    region: str
    network: NetworkPlan
    cluster: ClusterPlan
    pools: tuple[PoolPlan, ...]
    storage: tuple[Storage, ...]
    plugins: tuple[PluginPlan, ...]
    within: timedelta
    stable: timedelta
    valid: timedelta
    accept_deferred: str | None
    """The reason for which a pool without capacity yet may let the stack complete."""

    @property
    def system_name(self) -> str:
        """Name of the system pool's node group, with a digest of what replaces it: a successor is built first."""
        where = sorted(self.network.existing_subnets.values()) or list(self.network.zones)
        return f"{self.name}-system-{hashlib.sha256(','.join(where).encode()).hexdigest()[:GENERATION_LENGTH]}"

    @property
    def generations(self) -> dict[str, str]:
        """The generation that each pool is declared to have."""
        return {pool.name: pool.generation for pool in self.pools}


def plan_site(site: Site, catalogue: AwsCatalogue | None = None, seen: SeenAccount | None = None) -> SitePlan:
    """The plan of a site that `read_site` accepted.

    Args:
        site: the declaration.
        catalogue: the facts to plan from; the shipped ones by default.
        seen: what was read in the account, where it was.
    """
    facts = catalogue or aws_catalogue()
    return SitePlan(
        name=site.name,
        region=site.region,
        network=_network(site, facts),
        cluster=_cluster(site, facts),
        pools=tuple(plan_pool(site, pool, facts, seen) for pool in site.pools),
        storage=site.storage,
        plugins=_plugins(site, facts),
        within=site.proof.within,
        stable=site.proof.stable,
        valid=site.proof.valid,
        accept_deferred=site.proof.accept_deferred,
    )


def _network(site: Site, catalogue: AwsCatalogue) -> NetworkPlan:
    network: Network = site.network
    zones = {pool.capacity.zone for pool in site.pools} | {each.zone for each in site.storage} | set(network.zones)
    return NetworkPlan(
        cidr=network.cidr,
        vpc=network.existing.vpc if network.existing else None,
        subnets=plan_subnets(network.cidr, zones) if network.cidr else (),
        existing_subnets=dict(network.existing.subnets) if network.existing else {},
        egress=network.egress,
        endpoints=catalogue.eks.private_endpoints if network.egress == "endpoints" else (),
    )


_ADDONS = {
    "vpc_cni": "vpc-cni",
    "coredns": "coredns",
    "kube_proxy": "kube-proxy",
    "pod_identity_agent": "eks-pod-identity-agent",
    "fsx_csi_driver": "aws-fsx-csi-driver",
}


def _cluster(site: Site, catalogue: AwsCatalogue) -> ClusterPlan:
    cluster = site.cluster
    wanted = [key for key in _ADDONS if key != "fsx_csi_driver" or site.storage]
    return ClusterPlan(
        name=cluster.existing or site.name,
        exists=cluster.existing is not None,
        version=cluster.version,
        public=cluster.endpoint == "public",
        public_cidrs=tuple(str(cidr) for cidr in cluster.public_cidrs),
        administrators=cluster.administrators,
        logs=cluster.logs,
        log_days=cluster.log_days,
        secrets_key=cluster.secrets_key,
        addons=()
        if cluster.existing
        else tuple(
            AddonPlan(
                key=key,
                name=_ADDONS[key],
                version=getattr(cluster.addons, key) or getattr(catalogue.addons, key).get(cluster.version),
            )
            for key in wanted
        ),
        system_machine=cluster.system.machine,
        system_nodes=cluster.system.nodes,
    )


def _plugins(site: Site, catalogue: AwsCatalogue) -> tuple[PluginPlan, ...]:
    """Those that some pool needs and that the declaration lets us install, sorted by key."""
    selectors = {
        key: {labels.ACCELERATOR: key}
        for key in ("nvidia", "neuron")
        if any(catalogue.machines[pool.machine].accelerator == key for pool in site.pools)
    }
    if _any_by(site.pools, "plugin"):
        selectors["efa"] = {labels.FABRIC: "efa"}
    if _any_by(site.pools, "dra"):
        selectors["dranet"] = {labels.DEVICES: "dra"}
    return tuple(
        PluginPlan(
            key=key,
            name="dranet" if key == "dranet" else f"{key}-device-plugin",
            namespace="kube-system",
            image=getattr(site.plugins, key).image or _default_image(site, key, catalogue),
            resource=catalogue.plugins[key].resource,
            node_selector=selector,
            setting=f"plumbline:site.plugins.{key}.image",
        )
        for key, selector in sorted(selectors.items())
        if getattr(site.plugins, key).install
    )


def _any_by(pools: tuple[Pool, ...], devices: str) -> bool:
    return any(pool.fabric == "efa" and pool.devices == devices for pool in pools)


def _default_image(site: Site, key: str, catalogue: AwsCatalogue) -> str:
    """The pinned image; from the region's own registry where nodes reach no other one."""
    facts = catalogue.plugins[key]
    only_here = site.network.egress == "endpoints" or site.region.startswith("cn-")
    if facts.repository is None or not only_here:
        return facts.image
    tag = facts.image.rpartition(":")[2]
    return f"{catalogue.registries.registry(site.region)}/{facts.repository}:{tag}"
