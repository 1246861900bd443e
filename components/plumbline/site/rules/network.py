"""Zones, ranges and the cluster: what is built, and what exists."""

from collections.abc import Iterator

from plumbline.catalog import AwsCatalogue
from plumbline.site.model import Addons, Plugins
from plumbline.site.problems import Path, Problem, shown
from plumbline.site.rules.draft import Draft, Rule


def _zones_in_region(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    if draft.region is None:
        return
    declared = draft.network.zones if draft.network else ()
    zones: list[tuple[Path, str]] = [(("pools", i, "capacity", "zone"), zone) for i, zone in draft.pool_zones]
    zones += [(("network", "zones", i), zone) for i, zone in enumerate(declared)]
    zones += [(("storage", each.index, "zone"), each.value.zone) for each in draft.storage if each.value]
    if draft.network and draft.network.existing:
        zones += [(("network", "existing", "subnets", zone), zone) for zone in draft.network.existing.subnets]
    for path, zone in zones:
        if zone[:-1] != draft.region:
            yield Problem(
                path=path,
                found=shown(zone),
                needed=f"a zone of the site's region, {draft.region}",
                next="correct the zone, or region if the zone is right; a site has one region",
            )


def _network_is_one(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    """A VPC is built, or one exists."""
    network = draft.network
    if network is None:
        return
    if (network.cidr is None) is (network.existing is None):
        yield Problem(
            path=("network",),
            found="both cidr and existing" if network.cidr else "neither cidr nor existing",
            needed="one of them: cidr for a VPC that is built, existing for one that is there",
            next="remove one" if network.cidr else "add cidr, for example 10.20.0.0/16",
        )
    if network.existing is None:
        return
    for name in ("zones", "egress"):
        if name in network.model_fields_set:
            yield Problem(
                path=("network", name),
                found=shown(getattr(network, name)),
                needed="nothing: it belongs to a VPC that is built, and this one exists",
                next=f"remove {name}",
            )
    wanted: list[tuple[Path, str]] = [(("pools", i, "capacity", "zone"), zone) for i, zone in draft.pool_zones]
    wanted += [(("storage", each.index, "zone"), each.value.zone) for each in draft.storage if each.value]
    for path, zone in wanted:
        if zone not in network.existing.subnets:
            yield Problem(
                path=path,
                found=shown(zone),
                needed=f"a zone with a subnet under network.existing.subnets: {', '.join(network.existing.subnets)}",
                next=f"add {zone} with a private subnet of {network.existing.vpc} there",
            )


def _range_fits(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    network = draft.network
    if network is None or network.cidr is None:
        return
    if not 16 <= network.cidr.prefixlen <= 20:
        yield Problem(
            path=("network", "cidr"),
            found=shown(str(network.cidr)),
            needed="a prefix from /16 (the largest VPC) to /20 (512 addresses in each zone's eighth)",
            next="for example 10.20.0.0/16",
        )
        return
    room = _room(network.cidr.prefixlen)
    for zone in sorted({zone for _, zone in draft.pool_zones}):
        nodes = sum(pool.nodes or 0 for pool in draft.pools if pool.capacity and pool.capacity.zone == zone)
        if nodes * ADDRESSES_PER_NODE > room:
            yield Problem(
                path=("network", "cidr"),
                found=f"{shown(str(network.cidr))}, with {room} addresses in the subnet of {zone}",
                needed=f"{nodes * ADDRESSES_PER_NODE} addresses there: {nodes} nodes with {ADDRESSES_PER_NODE} each, "
                "for their ordinary interface and their pods (efa-only interfaces take none)",
                next=f"take a larger range (a /16 holds {_room(16) // ADDRESSES_PER_NODE} nodes in a zone), or subnets "
                "that exist and are larger",
            )


def _room(prefix: int) -> int:
    """Addresses for nodes and pods in one zone's eighth of a range."""
    return int(2 ** (32 - prefix - 3)) - RESERVED_ADDRESSES


RESERVED_ADDRESSES = 5
"""AWS keeps the first four and the last. https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html"""
POD_ADDRESSES, WARM_ADDRESSES = 16, 4
"""How many addresses the VPC CNI of a cluster built here takes for a node at first, and keeps ahead of its pods."""
ADDRESSES_PER_NODE = 1 + POD_ADDRESSES + WARM_ADDRESSES
"""Addresses of its subnet that a node takes: its own, and what the CNI holds for pods."""


def _cluster_is_one(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    """What is set of a cluster that exists would not be done to it."""
    cluster = draft.cluster
    if cluster is None or cluster.existing is None:
        return
    for name in cluster.model_fields_set - {"version", "existing"}:
        yield Problem(
            path=("cluster", name),
            found=shown(getattr(cluster, name)) if isinstance(getattr(cluster, name), str) else f"a setting of {name}",
            needed=f"nothing: cluster {cluster.existing} exists, and is left as it is",
            next=f"remove {name}",
        )
    if draft.network and draft.network.existing is None:
        yield Problem(
            path=("network", "existing"),
            found="nothing",
            needed=f"the VPC of cluster {cluster.existing}, with a private subnet for each pool's zone",
            next="add existing: {vpc: vpc-…, subnets: {zone: subnet-…}} in place of cidr",
        )


def _cluster_zones(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    network = draft.network
    if network is None or network.existing or len(draft.pool_zones) < max(1, len(draft.pools)):
        return  # a pool's zone that could not be read may be the second one
    zones = sorted({zone for _, zone in draft.pool_zones} | set(network.zones))
    wanted = catalogue.eks.cluster_zones
    if len(zones) < wanted:
        yield Problem(
            path=("network", "zones"),
            found=f"one zone in all, {zones[0]}",
            needed=f"{wanted} zones, counted with those of the pools: EKS wants its subnets in {wanted} zones at least",
            next=f"add zones: [{_another(zones[0])}] under network; nothing but the cluster's endpoints goes there",
        )


def _existing_zones(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    """A new cluster in a VPC that exists needs its two zones as well."""
    existing = draft.network.existing if draft.network else None
    if existing is None or draft.cluster is None or draft.cluster.existing:
        return
    if len(existing.subnets) < catalogue.eks.cluster_zones:
        yield Problem(
            path=("network", "existing", "subnets"),
            found=f"one zone in all, {next(iter(existing.subnets))}",
            needed=f"{catalogue.eks.cluster_zones} zones: EKS wants its subnets in so many at least",
            next=f"add a private subnet of {existing.vpc} in another zone",
        )


def _another(zone: str) -> str:
    return zone[:-1] + ("a" if zone[-1] != "a" else "b")


def _version_known(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    known = catalogue.eks.kubernetes_versions
    if draft.cluster and draft.cluster.version not in known:
        yield Problem(
            path=("cluster", "version"),
            found=shown(draft.cluster.version),
            needed=f"a version that EKS offers; known to this release: {', '.join(known)}",
            next="check that EKS offers it",
            warns="kubernetes_versions" in catalogue.eks.unconfirmed,
        )


def _addons_pinned(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    """Every add-on of a new cluster should have a version, so that none comes by itself."""
    cluster = draft.cluster
    if cluster is None or cluster.existing:
        return
    missing = [
        name
        for name in Addons.model_fields
        if not getattr(cluster.addons, name) and cluster.version not in getattr(catalogue.addons, name)
    ]
    if missing:
        yield Problem(
            path=("cluster", "addons"),
            found=f"no version of {', '.join(missing)} for Kubernetes {cluster.version}",
            needed="versions under cluster.addons: this release pins none, and EKS would choose",
            next=f"see aws eks describe-addon-versions --kubernetes-version {cluster.version}",
            warns=True,
        )


def _images_reachable(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    """Without a way out a node pulls from its region's ECR, and from nowhere else."""
    if not (draft.network and draft.network.egress == "endpoints" and draft.region):
        return
    here = f".dkr.ecr.{draft.region}."
    plugins = draft.plugins or Plugins()
    needed = {facts.accelerator for _, _, facts in draft.machines(catalogue)}
    for key in sorted(needed):
        plugin = getattr(plugins, key)
        image = plugin.image or catalogue.plugins[key].image
        if plugin.install and here not in image:
            yield Problem(
                path=("plugins", key, "image"),
                found=shown(image),
                needed=f"an image in ECR of {draft.region}: with egress: endpoints nodes reach no other registry",
                next="copy it there, or make a pull-through cache, and name it here",
            )


RULES: tuple[Rule, ...] = (
    _zones_in_region,
    _network_is_one,
    _range_fits,
    _cluster_is_one,
    _cluster_zones,
    _existing_zones,
    _version_known,
    _addons_pinned,
    _images_reachable,
)
