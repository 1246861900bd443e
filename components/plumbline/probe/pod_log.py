"""What a probe's pod wrote to its log, as typed values: the counterpart of the programs in `plumbline.probe.pod`.

Each of their reports is one line, `PLUMBLINE ` and a JSON document; whatever else is in the log is left alone. A log is
never trusted: what is cut, missing or of another kind is not there, and never counts as good.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MARK = "PLUMBLINE "
RunName = Literal["pinned", "chosen"]


@dataclass(frozen=True, kw_only=True)
class PortSeen:
    """A port of an RDMA device, from `/sys/class/infiniband`."""

    device: str
    port: int
    state: str
    """Such as `ACTIVE`; empty where it could not be read."""
    rate_gbps: float | None
    """In 10^9 bit/s; None where it could not be read."""
    link_layer: str


@dataclass(frozen=True, kw_only=True)
class NodeSeen:
    """What is there inside a pod."""

    node: str
    host: str
    """The pod's own host name, which NCCL prints."""
    device_files: tuple[str, ...]
    """Names in `/dev/infiniband`, such as `uverbs0`."""
    ports: tuple[PortSeen, ...]
    fi_info: str
    """What `fi_info -p efa` printed; empty where it was not run."""
    fi_info_code: int | None
    """How it ended; None where there is no such program in the image."""
    huge_pages: tuple[int, int] | None
    """Huge pages of 2 MiB in the node: all, and free ones. None where it could not be read."""
    memlock: int | None
    """Bytes that may be locked; -1 for no limit, None where it could not be read."""
    gpus: tuple[str, ...]
    """Names of GPUs."""
    counters: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    """By run and device: bytes sent (`tx`) as they were before and after it."""
    problems: tuple[str, ...] = ()
    """What went wrong in looking, in words."""


@dataclass(frozen=True, kw_only=True)
class SizeSeen:
    """One message size, as a rank measured it."""

    bytes: int
    iterations: int
    seconds: float
    """One all-reduce of the slowest rank, on average."""
    wrong: int
    """Elements whose value is wrong."""


@dataclass(frozen=True, kw_only=True)
class RankSeen:
    """What one rank of one run reports."""

    run: RunName
    rank: int
    node: str
    host: str
    backend: str
    """`nccl`; `gloo` where the pod has no GPU."""
    versions: Mapping[str, str]
    sizes: tuple[SizeSeen, ...]
    log: str
    """Its own lines of NCCL."""
    cut: bool
    """Whether lines were left out, because there were too many."""
    error: str
    """Why it ended early; empty where it did not."""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """One transfer of one client."""

    bytes: int
    seconds: float
    """From the moment at which all clients began until this one was done."""


@dataclass(frozen=True, kw_only=True)
class StorageSeen:
    """A file system, as one node reaches it."""

    name: str
    node: str
    source: str
    """What is mounted, such as `10.0.0.5@efa:/abcdef`; empty where nothing is."""
    type: str
    """`lustre`; another type where the claim is served by something else."""
    networks: str
    """What `lnetctl net show` printed; empty without it."""
    nis: str
    """The kernel's own table of LNet interfaces; empty where it could not be read."""
    imports: str
    """What the kernel says of each target, as `lctl get_param osc.*.import mdc.*.import` prints it."""
    wrote_and_read: bool
    """Whether a small file came back as it was written."""
    moved: Mapping[str, Moved]
    """`write`, `read`, `striped write` and `striped read`: those that this client took part in."""
    cleaned: bool
    """Whether nothing of it is left."""
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PodSeen:
    """One pod's log."""

    node: NodeSeen | None
    ranks: tuple[RankSeen, ...]
    storage: tuple[StorageSeen, ...]
    ended: bool
    """Whether the program came to its end, and said so."""
    problems: tuple[str, ...]
    """What the program itself reported, and reports that could not be read, in words."""
