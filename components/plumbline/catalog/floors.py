"""The floors of bandwidth in `floors.toml`, typed and checked when they are loaded."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class DefaultFloor(BaseModel):
    """The floor of what has no row of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float = Field(gt=0, le=2)
    """Of a node's line rate, for the bus bandwidth of an all-reduce."""
    at_least: int = Field(gt=0)
    """Bytes; a smaller message proves nothing."""
    source: str
    """Name of its address in `[addresses]`."""


class Floor(DefaultFloor):
    """The floor of one machine, for a range of node counts."""

    machine: str
    nodes: tuple[int, int]
    """The smallest and the largest count, both included."""
    published: tuple[float, ...]
    """GB/s that its source measured in health, each of which passes."""
    unconfirmed: bool = False
    """Whether no primary source states the count of nodes or the value."""

    def holds(self, machine: str, nodes: int) -> bool:
        """Whether it is for so many nodes of this machine."""
        return self.machine == machine and self.nodes[0] <= nodes <= self.nodes[1]


class FloorCatalogue(BaseModel):
    """Everything in `floors.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    addresses: Mapping[str, str]
    default: DefaultFloor
    floors: tuple[Floor, ...]

    @model_validator(mode="after")
    def _every_row_has_an_address_and_a_range_of_its_own(self) -> Self:
        if unknown := {each.source for each in (self.default, *self.floors)} - set(self.addresses):
            raise ValueError(f"sources without an address: {', '.join(sorted(unknown))}")
        for row in self.floors:
            if not 2 <= row.nodes[0] <= row.nodes[1]:
                raise ValueError(f"{row.machine}: nodes {list(row.nodes)} is no range from 2 upwards")
        for one, other in combinations(self.floors, 2):
            if one.machine == other.machine and one.nodes[0] <= other.nodes[1] and other.nodes[0] <= one.nodes[1]:
                raise ValueError(f"{one.machine}: nodes {list(one.nodes)} and {list(other.nodes)} overlap")
        return self

    def floor(self, machine: str, nodes: int) -> Floor | DefaultFloor:
        """The floor for so many nodes of a machine; the default where there is no row."""
        return next((each for each in self.floors if each.holds(machine, nodes)), self.default)

    def address(self, floor: DefaultFloor) -> str:
        """The address that a floor comes from."""
        return self.addresses[floor.source]


@cache
def floor_catalogue() -> FloorCatalogue:
    """The floors that are shipped with this version."""
    text = files("plumbline.catalog").joinpath("floors.toml").read_text("utf-8")
    raw: dict[str, Any] = tomllib.loads(text)
    return FloorCatalogue.model_validate(raw)
