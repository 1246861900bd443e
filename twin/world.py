"""What the simulated clouds may ask of the world: clusters, machines, faults, and a place to keep documents.

The clouds (`twin.aws`) know the rules of a provider; the world knows control planes, nodes and pods. This module is the
whole seam between the two, so either side is tested with a small stand-in for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Document = dict[str, Any]
"""A JSON object, as a store keeps it."""


@dataclass(frozen=True, kw_only=True)
class Taint:
    """A taint of a node. `effect` is spelled as Kubernetes does: `NoSchedule`, `PreferNoSchedule`, `NoExecute`."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A booted virtual machine that will register as a node of one cluster."""

    id: str
    cluster: str
    machine: str
    """Instance type, for example `p5.48xlarge`."""
    architecture: Literal["amd64", "arm64"]
    region: str
    zone: str
    zone_id: str
    provider_id: str
    """For example `aws:///us-west-2b/i-0123456789abcdef0`."""
    node_name: str
    """For example `ip-10-20-1-17.us-west-2.compute.internal`."""
    private_ip: str
    labels: Mapping[str, str]
    """Labels beyond those that every node has: the node group's own, `eks.amazonaws.com/nodegroup`, …"""
    taints: tuple[Taint, ...]
    cpus: int
    memory_mib: int
    hugepages_2mi_mib: int
    max_pods: int
    gpus: int
    efa_interfaces: int
    """How many EFA interfaces its launch template gave it; not how many the machine type could have."""
    kubelet_version: str
    """For example `v1.34.2-eks-ecaa3a6`."""
    os_image: str
    kernel: str
    group: str
    """Name of the node group that launched it."""
    neuron_devices: int = 0
    """Trainium or Inferentia devices; documents of older rehearsals do not tell."""
    neuron_cores: int = 0
    """Cores of all its Neuron devices together."""


@dataclass(frozen=True, kw_only=True)
class ClusterAccess:
    """How to reach a cluster's API server."""

    endpoint: str
    """For example `https://127.0.0.1:41231`."""
    certificate_authority_pem: str


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One named way in which the world goes wrong. Off by default."""

    name: str
    description: str
    """One line: what somebody would see."""
    bites: str
    """Where the simulation honours it."""


class Store(Protocol):
    """Persistent JSON documents by (kind, id). Each write is atomic and survives a crash of the daemon."""

    def get(self, kind: str, id: str) -> Document | None:
        """Return a copy of a document, or None where there is none."""
        ...

    def put(self, kind: str, id: str, document: Document) -> None:
        """Write a document in place of any earlier one."""
        ...

    def delete(self, kind: str, id: str) -> None:
        """Forget a document; nothing happens where there is none."""
        ...

    def list(self, kind: str) -> dict[str, Document]:
        """Return copies of all documents of a kind, by id, in the order of their ids."""
        ...


class World(Protocol):
    """The simulated world as a cloud sees it."""

    @property
    def store(self) -> Store:
        """Where a cloud keeps what it knows."""
        ...

    async def create_cluster(self, name: str, version: str) -> ClusterAccess:
        """Give a cluster its control plane and return when its API server is ready. Repeating it is harmless."""
        ...

    async def delete_cluster(self, name: str) -> None:
        """Take a cluster away with everything in it. Nothing happens where there is none."""
        ...

    async def install(self, cluster: str, name: str, image: str) -> None:
        """Run a program of the cloud's own on every node of a cluster: a DaemonSet in kube-system of that name.

        Repeating it with another image changes the image.
        """
        ...

    async def launch(self, instance: Instance) -> None:
        """Boot a machine. It registers as a node of its cluster a little later, unless a fault forbids that."""
        ...

    async def joined(self, instance_id: str) -> bool:
        """Say whether the machine has registered as a node that is Ready."""
        ...

    async def terminate(self, instance_id: str) -> None:
        """End a machine: its node object goes and its pods with it. Nothing happens where there is none."""
        ...

    def fault(self, name: str) -> Fault | None:
        """Return the fault while it is on, and None while it is off.

        Raises:
            KeyError: no fault has that name.
        """
        ...

    def scaled(self, seconds: float) -> float:
        """Turn seconds as a cloud would take them into seconds of the rehearsal."""
        ...
