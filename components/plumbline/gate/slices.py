"""Devices that DRA drivers offer, counted from ResourceSlices. Pure.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-slice-v1/
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from plumbline.catalog.dra import DRIVERS

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What one DRA driver offers, in the whole cluster."""

    devices: Mapping[str, int] = field(default_factory=dict)
    """Devices per node, of the pools that are complete; a node that is not here is offered none."""
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Nodes of pools that are not complete, and what is missing: their devices are not known."""
    tainted: Mapping[str, int] = field(default_factory=dict)
    """Devices per node that are there and carry a taint, so that no pod gets them; they are not among `devices`."""
    refused: int = 0
    """HTTP status with which the API server refused to list slices; 0 where it did not. Nothing is known then."""

    def on(self, node: str) -> int | None:
        """Devices that a node is offered; None where that is not known."""
        return None if self.refused or node in self.incomplete else self.devices.get(node, 0)


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A ResourceSlice with nothing but what is counted: on 5,000 nodes, whole ones are some 100 MB."""

    driver: str
    pool: str
    generation: int
    slices: int
    """How many slices the pool has at this generation."""
    node: str
    """The node of all its devices; empty where each names its own, or none."""
    devices: tuple[tuple[str, str, bool], ...]
    """Those of the hardware that the driver is known for: name, node, and whether a taint keeps pods off."""

    @classmethod
    def from_json(cls, resource_slice: Json) -> "Slice":
        """From a ResourceSlice object."""
        spec = resource_slice["spec"]
        driver, node = spec["driver"], spec.get("nodeName") or ""
        return cls(
            driver=driver,
            pool=spec["pool"]["name"],
            generation=spec["pool"]["generation"],
            slices=spec["pool"]["resourceSliceCount"],
            node=node,
            devices=tuple(
                (device["name"], node or device.get("nodeName") or "", _is_tainted(device))
                for device in spec.get("devices") or ()
                if _is_meant(driver, device)
            ),
        )


def offer(driver: str, slices: Iterable[Slice]) -> Offer:
    """What a driver offers, by its slices; those of other drivers are passed over.

    Of each pool only the newest generation counts, and only if all its slices are there. A device that is not bound to
    a node by name counts for none.
    """
    pools: dict[str, list[Slice]] = defaultdict(list)
    for each in slices:
        if each.driver == driver:
            pools[each.pool].append(each)
    devices: dict[str, int] = defaultdict(int)
    tainted: dict[str, int] = defaultdict(int)
    incomplete: dict[str, str] = {}
    for name, members in sorted(pools.items()):
        newest = max(each.generation for each in members)
        current = [each for each in members if each.generation == newest]
        wanted = max(each.slices for each in current)
        if len(current) != wanted:
            nodes = {each.node for each in members} | {node for each in members for _, node, _ in each.devices}
            missing = f"pool {name}, generation {newest}: {len(current)} of {wanted} slices"
            incomplete.update(dict.fromkeys(nodes - {""}, missing))
            continue
        # A device's name is unique in its pool, however its slices divide it.
        for _, node, taint in {device[0]: device for each in current for device in each.devices}.values():
            if node:
                (tainted if taint else devices)[node] += 1
    return Offer(devices=dict(devices), incomplete=incomplete, tainted=dict(tainted))


def _is_meant(driver: str, device: Json) -> bool:
    """Whether a device is of the hardware that the driver is known for; every device of an unknown driver is."""
    rule = DRIVERS.get(driver)
    if rule is None:
        return True
    attributes = device.get("attributes") or {}
    domain, _, short = rule.attribute.partition("/")
    # A name without a domain is in the driver's own.
    value = attributes.get(rule.attribute) or (attributes.get(short) if domain == driver else None) or {}
    return bool(value.get("string") == rule.value)


def _is_tainted(device: Json) -> bool:
    return any(taint.get("effect") in ("NoSchedule", "NoExecute") for taint in device.get("taints") or ())
