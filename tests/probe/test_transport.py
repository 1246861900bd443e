"""A pass needs the right line from every rank; what is wrong fails, what is missing is unknown."""

import pytest

from plumbline.gate.verdict import Certainty, Verdict
from plumbline.probe.fabrics import FABRICS, FabricName
from plumbline.probe.transport import ProbeLog, transport
from plumbline.probe.transport_signs import SIGNS
from tests.probe.logs import NETWORKS, expectation, text, two_ranks, verdict

FABRIC_NAMES: list[FabricName] = ["efa", "tcpx", "tcpxo", "rdma"]


@pytest.mark.parametrize("fabric", FABRIC_NAMES)
def test_every_rank_shows_the_fabric(fabric: FabricName) -> None:
    assert verdict(two_ranks(fabric), fabric) == "pass"
    half = len(two_ranks(fabric)) // 2
    separate = [text(two_ranks(fabric)[:half]), text(two_ranks(fabric)[half:])]
    result = transport(expectation(fabric), [ProbeLog(text=each) for each in separate])
    assert (result.verdict, result.diagnoses) == (Verdict.PASS, ())


@pytest.mark.parametrize("fabric", FABRIC_NAMES)
def test_each_line_is_needed(fabric: FabricName) -> None:
    every = two_ranks(fabric)
    for gone in range(len(every)):
        assert verdict(every[:gone] + every[gone + 1 :], fabric) == "unknown", every[gone]


@pytest.mark.parametrize("fabric", FABRIC_NAMES)
@pytest.mark.parametrize("other", [*FABRIC_NAMES, "Socket", "FastSocket", "SomethingNew"])
def test_one_connection_over_another_network_fails(fabric: FabricName, other: str) -> None:
    network = dict(NETWORKS).get(other, other)  # type: ignore[call-overload]
    lines = two_ranks(fabric)
    lines[-1] = lines[-1].replace(f"NET/{NETWORKS[fabric]}/", f"NET/{network}/")
    assert verdict(lines, fabric) == ("pass" if fabric == other else "fail")


@pytest.mark.parametrize("fabric", FABRIC_NAMES)
@pytest.mark.parametrize("place", [-1, -2])
def test_one_side_without_gpu_direct_fails_unless_it_is_not_asked_for(fabric: FabricName, place: int) -> None:
    lines = two_ranks(fabric)
    lines[place] = lines[place].removesuffix("/GDRDMA")
    result = transport(expectation(fabric), [ProbeLog(text=text(lines))])
    side = {-1: "receive", -2: "send"}[place]
    assert result.verdict is Verdict.FAIL
    assert f"no GPU-direct on the {side} side, while" in result.diagnoses[0].cause
    assert result.diagnoses[0].evidence == (lines[place],)
    assert result.failing == {"worker-1"}
    assert verdict(lines, fabric, gpu_direct=False) == "pass"


@pytest.mark.parametrize("nics", [1, 31])
def test_a_card_too_few_fails(nics: int) -> None:
    lines = [line.replace("found 32", f"found {nics}") for line in two_ranks()]
    result = transport(expectation(), [ProbeLog(text=text(lines))])
    assert (result.verdict, result.diagnoses[0].cause) == (
        Verdict.FAIL,
        f"{nics} of 32 network devices are there",
    )


def test_a_card_too_many_is_told() -> None:
    lines = [line.replace("found 32", "found 33") for line in two_ranks()]
    result = transport(expectation(), [ProbeLog(text=text(lines))])
    assert result.verdict is Verdict.PASS
    assert "worker-0: 33 network devices, 32 expected" in result.warnings[0]


def test_provider_without_a_count_is_unknown_only_if_a_count_is_asked_for() -> None:
    lines = [line.replace(", fabric is efa-direct (found 32 nics)", "") for line in two_ranks()]
    assert verdict(lines) == "unknown"
    assert verdict(lines, nics=None) == "pass"


def test_rdma_devices_are_counted_where_a_count_is_asked_for() -> None:
    lines = two_ranks("rdma")
    assert verdict(lines, "rdma", nics=2) == "unknown"
    for count, wanted in ((2, "pass"), (1, "fail")):
        devices = " ".join(f"[{n}]mlx5_{n}:1/RoCE" for n in range(count))
        listed = [
            f"worker-{r}:8{r}:140 [0] NCCL INFO NET/gIB : Using {devices} [RO]; OOB eth0:10.0.0.1<0>" for r in (0, 1)
        ]
        assert verdict([*listed, *lines], "rdma", nics=2) == wanted


def test_number_that_came_over_nvlink_between_nodes_proves_no_network() -> None:
    extra = "worker-0:80:140 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via P2P/MNNVL"
    result = transport(expectation(), [ProbeLog(text=text([*two_ranks(), extra]))])
    assert result.verdict is Verdict.FAIL
    assert "NVLink" in result.diagnoses[0].cause
    assert "NCCL_MNNVL_ENABLE=0" in result.diagnoses[0].fix


def test_what_healthy_logs_say_of_plugins_that_were_tried_fails_nothing() -> None:
    tried = [
        "worker-0:80:140 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net-other.so",
        "worker-0:80:140 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>",
        "worker-0:80:140 [0] NCCL INFO Initialized NET plugin Socket",
        "worker-0:80:140 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
        "worker-0:80:140 [0] NCCL INFO NET/OFI No eligible providers were found",  # of the first protocol it tries
        "worker-0:80:140 [0] NCCL INFO Using network Libfabric",
    ]
    assert verdict([*two_ranks(), *tried]) == "pass"


def test_ranks_that_use_networks_of_different_names_fail() -> None:
    lines = [
        line.replace("NET/Libfabric/", "NET/AWS Libfabric/") if "worker-1" in line else line for line in two_ranks()
    ]
    third = [line.replace("worker-0:80", "worker-2:82") for line in two_ranks() if "worker-0" in line]
    result = transport(expectation(), [ProbeLog(text=text([*lines, *third]))])
    assert result.verdict is Verdict.FAIL
    assert "networks of different names, AWS Libfabric and Libfabric" in result.diagnoses[0].cause
    assert result.failing == {"worker-1"}
    assert transport(expectation(), [ProbeLog(text=text(lines))]).failing == {"worker-0", "worker-1"}


def test_device_without_gpu_direct_that_carries_nothing_fails_nothing() -> None:
    said = "worker-0:80:140 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 9 'mlx5_bond_0'"
    assert verdict([*two_ranks("rdma"), said], "rdma") == "pass"
    lines = [line.removesuffix("/GDRDMA") if "worker-0" in line else line for line in two_ranks("rdma")]
    result = transport(expectation("rdma"), [ProbeLog(text=text([*lines, said]))])
    assert [each.certainty for each in result.diagnoses][-1] is Certainty.LIKELY
    assert result.diagnoses[-1].evidence == (said,)


def test_fi_info_that_finds_no_device_fails_before_nccl_says_anything() -> None:
    result = transport(expectation(), [ProbeLog(text="fi_getinfo: -61 (No data available)\n", node="n1")])
    assert (result.verdict, result.diagnoses[0].nodes) == (Verdict.FAIL, ("n1",))
    assert result.diagnoses[0].cause == "libfabric finds no EFA device in the pod"
    assert result.diagnoses[0].evidence == ("n1: fi_getinfo: -61 (No data available)",)
    assert not result.diagnoses[0].heals


@pytest.mark.parametrize(("nodes", "said"), [(1, "fewer than two nodes"), (3, "ran on 2 nodes, and 3 were to be")])
def test_number_of_nodes_has_to_be_the_one_that_was_to_be_proven(nodes: int, said: str) -> None:
    result = transport(expectation(nodes=nodes), [ProbeLog(text=text(two_ranks()))])
    assert result.verdict is Verdict.UNKNOWN
    assert said in result.diagnoses[0].cause
    assert result.diagnoses[0].certainty is Certainty.NOT_KNOWN


def test_no_log_is_unknown() -> None:
    for logs in ([], [ProbeLog(text="")], [ProbeLog(text="sh: nccl: not found\n", node="n")]):
        result = transport(expectation(), logs)
        assert result.verdict is Verdict.UNKNOWN
        assert result.diagnoses[0].cause == "ranks 0, 1 said nothing of NCCL"


def test_debug_level_that_hides_the_transport_is_unknown() -> None:
    lines = [line for line in two_ranks() if "via NET" not in line]
    ranks = [f"worker-{r}:8{r}:140 [0] NCCL INFO comm 0xaa rank {r} nranks 2 cudaDev 0 - Init COMPLETE" for r in (0, 1)]
    result = transport(expectation(), [ProbeLog(text=text([*lines, *ranks]))])
    assert result.verdict is Verdict.UNKNOWN
    assert result.diagnoses[0].cause == "ranks 0, 1 never said that they use EFA"
    assert result.failing == {"worker-0", "worker-1"}


def test_rank_on_two_nodes_is_of_two_runs() -> None:
    again = [line.replace("worker-1", "worker-2") for line in two_ranks() if "worker-1" in line]
    result = transport(expectation(), [ProbeLog(text=text([*two_ranks(), *again]))])
    assert result.verdict is Verdict.UNKNOWN
    assert result.diagnoses[0].cause == "rank 1 shows on more than one node, so the log is of more than one run"


def test_both_ranks_on_one_node_is_unknown() -> None:
    hosts = {"worker-0": "n1", "worker-1": "n1"}
    result = transport(expectation(hosts=hosts), [ProbeLog(text=text(two_ranks()))])
    assert result.verdict is Verdict.UNKNOWN
    assert "the ranks ran on 1 nodes, and 2 were to be proven" in result.diagnoses[0].cause


def test_connection_whose_line_is_mixed_up_is_unknown() -> None:
    extra = "worker-0:80:140 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/Libfworker-1"
    result = transport(expectation(), [ProbeLog(text=text([*two_ranks(), extra]))])
    assert result.verdict is Verdict.UNKNOWN
    assert result.diagnoses[0].cause == "1 lines of connections are cut or mixed up with others"
    assert result.diagnoses[0].evidence == (extra,)


def test_side_that_a_rank_does_not_show_is_unknown() -> None:
    extra = "worker-0:80:140 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/Libfabric/1/GDRDMA"
    result = transport(expectation(), [ProbeLog(text=text([*two_ranks(), extra]))])
    assert result.verdict is Verdict.UNKNOWN
    assert result.diagnoses[0].cause == "rank 1 shows nothing of its side of channel 1"
    assert result.diagnoses[0].nodes == ("worker-1",)


def test_nodes_are_named_by_the_names_of_the_cluster() -> None:
    lines = [line.removesuffix("/GDRDMA") if "worker-1" in line else line for line in two_ranks()]
    hosts = {"worker-0": "ip-10-0-0-1", "worker-1": "ip-10-0-0-2"}
    result = transport(expectation(hosts=hosts), [ProbeLog(text=text(lines))])
    assert result.failing == {"ip-10-0-0-2"}
    assert result.diagnoses[0].evidence[0].startswith("ip-10-0-0-2: worker-1:")


def test_certain_causes_come_before_likely_ones_and_symptoms_last() -> None:
    lines = [
        "worker-0:80:140 [0] NCCL INFO Using network Socket",
        "worker-0:80:140 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so",
        "worker-0:80:140 [0] NCCL INFO NET/OFI No eligible providers were found",
    ]
    result = transport(expectation(), [ProbeLog(text=text(lines))])
    assert [each.certainty for each in result.diagnoses] == [
        Certainty.CERTAIN,
        Certainty.LIKELY,
        Certainty.NOT_KNOWN,
    ]


def test_evidence_shows_every_node_before_it_repeats_one() -> None:
    lines = [f"a:1:1 [0] NCCL INFO Channel {n:02}/0 : 0[0] -> 1[0] [send] via NET/Socket/0" for n in range(20)]
    lines.append("b:1:1 [0] NCCL INFO Using network Socket")
    (found,) = transport(expectation(), [ProbeLog(text=text(lines))]).diagnoses
    assert found.nodes == ("a", "b")
    assert found.evidence[1].startswith("b:1:1")
    assert found.evidence[-1] == "and 13 more lines like these"


def test_every_sign_has_a_source() -> None:
    assert all(sign.source.startswith("https://") and sign.fix for sign in SIGNS)
    assert all(address.startswith("https://") for each in FABRICS.values() for address in each.sources)
    assert len({sign.cause for sign in SIGNS}) == len(SIGNS)
