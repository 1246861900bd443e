"""What rules look at: the parts of a declaration that could be read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from plumbline.catalog import AwsCatalogue, Machine
from plumbline.site.model import Capacity, Cluster, ExistingLustre, Image, Lustre, Network, Plugins, Proof
from plumbline.site.problems import Problem


@dataclass(frozen=True, kw_only=True)
class PoolDraft:
    """The parts of a pool that could be read; None for one that could not."""

    index: int
    """The pool's place in the file."""
    name: str | None = None
    machine: str | None = None
    nodes: int | None = None
    capacity: Capacity | None = None
    fabric: str | None = None
    devices: str | None = None
    layout: str | None = None
    ami_release: str | None = None
    image: Image | None = None
    storage: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class StorageDraft:
    """A file system as far as it could be read."""

    index: int
    """Its place in the file."""
    name: str | None = None
    """Its name, also where the rest could not be read."""
    value: Lustre | ExistingLustre | None = None


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The parts of a declaration that could be read; None for one that could not."""

    name: str | None = None
    region: str | None = None
    network: Network | None = None
    cluster: Cluster | None = None
    plugins: Plugins | None = None
    proof: Proof | None = None
    pools: tuple[PoolDraft, ...] = ()
    storage: tuple[StorageDraft, ...] = ()

    @property
    def pool_zones(self) -> list[tuple[int, str]]:
        """Zones of the pools whose capacity could be read, each with the pool's place."""
        return [(pool.index, pool.capacity.zone) for pool in self.pools if pool.capacity]

    def machines(self, catalogue: AwsCatalogue) -> Iterator[tuple[PoolDraft, str, Machine]]:
        """Pools whose machine is in the catalogue, with its name and facts."""
        for pool in self.pools:
            if pool.machine is not None and (facts := catalogue.machines.get(pool.machine)):
                yield pool, pool.machine, facts


Rule = Callable[[Draft, AwsCatalogue], Iterator[Problem]]
