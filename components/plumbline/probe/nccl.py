"""What NCCL logs with `NCCL_DEBUG=INFO`, from version 2.12 on, told apart by the process that said it.

The formats are those of https://github.com/NVIDIA/nccl/blob/master/src/debug.cc (the prefix),
https://github.com/NVIDIA/nccl/blob/master/src/transport/net.cc and p2p.cc (channels), and
https://github.com/NVIDIA/nccl/blob/master/src/init.cc (networks and ranks).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from plumbline.probe.lines import Fact, Line, lines

_PREFIX = re.compile(
    r"(?<![A-Za-z0-9_.-])(?P<host>[A-Za-z0-9_.-]{1,253}):(?P<pid>[0-9]{1,10}):(?P<tid>[0-9]{1,10}) "
    r"\[(?P<device>-?[0-9]{1,4})\] "
    r"(?:\S{1,200}:[0-9]{1,7} (?:\([^()]{0,200}\) )?)?NCCL (?P<level>INFO|WARN) (?P<message>.*)"
)
"""host:pid:tid [device], for a warning its place in the code, and the message. A launcher may write before it."""

_NAME = r"[A-Za-z0-9][A-Za-z0-9 _.+-]{0,63}"
_USING = re.compile(rf"Using network ({_NAME})|Assigned NET plugin ({_NAME}) to comm")
_INITIALIZED = re.compile(rf"Initialized NET plugin ({_NAME})")
_LOADED = re.compile(rf"NET/Plugin ?: Loaded net plugin ({_NAME}) \(v[0-9]+\)")
_DEVICES = re.compile(rf"NET/({_NAME}) : Using (\[0\].*)")
_DEVICE = re.compile(r"\[[0-9]{1,4}\]([A-Za-z0-9_.-]{1,64}):")
_DIRECT = re.compile(r"NET/(\S+) : GPU Direct RDMA (Enabled|Disabled) for HCA ([0-9]{1,4}) '([^']{1,64})'.*")
_RANK = re.compile(r"(?:\w+ )?comm 0x[0-9a-f]+ rank ([0-9]{1,9}) n[rR]anks ([0-9]{1,9})\b.*")
_VERSION = re.compile(r"(?:.*NCCL INFO )?NCCL version ([0-9]+\.[0-9]+\.[0-9]+\S*)\s*")
_ENDS = (
    r"Channel (?P<channel>[0-9]{1,4})(?:/(?P<connection>[0-9]{1,4}))? : "
    r"(?P<source>[0-9]{1,9})\[(?P<from>[0-9a-f]{1,16})\] -> (?P<target>[0-9]{1,9})\[(?P<to>[0-9a-f]{1,16})\]"
)
_OVER_NET = re.compile(
    rf"{_ENDS} \[(?P<direction>send|receive)\] via NET/(?P<network>[^/]{{1,64}})/(?P<nic>[0-9]{{1,4}})"
    r"(?:\((?P<proxy>[0-9]{1,9})\))?(?P<suffixes>(?:/[A-Za-z0-9_()]{1,32})*)\s*"
)
_INSIDE = re.compile(rf"{_ENDS} via (?P<transport>P2P|SHM)/(?P<how>[A-Za-z0-9 /_()]{{1,64}})")

Direction = Literal["send", "receive"]


@dataclass(frozen=True, kw_only=True)
class Said:
    """A line of a process, taken apart."""

    line: Line
    host: str
    pid: int
    device: int
    """The CUDA device of the thread that wrote it."""
    level: Literal["INFO", "WARN"]
    message: str


@dataclass(frozen=True, kw_only=True)
class Channel:
    """One side of a connection between two ranks, as the rank on that side printed it."""

    line: Line
    number: int
    connection: int
    source: int
    """Rank that sends."""
    source_device: str
    target: int
    """Rank that receives."""
    target_device: str
    direction: Direction
    """Which side printed it; connections inside a node are printed by the sender."""
    transport: str
    """`NET`, `P2P` or `SHM`."""
    network: str
    """Of `NET`, the network's name, such as `AWS Libfabric` or `Socket`; of others, how, such as `CUMEM` or `MNNVL`."""
    nic: int | None = None
    """Index of the network device; None where there is none."""
    proxy: int | None = None
    """Rank on whose GPU the data leave the node (PXN); None where it is the sender itself."""
    gpu_direct: bool = False
    """Whether the network device reads and writes the GPU's memory."""

    @property
    def key(self) -> tuple[int, int, int, str, int, str]:
        """What the two sides of a connection have in common."""
        return (self.number, self.connection, self.source, self.source_device, self.target, self.target_device)


@dataclass(frozen=True, kw_only=True)
class RankOf:
    """A rank that a process has in a communicator."""

    rank: int
    of: int
    """Ranks of that communicator."""


@dataclass(frozen=True, kw_only=True)
class DirectRdma:
    """Whether NCCL can use GPU-direct with one device."""

    device: str
    enabled: bool


@dataclass(frozen=True, kw_only=True)
class NcclProcess:
    """What one process said."""

    host: str
    pid: int
    said: tuple[Said, ...]
    """All of its lines, in order, for what plugins say by NCCL's logger."""
    version: Fact[str] | None
    networks: tuple[Fact[str], ...]
    """Networks that NCCL chose for a communicator."""
    initialized: tuple[Fact[str], ...]
    """Networks that NCCL tried with success; it may still choose another."""
    loaded: tuple[Fact[str], ...]
    """External plugins that were loaded."""
    devices: Fact[tuple[str, ...]] | None
    """Devices of a verbs network, such as IB; None where it named none."""
    direct: tuple[Fact[DirectRdma], ...]
    communicators: tuple[Fact[RankOf], ...]
    channels: tuple[Channel, ...]
    warnings: tuple[Fact[str], ...]

    @property
    def ranks(self) -> frozenset[int]:
        """Its ranks in the largest communicator; where it names none, those that its channels start or end at."""
        if self.communicators:
            largest = max(each.value.of for each in self.communicators)
            return frozenset(each.value.rank for each in self.communicators if each.value.of == largest)
        return frozenset(each.source if each.direction == "send" else each.target for each in self.channels)


@dataclass(frozen=True, kw_only=True)
class NcclLog:
    """What the processes of one log said."""

    processes: tuple[NcclProcess, ...]
    version: Fact[str] | None
    """NCCL prints it once for a communicator, by rank 0."""


def take_apart(line: Line) -> Said | None:
    """The process and the message of a line; None for one that is not NCCL's, or in which two lines are mixed up."""
    found = _PREFIX.search(line.text) if "NCCL " in line.text else None
    if not found or _PREFIX.search(found["message"]):
        return None
    return Said(
        line=line,
        host=found["host"],
        pid=int(found["pid"]),
        device=int(found["device"]),
        level="WARN" if found["level"] == "WARN" else "INFO",
        message=found["message"].strip(),
    )


def parse_nccl(text: str) -> NcclLog:
    """The facts of a log, in which the lines of several processes may be mixed."""
    found = lines(text)
    by_process: dict[tuple[str, int], list[Said]] = {}
    for line in found:
        if said := take_apart(line):
            by_process.setdefault((said.host, said.pid), []).append(said)
    return NcclLog(
        processes=tuple(_process(host, pid, said) for (host, pid), said in by_process.items()),
        version=next((Fact(m[1], line) for line in found if line.whole and (m := _VERSION.fullmatch(line.text))), None),
    )


def texts(said: Iterable[Said], pattern: re.Pattern[str]) -> list[Fact[re.Match[str]]]:
    """Whole messages that are exactly of a form."""
    return [Fact(m, each.line) for each in said if each.line.whole and (m := pattern.fullmatch(each.message))]


def _first(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group is not None).strip()


def _process(host: str, pid: int, said: list[Said]) -> NcclProcess:
    lists = [Fact(tuple(_DEVICE.findall(m.value[2])), m.line) for m in texts(said, _DEVICES) if m.value[1] != "Socket"]
    return NcclProcess(
        host=host,
        pid=pid,
        said=tuple(said),
        version=next((Fact(m.value[1], m.line) for m in texts(said, _VERSION)), None),
        networks=tuple(Fact(_first(m.value), m.line) for m in texts(said, _USING)),
        initialized=tuple(Fact(_first(m.value), m.line) for m in texts(said, _INITIALIZED)),
        loaded=tuple(Fact(_first(m.value), m.line) for m in texts(said, _LOADED)),
        devices=lists[-1] if lists else None,
        direct=tuple(
            Fact(DirectRdma(device=m.value[4], enabled=m.value[2] == "Enabled"), m.line) for m in texts(said, _DIRECT)
        ),
        communicators=tuple(Fact(RankOf(rank=int(m.value[1]), of=int(m.value[2])), m.line) for m in texts(said, _RANK)),
        channels=(
            *(_over_net(m.value, m.line) for m in texts(said, _OVER_NET)),
            *(_inside(m.value, m.line) for m in texts(said, _INSIDE)),
        ),
        warnings=tuple(Fact(each.message, each.line) for each in said if each.level == "WARN"),
    )


def _over_net(match: re.Match[str], line: Line) -> Channel:
    # /GDRDMA(PCI) is data that cross PCIe on machines whose GPUs hang on the CPU by another link: GPU-direct as well.
    direct = {"GDRDMA", "GDRDMA(PCI)"} & set(match["suffixes"].split("/"))
    return Channel(
        line=line,
        number=int(match["channel"]),
        connection=int(match["connection"] or 0),
        source=int(match["source"]),
        source_device=match["from"],
        target=int(match["target"]),
        target_device=match["to"],
        direction="send" if match["direction"] == "send" else "receive",
        transport="NET",
        network=match["network"],
        nic=int(match["nic"]),
        proxy=int(match["proxy"]) if match["proxy"] else None,
        gpu_direct=bool(direct),
    )


def _inside(match: re.Match[str], line: Line) -> Channel:
    return Channel(
        line=line,
        number=int(match["channel"]),
        connection=int(match["connection"] or 0),
        source=int(match["source"]),
        source_device=match["from"],
        target=int(match["target"]),
        target_device=match["to"],
        direction="send",
        transport=match["transport"],
        network=match["how"].strip(),
    )
