"""The plan of one generation of a pool."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from plumbline.catalog import AwsCatalogue, Machine
from plumbline.plan import labels
from plumbline.plan.interfaces import Interface, interfaces
from plumbline.site import Pool, Reservation, Site
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
    reservation: str | None
    """Id of the capacity reservation; None for on-demand."""
    fabric: Literal["efa", "none"]
    interfaces: tuple[Interface, ...]
    node_labels: Mapping[str, str]
    """Labels that the node group puts on its nodes, and that the gate looks for."""
    taint: tuple[str, str, str]
    """Key, value and effect."""
    resources: Mapping[str, int]
    """Extended resources that every node has to advertise, exactly."""
    topology_labels: tuple[str, ...]
    """Labels that the cloud writes for the node's place in its network."""
    ami_release: str | None
    kubernetes_version: str
    on_destroy: Literal["refuse", "wait", "evict"]


def plan_pool(site: Site, pool: Pool, catalogue: AwsCatalogue) -> PoolPlan:
    """The plan of the generation that the declaration asks for."""
    facts = catalogue.machines[pool.machine]
    reservation = pool.capacity.id if isinstance(pool.capacity, Reservation) else None
    resources = {catalogue.plugins["nvidia"].resource: facts.gpus}
    if pool.fabric == "efa":
        resources[catalogue.plugins["efa"].resource] = facts.efa_interfaces
    nics = interfaces(facts, pool.fabric)
    generation = _digest(
        machine=pool.machine,
        capacity=pool.capacity.model_dump(mode="json"),
        fabric=pool.fabric,
        interfaces=[(nic.card, nic.device, nic.kind) for nic in nics],
        ami=[facts.ami_type, pool.ami_release],
        kubernetes=site.cluster.version,
    )
    return PoolPlan(
        name=pool.name,
        generation=generation,
        full_name=f"{site.name}-{pool.name}-{generation}",
        machine=pool.machine,
        facts=facts,
        nodes=pool.nodes,
        zone=pool.capacity.zone,
        reservation=reservation,
        fabric=pool.fabric,
        interfaces=nics,
        node_labels={
            labels.SITE: site.name,
            labels.POOL: pool.name,
            labels.GENERATION: generation,
            labels.FABRIC: pool.fabric,
            labels.ACCELERATOR: "nvidia",
            labels.CAPACITY: reservation or pool.capacity.kind,
        },
        taint=labels.GPU_TAINT,
        resources=resources,
        topology_labels=tuple(
            labels.AWS_NETWORK_LAYER.format(layer=layer) for layer in range(1, facts.topology_layers + 1)
        ),
        ami_release=pool.ami_release,
        kubernetes_version=site.cluster.version,
        on_destroy=pool.on_destroy,
    )


def _digest(**parts: Any) -> str:
    """A short name for a generation. A field is added here only with the next generation of everybody's pools."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:GENERATION_LENGTH]
