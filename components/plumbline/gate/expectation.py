"""What a gate was told to expect: its inputs, typed."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class _Input(BaseModel):
    """Names are camel case on the wire, as in every Pulumi provider; numbers arrive there as floats."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class PluginExpectation(_Input):
    """A device plugin that has to run on every node of the pool."""

    namespace: str
    name: str
    """Name of its DaemonSet."""
    image: str
    resource: str
    setting: str
    """Where its image is set: part of the fix."""


class PoolExpectation(_Input):
    """One generation of a pool, as it has to be seen in its cluster."""

    pool: str
    generation: str
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

    @classmethod
    def from_inputs(cls, inputs: Mapping[str, Any]) -> "PoolExpectation":
        """From the gate's inputs; what is not part of the expectation, such as the kubeconfig, is left out.

        Raises:
            pydantic.ValidationError: a field is missing or has another type.
        """
        wanted = {to_camel(name) for name in cls.model_fields}
        return cls.model_validate({key: value for key, value in inputs.items() if key in wanted})

    def inputs(self) -> dict[str, Any]:
        """As a gate's inputs."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def label(self) -> str:
        """For messages."""
        return f"pool {self.pool}, generation {self.generation}"
