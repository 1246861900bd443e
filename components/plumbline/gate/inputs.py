"""The inputs of our resources, typed: as they travel to the provider, and as its code reads them."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer
from pydantic.alias_generators import to_camel


class Input(BaseModel):
    """Names are camel case on the wire, as in every Pulumi provider; numbers arrive there as floats."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)
    later: ClassVar[frozenset[str]] = frozenset()
    """Fields that came after the first release. They are written only where they say something: inputs and digests
    that an older release recorded stay the same, and nobody's proof is lost to an update of this package.
    """

    @model_serializer(mode="wrap")
    def _without_what_says_nothing(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = plain(self)
        for name in self.later:
            if getattr(self, name) == type(self).model_fields[name].default:
                written.pop(name, None)
                written.pop(to_camel(name), None)
        return written


class PoolInput(Input):
    """The inputs of a resource that concerns one generation of a pool."""

    pool: str
    generation: str

    @classmethod
    def from_inputs(cls, inputs: Mapping[str, Any]) -> Self:
        """From the resource's inputs; what is not part of this model, such as the kubeconfig, is left out.

        Raises:
            pydantic.ValidationError: a field is missing or has another type.
        """
        wanted = {to_camel(name) for name in cls.model_fields}
        return cls.model_validate({key: value for key, value in inputs.items() if key in wanted})

    def inputs(self) -> dict[str, Any]:
        """As the resource's inputs."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def label(self) -> str:
        """For messages."""
        return f"pool {self.pool}, generation {self.generation}"
