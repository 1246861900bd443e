"""Faults that people reported in public: the log of each gets its verdict, and a reason that says what matters."""

from pathlib import Path

import pytest

from plumbline.gate.verdict import Diagnosis, Verdict
from plumbline.probe.efa_plugin import miscount
from plumbline.probe.fabrics import FabricName
from plumbline.probe.lustre import mount_failure
from plumbline.probe.transport import ProbeLog, TransportExpectation, transport

CASES = Path(__file__).parent.parent / "cases"

# The file, the fabric that its pool has, the ranks whose lines it holds or should, what the first diagnosis is about,
# and words that the diagnoses have to hold.
LOGS: list[tuple[str, FabricName, set[int], str, list[str]]] = [
    ("25-efa-handshake-failed", "efa", {0, 8}, "security group", ["4126", "security group"]),
    ("29-tcpxo-7-of-8", "tcpxo", {0, 8}, "place of a GPU network", ["7", "8", "node-of-the-pod"]),
    ("29-tcpxo-0-of-8", "tcpxo", {0, 8}, "/sys mount", ["0", "/sys mount"]),
    ("29-tcpxo-client", "tcpxo", {0, 8}, "RxDM", ["connection refused", "RxDM", "nccl-test-host-1"]),
    ("32-gib-not-found", "rdma", {5, 7}, "GLIBC_2.32", ["gIB", "GLIBC_2.32", "serve-0"]),
    ("32-gib-no-device", "rdma", {0, 1}, "no RDMA device", ["NET/gIB : No device found"]),
    ("34-efa-not-requested", "efa", {0, 8}, "no eligible providers", ["NET plugin Socket", "no eligible providers"]),
    ("35-ofi-provider-tcp", "efa", {0, 8}, "provider tcp", ["provider tcp", "worker-0"]),
    ("37-gdr-one-side", "rdma", {2, 9}, "receive side", ["node-a", "receive side"]),
    ("39-net-socket", "rdma", {0, 8}, "no RDMA device", ["Socket", "trainer-0"]),
    ("46-memlock", "rdma", {0, 1}, "memlock", ["memlock", "Cannot allocate memory"]),
]


def words(diagnoses: tuple[Diagnosis, ...]) -> str:
    return "\n".join("\n".join((each.cause, *each.evidence, each.fix, *each.nodes)) for each in diagnoses)


def read(name: str) -> str:
    return (CASES / f"{name}.log").read_text("utf-8")


@pytest.mark.parametrize(("name", "fabric", "ranks", "first", "mentioned"), LOGS, ids=[row[0] for row in LOGS])
def test_log_fails_and_says_why(
    name: str, fabric: FabricName, ranks: set[int], first: str, mentioned: list[str]
) -> None:
    expected = TransportExpectation(
        fabric=fabric, ranks=frozenset(ranks), nodes=2, nics=32 if fabric == "efa" else None
    )
    result = transport(expected, [ProbeLog(text=read(name), node="node-of-the-pod")])
    assert (result.phase, result.verdict) == ("transport", Verdict.FAIL)
    assert first in result.diagnoses[0].cause
    said = words(result.diagnoses)
    assert [word for word in mentioned if word not in said] == [], said
    assert all(each.evidence and each.fix for each in result.diagnoses)


def test_29_seven_and_none_are_different_causes() -> None:
    expected = TransportExpectation(fabric="tcpxo", ranks=frozenset({0}), nodes=2, nics=None)
    causes = [
        transport(expected, [ProbeLog(text=read(name))]).diagnoses[0].cause
        for name in ("29-tcpxo-7-of-8", "29-tcpxo-0-of-8")
    ]
    assert causes == [
        "RxDM sees 7 of 8 GPUs: another network interface is in the place of a GPU network's",
        "RxDM sees 0 of 8 GPUs: it has no /sys mount of the host to find them in",
    ]


def test_32_plugin_that_cannot_load_is_not_a_plugin_without_devices() -> None:
    expected = TransportExpectation(fabric="rdma", ranks=frozenset({0}), nodes=2, nics=None)
    loaded = transport(expected, [ProbeLog(text=read("32-gib-no-device"))])
    assert "image" not in words(loaded.diagnoses[:1])
    broken = transport(expected, [ProbeLog(text=read("32-gib-not-found"))])
    assert "No device found" not in words(broken.diagnoses)


def test_35_control_passes_for_the_ranks_that_it_shows_and_for_no_others() -> None:
    log = ProbeLog(text=read("35-efa-ok"))
    shown = TransportExpectation(fabric="efa", ranks=frozenset({0, 8}), nodes=2, nics=32)
    result = transport(shown, [log])
    assert (result.verdict, result.diagnoses, result.failing) == (Verdict.PASS, (), frozenset())
    assert result.summary == "EFA on 2 of 2 ranks, with GPU-direct"
    assert result.seen["worker-1"] == {
        "ranks": "8",
        "network": "AWS Libfabric",
        "connections with GPU-direct": "2 of 2",
        "provider": "efa, 32 nics",
    }
    assert result.seen["worker-0"] == {
        "ranks": "0",
        "network": "AWS Libfabric",
        "connections with GPU-direct": "2 of 2",
        "provider": "efa, 32 nics",
        "libraries": "aws-ofi-nccl 1.12.1-aws, libfabric 1.22",
    }
    every = TransportExpectation(fabric="efa", ranks=frozenset(range(16)), nodes=2, nics=32)
    result = transport(every, [log])
    assert result.verdict is Verdict.UNKNOWN
    assert "ranks 1, 2, 3, 4, 5, 6, 7, 9 and 6 more said nothing of NCCL" in words(result.diagnoses)


def test_35_one_card_fewer_than_the_machine_has_is_no_pass() -> None:
    more = TransportExpectation(fabric="efa", ranks=frozenset({0, 8}), nodes=2, nics=33)
    result = transport(more, [ProbeLog(text=read("35-efa-ok"))])
    assert result.verdict is Verdict.FAIL
    assert result.diagnoses[0].cause == "32 of 33 network devices are there"
    assert result.diagnoses[0].nodes == ("worker-0", "worker-1")


def test_37_only_the_node_that_lacks_it_is_named() -> None:
    expected = TransportExpectation(fabric="rdma", ranks=frozenset({2, 9}), nodes=2, nics=None)
    result = transport(expected, [ProbeLog(text=read("37-gdr-one-side"))])
    assert result.failing == {"node-a"}
    assert "while the send side has it" in result.diagnoses[0].cause
    assert "nvidia-peermem" in result.diagnoses[1].fix


def test_43_mount_that_gets_no_answer() -> None:
    found = mount_failure(read("43-mgs-running"), "n1")
    assert found is not None
    assert "network or port" in found.cause
    assert "Is the MGS running?" in found.evidence
    assert "Input/output error" in found.evidence[0]
    assert found.nodes == ("n1",)
    assert mount_failure("mount.lustre: mounted\n") is None
    no_client = mount_failure("mount.lustre: mount 10.0.0.5@tcp:/x at /mnt failed: No such device\n")
    assert no_client is not None
    assert "kernel module is not loaded" in no_client.cause


def test_04_switch_controllers_are_not_counted_as_efa() -> None:
    found = miscount(read("04-efa-plugin-overcount"), 8, "ip-10-40-0-11")
    assert found is not None
    said = words((found,))
    assert "10 devices" in said
    assert "2 of them ibp*" in said
    assert "ibp115s0f0" in found.evidence[0]
    assert (found.certainty.value, found.nodes) == ("certain", ("ip-10-40-0-11",))
    assert miscount(read("04-efa-plugin-overcount"), 10) is None
    other = miscount(read("04-efa-plugin-overcount"), 16)
    assert other is not None
    assert other.certainty.value == "not known"
