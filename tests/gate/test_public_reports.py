"""Faults that people reported in public: each must get its verdict, and a reason that mentions what matters."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.gate.expectation import PluginExpectation, PoolExpectation
from plumbline.gate.phases import look
from plumbline.gate.placement import why_excluded
from plumbline.gate.signs import read_signs
from plumbline.gate.snapshot import DaemonSet, Node, Pod, Snapshot
from plumbline.gate.verdict import PhaseResult, Verdict
from tests.gate.clusters import pod

CASES = Path(__file__).parent.parent / "cases"


def case(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CASES / name).read_text("utf-8"))
    return loaded


def judge(
    resource: str, wanted: int, nodes: list[dict[str, Any]], daemon_set: dict[str, Any], pods: list[dict[str, Any]]
) -> PhaseResult:
    """The gate's look at a pool of exactly these nodes, whose plugin is this DaemonSet."""
    meta = daemon_set["metadata"]
    for each in pods:
        each["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": meta["name"], "controller": True}]
    image = pods[0]["status"]["containerStatuses"][0]["image"] if pods else "plugin:1"
    labels = nodes[0]["metadata"]["labels"]
    expected = PoolExpectation(
        pool="reported",
        generation="000000",
        nodes=len(nodes),
        node_selector={"any": "node"},
        machine=labels["node.kubernetes.io/instance-type"],
        zone=labels["topology.kubernetes.io/zone"],
        architecture=labels["kubernetes.io/arch"],
        node_labels={},
        resources={resource: wanted},
        plugins=(
            PluginExpectation(
                namespace=meta["namespace"], name=meta["name"], image=image, resource=resource, setting="its setting"
            ),
        ),
        within_seconds=60,
        stable_seconds=4,
        valid_seconds=3600,
    )
    read = DaemonSet.from_json(daemon_set)
    for each in pods:
        each["spec"].setdefault("containers", [{"image": image}])
    seen = Snapshot(
        nodes=tuple(Node.from_json(each) for each in nodes),
        daemon_sets={(read.namespace, read.name): read},
        pods=tuple(Pod.from_json(each) for each in pods),
    )
    return look(expected, seen)[-1]


def says(result: PhaseResult, *words: str) -> None:
    text = "\n".join(line for d in result.diagnoses for line in (d.cause, *d.evidence, d.fix))
    for word in words:
        assert word in text, f"{word!r} is not in:\n{text}"


def plugin_pods(daemon_set: dict[str, Any], nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    template = pod("efa-device-plugin", "x")
    return [
        {
            **template,
            "metadata": {**daemon_set["metadata"], "name": f"p{i}"},
            "spec": {"nodeName": n["metadata"]["name"]},
        }
        for i, n in enumerate(nodes)
    ]


def test_01_plugin_crash_loops_on_nodes_without_efa() -> None:
    reported = case("01-efa-plugin-crashloop.json")
    nodes = [n for n in reported["nodes"]["items"] if "g5.12xlarge" in n["metadata"]["labels"].values()]
    result = judge("vpc.amazonaws.com/efa", 1, nodes, reported["daemonset"], reported["pods"]["items"])
    assert (result.phase, result.verdict) == ("plugins", Verdict.FAIL)
    says(result, "ip-10-20-3-14.ec2.internal", "ip-10-20-3-77.ec2.internal", "CrashLoopBackOff", "exit code 1")
    sign = read_signs(Pod.from_json(reported["pods"]["items"][0]), (CASES / "01-efa-plugin-no-device.log").read_text())
    assert sign is not None
    assert sign.cause == "finds no EFA device on its node"


def test_02_daemon_set_wants_no_pod_on_auto_mode() -> None:
    reported = case("02-efa-daemonset-desired-zero.json")
    result = judge("vpc.amazonaws.com/efa", 1, reported["nodes"]["items"], reported["daemonset"], [])
    assert (result.phase, result.verdict) == ("plugins", Verdict.FAIL)
    says(result, "desired 0", "eks.amazonaws.com/compute-type NotIn [auto]", "the node has", "i-0aaa111122223333a")


def test_04_ten_devices_where_there_are_eight() -> None:
    reported = case("04-efa-overcount-node.json")["items"]
    daemon_set = {"metadata": {"name": "efa", "namespace": "kube-system"}, "status": {}}
    result = judge("vpc.amazonaws.com/efa", 8, reported, daemon_set, plugin_pods(daemon_set, reported))
    assert (result.phase, result.verdict, result.heals) == ("advertised", Verdict.FAIL, False)
    says(result, "allocatable 10", "expected 8", "ip-10-40-0-11")


def test_06_taint_that_nobody_tolerates() -> None:
    reported = case("06-device-plugin-desired-zero.json")
    result = judge("nvidia.com/gpu", 8, reported["nodes"]["items"], reported["daemonset"], [])
    assert result.verdict is Verdict.FAIL
    says(result, "desired 0", "the pool has 2 nodes", "nvidia.com/gpu=true:NoSchedule")


def test_06_toleration_present_does_not_tolerate_taint_true() -> None:
    pool, discovery, plugin = yaml.safe_load_all((CASES / "06-nfd-toleration.yaml").read_text())
    tainted = {"metadata": {"name": "n"}, "spec": {"taints": pool["pool"]["taints"]}}
    node = Node.from_json(tainted)
    assert why_excluded(DaemonSet.from_json(discovery), node) == (
        "it does not tolerate the taint nvidia.com/gpu=true:NoSchedule"
    )
    labelled = Node.from_json({**tainted, "metadata": {"name": "n", "labels": {"nvidia.com/gpu.present": "true"}}})
    assert why_excluded(DaemonSet.from_json(plugin), labelled) is None
    assert "pci-10de.present" in (why_excluded(DaemonSet.from_json(plugin), node) or "")


def test_07_ready_daemon_set_is_not_enough() -> None:
    reported = case("07-daemonset-ready-no-gpu.json")
    nodes = reported["nodes"]["items"]
    result = judge("nvidia.com/gpu", 8, nodes, reported["daemonset"], plugin_pods(reported["daemonset"], nodes))
    assert (result.phase, result.verdict) == ("advertised", Verdict.FAIL)
    says(result, "ip-10-70-0-2.ec2.internal: allocatable 0", "though the plugin's pod is ready")
    assert result.failing == {"ip-10-70-0-2.ec2.internal"}


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("07-nvidia-plugin-waits-forever.log", "found no device when it started, and never looks again"),
        ("13-rdma-exposing-zero.log", "runs and exposes no device"),
    ],
)
def test_what_plugins_log_is_understood(log: str, words: str) -> None:
    sign = read_signs(Pod.from_json(pod("efa-device-plugin", "n")), (CASES / log).read_text())
    assert sign is not None
    assert sign.cause == words


def test_10_image_of_another_architecture() -> None:
    reported = case("10-arch-exec-format.json")
    daemon_set = {"metadata": {"name": "device-plugin", "namespace": "kube-system"}, "status": {}}
    result = judge("nvidia.com/gpu", 4, [reported["node"]], daemon_set, [reported["pod"]])
    assert (result.phase, result.verdict, result.heals) == ("plugins", Verdict.FAIL, False)
    says(result, "exec format error", "the node is arm64", "an image that has arm64", "gb-0001")


def test_12_plugin_that_crashes_without_a_word() -> None:
    reported = case("12-rdma-plugin-crashloop.json")
    nodes = case("13-daemonset-ready-zero-rdma.json")["nodes"]["items"]
    pods = reported["pods"]["items"]
    result = judge("rdma/hca_shared_devices_a", 1, nodes, reported["daemonset"], pods)
    assert result.verdict is Verdict.FAIL
    says(result, "CrashLoopBackOff", "rdma/hca_shared_devices_a: expected 1 on each node, allocatable 0", "w1, w2")


def test_13_ready_plugin_that_exposes_nothing() -> None:
    reported = case("13-daemonset-ready-zero-rdma.json")
    nodes = reported["nodes"]["items"]
    pods = plugin_pods(reported["daemonset"], nodes)
    result = judge("rdma/hca_shared_devices_a", 63, nodes, reported["daemonset"], pods)
    assert (result.phase, result.verdict) == ("advertised", Verdict.FAIL)
    says(result, "w1: allocatable 0", "w2: allocatable 0")


@pytest.mark.parametrize("state", case("56-ds-await.json")["states"], ids=lambda state: str(state["n"]))
def test_56_states_of_a_daemon_set(state: dict[str, Any]) -> None:
    """Two GPU nodes that advertise everything; what the DaemonSet says of itself differs."""
    nodes = case("07-daemonset-ready-no-gpu.json")["nodes"]["items"]
    nodes[1]["status"] = nodes[0]["status"]
    status = state["daemonset"]["status"]
    up = min(status.get("updatedNumberScheduled", 0), status["numberReady"])
    pods = plugin_pods(state["daemonset"], nodes[:up])
    result = judge("nvidia.com/gpu", 8, nodes, state["daemonset"], pods)
    if state["verdict"] == "pass":
        assert (result.phase, result.verdict) == ("advertised", Verdict.PASS)
    else:
        assert result.verdict is not Verdict.PASS, state["why"]
        assert result.phase == "plugins"
