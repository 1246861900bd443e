"""Whether every rank of a probe used the pool's fabric: the verdict of the transport phase, from what NCCL logged.

NCCL falls back to sockets without an error, so only lines that say the right thing prove anything: on every rank the
network, on every node connections to other nodes in both directions, on each of them GPU-direct. A probe sets
`NCCL_DEBUG=INFO` and `NCCL_DEBUG_SUBSYS=INIT,NET` on all ranks; where lines are missing the verdict is unknown.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from plumbline.gate.verdict import Certainty, Diagnosis, PhaseResult, Verdict
from plumbline.probe.fabrics import FABRICS, Fabric, FabricName
from plumbline.probe.fastrak import parse_fastrak
from plumbline.probe.gib import parse_gib
from plumbline.probe.lines import Line, lines
from plumbline.probe.nccl import Channel, NcclProcess, parse_nccl, take_apart
from plumbline.probe.ofi import OfiPlugin, parse_ofi
from plumbline.probe.tcpx import parse_tcpx
from plumbline.probe.transport_signs import SIGNS, Looked, Process, Sighting, Sign

PHASE = "transport"
_SHOWN = 8
"""Lines of evidence in one diagnosis, and names in one sentence."""


@dataclass(frozen=True, kw_only=True)
class TransportExpectation:
    """What a probe has to show."""

    fabric: FabricName
    ranks: frozenset[int]
    """Ranks whose lines have to be there."""
    nodes: int
    """Nodes that those ranks run on; with fewer than two nothing crosses the fabric, and the verdict is unknown."""
    nics: int | None
    """Network devices that each process has to see, where the fabric's library says how many; None to leave it open."""
    gpu_direct: bool = True
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Nodes by the host name that NCCL prints (of a pod, its own); one that is not here goes by its host name."""


@dataclass(frozen=True, kw_only=True)
class ProbeLog:
    """The log of one container, or of a launcher that has the lines of all."""

    text: str
    node: str = ""
    """Where the container ran: for lines that name no host, such as a daemon's; empty for a launcher's."""


def transport(expected: TransportExpectation, logs: Iterable[ProbeLog]) -> PhaseResult:
    """The verdict. Pass needs positive evidence of every rank; whatever is wrong fails; what is missing is unknown."""
    seen = _Seen(expected, tuple(logs))
    wrong = tuple(_diagnoses(seen))
    missing = () if wrong else tuple(_missing(seen))
    verdict = Verdict.FAIL if wrong else Verdict.UNKNOWN if missing else Verdict.PASS
    fabric = seen.fabric
    shown = len(seen.proven)
    return PhaseResult(
        phase=PHASE,
        verdict=verdict,
        summary=f"{fabric.title} on {shown} of {len(expected.ranks)} ranks"
        + (", with GPU-direct" if expected.gpu_direct and verdict is Verdict.PASS else ""),
        diagnoses=wrong or missing,
        failing=frozenset(node for each in wrong or missing for node in each.nodes),
        warnings=tuple(_warnings(seen)),
        seen=seen.kept,
    )


class _Seen:
    """The logs, read once, with what follows for ranks and nodes."""

    def __init__(self, expected: TransportExpectation, logs: tuple[ProbeLog, ...]) -> None:
        self.expected = expected
        self.fabric: Fabric = FABRICS[expected.fabric]
        self.processes: list[Process] = []
        self.other: list[tuple[str, Line]] = []
        """Lines of no process, with the node they come from; empty where nobody knows."""
        self.garbled: list[tuple[str, Line]] = []
        """Lines of connections that could not be read, with the node of their container."""
        for log in logs:
            nccl = parse_nccl(log.text)
            read = {channel.line.number for process in nccl.processes for channel in process.channels}
            for process in nccl.processes:
                node = expected.hosts.get(process.host, process.host)
                self.processes.append(Process(node=node, nccl=process, ofi=parse_ofi(process.said)))
            said = lines(log.text)
            self.other += [(log.node, line) for line in said if take_apart(line) is None]
            self.garbled += [(log.node, line) for line in said if "via NET/" in line.text and line.number not in read]
        self.looked = Looked(
            fabric=self.fabric,
            gpu_direct=expected.gpu_direct,
            nics=expected.nics,
            processes=tuple(self.processes),
            other=tuple(self.other),
        )

    @cached_property
    def by_rank(self) -> dict[int, list[Process]]:
        found: dict[int, list[Process]] = {}
        for process in self.processes:
            for rank in process.nccl.ranks:
                found.setdefault(rank, []).append(process)
        return found

    @cached_property
    def proven(self) -> frozenset[int]:
        """Expected ranks that show the fabric's network and library, each in one place."""
        return frozenset(
            rank
            for rank in self.expected.ranks
            if len({process.node for process in self.by_rank.get(rank, [])}) == 1
            and all(_shows(self, process.nccl, process.ofi) for process in self.by_rank[rank])
        )

    @cached_property
    def crossing(self) -> list[tuple[str, Channel]]:
        """Connections over the fabric's network, with the node that printed them."""
        return [
            (process.node, channel)
            for process in self.processes
            for channel in process.nccl.channels
            if channel.transport == "NET" and self.fabric.is_network(channel.network)
        ]

    @cached_property
    def nodes(self) -> frozenset[str]:
        """Nodes of the expected ranks that showed."""
        return frozenset(process.node for rank in self.expected.ranks for process in self.by_rank.get(rank, []))

    @property
    def kept(self) -> dict[str, dict[str, str]]:
        """What is kept as evidence, by node."""
        kept: dict[str, dict[str, str]] = {}
        for node in sorted({process.node for process in self.processes}):
            mine = [process for process in self.processes if process.node == node]
            networks = sorted({name for process in mine for name in process.networks})
            direct = Counter(channel.gpu_direct for where, channel in self.crossing if where == node)
            kept[node] = {
                "ranks": " ".join(str(rank) for rank in sorted({r for process in mine for r in process.nccl.ranks})),
                "network": ", ".join(networks),
                "connections with GPU-direct": f"{direct[True]} of {direct.total()}",
            }
            providers = sorted({f"{p.value.name}, {p.value.nics} nics" for each in mine for p in each.ofi.providers})
            if providers:
                kept[node]["provider"] = "; ".join(providers)
            if libraries := sorted({name for process in mine for name in _libraries(process)}):
                kept[node]["libraries"] = ", ".join(libraries)
        return kept


def _shows(seen: _Seen, nccl: NcclProcess, ofi: OfiPlugin) -> bool:
    """Whether a process says that it uses the fabric: by name, and by the library's own word where it has one."""
    chosen = {fact.value for fact in nccl.networks} | {c.network for c in nccl.channels if c.transport == "NET"}
    if not chosen or not all(seen.fabric.is_network(name) for name in chosen):
        return False
    if seen.fabric.provider is None:
        return seen.expected.nics is None or not seen.fabric.lists_devices or nccl.devices is not None
    named = [fact.value for fact in ofi.providers if fact.value.name == seen.fabric.provider]
    return any(each.nics is not None or seen.expected.nics is None for each in named)


def _libraries(process: Process) -> Iterator[str]:
    """Names and versions of what it loaded, as far as they say them."""
    said = process.nccl.said
    versions = {
        "NCCL": process.nccl.version,
        "aws-ofi-nccl": process.ofi.version,
        "libfabric": process.ofi.libfabric,
        "gIB": parse_gib(said).version,
        "FasTrak": parse_fastrak(said).version,
        "GPUDirect-TCPX": parse_tcpx(said).version,
    }
    yield from (f"{name} {fact.value}" for name, fact in versions.items() if fact)


def _diagnoses(seen: _Seen) -> Iterator[Diagnosis]:
    found: list[tuple[int, Diagnosis]] = []
    order = list(Certainty)
    for place, sign in enumerate(SIGNS):
        if sign.fabrics and seen.expected.fabric not in sign.fabrics:
            continue
        by_cause: dict[str, list[Sighting]] = {}
        for sighting in sign.find(seen.looked):
            by_cause.setdefault(sign.cause.format(*sighting.values), []).append(sighting)
        found += [(place, _diagnosis(sign, cause, sightings)) for cause, sightings in by_cause.items()]
    yield from (each for _, each in sorted(found, key=lambda pair: (order.index(pair[1].certainty), pair[0])))


def _diagnosis(sign: Sign, cause: str, sightings: list[Sighting]) -> Diagnosis:
    # One line from each node first: which nodes it is on says more than how often each says it.
    firsts = {each.node: each for each in reversed(sightings)}
    ordered = [*sorted(firsts.values(), key=lambda each: each.node), *sightings]
    words = list(dict.fromkeys(each.words for each in ordered))
    more = len(words) - _SHOWN
    return Diagnosis(
        cause=cause,
        certainty=sign.certainty,
        evidence=(*words[:_SHOWN], *([f"and {more} more lines like these"] if more > 0 else [])),
        fix=sign.fix,
        nodes=tuple(sorted({each.node for each in sightings} - {""})),
        heals=sign.heals,
    )


def _missing(seen: _Seen) -> Iterator[Diagnosis]:
    expected = seen.expected
    if expected.nodes < 2 or not expected.ranks:
        yield _unknown(
            "the probe has fewer than two nodes, so nothing crosses the fabric", (), "probe two nodes or more"
        )
        return
    absent = sorted(expected.ranks - set(seen.by_rank))
    if absent:
        yield _unknown(f"{_ranks(absent)} said nothing of NCCL", (), _LOOK)
    scattered = {
        rank: sorted({p.node for p in seen.by_rank[rank]})
        for rank in sorted(expected.ranks & set(seen.by_rank))
        if len({p.node for p in seen.by_rank[rank]}) > 1
    }
    for rank, nodes in list(scattered.items())[:_SHOWN]:
        yield _unknown(
            f"rank {rank} shows on more than one node, so the log is of more than one run", nodes, "run the probe anew"
        )
    silent = sorted(expected.ranks & set(seen.by_rank) - seen.proven - set(scattered))
    if silent:
        nodes = sorted({process.node for rank in silent for process in seen.by_rank[rank]})
        yield _unknown(f"{_ranks(silent)} never said that they use {seen.fabric.title}", nodes, _LOOK)
    if not absent and len(seen.nodes) != expected.nodes:
        yield _unknown(
            f"the ranks ran on {len(seen.nodes)} nodes, and {expected.nodes} were to be proven",
            sorted(seen.nodes),
            "spread the probe's pods over the nodes, one set of ranks on each",
        )
    for direction in ("send", "receive"):
        have = {node for node, channel in seen.crossing if channel.direction == direction}
        if lack := sorted(seen.nodes - have):
            yield _unknown(f"no connection over {seen.fabric.title} was seen on the {direction} side", lack, _LOOK)
    yield from _garbled(seen)
    yield from _halves(seen)


def _garbled(seen: _Seen) -> Iterator[Diagnosis]:
    """Lines of connections that cannot be read: what they said may have been the wrong thing."""
    if seen.garbled:
        yield Diagnosis(
            cause=f"{len(seen.garbled)} lines of connections are cut or mixed up with others",
            certainty=Certainty.NOT_KNOWN,
            evidence=tuple(line.text.strip()[:200] for _, line in seen.garbled[:_SHOWN]),
            fix="give each rank a log of its own: NCCL_DEBUG_FILE with %h.%p in its name",
            nodes=tuple(sorted({node for node, _ in seen.garbled} - {""})),
        )


def _halves(seen: _Seen) -> Iterator[Diagnosis]:
    """Ranks of which others say that they are connected to them, and that themselves show nothing of that channel."""
    ranks = seen.expected.ranks & set(seen.by_rank)
    shown = {(_own(channel), channel.number, channel.direction) for _, channel in seen.crossing}
    lack: dict[int, Channel] = {}
    for _, channel in seen.crossing:
        other = "receive" if channel.direction == "send" else "send"
        peer = channel.target if channel.direction == "send" else channel.source
        if peer in ranks and (peer, channel.number, other) not in shown:
            lack.setdefault(peer, channel)
    for rank, channel in sorted(lack.items(), key=lambda pair: pair[0])[:_SHOWN]:
        yield Diagnosis(
            cause=f"rank {rank} shows nothing of its side of channel {channel.number}",
            certainty=Certainty.NOT_KNOWN,
            evidence=(channel.line.text.strip(),),
            fix=_LOOK,
            nodes=tuple(sorted({process.node for process in seen.by_rank[rank]})),
        )


def _own(channel: Channel) -> int:
    return channel.source if channel.direction == "send" else channel.target


_LOOK = (
    "look at the probe's pods there: a pod that did not start or was stopped says nothing; NCCL_DEBUG=INFO and "
    "NCCL_DEBUG_SUBSYS=INIT,NET have to be set on every rank"
)


def _unknown(cause: str, nodes: Iterable[str], fix: str) -> Diagnosis:
    return Diagnosis(cause=cause, certainty=Certainty.NOT_KNOWN, evidence=(), fix=fix, nodes=tuple(nodes))


def _ranks(ranks: list[int]) -> str:
    shown = ", ".join(str(rank) for rank in ranks[:_SHOWN])
    rest = f" and {len(ranks) - _SHOWN} more" if len(ranks) > _SHOWN else ""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {shown}{rest}"


def _warnings(seen: _Seen) -> Iterator[str]:
    wanted = seen.expected.nics
    if wanted is None:
        return
    for process in seen.processes:
        for fact in process.nics(seen.fabric):
            if fact.value > wanted:
                yield f"{process.node}: {fact.value} network devices, {wanted} expected: {fact.line.text.strip()}"
