"""Facts as data: tables in which every fact names its source, and catalogues in which every source has an address."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator


class Facts(BaseModel):
    """A table of facts in which every fact names its source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: Mapping[str, str]
    """For each fact, the name of its address in `[addresses]`."""
    unconfirmed: tuple[str, ...] = ()
    """Facts that no primary source confirms: what they decide warns, and never fails."""

    @model_validator(mode="after")
    def _every_fact_has_a_source(self) -> Self:
        facts = set(type(self).model_fields) - {"sources", "unconfirmed"}
        if missing := facts - set(self.sources):
            raise ValueError(f"no source for {', '.join(sorted(missing))}")
        if unknown := (set(self.sources) | set(self.unconfirmed)) - facts:
            raise ValueError(f"a source for no fact: {', '.join(sorted(unknown))}")
        return self


class FactCatalogue(BaseModel):
    """Tables of facts, with the addresses that they come from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    addresses: Mapping[str, str]

    @property
    @abstractmethod
    def tables(self) -> Sequence[Facts]:
        """Every table of facts."""

    @model_validator(mode="after")
    def _every_source_has_an_address(self) -> Self:
        named = {source for table in self.tables for source in table.sources.values()}
        if unknown := named - set(self.addresses):
            raise ValueError(f"sources without an address: {', '.join(sorted(unknown))}")
        return self

    def address(self, facts: Facts, fact: str) -> str:
        """The address that `fact` of the table `facts` comes from."""
        return self.addresses[facts.sources[fact]]
