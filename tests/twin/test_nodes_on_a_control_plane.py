"""The simulated nodes on the real API server, scheduler and controllers. Tests share a cluster, and run in order."""

import json
import ssl
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.twin.machines import p5
from tests.twin.rehearsal import EFA_IMAGE, NVIDIA_IMAGE, Rehearsal, eventually
from twin.nodes.behaviour import EFA, GPU, RUN_SECONDS
from twin.nodes.kubelet import Timing

pytestmark = pytest.mark.control_plane
FIRST, SECOND = p5("18"), p5("17")
NODES = (FIRST.node_name, SECOND.node_name)


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    running = Rehearsal(tmp_path_factory.mktemp("rehearsal"), Timing(ready=0.2, start=0.1, flap=0.5))
    for instance in (FIRST, SECOND):
        running.wait(running.world.launch(instance))
    for app, image in (("efa", EFA_IMAGE), ("nvidia", NVIDIA_IMAGE)):
        running.daemon_set(app, image)
    yield running
    running.close()


def _efa(rehearsal: Rehearsal) -> list[str | None]:
    return [rehearsal.allocatable(node, EFA) for node in NODES]


def _healed(rehearsal: Rehearsal) -> None:
    rehearsal.faults()
    eventually(lambda: _efa(rehearsal), lambda seen: seen == ["32", "32"])


def _state(rehearsal: Rehearsal, node: str) -> Any:
    pod = rehearsal.pods("efa").get(node) or {"status": {}}
    return (pod["status"].get("containerStatuses") or [{"state": {}, "lastState": {}}])[0]


def _run_pod(rehearsal: Rehearsal, name: str, **annotations: str) -> None:
    container = {"name": "work", "image": "busybox:1", "resources": {"limits": {GPU: "8"}}}
    spec = {"restartPolicy": "Never", "nodeName": FIRST.node_name, "containers": [container]}
    meta = {"name": name, "annotations": annotations}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    rehearsal.api("POST", "/api/v1/namespaces/default/pods", pod)


def _phase(rehearsal: Rehearsal, name: str) -> str:
    return str(rehearsal.api("GET", f"/api/v1/namespaces/default/pods/{name}")["status"]["phase"])


def test_machines_join_and_plugins_advertise(rehearsal: Rehearsal) -> None:
    joined = lambda: [rehearsal.wait(rehearsal.world.joined(each.id)) for each in (FIRST, SECOND)]  # noqa: E731
    eventually(joined, all)
    _healed(rehearsal)
    eventually(lambda: [rehearsal.allocatable(node, GPU) for node in NODES], lambda seen: seen == ["8", "8"])
    taints = lambda: [n["spec"].get("taints") for n in rehearsal.api("GET", "/api/v1/nodes")["items"]]  # noqa: E731
    eventually(taints, lambda seen: not any(seen))


@pytest.mark.parametrize(
    ("fault", "reason", "words"),
    [
        ("plugin-image-missing", "ImagePullBackOff", "manifest unknown"),
        ("plugin-wrong-architecture", "CrashLoopBackOff", "exec format error"),
        ("plugin-crashloop", "CrashLoopBackOff", "No valid EFA devices found"),
    ],
)
def test_a_broken_plugin_says_why_and_advertises_nothing(
    rehearsal: Rehearsal, fault: str, reason: str, words: str
) -> None:
    rehearsal.faults(fault)
    eventually(lambda: _efa(rehearsal), lambda seen: seen == ["0", "0"])
    for node in NODES:
        status = eventually(
            lambda node=node: _state(rehearsal, node),  # type: ignore[misc]
            lambda seen: seen["state"].get("waiting", {}).get("reason") == reason and words in json.dumps(seen),
        )
        assert rehearsal.capacity(node, EFA) == "32"
        assert status["ready"] is False
    if reason == "CrashLoopBackOff":
        name = rehearsal.pods("efa")[NODES[0]]["metadata"]["name"]
        for query in ("", "?previous=true", "?tailLines=1"):
            assert words in rehearsal.api("GET", f"/api/v1/namespaces/kube-system/pods/{name}/log{query}")
    _healed(rehearsal)


def test_a_selector_that_matches_nothing_leaves_no_pod_and_is_undone(rehearsal: Rehearsal) -> None:
    path = "/apis/apps/v1/namespaces/kube-system/daemonsets/efa"
    before = rehearsal.api("GET", path)["spec"]["template"]["spec"]
    rehearsal.faults("plugin-selector-matches-nothing")
    eventually(lambda: rehearsal.api("GET", path)["status"]["desiredNumberScheduled"], lambda seen: seen == 0)
    eventually(lambda: _efa(rehearsal), lambda seen: seen == ["0", "0"])
    _healed(rehearsal)
    assert rehearsal.api("GET", path)["spec"]["template"]["spec"] == before


def test_faults_of_one_node_bite_on_one(rehearsal: Rehearsal) -> None:
    rehearsal.faults("one-node-without-efa")
    eventually(lambda: _efa(rehearsal), lambda seen: seen == ["0", "32"])
    rehearsal.faults("one-node-advertises-fewer")
    eventually(lambda: _efa(rehearsal), lambda seen: seen == ["31", "32"])
    rehearsal.faults("advertised-then-lost")
    for count in ("0", "32", "0"):
        eventually(lambda: _efa(rehearsal), lambda seen, count=count: seen == [count, "32"])  # type: ignore[misc]
    _healed(rehearsal)


def test_devices_are_free_again_when_a_pod_has_ended(rehearsal: Rehearsal) -> None:
    _run_pod(rehearsal, "first", **{RUN_SECONDS: "0.2"})
    eventually(lambda: _phase(rehearsal, "first"), lambda seen: seen == "Succeeded")
    _run_pod(rehearsal, "second")
    eventually(lambda: _phase(rehearsal, "second"), lambda seen: seen == "Running")
    _run_pod(rehearsal, "too-many")
    eventually(lambda: _phase(rehearsal, "too-many"), lambda seen: seen == "Failed")


def test_an_unreachable_api_server_comes_back_and_controllers_with_it(rehearsal: Rehearsal) -> None:
    rehearsal.faults("api-server-unreachable")

    def answers() -> bool:
        try:
            return bool(rehearsal.api("GET", "/readyz"))
        except (httpx2.HTTPError, AssertionError):
            return False

    eventually(answers, lambda seen: not seen)
    rehearsal.faults()
    eventually(answers, bool)
    pod = rehearsal.pods("efa")[NODES[0]]["metadata"]
    rehearsal.api("DELETE", f"/api/v1/namespaces/kube-system/pods/{pod['name']}")
    replaced = lambda: rehearsal.pods("efa").get(NODES[0], {}).get("metadata", pod)["uid"]  # noqa: E731
    eventually(replaced, lambda seen: seen != pod["uid"])
    _healed(rehearsal)


def test_tokens_of_the_simulated_cloud_are_checked_by_the_api_server(rehearsal: Rehearsal) -> None:
    command = [str(rehearsal.state.bin / "aws"), "eks", "get-token", "--cluster-name", "train", "--output", "json"]
    good = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["status"]["token"]
    plane = rehearsal.world._planes["train"]

    def ask(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        ca = ssl.create_default_context(cafile=plane.folder / "ca.pem")
        return httpx2.get(f"{plane.endpoint}/api/v1/nodes", headers=headers, verify=ca, trust_env=False).status_code

    assert [ask(good), ask(good[:-4]), ask("k8s-aws-v1.junk")] == [200, 401, 401]


def test_a_new_daemon_finds_nodes_and_pods_as_they_were(rehearsal: Rehearsal) -> None:
    rehearsal.pause()
    assert _efa(rehearsal) == ["32", "32"]
    rehearsal.resume()
    _healed(rehearsal)
    assert _phase(rehearsal, "second") == "Running"


def test_a_daemon_can_end_while_its_api_server_is_away(rehearsal: Rehearsal) -> None:
    rehearsal.faults("api-server-unreachable")
    eventually(lambda: rehearsal.world._planes["train"]._processes["kube-apiserver"].process(), lambda p: p is None)
    rehearsal.pause()
    rehearsal.resume()
    rehearsal.faults()
    eventually(lambda: rehearsal.world._planes["train"]._processes["kube-apiserver"].process(), bool)


def test_a_terminated_machine_takes_its_node_and_pods_along(rehearsal: Rehearsal) -> None:
    rehearsal.wait(rehearsal.world.terminate(SECOND.id))
    names = [node["metadata"]["name"] for node in rehearsal.api("GET", "/api/v1/nodes")["items"]]
    assert names == [FIRST.node_name]
    eventually(lambda: rehearsal.pods("efa"), lambda seen: set(seen) == {FIRST.node_name})
