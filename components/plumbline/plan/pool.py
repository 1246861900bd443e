"""The plan of one generation of a pool."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from plumbline.catalog import AwsCatalogue, CapacityKind, Machine, fsx_catalogue
from plumbline.plan import labels
from plumbline.plan.account import SeenAccount
from plumbline.plan.interfaces import Interface, interfaces
from plumbline.site import CapacityBlock, Image, OnDemand, Pool, Reservation, ReservationGroup, Site
from plumbline.site.rules import GENERATION_LENGTH


@dataclass(frozen=True, kw_only=True)
class PoolPlan:
    """One generation of a pool: what is created, and what has to be seen on its nodes afterwards."""

    name: str
    """The pool's name."""
    generation: str
    """Digest of what cannot change in place."""
    full_name: str
    """`site-pool-generation`: the name of the node group, so that two generations can live side by side."""
    machine: str
    facts: Machine = field(repr=False)
    nodes: int
    zone: str
    capacity: CapacityKind
    reservation: str | None
    """Id of the capacity reservation or block; None for the other kinds."""
    reservation_group: str | None
    """ARN of the group of reservations."""
    placement_group: str | None
    """Name of the cluster placement group that its reservation was made in."""
    own_placement_group: bool
    """Whether it gets a cluster placement group of its own."""
    starts: datetime | None
    """When its capacity begins, if it has not begun: until then it has no nodes."""
    fabric: Literal["efa", "none"]
    devices: Literal["plugin", "dra"]
    interfaces: tuple[Interface, ...]
    node_labels: Mapping[str, str]
    """Labels that the node group puts on its nodes, and that the gate looks for."""
    taint: tuple[str, str, str]
    """Key, value and effect."""
    resources: Mapping[str, int]
    """Extended resources that every node has to advertise, exactly."""
    slices: Mapping[str, int]
    """DRA drivers, and how many devices of each every node has to offer, exactly."""
    cni_floor: str | None
    """The oldest VPC CNI that its interfaces work with; None where any does."""
    topology_labels: tuple[str, ...]
    """Labels that the cloud writes for the node's place in its network."""
    ami_release: str | None
    image: Image | None
    """An AMI of the user's own."""
    storage: tuple[str, ...]
    """Names of the file systems that it mounts."""
    node_features: Mapping[str, bool]
    """Feature gates of nodeadm that its nodes are started with."""
    kubernetes_version: str
    on_destroy: Literal["refuse", "wait", "evict"]

    @property
    def desired(self) -> int:
        """How many nodes it has now: none before its capacity begins."""
        return 0 if self.starts else self.nodes

    @property
    def paid_by(self) -> str:
        """What pays for it, for people."""
        return self.reservation or self.reservation_group or "on-demand capacity"


def plan_pool(site: Site, pool: Pool, catalogue: AwsCatalogue, seen: SeenAccount | None = None) -> PoolPlan:
    """The plan of the generation that the declaration asks for.

    Args:
        site: the declaration.
        pool: one of its pools.
        catalogue: facts of machines.
        seen: what was read in the account. Only when a capacity block begins is taken from it: a generation never
            depends on what could be read.
    """
    facts = catalogue.machines[pool.machine]
    capacity = pool.capacity
    reservation = capacity.id if isinstance(capacity, Reservation | CapacityBlock) else None
    group = capacity.arn if isinstance(capacity, ReservationGroup) else None
    own_placement = isinstance(capacity, OnDemand) and capacity.placement == "cluster" and pool.fabric != "none"
    placement = capacity.placement_group if isinstance(capacity, Reservation) else None
    nics = interfaces(facts, pool.fabric, pool.layout)
    features = _node_features(site, pool, catalogue)
    subnet = site.network.existing.subnets[capacity.zone] if site.network.existing else None
    generation = _digest(
        machine=pool.machine,
        capacity=capacity.model_dump(mode="json", exclude_defaults=True),
        fabric=pool.fabric,
        interfaces=[(nic.card, nic.device, nic.kind) for nic in nics],
        ami=[facts.ami_type, pool.ami_release],
        kubernetes=site.cluster.version,
        image=pool.image.model_dump(mode="json") if pool.image else None,
        devices=pool.devices if pool.devices != "plugin" else None,
        placement="cluster" if own_placement else None,
        subnet=subnet,
        features=dict(features),
    )
    node_labels = {
        labels.SITE: site.name,
        labels.POOL: pool.name,
        labels.GENERATION: generation,
        labels.FABRIC: pool.fabric,
        labels.ACCELERATOR: facts.accelerator,
        labels.CAPACITY: reservation or capacity.kind,
    }
    if pool.devices == "dra":
        node_labels[labels.DEVICES] = "dra"
    return PoolPlan(
        name=pool.name,
        generation=generation,
        full_name=f"{site.name}-{pool.name}-{generation}",
        machine=pool.machine,
        facts=facts,
        nodes=pool.nodes,
        zone=capacity.zone,
        capacity=capacity.kind,
        reservation=reservation,
        reservation_group=group,
        placement_group=placement,
        own_placement_group=own_placement,
        starts=seen.starts(pool) if seen else None,
        fabric=pool.fabric,
        devices=pool.devices,
        interfaces=nics,
        node_labels=node_labels,
        taint=labels.NEURON_TAINT if facts.accelerator == "neuron" else labels.GPU_TAINT,
        resources=_resources(pool, facts, nics, catalogue),
        slices=_slices(pool, nics, catalogue),
        cni_floor=catalogue.eks.cni_efa_only_floor if any(nic.kind == "efa-only" for nic in nics) else None,
        topology_labels=tuple(
            labels.AWS_NETWORK_LAYER.format(layer=layer) for layer in range(1, facts.topology_layers + 1)
        ),
        ami_release=pool.ami_release,
        image=pool.image,
        storage=pool.storage,
        node_features=features,
        kubernetes_version=site.cluster.version,
        on_destroy=pool.on_destroy,
    )


def _efa(nics: tuple[Interface, ...]) -> int:
    """EFA devices that a node has: those that it is launched with, and not those that its machine could have."""
    return sum(nic.carries_efa for nic in nics)


def _resources(pool: Pool, facts: Machine, nics: tuple[Interface, ...], catalogue: AwsCatalogue) -> dict[str, int]:
    counts = {catalogue.plugins[facts.accelerator].resource: facts.accelerators}
    if pool.fabric == "efa" and pool.devices == "plugin":
        counts[catalogue.plugins["efa"].resource] = _efa(nics)
    return counts


def _slices(pool: Pool, nics: tuple[Interface, ...], catalogue: AwsCatalogue) -> dict[str, int]:
    if pool.fabric != "efa" or pool.devices != "dra":
        return {}
    return {catalogue.plugins["dranet"].resource: _efa(nics)}


def _node_features(site: Site, pool: Pool, catalogue: AwsCatalogue) -> dict[str, bool]:
    """The EFA client of FSx for Lustre, on nodes that mount a file system by EFA."""
    by_efa = {each.name for each in site.storage if each.efa}
    cards = catalogue.machines[pool.machine].network_cards
    client = fsx_catalogue().clients.interfaces(pool.machine, cards) > 0 and not by_efa.isdisjoint(pool.storage)
    return {catalogue.eks.lustre_efa_feature: True} if client else {}


_SINCE_THE_FIRST = {"machine", "capacity", "fabric", "interfaces", "ami", "kubernetes"}


def _digest(**parts: Any) -> str:
    """A short name for a generation.

    A part that came later is left out where it says nothing: a new release of Plumbline replaces nobody's pools.
    """
    said = {name: part for name, part in parts.items() if part or name in _SINCE_THE_FIRST}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:GENERATION_LENGTH]
