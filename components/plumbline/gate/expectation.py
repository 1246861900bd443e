"""What a gate was told to expect: its inputs, typed."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field

from plumbline.gate.inputs import Input, PoolInput
from plumbline.probe.fabrics import FabricName


class PluginExpectation(Input):
    """A device plugin, or a DRA driver, that has to run on every node of the pool."""

    later: ClassVar[frozenset[str]] = frozenset({"driver"})

    namespace: str
    name: str
    """Name of its DaemonSet."""
    image: str
    resource: str
    setting: str
    """Where its image is set: part of the fix."""
    driver: str | None = None
    """Name of the DRA driver that it is: it publishes ResourceSlices instead of advertising a resource."""

    @property
    def title(self) -> str:
        """What it is, for messages."""
        return f"{self.driver} DRA driver" if self.driver else f"{self.resource} device plugin"


class StorageExpectation(Input):
    """A file system that every node of the pool mounts, and what it has to give."""

    name: str
    """Its name in the declaration."""
    claim: str
    """Name of the claim in the probes' namespace by which it is mounted."""
    kind: Literal["lustre"]
    network: Literal["tcp", "efa"]
    """Type of the LNet network by which its targets have to be reached."""
    interfaces: int = Field(ge=1)
    """LNet interfaces of that type that each node has to have, at least."""
    provisioned_mbps: float | None = Field(default=None, gt=0)
    """MB/s (10^6 bytes) that it was made for, for all clients together; None where nobody knows: then no speed passes.
    """
    share: float = Field(default=0.7, gt=0, le=2)
    """Of that, what write and read have to reach."""


class DeviceClaim(Input):
    """Devices that a pod asks for by Dynamic Resource Allocation."""

    device_class: str
    count: int = Field(ge=1)


class ProbeExpectation(Input):
    """What probes in pods have to show: devices, transport, bandwidth and storage."""

    namespace: str
    """Where they run."""
    image: str
    setting: str
    """Where their image is set: part of the fix."""
    fabric: FabricName | None
    """None for a pool without one."""
    processes: int = Field(ge=0)
    """Ranks on each node: its GPUs."""
    nics: int = Field(ge=0)
    """Network devices of the fabric on each node."""
    resources: Mapping[str, str]
    """Limits of a pod that has a node to itself, as a training pod has them: devices, huge pages, memory."""
    claims: tuple[DeviceClaim, ...] = ()
    """Devices that it gets by DRA."""
    network: str = ""
    """The network that the pinned run names in NCCL_NET, so that NCCL fails where it cannot have it."""
    environment: Mapping[str, str] = {}
    """What both runs set, as a job on this machine does."""
    gpu_direct: bool = True
    """Whether every connection has to be GPU-direct."""
    line_gbps: float = Field(default=0.0, ge=0)
    """Line rate of all of a node's fabric interfaces together, in 10^9 bit/s."""
    share: float | None = Field(default=None, gt=0, le=2)
    """The floor of the bus bandwidth as a share of that; None for the catalogue's."""
    at_least: int | None = Field(default=None, gt=0)
    """Bytes from which a message counts; None for the catalogue's."""
    storage: tuple[StorageExpectation, ...] = ()
    off: Mapping[str, str] = {}
    """Phases that the user declared off, with the reason."""
    inapplicable: Mapping[str, str] = {}
    """Phases that do not apply to the pool, with the reason, such as that it has no fabric."""
    exclude_at_most: int = Field(default=0, ge=0)
    """How many bad nodes the pool may complete without: they stay tainted, and are named."""
    when_busy: Literal["keep", "wait", "fail"] = "keep"
    """What a new proof does with nodes on which jobs run."""
    mark: Literal["taint", "label"] = "taint"
    """Whether unproven nodes keep training pods off by a taint, or jobs select nodes by the label of proven ones."""


class PoolExpectation(PoolInput):
    """One generation of a pool, as it has to be seen in its cluster."""

    later: ClassVar[frozenset[str]] = frozenset(
        {"slices", "starts", "accept_deferred", "cni_floor", "driver_floor", "huge_pages", "probes", "requested"}
    )

    nodes: int = Field(ge=1)
    node_selector: Mapping[str, str] = Field(min_length=1)
    """Labels by which the cloud marks the nodes of this generation."""
    machine: str
    zone: str
    architecture: str
    node_labels: Mapping[str, str]
    """Labels of ours that every node has to have."""
    topology_labels: tuple[str, ...] = ()
    """Labels of the cloud for a node's place in its network; their absence warns."""
    resources: Mapping[str, int]
    """Extended resources that every node has to advertise, exactly."""
    slices: Mapping[str, int] = {}
    """Devices that every node has to offer in ResourceSlices, exactly, by DRA driver."""
    plugins: tuple[PluginExpectation, ...]
    within_seconds: float = Field(gt=0)
    stable_seconds: float = Field(ge=0)
    valid_seconds: float = Field(gt=0)
    cni_floor: str | None = None
    """The oldest VPC CNI that its interfaces work with; None where any does."""
    driver_floor: str | None = None
    """The oldest NVIDIA driver that the machine works with; None where any current one does."""
    huge_pages: bool = False
    """Whether its fabric's software uses huge pages of 2 MiB, which the image sets aside; their absence warns."""
    starts: AwareDatetime | None = None
    """When its capacity begins, if it has not begun: until then nothing is proven."""
    accept_deferred: str | None = None
    """The reason for which it may be unproven until then."""
    probes: ProbeExpectation | None = None
    """What is measured in pods; None in what an older release recorded."""
    requested: str | None = None
    """When a new proof was asked for by `plumbline prove`, whatever the last one says."""
