"""The facts of FSx for Lustre in `fsx.toml`, typed and checked when they are loaded."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from plumbline.catalog.facts import FactCatalogue, Facts

DeploymentType = Literal["SCRATCH_1", "SCRATCH_2", "PERSISTENT_1", "PERSISTENT_2"]
StorageType = Literal["SSD", "HDD", "INTELLIGENT_TIERING"]


class Capacity(Facts):
    """The capacities that one kind of file system may have."""

    deployment: DeploymentType
    storage: StorageType
    efa: bool
    """Whether the file system is reached over EFA."""
    tiers: tuple[int, ...]
    """MB/s per TiB of storage that may be asked for, one of which has to be; empty where none may be."""
    below_step: tuple[int, ...]
    """Capacities in GiB that are allowed beside the multiples of `step`."""
    step: int = Field(gt=0)
    """GiB; each of its multiples is a capacity."""

    @property
    def smallest(self) -> int:
        """The smallest capacity, in GiB."""
        return min((*self.below_step, self.step))

    def takes(self, gib: int) -> bool:
        """Whether a file system of this kind can have this capacity."""
        return gib in self.below_step or (gib > 0 and gib % self.step == 0)

    def around(self, gib: int) -> tuple[int | None, int]:
        """The largest capacity that is not above `gib`, None where all are above it, and the smallest not below it."""
        multiple = max(gib, 0) // self.step * self.step
        near = {*self.below_step, multiple, multiple + self.step} - {0}
        return max((each for each in near if each <= gib), default=None), min(each for each in near if each >= gib)


class IntelligentTiering(Facts):
    """Storage without a capacity; its throughput is asked for in MB/s of the whole file system."""

    deployments: tuple[DeploymentType, ...]
    small_throughputs: tuple[int, ...]
    """MB/s allowed beside the multiples of the step."""
    throughput_step: int
    throughput_max: int
    efa_throughput_step: int
    """MB/s; with EFA only its multiples."""

    def takes(self, mbps: int, *, efa: bool) -> bool:
        """Whether a file system can have this throughput."""
        step = self.efa_throughput_step if efa else self.throughput_step
        small = not efa and mbps in self.small_throughputs
        return small or (0 < mbps <= self.throughput_max and mbps % step == 0)


class Throughput(Facts):
    """What a file system on SSD or HDD moves, from its capacity and its tier."""

    gib_per_unit: int
    """GiB that AWS counts as the TiB of a tier: 1000, so that 2400 GiB at 50 MB/s/TiB are 120 MB/s."""
    scratch_mbps_per_unit: int
    """The tier that scratch file systems have, which cannot be asked for."""
    network_mbps_per_unit: Mapping[int, int]
    """By tier of PERSISTENT_2: MB/s per unit that the servers' network carries, for what is in their memory."""
    disk_burst_mbps_per_unit: Mapping[int, int]
    """By tier of PERSISTENT_2: MB/s per unit that disks give for a while; where none is listed, the tier."""

    def mbps(self, gib: int, tier: int) -> float:
        """MB/s (10^6 bytes) of a file system's disks: GiB / 1000 x tier."""
        return gib / self.gib_per_unit * tier


class Network(Facts):
    """Where a file system lives and how it is reached."""

    subnets: int
    """How many subnets it is given: exactly so many."""
    ports: tuple[tuple[int, int], ...]
    """First and last port of each range that is open among the servers, and from every client to them and back."""
    protocol: str


class Versions(Facts):
    """Lustre versions of file systems."""

    known: tuple[str, ...]
    without_persistent_2: tuple[str, ...]
    """Versions that PERSISTENT_2 does not take."""
    without_metadata_configuration: tuple[str, ...]
    """Versions that take no metadata configuration."""
    recommended: str
    default: str
    """What a file system gets whose version is not given."""
    default_persistent_2: str
    default_with_metadata_configuration: str
    not_mounted_by_al2023: tuple[str, ...]
    """Versions that the client of Amazon Linux 2023 does not mount."""

    def default_for(self, deployment: str, *, metadata: bool) -> str:
        """The version of a file system of this deployment type that names none."""
        if deployment != "PERSISTENT_2":
            return self.default
        return self.default_with_metadata_configuration if metadata else self.default_persistent_2


class Metadata(Facts):
    """How the rate of metadata operations is asked for."""

    deployments: tuple[DeploymentType, ...]
    modes: tuple[str, ...]
    small_iops: tuple[int, ...]
    """IOPS allowed beside the multiples of the step."""
    iops_step: int
    iops_max: int

    def takes(self, iops: int) -> bool:
        """Whether a file system can be given this many metadata IOPS."""
        return iops in self.small_iops or (0 < iops <= self.iops_max and iops % self.iops_step == 0)


class Efa(Facts):
    """File systems that are reached over EFA."""

    deployments: tuple[DeploymentType, ...]
    storages: tuple[StorageType, ...]
    needs_metadata_configuration: bool
    fixed_at_creation: tuple[str, ...]
    """Properties, in Pulumi's spelling, that cannot change on such a file system."""
    connections: int
    """EFA interfaces of all clients together, at most."""
    advised_above_mbps: int
    """MB/s of the file system above which AWS advises EFA."""


class Clients(Facts):
    """Nodes that mount a file system."""

    gbps: int
    """10^9 bit/s of one client without EFA, at most."""
    gbps_per_server: int
    """10^9 bit/s of one client without EFA to one object storage server, at most."""
    efa_gbps: int
    gds_gbps: int
    """With EFA and GPUDirect Storage."""
    cidr_prefix: int
    """Clients over EFA are in the file system's block of this length, in its VPC and its zone."""
    nitro_version: int
    """The oldest Nitro system whose machines can be clients over EFA."""
    machines_without_efa: tuple[str, ...]
    """Machine types with EFA interfaces that cannot use them for a file system."""
    families_without_efa: tuple[str, ...]
    families_with_gds: tuple[str, ...]
    """All families that can use GPUDirect Storage."""
    gds_driver: str
    """The oldest version of NVIDIA's driver for GPUDirect Storage."""
    efa_interfaces: Mapping[str, int]
    """By machine type: interfaces that AWS's setup takes for a file system."""
    efa_interfaces_of_others: Mapping[Literal["many_cards", "one_card"], int]
    systems: tuple[str, ...]
    """Operating systems, for people."""

    def interfaces(self, machine: str, cards: int) -> int:
        """EFA interfaces that a node of this type connects with; 0 where it cannot be a client over EFA."""
        if machine in self.machines_without_efa or machine.partition(".")[0] in self.families_without_efa:
            return 0
        others = self.efa_interfaces_of_others["many_cards" if cards > 1 else "one_card"]
        return self.efa_interfaces.get(machine, others)


class Backups(Facts):
    """Backups of file systems."""

    deployments: tuple[DeploymentType, ...]
    """Deployment types that can be backed up."""
    retention_days_max: int
    """Days that an automatic backup is kept, at most; 0 days switch them off."""
    with_data_repository: bool
    """Whether a file system that is linked to a data repository can be backed up."""


class Associations(Facts):
    """Links between a directory of a file system and a place in S3."""

    most: int
    """On one file system."""
    not_deployments: tuple[DeploymentType, ...]
    not_storages: tuple[StorageType, ...]
    versions: tuple[str, ...]
    """Lustre versions that take one."""
    chunk_mib_max: int
    """MiB of an imported file on one disk, at most."""
    import_path_deployments: tuple[DeploymentType, ...]
    """Deployment types that take the older `importPath` instead."""


class FsxCatalogue(FactCatalogue):
    """Everything in `fsx.toml`."""

    capacities: tuple[Capacity, ...]
    intelligent_tiering: IntelligentTiering
    throughput: Throughput
    network: Network
    versions: Versions
    metadata: Metadata
    efa: Efa
    clients: Clients
    backups: Backups
    associations: Associations

    @property
    def tables(self) -> Sequence[Facts]:
        """Every table of facts."""
        named = (getattr(self, name) for name in type(self).model_fields)
        return [*self.capacities, *(value for value in named if isinstance(value, Facts))]

    @model_validator(mode="after")
    def _no_kind_has_two_rows(self) -> Self:
        kinds: set[tuple[str, str, bool, int | None]] = set()
        for row in self.capacities:
            for tier in row.tiers or (None,):
                kind = (row.deployment, row.storage, row.efa, tier)
                if kind in kinds:
                    raise ValueError(f"two rows of capacities for {kind}")
                kinds.add(kind)
        return self

    @property
    def deployments(self) -> tuple[str, ...]:
        """All deployment types, oldest first."""
        return tuple(dict.fromkeys(row.deployment for row in self.capacities))

    def storages(self, deployment: str) -> tuple[str, ...]:
        """The storage types that a deployment type takes; empty for one that does not exist."""
        tiering = ("INTELLIGENT_TIERING",) if deployment in self.intelligent_tiering.deployments else ()
        return (*dict.fromkeys(row.storage for row in self.capacities if row.deployment == deployment), *tiering)

    def tiers(self, deployment: str, storage: str, *, efa: bool = False) -> tuple[int, ...]:
        """The tiers in MB/s/TiB of a kind of file system, in ascending order; empty where none can be asked for."""
        return tuple(sorted(tier for row in self._rows(deployment, storage, efa) for tier in row.tiers))

    def capacity(self, deployment: str, storage: str, tier: int | None, *, efa: bool = False) -> Capacity | None:
        """The capacities of one kind of file system; None where there is no such kind."""
        for row in self._rows(deployment, storage, efa):
            if tier in row.tiers or (tier is None and not row.tiers):
                return row
        return None

    def _rows(self, deployment: str, storage: str, efa: bool) -> list[Capacity]:
        return [row for row in self.capacities if (row.deployment, row.storage, row.efa) == (deployment, storage, efa)]


@cache
def fsx_catalogue() -> FsxCatalogue:
    """The catalogue that is shipped with this version."""
    text = files("plumbline.catalog").joinpath("fsx.toml").read_text("utf-8")
    raw: dict[str, Any] = tomllib.loads(text)
    return FsxCatalogue.model_validate(raw)
