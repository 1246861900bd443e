"""A stack's life on the real engine: green, unchanged, broken later and found, every fault blocked and healed, gone.

The tests of this module are one story, in this order, on one stack: an engine run costs ten seconds.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from plumbline.plan import plan_site
from plumbline.site import read_site
from tests.lifecycle.gates import GateProcess
from tests.rehearsals import Rehearsal
from tests.sites import GOOD
from tools.toolbox import CHECKOUT

pytestmark = pytest.mark.engine
POOL = plan_site(read_site(GOOD)[0]).pools[0]
NODES = ("ip-10-20-32-17.us-west-2.compute.internal", "ip-10-20-32-18.us-west-2.compute.internal")
SHORT = {"within": "10s", "stable": "2s"}


def plumbline(stage: Rehearsal, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "plumbline.cli", *arguments, "--stack", "local", "--cwd", str(CHECKOUT)],
        env=stage.environment,
        capture_output=True,
        text=True,
        check=False,
    )


def report(stage: Rehearsal) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plumbline(stage, "report", "--json").stdout)
    return found


def test_first_update_is_blocked_records_everything_and_creates_nothing_behind_the_gate(stage: Rehearsal) -> None:
    stage.client.set_faults(["plugin-image-missing"])
    done = stage.up()
    assert done.code != 0
    assert "2 of 2 nodes fail in phase 2 of 3, plugins" in done.text
    assert "manifest unknown" in done.text
    assert all(node in done.text for node in NODES)
    assert "kubernetes:core/v1:Namespace" not in stage.types()
    assert 'cluster: "train"' in done.text, "no output waits for a gate"
    [gate] = report(stage)["gates"]
    assert gate["verdict"] == "fail"
    assert gate["proof"]["diagnoses"][0]["nodes"] == list(NODES)


def test_kubeconfig_of_a_blocked_stack_works_and_is_nowhere_in_plain(stage: Rehearsal) -> None:
    text = plumbline(stage, "kubeconfig").stdout
    file = stage.state.root / "kubeconfig-of-the-stack"
    file.write_text(text)
    command = ["kubectl", "--kubeconfig", str(file), "get", "nodes", "-o", "name", "-l", "plumbline.dev/pool=h100"]
    done = subprocess.run(command, env=stage.environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [f"node/{node}" for node in NODES], done.stderr
    state = (stage.state.pulumi / ".pulumi" / "stacks" / "plumbline" / "local.json").read_text("utf-8")
    assert "get-token" not in state
    assert json.loads(text)["clusters"][0]["cluster"]["certificate-authority-data"] not in state.replace(
        stage.resources("aws:eks/cluster:Cluster")[0]["outputs"]["certificateAuthority"]["data"], ""
    )


def test_next_update_without_the_fault_goes_green(stage: Rehearsal) -> None:
    stage.client.set_faults([])
    done = stage.up()
    assert done.code == 0, done.text
    assert "kubernetes:core/v1:Namespace" in stage.types()
    found = report(stage)
    assert found["proven"] is True
    proof = found["gates"][0]["proof"]
    assert sorted(proof["nodes"]) == list(NODES)
    assert proof["nodes"][NODES[0]]["advertised"] == {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}
    assert proof["nodes"][NODES[0]]["identity"]["provider id"].startswith("aws:///us-west-2b/i-0")


def test_second_update_changes_nothing(stage: Rehearsal) -> None:
    before = report(stage)["gates"][0]["proof"]["at"]
    done = stage.up("--expect-no-changes")
    assert done.code == 0, done.text
    assert report(stage)["gates"][0]["proof"]["at"] == before


# --- every fault of the nodes, on the provider's own protocol, against the same cluster -----------------------------


@pytest.fixture(scope="module")
def gate(stage: Rehearsal) -> Iterator[GateProcess]:
    state = stage.exported(secrets=True)
    [resource] = [r for r in state["deployment"]["resources"] if r["type"] == "plumbline:index:FabricGate"]
    inputs = {**resource["inputs"], "kubeconfig": json.loads(resource["inputs"]["kubeconfig"]["plaintext"])}
    with GateProcess(stage.environment, resource["urn"], inputs) as running:
        yield running


FIRST = (NODES[0],)
FAULTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "plugin-image-missing": (NODES, ("its image does not exist", "manifest unknown", "plugins.efa.image")),
    "plugin-wrong-architecture": (
        NODES,
        (
            "DaemonSet kube-system/efa-device-plugin",
            "aws-efa-k8s-device-plugin:v0.5.20",
            "exec format error",
            "amd64",  # the nodes are listed apart while their pods are in different states
            "plumbline:site.plugins.efa.image",
        ),
    ),
    "plugin-crashloop": (
        NODES,
        ("finds no EFA device on its node", "CrashLoopBackOff", "No valid EFA devices found"),
    ),
    "plugin-selector-matches-nothing": (
        NODES,
        ("desired 0, ready 0; the pool has 2 nodes", "eks.amazonaws.com/compute-type In [auto]"),
    ),
    "one-node-without-efa": (FIRST, ("finds no EFA device on its node", "the node is amd64")),
    "one-node-advertises-fewer": (FIRST, ("allocatable 31, capacity 31, expected 32",)),
    "advertised-then-lost": (FIRST, ("devices were advertised and then lost again", "vpc.amazonaws.com/efa 32 -> 0")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_blocks_with_its_nodes_and_cause_and_heals(stage: Rehearsal, gate: GateProcess, fault: str) -> None:
    nodes, words = FAULTS[fault]
    stage.client.set_faults([fault])
    within, stable = (8.0, 4.0) if fault == "advertised-then-lost" else (8.0, 1.0)
    blocked = gate.until_failed(within=within, stable=stable)
    for word in (*nodes, *words):
        assert word in blocked.reason, blocked.reason
    diagnosis = blocked.properties["proof"]["diagnoses"][0]
    assert tuple(diagnosis["nodes"]) == nodes
    stage.client.set_faults([])
    assert gate.until_proven(within=30, stable=1)["proven"] is True


def test_unreachable_api_server_is_unknown_in_read_and_in_update(stage: Rehearsal, gate: GateProcess) -> None:
    proven = gate.prove(within=30, stable=1)
    stage.client.set_faults(["api-server-unreachable"])
    read = gate.read(proven)
    assert "unknown whether pool h100" in read.reason
    assert read.properties["proof"] == proven["proof"], "the recorded proof is kept"
    blocked = gate.until_failed(within=3, stable=1)
    assert "the API server cannot be read" in blocked.reason
    assert blocked.properties["proof"]["verdict"] == "unknown"
    stage.client.set_faults([])
    assert gate.until_proven(within=30, stable=1)["proven"] is True


def pools(stage: Rehearsal) -> set[str]:
    """Ids of the node groups of pools: all but the system pool's."""
    groups = {group["id"] for group in stage.resources("aws:eks/nodeGroup:NodeGroup")}
    return {id_ for id_ in groups if not id_.startswith("train:train-system-")}


# --- back on the engine ----------------------------------------------------------------------------------------------


def test_plugin_that_dies_after_a_green_run_is_found_by_the_next_update(stage: Rehearsal) -> None:
    stage.client.set_faults(["plugin-crashloop"])
    done = stage.up(config=stage.config(proof=SHORT))
    assert done.code != 0
    assert "no longer as proven: pool h100" in done.text
    assert "No valid EFA devices found" in done.text
    assert report(stage)["gates"][0]["verdict"] == "fail"


def test_continue_on_error_with_a_failed_successor_deletes_no_pool(stage: Rehearsal) -> None:
    """The gate of the new generation fails while the old one serves: nothing of the old one may go."""
    config = stage.config(proof=SHORT, pool={"ami_release": "1.34.3-20260310"})
    done = stage.up("--continue-on-error", config=config)
    assert done.code != 0
    assert f"pool h100, generation {POOL.generation} is kept" in done.text
    groups = pools(stage)
    assert f"train:{POOL.full_name}" in groups
    assert len(groups) == 2
    machines = stage.client.world()["machines"].values()
    assert sum(machine["group"] == POOL.full_name for machine in machines) == 2


def test_green_again_retires_the_failed_successor(stage: Rehearsal) -> None:
    stage.client.set_faults([])
    done = stage.up()
    assert done.code == 0, done.text
    assert pools(stage) == {f"train:{POOL.full_name}"}


def run_training_pod(stage: Rehearsal, name: str, **labels: str) -> None:
    container = {"name": "rank", "image": "registry.example.com/llama:1"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "training", "labels": labels},
        "spec": {
            "tolerations": [{"operator": "Exists"}],
            "containers": [{**container, "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        },
    }
    kubectl(stage, "apply", "--filename", "-", stdin=json.dumps(pod))
    kubectl(stage, "wait", "--for=condition=Ready", f"pod/{name}", "--namespace", "training", "--timeout=30s")


def kubectl(stage: Rehearsal, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        ["kubectl", *arguments], env=stage.environment, input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_destroy_is_refused_while_a_training_pod_runs(stage: Rehearsal) -> None:
    run_training_pod(stage, "llama-0")
    done = stage.pulumi("destroy", "--yes", "--skip-preview")
    assert done.code != 0
    assert "is kept: 1 training pod still there" in done.text
    assert "training/llama-0 on ip-10-20-32-1" in done.text
    kept = kubectl(stage, "get", "daemonsets", "--namespace", "kube-system", "--output", "name")
    assert {"efa-device-plugin", "nvidia-device-plugin"} <= {line.rpartition("/")[2] for line in kept.split()}
    machines = stage.client.world()["machines"].values()
    assert sum(machine["group"] == POOL.full_name for machine in machines) == 2


def test_guard_waits_evicts_within_budgets_and_forces_nothing(stage: Rehearsal, gate: GateProcess) -> None:
    run_training_pod(stage, "llama-1", app="llama")
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "llama", "namespace": "training"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "llama"}}},
    }
    kubectl(stage, "apply", "--filename", "-", stdin=json.dumps(budget))
    assert "2 training pods still there" in gate.retire("wait", within=2)
    refusal = gate.retire("evict", within=6)
    assert "1 training pod could not be evicted in time: training/llama-1" in refusal
    assert "disruption budget" in refusal
    kubectl(stage, "get", "pod/llama-1", "--namespace", "training")
    kubectl(stage, "delete", "pdb/llama", "--namespace", "training")
    assert gate.retire("evict", within=30) == ""
    assert kubectl(stage, "get", "pods", "--namespace", "training", "--output", "name") == ""


def test_destroy_leaves_nothing(stage: Rehearsal) -> None:
    done = stage.pulumi("destroy", "--yes", "--skip-preview")
    assert done.code == 0, done.text
    assert stage.types() == set()
    assert stage.client.world() == {"clusters": {}, "machines": {}}
    left = [str(p.relative_to(stage.state.documents)) for p in stage.state.documents.glob("aws-*/*.json")]
    assert [path for path in left if not path.startswith(NOT_OURS) and "0a1b2c3d4e5f607" not in path] == []


NOT_OURS = ("aws-instance/", "aws-account/")
"""Documents of instances that were ended, and of the account, in which somebody else has a network."""
