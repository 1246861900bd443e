"""Whether the bus bandwidth that a probe measured reaches its floor: the verdict of the bandwidth phase.

Bus bandwidth is nccl-tests' (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md). One large size is
looked at; an average over a sweep of sizes says how many small ones were in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from plumbline.catalog.floors import DefaultFloor, Floor, floor_catalogue
from plumbline.gate.verdict import Certainty, Diagnosis, PhaseResult, Verdict
from plumbline.probe.nccl_tests import NcclTests, Speed

PHASE = "bandwidth"
_COLLECTIVE = "all_reduce"
_GIB = 2**30
_ROUNDING = 1.05
"""What a speed may be above what the network can carry: clocks and line rates are rounded."""
_FALLBACK = 0.15
"""Share of the line rate that TCP never passed in public reports, 0.12 with a margin:
https://docs.nvidia.com/aicr/integrator-guide/gke-tcpxo-networking"""


@dataclass(frozen=True, kw_only=True)
class BandwidthExpectation:
    """What was measured, and against what it counts."""

    machine: str
    nodes: int
    """Nodes that took part."""
    ranks_per_node: int
    line_gbps: float
    """Line rate of all of a node's fabric interfaces together, in 10^9 bit/s."""
    share: float | None = None
    """The floor as a share of that; None for the catalogue's."""
    at_least: int | None = None
    """Bytes from which a message counts; None for the catalogue's."""

    @property
    def line_rate(self) -> float:
        """GB/s of one node."""
        return self.line_gbps / 8

    @property
    def catalogued(self) -> Floor | DefaultFloor:
        """The catalogue's floor."""
        return floor_catalogue().floor(self.machine, self.nodes)

    @property
    def floor(self) -> float:
        """GB/s that have to be reached."""
        return self.line_rate * (self.catalogued.share if self.share is None else self.share)

    @property
    def smallest(self) -> int:
        """Bytes from which a message counts."""
        return self.catalogued.at_least if self.at_least is None else self.at_least

    @property
    def most(self) -> float:
        """GB/s of bus bandwidth that an all-reduce can have if all that leaves a node goes over its interfaces.

        Of S bytes, 2 S (N-1)/N have to leave each of N nodes, and bus bandwidth is S/t times 2 (n-1)/n for n ranks.
        """
        ranks = self.nodes * self.ranks_per_node
        return self.line_rate * self.nodes / (self.nodes - 1) * (ranks - 1) / ranks


def bandwidth(expected: BandwidthExpectation, measured: NcclTests, nodes: tuple[str, ...] = ()) -> PhaseResult:
    """The verdict on one run. Unknown where it measured nothing that counts; `nodes` are named where it fails."""
    speed = _largest(measured)
    problems = list(_unknown(expected, measured, speed, nodes))
    verdict = Verdict.UNKNOWN
    if not problems and speed is not None:
        problems = list(_wrong(expected, measured, speed, nodes))
        verdict = Verdict.FAIL if problems else Verdict.PASS
    said = "nothing measured"
    if speed is not None and speed.bus is not None:
        share = f", {speed.bus / expected.line_rate:.2f} of the line rate" if expected.line_rate > 0 else ""
        said = f"{speed.bus:.1f} GB/s at {_bytes(speed.size)}{share}; floor {expected.floor:.1f} GB/s"
    return PhaseResult(
        phase=PHASE,
        verdict=verdict,
        summary=said,
        diagnoses=tuple(problems),
        failing=frozenset() if verdict is Verdict.PASS else frozenset(nodes),
        warnings=tuple(_warnings(expected)),
    )


def _largest(measured: NcclTests) -> Speed | None:
    return max((each for each in measured.speeds if each.bus is not None), key=lambda each: each.size, default=None)


def _unknown(
    expected: BandwidthExpectation, measured: NcclTests, speed: Speed | None, nodes: tuple[str, ...]
) -> Iterator[Diagnosis]:
    def say(cause: str, fix: str, *evidence: str) -> Diagnosis:
        return Diagnosis(cause=cause, certainty=Certainty.NOT_KNOWN, evidence=evidence, fix=fix, nodes=nodes)

    if expected.nodes < 2 or expected.ranks_per_node < 1 or expected.line_rate <= 0:
        yield say(
            "nothing was measured between nodes", "measure on two nodes or more, of a machine with a known line rate"
        )
    elif measured.collective and measured.collective.value != _COLLECTIVE:
        ran = measured.collective
        yield say(f"the run is of {ran.value}; floors are of {_COLLECTIVE}", f"run {_COLLECTIVE}_perf", ran.line.text)
    elif speed is None:
        yield say(
            "the run measured no speed",
            "look at the probe's log: it did not start, was stopped, or its output was cut",
        )
    elif speed.size < expected.smallest:
        yield say(
            f"the largest message has {_bytes(speed.size)}, and what is below {_bytes(expected.smallest)} says nothing",
            f"measure with -b {expected.smallest} -e {expected.smallest}",
            speed.line.text.strip(),
        )


def _wrong(
    expected: BandwidthExpectation, measured: NcclTests, speed: Speed, nodes: tuple[str, ...]
) -> Iterator[Diagnosis]:
    def say(cause: str, certainty: Certainty, fix: str, line: str) -> Diagnosis:
        return Diagnosis(cause=cause, certainty=certainty, evidence=(line.strip(),), fix=fix, nodes=nodes, heals=False)

    bad = next((each for each in measured.speeds if each.wrong), None)
    total = measured.out_of_bounds
    if bad or (total and total.value):
        line = bad.line if bad else total.line if total else speed.line
        yield say(
            "the all-reduce gave wrong values: data are damaged on the way",
            Certainty.CERTAIN,
            "take these nodes out; run the GPUs' diagnostics, and look at the interfaces' error counters",
            line.text,
        )
    bus = speed.bus or 0.0
    if bus < expected.floor:
        fell = bus < expected.line_rate * _FALLBACK
        yield say(
            f"bus bandwidth is {bus:.1f} GB/s at {_bytes(speed.size)}, below the floor of {expected.floor:.1f} GB/s"
            + (", which is what TCP gives" if fell else ""),
            Certainty.LIKELY if fell else Certainty.NOT_KNOWN,
            "see what the transport phase says of these nodes"
            if fell
            else "measure pairs of these nodes to find the slow one; compare the number and the state of interfaces",
            speed.line.text,
        )
    elif bus > expected.most * _ROUNDING:
        yield say(
            f"bus bandwidth is {bus:.1f} GB/s, more than the {expected.most:.1f} GB/s that the interfaces can carry: "
            "it did not go over them",
            Certainty.CERTAIN,
            "set NCCL_MNNVL_ENABLE=0 in the probe, and see that its ranks are on different nodes",
            speed.line.text,
        )


def _warnings(expected: BandwidthExpectation) -> Iterator[str]:
    row = expected.catalogued
    if expected.share is None and isinstance(row, Floor) and row.unconfirmed:
        address = floor_catalogue().address(row)
        yield f"the floor of {expected.machine} with {expected.nodes} nodes is not confirmed: {address}"


def _bytes(size: int) -> str:
    return f"{size / _GIB:g} GiB" if size >= _GIB else f"{size} bytes"
