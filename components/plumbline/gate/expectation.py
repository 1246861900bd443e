"""What a gate was told to expect: its inputs, typed."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import AwareDatetime, Field

from plumbline.gate.inputs import Input, PoolInput


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


class PoolExpectation(PoolInput):
    """One generation of a pool, as it has to be seen in its cluster."""

    later: ClassVar[frozenset[str]] = frozenset(
        {"slices", "starts", "accept_deferred", "cni_floor", "driver_floor", "huge_pages"}
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
