"""Phases 1 to 3 on what an API shows: pass needs every node by name, and every failure names node, cause and fix."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.gate.phases import look
from plumbline.gate.snapshot import Snapshot
from plumbline.gate.verdict import Certainty, Diagnosis, PhaseResult, Verdict
from tests.gate.clusters import CRASH, EFA, EXPECTED, GPU, NAMES, crash, daemon_set, node, pod, snapshot, with_pods

PLUGIN = "efa-device-plugin"


def last(seen: Snapshot) -> PhaseResult:
    return look(EXPECTED, seen)[-1]


def only(result: PhaseResult) -> Diagnosis:
    assert len(result.diagnoses) == 1, result.diagnoses
    return result.diagnoses[0]


def test_whole_cluster_passes_all_phases() -> None:
    results = look(EXPECTED, snapshot())
    assert [(each.phase, each.verdict) for each in results] == [
        ("nodes", Verdict.PASS),
        ("plugins", Verdict.PASS),
        ("advertised", Verdict.PASS),
    ]
    assert results[-1].seen[NAMES[0]] == {EFA: "32", GPU: "8"}


def test_empty_cluster_never_passes() -> None:
    result = last(snapshot(nodes=[], sets=[], pods=[]))
    assert (result.phase, result.verdict) == ("nodes", Verdict.FAIL)
    assert only(result).cause == "2 nodes of 2 did not join the cluster"


# --- nodes


def test_missing_node_is_counted_and_the_others_are_named() -> None:
    diagnosis = only(last(snapshot(nodes=[node(NAMES[1])])))
    assert diagnosis.cause == "1 node of 2 did not join the cluster"
    assert NAMES[1] in diagnosis.evidence[0]
    assert diagnosis.heals


def test_node_that_is_not_ready_is_quoted() -> None:
    ready = {"status": "False", "reason": "KubeletNotReady", "message": "cni plugin not initialized"}
    diagnosis = only(last(snapshot(nodes=[node(NAMES[0]), node(NAMES[1], ready=ready)])))
    assert diagnosis.nodes == (NAMES[1],)
    assert diagnosis.evidence == (f"{NAMES[1]}: KubeletNotReady: cni plugin not initialized",)


@pytest.mark.parametrize(
    ("key", "found", "word"),
    [
        ("topology.kubernetes.io/zone", "us-west-2a", "zone"),
        ("node.kubernetes.io/instance-type", "p5e.48xlarge", "instance-type"),
        ("kubernetes.io/arch", "arm64", "arch"),
    ],
)
def test_other_hardware_does_not_heal(key: str, found: str, word: str) -> None:
    diagnosis = only(last(snapshot(nodes=[node(NAMES[0]), node(NAMES[1], labels={key: found})])))
    assert word in diagnosis.cause
    assert f"{NAMES[1]}: {key}={found}, expected" in diagnosis.evidence[0]
    assert not diagnosis.heals


def test_missing_labels_of_ours_are_named() -> None:
    diagnosis = only(last(snapshot(nodes=[node(NAMES[0]), node(NAMES[1], labels={"plumbline.dev/fabric": "no"})])))
    assert diagnosis.evidence == (f"{NAMES[1]}: lacks plumbline.dev/fabric=efa",)


def test_node_too_many_fails() -> None:
    diagnosis = only(last(snapshot(nodes=[node(name) for name in (*NAMES, "ip-10-20-1-19")])))
    assert diagnosis.cause == "3 nodes where 2 are declared"


def test_missing_topology_labels_warn_and_do_not_fail() -> None:
    bare = node(NAMES[1])
    del bare["metadata"]["labels"]["topology.k8s.aws/network-node-layer-3"]
    results = look(EXPECTED, snapshot(nodes=[node(NAMES[0]), bare]))
    assert results[-1].verdict is Verdict.PASS
    assert NAMES[1] in results[0].warnings[0]


# --- plugins


def test_exec_format_error_names_nodes_daemon_set_image_and_fix_and_does_not_heal() -> None:
    said = crash("exec /usr/bin/efa-k8s-device-plugin: exec format error")
    pods = with_pods(PLUGIN, {name: {"container": said} for name in NAMES})
    nodes = [node(name, allocatable={EFA: "0"}, capacity={EFA: "0"}) for name in NAMES]
    result = last(snapshot(nodes=nodes, pods=pods))
    diagnosis = only(result)
    assert diagnosis.certainty is Certainty.CERTAIN
    assert "its image is built for another architecture" in diagnosis.cause
    assert diagnosis.evidence[0].startswith("DaemonSet kube-system/efa-device-plugin, image 602401143452.")
    assert diagnosis.evidence[1] == (
        f"{NAMES[0]}, {NAMES[1]}: CrashLoopBackOff, exit code 1, "
        '"exec /usr/bin/efa-k8s-device-plugin: exec format error"; the nodes are amd64'
    )
    assert diagnosis.evidence[2] == f"{EFA}: expected 32 on each node, allocatable 0"
    assert "plumbline:site.plugins.efa.image" in diagnosis.fix
    assert "amd64" in diagnosis.fix
    assert not result.heals
    assert result.doomed == set(NAMES)


def test_last_words_are_taken_from_the_log_where_the_status_has_none() -> None:
    pods = with_pods(PLUGIN, {NAMES[0]: {"container": CRASH}})
    logs = {f"kube-system/{PLUGIN}-{NAMES[0]}": "starting\nexec format error\n"}
    diagnosis = only(last(snapshot(pods=pods, logs=logs)))
    assert '"exec format error"' in diagnosis.evidence[1]
    assert diagnosis.nodes == (NAMES[0],)


@pytest.mark.parametrize(
    ("reason", "message", "cause", "heals"),
    [
        ("ImagePullBackOff", "failed to resolve reference: manifest unknown", "its image does not exist", False),
        ("ErrImagePull", "rpc error: code = NotFound desc = x:v9: not found", "its image does not exist", False),
        ("ErrImagePull", "no match for platform in manifest", "no variant for the nodes' architecture", False),
        ("InvalidImageName", "couldn't parse image", "its image's name is not valid", False),
        ("ImagePullBackOff", "unexpected status: 403 Forbidden", "the registry refuses the nodes", True),
        ("ImagePullBackOff", "dial tcp: i/o timeout", "does not start", True),
        ("CreateContainerConfigError", 'secret "x" is missing', "does not start", True),
    ],
)
def test_waiting_containers(reason: str, message: str, cause: str, heals: bool) -> None:
    earlier = {"terminated": {"exitCode": 137, "reason": "Error", "message": "registered"}}
    state = {"ready": False, "state": {"waiting": {"reason": reason, "message": message}}, "lastState": earlier}
    result = last(snapshot(pods=with_pods(PLUGIN, {NAMES[0]: {"container": state}})))
    assert cause in only(result).cause
    assert message in only(result).evidence[1]
    assert result.heals is heals


def test_starting_container_is_waited_for_and_not_blamed() -> None:
    state = {"ready": False, "state": {"waiting": {"reason": "ContainerCreating"}}}
    result = last(snapshot(pods=with_pods(PLUGIN, {NAMES[0]: {"container": state}})))
    assert result.verdict is Verdict.UNKNOWN
    assert result.diagnoses == ()
    assert result.failing == {NAMES[0]}


def test_desired_0_fails_and_names_the_term_that_excludes_the_nodes() -> None:
    term = {"matchExpressions": [{"key": "eks.amazonaws.com/compute-type", "operator": "In", "values": ["auto"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    sets = [
        daemon_set("nvidia-device-plugin"),
        daemon_set(PLUGIN, pod={"affinity": affinity}, status={"desiredNumberScheduled": 0, "numberReady": 0}),
    ]
    pods = with_pods(PLUGIN, dict.fromkeys(NAMES))
    diagnosis = only(last(snapshot(sets=sets, pods=pods)))
    assert "eks.amazonaws.com/compute-type In [auto]; the node has no such label" in diagnosis.cause
    assert "desired 0, ready 0; the pool has 2 nodes" in diagnosis.evidence[0]
    assert diagnosis.nodes == NAMES


def test_taint_that_is_not_tolerated_is_named() -> None:
    sets = [daemon_set("nvidia-device-plugin"), daemon_set(PLUGIN, pod={"tolerations": []})]
    diagnosis = only(last(snapshot(sets=sets, pods=with_pods(PLUGIN, {NAMES[0]: None}))))
    assert "it does not tolerate the taint nvidia.com/gpu=present:NoSchedule" in diagnosis.cause


def test_daemon_set_that_is_not_there_fails() -> None:
    diagnosis = only(last(snapshot(sets=[daemon_set("nvidia-device-plugin")])))
    assert diagnosis.evidence == ("DaemonSet kube-system/efa-device-plugin does not exist",)


def test_pod_of_another_image_is_not_the_declared_plugin() -> None:
    pods = with_pods(PLUGIN, {NAMES[0]: {"image": "registry.example.com/old:1"}})
    diagnosis = only(last(snapshot(pods=pods)))
    assert "registry.example.com/old:1" in diagnosis.evidence[1]


def test_ready_plugin_on_another_node_proves_nothing() -> None:
    pods = [*with_pods(PLUGIN, {NAMES[0]: None}), pod(PLUGIN, "elsewhere")]
    assert last(snapshot(pods=pods)).failing == {NAMES[0]}


# --- advertised


@pytest.mark.parametrize(
    ("allocatable", "capacity", "heals"),
    [("31", "31", True), ("0", "32", True), ("32", "31", True), ("33", "33", False), ("many", "32", True)],
)
def test_counts_are_compared_by_equality(allocatable: str, capacity: str, heals: bool) -> None:
    nodes = [node(NAMES[0]), node(NAMES[1], allocatable={EFA: allocatable}, capacity={EFA: capacity})]
    result = last(snapshot(nodes=nodes))
    diagnosis = only(result)
    assert (result.phase, result.verdict, result.heals) == ("advertised", Verdict.FAIL, heals)
    assert diagnosis.evidence[0] == f"{NAMES[1]}: allocatable {allocatable}, capacity {capacity}, expected 32"
    assert diagnosis.nodes == (NAMES[1],)


def test_resource_that_is_absent_is_0() -> None:
    bare: dict[str, Any] = node(NAMES[1])
    del bare["status"]["allocatable"][GPU], bare["status"]["capacity"][GPU]
    diagnosis = only(last(snapshot(nodes=[node(NAMES[0]), bare])))
    assert diagnosis.evidence[0] == f"{NAMES[1]}: allocatable 0, capacity 0, expected 8"


def test_log_of_a_ready_plugin_that_sees_nothing_is_quoted() -> None:
    nodes = [node(NAMES[0]), node(NAMES[1], allocatable={GPU: "0"}, capacity={GPU: "0"})]
    logs = {f"kube-system/nvidia-device-plugin-{NAMES[1]}": "x\nmain.go:346] No devices found. Waiting indefinitely."}
    diagnosis = only(last(snapshot(nodes=nodes, logs=logs)))
    assert diagnosis.certainty is Certainty.CERTAIN
    assert "No devices found. Waiting indefinitely" in diagnosis.evidence[-1]


_amount = st.one_of(st.none(), st.integers(-3, 40).map(str), st.text(max_size=4))


@given(
    efa=st.tuples(_amount, _amount),
    gpu=st.tuples(_amount, _amount),
    container=st.sampled_from([{}, CRASH, {"ready": False}]),
    ready=st.sampled_from(["True", "False", "Unknown"]),
)
def test_nothing_but_the_whole_passes(
    efa: tuple[str | None, str | None],
    gpu: tuple[str | None, str | None],
    container: dict[str, Any],
    ready: str,
) -> None:
    changed = node(NAMES[1], ready={"status": ready})
    for resource, amounts in ((EFA, efa), (GPU, gpu)):
        for field, amount in zip(("allocatable", "capacity"), amounts, strict=True):
            changed["status"][field][resource] = amount
    pods = with_pods(PLUGIN, {NAMES[1]: {"container": container}})
    result = last(snapshot(nodes=[node(NAMES[0]), changed], pods=pods))
    whole = ready == "True" and not container and counts(efa) == (32, 32) and counts(gpu) == (8, 8)
    assert (result.verdict is Verdict.PASS) is whole
    assert whole or result.diagnoses or result.failing


def counts(amounts: tuple[str | None, str | None]) -> tuple[object, ...]:
    """What a person reads: whole numbers, and nothing else."""
    return tuple(
        int(amount) if amount and amount.isascii() and amount.strip().isdigit() else amount for amount in amounts
    )
