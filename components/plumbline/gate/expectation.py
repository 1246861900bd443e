"""What a gate was told to expect: its inputs, typed."""

from collections.abc import Mapping

from pydantic import AwareDatetime, Field

from plumbline.gate.inputs import Input, PoolInput


class PluginExpectation(Input):
    """A device plugin that has to run on every node of the pool."""

    namespace: str
    name: str
    """Name of its DaemonSet."""
    image: str
    resource: str
    setting: str
    """Where its image is set: part of the fix."""


class PoolExpectation(PoolInput):
    """One generation of a pool, as it has to be seen in its cluster."""

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
    plugins: tuple[PluginExpectation, ...]
    within_seconds: float = Field(gt=0)
    stable_seconds: float = Field(ge=0)
    valid_seconds: float = Field(gt=0)
    starts: AwareDatetime | None = None
    """When its capacity begins, if it has not begun: until then nothing is proven."""
    accept_deferred: str | None = None
    """The reason for which it may be unproven until then."""
