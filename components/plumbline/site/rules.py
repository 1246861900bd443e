"""Rules that join several fields of a declaration, each a function from the parts that could be read to problems."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from plumbline.catalog import AwsCatalogue, nearest
from plumbline.site.model import Capacity, Cluster, Network, Proof
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
    capacity: Capacity | None = None


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The parts of a declaration that could be read; None for one that could not."""

    name: str | None = None
    region: str | None = None
    network: Network | None = None
    cluster: Cluster | None = None
    proof: Proof | None = None
    pools: tuple[PoolDraft, ...] = ()

    @property
    def pool_zones(self) -> list[tuple[int, str]]:
        """Zones of the pools whose capacity could be read, each with the pool's place."""
        return [(pool.index, pool.capacity.zone) for pool in self.pools if pool.capacity]


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


def _range_fits(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    if draft.network and not 16 <= draft.network.cidr.prefixlen <= 20:
        yield Problem(
            path=("network", "cidr"),
            found=shown(str(draft.network.cidr)),
            needed="a prefix from /16 (the largest VPC) to /20 (512 addresses in each zone's eighth)",
            next="for example 10.20.0.0/16",
        )


def _cluster_zones(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    if draft.network is None or len(draft.pool_zones) < max(1, len(draft.pools)):
        return  # a pool's zone that could not be read may be the second one
    zones = sorted({zone for _, zone in draft.pool_zones} | set(draft.network.zones))
    wanted = catalogue.eks.cluster_zones
    if len(zones) < wanted:
        yield Problem(
            path=("network", "zones"),
            found=f"one zone in all, {zones[0]}",
            needed=f"{wanted} zones, counted with those of the pools: EKS wants its subnets in {wanted} zones at least",
            next=f"add zones: [{_another(zones[0])}] under network; nothing but the cluster's endpoints goes there",
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


_RULES: tuple[Rule, ...] = (
    _zones_in_region,
    _machine_known,
    _pool_names_differ,
    _names_fit,
    _range_fits,
    _cluster_zones,
    _version_known,
    _stable_before_deadline,
)
