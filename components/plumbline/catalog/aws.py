"""The AWS facts in `aws.toml`, typed and checked when they are loaded."""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _Facts(BaseModel):
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


class Machine(_Facts):
    """What one EC2 instance type is, as far as a plan or a gate depends on it."""

    gpu: str
    """The accelerator's name, for people."""
    gpus: int = Field(gt=0)
    architecture: str = Field(pattern="^(amd64|arm64)$")
    """The architecture of its images, in Kubernetes' spelling."""
    network_cards: int = Field(gt=0)
    """Network cards, with indexes from 0."""
    cards_without_efa: tuple[int, ...]
    """Indexes of the cards that take no EFA interface."""
    interfaces_per_card: int = Field(gt=0)
    efa_gbps: int = Field(gt=0)
    """Line rate of all EFA interfaces together, in 10^9 bit/s."""
    topology_layers: int = Field(ge=0)
    """How many `topology.k8s.aws/network-node-layer-N` labels its nodes get; layer 1 is the top."""
    ami_type: str

    @property
    def efa_interfaces(self) -> int:
        """EFA interfaces at most, one on each card that takes one: what a node has to advertise."""
        return self.network_cards - len(self.cards_without_efa)


class PluginFacts(_Facts):
    """A device plugin: the resource it advertises and the image that is the default."""

    resource: str
    image: str


class EksFacts(_Facts):
    """Limits of EKS."""

    kubernetes_versions: tuple[str, ...]
    cluster_zones: int
    nodegroup_name_length: int
    role_name_length: int


class AwsCatalogue(BaseModel):
    """Everything in `aws.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    addresses: Mapping[str, str]
    machines: Mapping[str, Machine]
    plugins: Mapping[str, PluginFacts]
    eks: EksFacts

    @model_validator(mode="after")
    def _every_source_has_an_address(self) -> Self:
        tables: list[_Facts] = [*self.machines.values(), *self.plugins.values(), self.eks]
        named = {source for table in tables for source in table.sources.values()}
        if unknown := named - set(self.addresses):
            raise ValueError(f"sources without an address: {', '.join(sorted(unknown))}")
        return self

    def address(self, facts: _Facts, fact: str) -> str:
        """The address that `fact` of the table `facts` comes from."""
        return self.addresses[facts.sources[fact]]


@cache
def aws_catalogue() -> AwsCatalogue:
    """The catalogue that is shipped with this version."""
    text = files("plumbline.catalog").joinpath("aws.toml").read_text("utf-8")
    raw: dict[str, Any] = tomllib.loads(text)
    return AwsCatalogue.model_validate(raw)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that look like `name`, the most alike first; for "did you mean"."""
    return difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
