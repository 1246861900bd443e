"""Rules that join several fields of a declaration, each a function from the parts that could be read to problems."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from plumbline.catalog import AwsCatalogue, Machine, fsx_catalogue, nearest
from plumbline.site.model import Addons, Capacity, Cluster, ExistingLustre, Image, Lustre, Network, Plugins, Proof
from plumbline.site.problems import Path, Problem, shown

GENERATION_LENGTH = 6
"""Characters of a generation's digest in names."""


@dataclass(frozen=True, kw_only=True)
class PoolDraft:
    """The parts of a pool that could be read; None for one that could not."""

    index: int
    """The pool's place in the file."""
    name: str | None = None
    machine: str | None = None
    nodes: int | None = None
    capacity: Capacity | None = None
    fabric: str | None = None
    devices: str | None = None
    layout: str | None = None
    ami_release: str | None = None
    image: Image | None = None
    storage: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class StorageDraft:
    """A file system as far as it could be read."""

    index: int
    """Its place in the file."""
    name: str | None = None
    """Its name, also where the rest could not be read."""
    value: Lustre | ExistingLustre | None = None


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The parts of a declaration that could be read; None for one that could not."""

    name: str | None = None
    region: str | None = None
    network: Network | None = None
    cluster: Cluster | None = None
    plugins: Plugins | None = None
    proof: Proof | None = None
    pools: tuple[PoolDraft, ...] = ()
    storage: tuple[StorageDraft, ...] = ()

    @property
    def pool_zones(self) -> list[tuple[int, str]]:
        """Zones of the pools whose capacity could be read, each with the pool's place."""
        return [(pool.index, pool.capacity.zone) for pool in self.pools if pool.capacity]

    def machines(self, catalogue: AwsCatalogue) -> Iterator[tuple[PoolDraft, str, Machine]]:
        """Pools whose machine is in the catalogue, with its name and facts."""
        for pool in self.pools:
            if pool.machine is not None and (facts := catalogue.machines.get(pool.machine)):
                yield pool, pool.machine, facts


Rule = Callable[[Draft, AwsCatalogue], Iterator[Problem]]


def broken_rules(draft: Draft, catalogue: AwsCatalogue) -> list[Problem]:
    """All that breaks a rule."""
    return [problem for rule in _RULES for problem in rule(draft, catalogue)]


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


def _machine_known(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    for pool in draft.pools:
        if pool.machine is None or pool.machine in catalogue.machines:
            continue
        close = nearest(pool.machine, catalogue.machines)
        yield Problem(
            path=("pools", pool.index, "machine"),
            found=shown(pool.machine),
            needed=f"a machine of the catalogue: {', '.join(catalogue.machines)}",
            next=f"did you mean {close[0]}?" if close else "choose one of these",
        )


def _pool_names_differ(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    seen: set[str] = set()
    for pool in draft.pools:
        if pool.name is None:
            continue
        if pool.name in seen:
            yield Problem(
                path=("pools", pool.index, "name"),
                found=f"{shown(pool.name)}, as an earlier pool",
                needed="a name of its own for each pool",
                next="rename one of them; a renamed pool is a new pool, built before the old one goes",
            )
        seen.add(pool.name)


def _names_fit(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    """A name has to fit for every generation: one that fits today only would fail at the first replacement."""
    if draft.name is None:
        return
    limit = catalogue.eks.nodegroup_name_length
    for pool in draft.pools:
        if pool.name is None:
            continue
        group = f"{draft.name}-{pool.name}-{'x' * GENERATION_LENGTH}"
        length = len(group)
        if length > limit:
            yield Problem(
                path=("pools", pool.index, "name"),
                found=f"{shown(pool.name)}, with which node groups get names of {length} characters ({group})",
                needed=f"{limit} characters at most",
                next=f"shorten the pool's or the site's name by {length - limit}",
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
    for index, zone in draft.pool_zones:
        if zone not in network.existing.subnets:
            yield Problem(
                path=("pools", index, "capacity", "zone"),
                found=shown(zone),
                needed=f"a zone with a subnet under network.existing.subnets: {', '.join(network.existing.subnets)}",
                next=f"add {zone} with a private subnet of {network.existing.vpc} there",
            )


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
    room = 2 ** (32 - network.cidr.prefixlen - 3) - RESERVED_ADDRESSES
    for zone in sorted({zone for _, zone in draft.pool_zones}):
        nodes = sum(pool.nodes or 0 for pool in draft.pools if pool.capacity and pool.capacity.zone == zone)
        if nodes * ADDRESSES_PER_NODE > room:
            yield Problem(
                path=("network", "cidr"),
                found=f"{shown(str(network.cidr))}, with {room} addresses in the subnet of {zone}",
                needed=f"{nodes * ADDRESSES_PER_NODE} addresses there: {nodes} nodes with {ADDRESSES_PER_NODE} each, "
                "for their ordinary interface and their pods (efa-only interfaces take none)",
                next="take a larger range (a /16 holds 389 nodes in a zone), or existing subnets that are larger",
            )


RESERVED_ADDRESSES = 5
"""AWS keeps the first four and the last. https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html"""
POD_ADDRESSES, WARM_ADDRESSES = 16, 4
"""How many addresses the VPC CNI of a cluster built here takes for a node at first, and keeps ahead of its pods."""
ADDRESSES_PER_NODE = 1 + POD_ADDRESSES + WARM_ADDRESSES
"""Addresses of its subnet that a node takes: its own, and what the CNI holds for pods."""


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


def _stable_before_deadline(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    if draft.proof and draft.proof.stable >= draft.proof.within:
        yield Problem(
            path=("proof", "stable"),
            found=f"{draft.proof.stable.total_seconds():.0f} s",
            needed=f"less than proof.within, {draft.proof.within.total_seconds():.0f} s",
            next="shorten stable or lengthen within; otherwise no pool can ever be proven",
        )


def older(version: str, floor: str) -> bool:
    """Whether a version such as 1.34, v0.5.20 or 570.133.20 is older than another."""

    def parts(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"[0-9]+", text)]

    return parts(version) < parts(floor)


def _machine_allows(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    """What a machine can be bought by, and the Kubernetes version that it needs."""
    for pool, name, facts in draft.machines(catalogue):
        if pool.capacity and pool.capacity.kind not in facts.capacity_kinds:
            yield Problem(
                path=("pools", pool.index, "capacity", "kind"),
                found=shown(pool.capacity.kind),
                needed=f"a kind of capacity that {name} is sold by: {', '.join(facts.capacity_kinds)}",
                next=f"see {catalogue.address(facts, 'capacity_kinds')}",
                warns="capacity_kinds" in facts.unconfirmed,
            )
        floor = facts.kubernetes_floor
        if floor and draft.cluster and older(draft.cluster.version, floor):
            yield Problem(
                path=("cluster", "version"),
                found=shown(draft.cluster.version),
                needed=f"{floor} or newer, for {name} of pools[{pool.index}]",
                next=f"see {catalogue.address(facts, 'kubernetes_floor')}",
                warns="kubernetes_floor" in facts.unconfirmed,
            )


def _fabric_fits(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    """How EFA is laid out, given out and counted."""
    for pool, name, facts in draft.machines(catalogue):
        if pool.layout == "legacy" and facts.cards_without_efa:
            cards = ", ".join(map(str, facts.cards_without_efa))
            yield Problem(
                path=("pools", pool.index, "layout"),
                found='"legacy", which puts EFA on card 0',
                needed=f"current: {name} has cards without EFA ({cards})",
                next=f"remove layout; see {catalogue.address(facts, 'cards_without_efa')}",
            )
        image = draft.plugins.efa.image if draft.plugins else None
        tag = re.search(r":v?([0-9]+(?:\.[0-9]+)+)", image or "")
        floor = facts.efa_plugin_floor
        if floor and tag and pool.fabric == "efa" and pool.devices != "dra" and older(tag[1], floor):
            yield Problem(
                path=("plugins", "efa", "image"),
                found=shown(image),
                needed=f"version {floor} or newer, for {name} of pools[{pool.index}]",
                next=f"remove the line to take the pinned default; see {catalogue.address(facts, 'efa_plugin_floor')}",
                warns="efa_plugin_floor" in facts.unconfirmed,
            )
    cni = draft.cluster.addons.vpc_cni if draft.cluster else None
    floor = catalogue.eks.cni_efa_only_floor
    if cni and older(cni.partition("-")[0], floor) and any(pool.fabric == "efa" for pool in draft.pools):
        yield Problem(
            path=("cluster", "addons", "vpc_cni"),
            found=shown(cni),
            needed=f"v{floor} or newer: older ones take efa-only interfaces for their own",
            next="remove the line to take the pinned one; "
            f"see {catalogue.address(catalogue.eks, 'cni_efa_only_floor')}",
        )
    for pool in draft.pools:
        if pool.devices != "dra":
            continue
        if pool.fabric == "none":
            yield Problem(
                path=("pools", pool.index, "devices"),
                found='"dra", and fabric "none"',
                needed="fabric: efa, whose devices it gives out",
                next="remove devices, or set fabric: efa",
            )
        floor = catalogue.eks.dra_kubernetes_floor
        if draft.cluster and older(draft.cluster.version, floor):
            yield Problem(
                path=("pools", pool.index, "devices"),
                found=f'"dra", with Kubernetes {draft.cluster.version}',
                needed=f"Kubernetes {floor} or newer",
                next="raise cluster.version, or use the plugin; "
                f"see {catalogue.address(catalogue.eks, 'dra_kubernetes_floor')}",
            )


def _one_image(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    for pool in draft.pools:
        if pool.image and pool.ami_release:
            yield Problem(
                path=("pools", pool.index, "ami_release"),
                found=f"{shown(pool.ami_release)}, and image.id {pool.image.id}",
                needed="one of them: a release is one of EKS's own AMI",
                next="remove one",
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
        image = getattr(plugins, key).image or catalogue.plugins[key].image
        if here not in image:
            yield Problem(
                path=("plugins", key, "image"),
                found=shown(image),
                needed=f"an image in ECR of {draft.region}: with egress: endpoints nodes reach no other registry",
                next="copy it there, or make a pull-through cache, and name it here",
            )


def _storage_names(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    names: list[str] = []
    for each in draft.storage:
        if each.name in names:
            yield Problem(
                path=("storage", each.index, "name"),
                found=f"{shown(each.name)}, as an earlier file system",
                needed="a name of its own for each file system",
                next="rename one of them",
            )
        elif each.name is not None:
            names.append(each.name)
    for pool in draft.pools:
        for index, name in enumerate(pool.storage or ()):
            if name not in names:
                close = nearest(name, names)
                yield Problem(
                    path=("pools", pool.index, "storage", index),
                    found=shown(name),
                    needed=f"a name under storage: {', '.join(names) or 'there is none'}",
                    next=f"did you mean {close[0]}?" if close else f"add a file system {name} under storage",
                )


def _lustre_sizes(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    """Capacities, tiers, metadata and backups, as FSx sells them."""
    fsx = fsx_catalogue()
    for each in draft.storage:
        wanted, path = each.value, ("storage", each.index)
        if not isinstance(wanted, Lustre):
            continue
        tiers = fsx.tiers(LUSTRE_DEPLOYMENT, LUSTRE_STORAGE, efa=wanted.efa)
        if wanted.throughput_mbps_per_tib not in tiers:
            yield Problem(
                path=(*path, "throughput_mbps_per_tib"),
                found=str(wanted.throughput_mbps_per_tib),
                needed=f"one of {', '.join(map(str, tiers))}",
                next=f"see {fsx.addresses['lustre']}",
            )
        row = fsx.capacity(LUSTRE_DEPLOYMENT, LUSTRE_STORAGE, wanted.throughput_mbps_per_tib, efa=wanted.efa)
        if row and not row.takes(wanted.capacity_gib):
            below, above = row.around(wanted.capacity_gib)
            smaller = ", ".join(f"{gib}" for gib in row.below_step)
            yield Problem(
                path=(*path, "capacity_gib"),
                found=str(wanted.capacity_gib),
                needed=f"a multiple of {row.step}"
                + (f", or {smaller}" if smaller else "")
                + (f" (with efa at {wanted.throughput_mbps_per_tib} MB/s per TiB)" if wanted.efa else ""),
                next=f"take {above}" + (f" or {below}" if below else "") + f"; see {fsx.address(row, 'step')}",
            )
        if wanted.metadata_iops is not None and not fsx.metadata.takes(wanted.metadata_iops):
            small = ", ".join(map(str, fsx.metadata.small_iops))
            yield Problem(
                path=(*path, "metadata_iops"),
                found=str(wanted.metadata_iops),
                needed=f"{small}, or a multiple of {fsx.metadata.iops_step} up to {fsx.metadata.iops_max}",
                next=f"correct it, or remove it to get what the size brings; see {fsx.addresses['metadata']}",
            )
        if wanted.backup_days > fsx.backups.retention_days_max:
            yield Problem(
                path=(*path, "backup_days"),
                found=str(wanted.backup_days),
                needed=f"{fsx.backups.retention_days_max} days at most",
                next=f"see {fsx.address(fsx.backups, 'retention_days_max')}",
            )
        if wanted.backup_days and wanted.repository and not fsx.backups.with_data_repository:
            yield Problem(
                path=(*path, "backup_days"),
                found=f"{wanted.backup_days}, and a repository in S3",
                needed="one of them: a file system that is linked to S3 cannot be backed up",
                next="remove backup_days, or repository",
            )


LUSTRE_DEPLOYMENT, LUSTRE_STORAGE = "PERSISTENT_2", "SSD"
"""What is made for a site: replicated, and on flash."""


def _storage_near(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    """EFA reaches a file system in the pool's own zone, from machines that can be its clients."""
    by_name = {each.name: each.value for each in draft.storage if each.value}
    clients = fsx_catalogue().clients
    for pool in draft.pools:
        for index, name in enumerate(pool.storage or ()):
            found = by_name.get(name)
            if found is None:
                continue
            path = ("pools", pool.index, "storage", index)
            if pool.capacity and pool.capacity.zone != found.zone:
                yield Problem(
                    path=path,
                    found=f"{shown(name)} in {found.zone}, from nodes in {pool.capacity.zone}",
                    needed="a file system in the pool's zone"
                    + (
                        ": EFA does not cross zones"
                        if found.efa
                        else "; across zones it is slower, and the traffic is paid for"
                    ),
                    next="set the file system's zone to the pool's, or mount another",
                    warns=not found.efa,
                )
            facts = catalogue.machines.get(pool.machine or "")
            if facts and found.efa and not clients.interfaces(pool.machine or "", facts.network_cards):
                yield Problem(
                    path=path,
                    found=f"{shown(name)} with efa, from {pool.machine}",
                    needed="a machine that can be an EFA client of FSx for Lustre; this one would mount it over TCP",
                    next="make it without efa, or mount it from other machines; "
                    f"see {fsx_catalogue().addresses['nitro']}",
                    warns=pool.machine in clients.machines_without_efa
                    and "machines_without_efa" in clients.unconfirmed,
                )
            if found.efa and pool.fabric == "none":
                yield Problem(
                    path=path,
                    found=f"{shown(name)} with efa, from a pool with fabric none",
                    needed="fabric: efa, whose interfaces the client uses",
                    next="set fabric: efa, or make the file system without efa",
                )


_RULES: tuple[Rule, ...] = (
    _zones_in_region,
    _machine_known,
    _machine_allows,
    _fabric_fits,
    _one_image,
    _pool_names_differ,
    _names_fit,
    _network_is_one,
    _range_fits,
    _cluster_is_one,
    _cluster_zones,
    _existing_zones,
    _version_known,
    _addons_pinned,
    _images_reachable,
    _storage_names,
    _lustre_sizes,
    _storage_near,
    _stable_before_deadline,
)
