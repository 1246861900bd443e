"""Text that is cut, mixed up, hostile or no text at all: nothing crashes, and nothing passes that did not before."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import plumbline.probe
from plumbline.gate.verdict import Verdict
from plumbline.probe.bandwidth import BandwidthExpectation, bandwidth
from plumbline.probe.efa_plugin import miscount, parse_efa_plugin
from plumbline.probe.fabrics import FabricName
from plumbline.probe.fio import parse_fio
from plumbline.probe.ior import parse_ior
from plumbline.probe.libfabric import parse_fi_info
from plumbline.probe.lnet import parse_imports, parse_lnet
from plumbline.probe.lustre import mount_failure
from plumbline.probe.nccl import parse_nccl
from plumbline.probe.nccl_tests import parse_nccl_tests
from plumbline.probe.rxdm import parse_rxdm
from plumbline.probe.transport import ProbeLog, transport
from plumbline.probe.verbs import parse_ibv_devinfo, parse_rdma_link
from tests.probe.logs import expectation, text, two_ranks, verdict

CASES = Path(__file__).parent.parent / "cases"
PARSERS: list[Callable[[str], Any]] = [
    parse_nccl,
    parse_nccl_tests,
    parse_fi_info,
    parse_lnet,
    parse_imports,
    parse_ibv_devinfo,
    parse_rdma_link,
    parse_ior,
    parse_fio,
    parse_rxdm,
    parse_efa_plugin,
    mount_failure,
    lambda said: miscount(said, 8),
]
FABRIC: st.SearchStrategy[FabricName] = st.sampled_from(["efa", "tcpx", "tcpxo", "rdma"])
PIECES = st.sampled_from(
    [
        *(line for log in sorted(CASES.glob("*.log")) for line in log.read_text("utf-8").splitlines()),
        *(
            "net:",
            "  - net type: efa",
            "    local NI(s):",
            "import:",
            "&a [*a, *a]",
            "<<: *a",
            "!!python/name:os.system",
        ),
        *("osc.a-OST0000-osc-f.import=", "- nid: 1@efa", "hca_id: x", "\t\tport: 1", "link a/1 state ACTIVE"),
        *('{"results": [', '{"size": 1e999}', "]}", "NaN", '{"jobs": [{"error": 0}]}', "[" * 200, "\x00", "\x1b[0m"),
    ]
)
TEXTS = st.one_of(
    st.text(),
    st.binary().map(lambda raw: raw.decode("utf-8", "replace")),
    st.binary().map(lambda raw: raw.decode("latin-1")),
    st.lists(st.one_of(PIECES, st.text(max_size=20))).map("\n".join),
    st.lists(st.one_of(PIECES, st.text(max_size=20))).map("".join),
)
P5 = BandwidthExpectation(machine="p5.48xlarge", nodes=2, ranks_per_node=8, line_gbps=3200)


@settings(deadline=None)
@given(TEXTS)
@example("")
@example("[" * 100_000)
@example('{"results":' * 20_000)
@example("osc.a.import=\n" + "- " * 5_000 + "\n")
@example("a: &a [" + "*a, " * 100 + "]\n")
@example("1" * 10_000)
@example(f"w:{'9' * 5000}:1 [0] NCCL INFO Channel 00/0 : {'9' * 5000}[0] -> 1[0] [send] via NET/IB/0\n")
@example("a" * 100_000 + " NCCL ")
@example('{"results": [{"size": ' + "9" * 4000 + "}]}")
@example("\ud800")
def test_no_parser_crashes(said: str) -> None:
    for parse in PARSERS:
        parse(said)


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=3), FABRIC)
def test_what_is_no_log_of_a_healthy_run_never_passes(said: list[str], fabric: FabricName) -> None:
    # Seven ranks on three nodes: no piece above is of more than two.
    wanted = expectation(fabric, ranks=frozenset(range(7)), nodes=3)
    result = transport(wanted, [ProbeLog(text=each, node="n") for each in said])
    assert result.verdict is not Verdict.PASS
    assert result.diagnoses
    assert all(each.cause and each.fix for each in result.diagnoses)


@settings(deadline=None)
@given(TEXTS)
def test_no_text_without_a_large_message_passes_for_a_speed(said: str) -> None:
    result = bandwidth(P5, parse_nccl_tests(said))
    assert result.verdict is not Verdict.PASS or any(each.size >= 2 * 2**30 for each in parse_nccl_tests(said).speeds)


@settings(deadline=None)
@given(FABRIC, st.data())
def test_log_that_is_cut_anywhere_is_unknown(fabric: FabricName, data: st.DataObject) -> None:
    whole = text(two_ranks(fabric))
    end = data.draw(st.integers(0, len(whole) - 1))
    for cut in (whole[:end], whole[len(whole) - end :]):
        result = transport(expectation(fabric), [ProbeLog(text=cut)])
        assert result.verdict is Verdict.UNKNOWN, cut


@settings(deadline=None)
@given(FABRIC, st.data())
def test_log_with_a_piece_missing_or_in_the_way_never_passes(fabric: FabricName, data: st.DataObject) -> None:
    lines = two_ranks(fabric)
    whole = text(lines)
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start + 1, min(len(whole), start + 60)))
    result = transport(expectation(fabric), [ProbeLog(text=whole[:start] + whole[end:])])
    if result.verdict is Verdict.PASS:
        assert _same_facts(whole, whole[:start] + whole[end:])


def _same_facts(one: str, other: str) -> bool:
    """Whether two logs show the same connections, though a name or an index was cut."""

    def facts(said: str) -> list[tuple[int, int, str, str, bool]]:
        return sorted(
            (each.source, each.target, each.direction, each.network, each.gpu_direct)
            for process in parse_nccl(said).processes
            for each in process.channels
        )

    return facts(one) == facts(other)


@settings(deadline=None)
@given(FABRIC, st.permutations(range(4)), st.data())
def test_order_of_lines_and_what_others_write_between_changes_nothing(
    fabric: FabricName, order: list[int], data: st.DataObject
) -> None:
    lines = two_ranks(fabric)
    mixed = data.draw(st.permutations(lines))
    noise = data.draw(st.lists(st.sampled_from(["step 1 loss 2.5", "", "NCCL", "# a comment", "\x1b[1mbold"])))
    assert verdict([*mixed[: order[0]], *noise, *mixed[order[0] :]], fabric) == "pass"


@settings(deadline=None)
@given(FABRIC, st.data())
def test_one_wrong_line_anywhere_fails(fabric: FabricName, data: st.DataObject) -> None:
    wrong = data.draw(
        st.sampled_from(
            [
                "worker-1:81:9 [0] NCCL INFO Using network Socket",
                "worker-1:81:9 [0] NCCL INFO Channel 07/0 : 1[0] -> 0[0] [send] via NET/Socket/0",
                "worker-9:7:9 [5] NCCL INFO Channel 07/0 : 1[0] -> 0[0] [receive] via NET/Socket/0",
                "worker-1:81:9 [0] NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory",
            ]
        )
    )
    lines = two_ranks(fabric)
    at = data.draw(st.integers(0, len(lines)))
    assert verdict([*lines[:at], wrong, *lines[at:]], fabric) == "fail"


@settings(deadline=None)
@given(st.integers(0, 400))
def test_table_that_is_cut_gives_no_other_number(end: int) -> None:
    row = (
        "# Collective test starting: all_reduce_perf\n"
        " 17179869184    4294967296     float     sum      -1    62239  276.03  483.05  0  62200  276.20  483.35  0\n"
    )
    run = parse_nccl_tests(row[:end])
    assert [each.bus for each in run.speeds] == ([483.05] if end >= len(row) else [])
    expected = Verdict.PASS if end >= len(row) else Verdict.UNKNOWN
    assert bandwidth(P5, run).verdict is expected


@pytest.mark.parametrize(
    "module", sorted(Path(plumbline.probe.__file__).parent.glob("*.py")), ids=lambda path: path.stem
)
def test_package_is_pure(module: Path) -> None:
    allowed = ("plumbline.probe", "plumbline.catalog", "plumbline.gate.verdict")
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert not name.startswith("plumbline") or name.startswith(allowed), name
            assert name.partition(".")[0] not in ("pulumi", "os", "subprocess", "socket", "pathlib", "httpx2", "time")
