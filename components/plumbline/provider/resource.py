"""What the servicer asks of a resource kind. Values are plain; the servicer does the wire."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import ValidationError

Values = Mapping[str, Any]
SECRETS = frozenset({"kubeconfig"})
"""Properties that are always secrets, whatever the program marked."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A resource after an operation: what is recorded, and why it is not as it has to be, if it is not."""

    id: str
    properties: Values
    inputs: Values = field(default_factory=dict)
    failure: str | None = None


class Refused(Exception):
    """An operation that was not done, with the reason for people. Nothing was changed."""


class Resource(Protocol):
    """One kind of resource."""

    def check(self, inputs: Values) -> dict[str, str]:
        """What is wrong with inputs that hold no unknowns: property path to reason."""
        ...

    def changes(self, inputs: Values, old_inputs: Values, state: Values) -> dict[str, str]:
        """What makes an update necessary: property to reason. Empty for none."""
        ...

    def preview(self, inputs: Values) -> Values:
        """Properties as far as they are known before the operation."""
        ...

    async def create(self, inputs: Values, say: Callable[[str], None]) -> Outcome:
        """Make it."""
        ...

    async def update(self, id_: str, inputs: Values, state: Values, say: Callable[[str], None]) -> Outcome:
        """Make it as the inputs say now."""
        ...

    async def read(self, id_: str, inputs: Values, state: Values) -> Outcome:
        """See what became of it. Never raises for what the cluster does."""
        ...

    async def delete(self, id_: str, state: Values, say: Callable[[str], None]) -> None:
        """Let it go. Raises: Refused."""
        ...


def failures(error: ValidationError) -> dict[str, str]:
    """A pydantic error as property paths and reasons."""
    return {".".join(str(part) for part in each["loc"]): each["msg"] for each in error.errors()}


def changed_inputs(inputs: Values, old_inputs: Values) -> dict[str, str]:
    """The inputs that are declared otherwise than they were."""
    names = sorted({*inputs, *old_inputs})
    return {name: "declared otherwise" for name in names if inputs.get(name) != old_inputs.get(name)}
