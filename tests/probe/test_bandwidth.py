"""Published figures pass or fail as those who published them saw it; what measured nothing is unknown."""

import json

import pytest
from pydantic import ValidationError

from plumbline.catalog import aws_catalogue
from plumbline.catalog.floors import FloorCatalogue, floor_catalogue
from plumbline.gate.verdict import PhaseResult, Verdict
from plumbline.probe.bandwidth import BandwidthExpectation, bandwidth
from plumbline.probe.lines import Fact, Line
from plumbline.probe.nccl_tests import NcclTests, Speed, parse_nccl_tests
from tests.probe.test_public_reports import read

GIB = 2**30
GOOGLE = {"a3-highgpu-8g": 800, "a3-megagpu-8g": 1600, "a3-ultragpu-8g": 3200, "a4-highgpu-8g": 3200}
"""10^9 bit/s, https://docs.cloud.google.com/compute/docs/gpus/gpu-network-bandwidth"""


def judged(machine: str, nodes: int, size: int, bus: float, **changed: float) -> PhaseResult:
    gbps = GOOGLE.get(machine) or aws_catalogue().machines[machine].efa_gbps
    ranks = 4 if machine in ("p6e-gb200.36xlarge",) else 8
    expected = BandwidthExpectation(machine=machine, nodes=nodes, ranks_per_node=ranks, line_gbps=gbps, **changed)  # type: ignore[arg-type]
    row = Speed(line=Line(1, f"{size} ... {bus}"), size=size, out_of_place=bus, in_place=bus + 1, wrong=0)
    return bandwidth(expected, NcclTests(collective=None, speeds=(row,), out_of_bounds=None), ("n1", "n2"))


HEALTHY = [
    ("p4d.24xlarge", 2, 1 * GIB, 57.0),
    ("p4d.24xlarge", 3, 1 * GIB, 32.0),
    ("p4d.24xlarge", 4, 1 * GIB, 30.0),
    ("p4de.24xlarge", 2, 2 * GIB, 78.3),
    ("p5.48xlarge", 2, 2 * GIB, 437.8),
    ("p5.48xlarge", 2, 8 * GIB, 479.0),
    ("p5.48xlarge", 2, 16 * GIB, 483.0),
    ("p5.48xlarge", 2, 16 * GIB, 487.0),
    ("p5en.48xlarge", 2, 16 * GIB, 369.9),
    ("p5en.48xlarge", 2, 16 * GIB, 355.0),
    ("p5en.48xlarge", 8, 16 * GIB, 369.9),
    ("p6-b200.48xlarge", 4, 1 * GIB, 367.0),
    ("p6-b200.48xlarge", 4, 4 * GIB, 375.0),
    ("p6-b200.48xlarge", 4, 16 * GIB, 377.0),
    ("p6-b300.48xlarge", 2, 16 * GIB, 654.0),
    ("p6-b300.48xlarge", 2, 64 * GIB, 751.0),
    ("a3-megagpu-8g", 2, 8 * GIB, 335.0),
    ("a3-megagpu-8g", 2, 8 * GIB, 317.84),
    ("a3-highgpu-8g", 2, 8 * GIB, 83.3),
]
SLOW = [
    ("a3-megagpu-8g", 2, 8 * GIB, 23.7),  # without its RDMA
    ("a3-megagpu-8g", 2, 8 * GIB, 4.0),
    ("a3-highgpu-8g", 2, 8 * GIB, 18.0),
    ("p5.48xlarge", 2, 16 * GIB, 156.742),  # an average over a sweep of sizes, taken for a speed
    ("p5.48xlarge", 2, 8 * GIB, 52.98),
    ("p5en.48xlarge", 2, 8 * GIB, 33.0),
]


@pytest.mark.parametrize(("machine", "nodes", "size", "bus"), HEALTHY)
def test_published_figure_of_a_healthy_run_passes(machine: str, nodes: int, size: int, bus: float) -> None:
    result = judged(machine, nodes, size, bus)
    assert (result.phase, result.verdict) == ("bandwidth", Verdict.PASS), result.diagnoses
    assert (result.diagnoses, result.failing) == ((), frozenset())


@pytest.mark.parametrize(("machine", "nodes", "size", "bus"), SLOW)
def test_published_figure_of_a_fallback_fails(machine: str, nodes: int, size: int, bus: float) -> None:
    result = judged(machine, nodes, size, bus)
    assert result.verdict is Verdict.FAIL
    assert result.failing == {"n1", "n2"}
    assert f"bus bandwidth is {bus:.1f} GB/s" in result.diagnoses[0].cause
    assert "below the floor" in result.diagnoses[0].cause


@pytest.mark.parametrize("row", floor_catalogue().floors, ids=lambda row: f"{row.machine}-{row.nodes[0]}")
def test_what_a_row_cites_passes_it_and_a_fallback_does_not(row: object) -> None:
    floor = next(each for each in floor_catalogue().floors if each is row)
    for figure in floor.published:
        assert judged(floor.machine, floor.nodes[0], max(floor.at_least, 16 * GIB), figure).verdict is Verdict.PASS
    gbps = GOOGLE.get(floor.machine) or aws_catalogue().machines[floor.machine].efa_gbps
    fell = judged(floor.machine, floor.nodes[0], 16 * GIB, 0.12 * gbps / 8)
    assert fell.verdict is Verdict.FAIL
    assert "which is what TCP gives" in fell.diagnoses[0].cause
    assert bool(fell.warnings) is floor.unconfirmed


def test_speed_that_the_interfaces_cannot_carry_did_not_go_over_them() -> None:
    for bus in (712.4, 811.0):
        result = judged("p6e-gb200.36xlarge", 2, 16 * GIB, bus)
        assert result.verdict is Verdict.FAIL
        assert "it did not go over them" in result.diagnoses[0].cause
        assert "NCCL_MNNVL_ENABLE=0" in result.diagnoses[0].fix


@pytest.mark.parametrize(
    ("nodes", "size", "cause"),
    [
        (1, 8 * GIB, "nothing was measured between nodes"),
        (2, 64 * 2**20, "the largest message has 67108864 bytes, and what is below 2 GiB says nothing"),
    ],
)
def test_what_says_nothing_is_unknown_however_fast(nodes: int, size: int, cause: str) -> None:
    for bus in (1.0, 480.0):
        result = judged("p5.48xlarge", nodes, size, bus)
        assert (result.verdict, result.diagnoses[0].cause) == (Verdict.UNKNOWN, cause)
        assert result.failing == {"n1", "n2"}


def test_nothing_measured_and_another_collective_are_unknown() -> None:
    expected = BandwidthExpectation(machine="p5.48xlarge", nodes=2, ranks_per_node=8, line_gbps=3200)
    for text in ("", "{}", '{"results": []}', "# Avg bus bandwidth    : 459.59\n"):
        result = bandwidth(expected, parse_nccl_tests(text))
        assert (result.verdict, result.summary) == (Verdict.UNKNOWN, "nothing measured")
    row = Speed(line=Line(2, "row"), size=16 * GIB, out_of_place=480.0, in_place=480.0, wrong=0)
    other = NcclTests(collective=Fact("all_gather", Line(1, "x")), speeds=(row,), out_of_bounds=None)
    result = bandwidth(expected, other)
    assert (result.verdict, result.diagnoses[0].cause) == (
        Verdict.UNKNOWN,
        "the run is of all_gather; floors are of all_reduce",
    )


@pytest.mark.parametrize(
    ("wrong", "outside"), [(3, None), (None, Fact(1, Line(9, "# Out of bounds values : 1 FAILED")))]
)
def test_fast_and_wrong_fails(wrong: int | None, outside: Fact[int] | None) -> None:
    expected = BandwidthExpectation(machine="p5.48xlarge", nodes=2, ranks_per_node=8, line_gbps=3200)
    row = Speed(line=Line(2, "row"), size=16 * GIB, out_of_place=480.0, in_place=480.0, wrong=wrong)
    result = bandwidth(expected, NcclTests(collective=None, speeds=(row,), out_of_bounds=outside))
    assert result.verdict is Verdict.FAIL
    assert "wrong values" in result.diagnoses[0].cause


def test_the_slower_of_the_two_placements_at_the_largest_size_counts() -> None:
    small = Speed(line=Line(1, "small"), size=1 * GIB, out_of_place=500.0, in_place=500.0, wrong=0)
    large = Speed(line=Line(2, "large"), size=16 * GIB, out_of_place=480.0, in_place=300.0, wrong=0)
    expected = BandwidthExpectation(machine="p5.48xlarge", nodes=2, ranks_per_node=8, line_gbps=3200)
    result = bandwidth(expected, NcclTests(collective=None, speeds=(large, small), out_of_bounds=None))
    assert result.verdict is Verdict.FAIL
    assert result.diagnoses[0].evidence == ("large",)
    assert result.summary == "300.0 GB/s at 16 GiB, 0.75 of the line rate; floor 360.0 GB/s"


def test_floor_and_size_can_be_set() -> None:
    assert judged("p5.48xlarge", 2, 16 * GIB, 390.0).verdict is Verdict.PASS
    assert judged("p5.48xlarge", 2, 16 * GIB, 390.0, share=1.0).verdict is Verdict.FAIL
    assert judged("p5.48xlarge", 2, 1 * GIB, 390.0, at_least=GIB).verdict is Verdict.PASS


def test_default_is_for_machines_and_counts_without_a_row() -> None:
    default = floor_catalogue().default
    assert floor_catalogue().floor("p5.48xlarge", 16) is default
    assert floor_catalogue().floor("unheard-of", 2) is default
    assert judged("p5.48xlarge", 16, 8 * GIB, 0.59 * 400).verdict is Verdict.FAIL
    assert judged("p5.48xlarge", 16, 8 * GIB, 0.61 * 400).verdict is Verdict.PASS


def test_floors_with_faults_are_refused() -> None:
    raw = floor_catalogue().model_dump()
    with pytest.raises(ValidationError, match="sources without an address: hearsay"):
        FloorCatalogue.model_validate({**raw, "default": {**raw["default"], "source": "hearsay"}})
    with pytest.raises(ValidationError, match=r"nodes \[2, 2\] and \[2, 2\] overlap"):
        FloorCatalogue.model_validate({**raw, "floors": [raw["floors"][0], raw["floors"][0]]})
    with pytest.raises(ValidationError, match=r"nodes \[1, 2\] is no range from 2"):
        FloorCatalogue.model_validate({**raw, "floors": [{**raw["floors"][0], "nodes": [1, 2]}]})
    assert floor_catalogue().address(floor_catalogue().default).startswith("https://")
    assert all(each.startswith("https://") for each in floor_catalogue().addresses.values())


def test_table_of_a_public_report() -> None:
    good, bad = parse_nccl_tests(read("35-efa-ok")), parse_nccl_tests(read("39-net-socket"))
    (row,) = good.speeds
    assert (row.size, row.out_of_place, row.in_place, row.wrong, row.bus) == (GIB, 459.52, 459.66, 0, 459.52)
    assert row.line.number == 15
    assert good.out_of_bounds is not None
    assert good.out_of_bounds.value == 0
    assert [(each.size, each.bus) for each in bad.speeds] == [(536870912, 5.0)]
    expected = BandwidthExpectation(
        machine="p5.48xlarge", nodes=2, ranks_per_node=8, line_gbps=3200, at_least=512 * 2**20
    )
    assert bandwidth(expected, good).verdict is Verdict.PASS
    fell = bandwidth(expected, bad)
    assert (fell.verdict, fell.diagnoses[0].certainty.value) == (Verdict.FAIL, "likely")


@pytest.mark.parametrize("before", ["", "[1,0]<stdout>:", "0: "])
def test_table_with_a_launchers_marks(before: str) -> None:
    said = (
        "# Collective test starting: all_reduce_perf\n"
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n"
        " 17179869184    4294967296     float     sum      -1    62239  276.03  483.05  0  62200  276.20  483.35  N/A\n"
        " 8589934592    2147483648     float     sum      -1    31000  277.10  484.92  N/A  N/A  N/A  N/A  N/A\n"
        "# Out of bounds values : 0 OK\n"
    )
    run = parse_nccl_tests("".join(f"{before}{line}\n" for line in said.splitlines()))
    assert run.collective is not None
    assert run.collective.value == "all_reduce"
    assert [(row.size, row.bus, row.wrong) for row in run.speeds] == [
        (17179869184, 483.05, 0),
        (8589934592, 484.92, None),
    ]


def test_json_says_the_same_and_what_is_no_number_is_left_out() -> None:
    row = {
        "size": 16 * GIB,
        "out_of_place": {"bus_bw": 483.05, "nwrong": 0},
        "in_place": {"bus_bw": 483.35, "nwrong": 2},
    }
    (speed,) = parse_nccl_tests(json.dumps({"results": [row]})).speeds
    assert (speed.size, speed.out_of_place, speed.in_place, speed.wrong) == (16 * GIB, 483.05, 483.35, 2)
    assert speed.line.text == "results[0]"
    odds: list[object] = [float("nan"), float("inf"), -1, True, "483", None, [], 10**400]
    for odd in odds:
        text = json.dumps({"results": [{"size": 16 * GIB, "out_of_place": {"bus_bw": odd}, "in_place": odd}]})
        assert [each.bus for each in parse_nccl_tests(text).speeds] == [None], odd
