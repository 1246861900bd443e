"""Devices by DRA on the real API server: the product's manifests, with their rights, on simulated nodes. In order."""

import asyncio
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest

from plumbline.gate.expectation import PluginExpectation, PoolExpectation
from plumbline.gate.phases import look
from plumbline.gate.prove import prove
from plumbline.gate.reader import ClusterReader
from plumbline.gate.verdict import PhaseResult, Verdict
from plumbline.kubernetes.plugins import access, daemon_set, device_class
from tests.kubernetes.test_plugins import plan
from tests.twin.machines import p5, trn1
from tests.twin.rehearsal import Rehearsal, eventually
from twin.nodes.behaviour import EFA, NEURON, NEURON_CORE
from twin.nodes.kubelet import Timing
from twin.world import Instance

pytestmark = pytest.mark.control_plane
OURS = "plumbline.dev"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PLACES = {
    "ServiceAccount": ("v1", "/api/v1/namespaces/kube-system/serviceaccounts"),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", f"{RBAC}/clusterroles"),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", f"{RBAC}/clusterrolebindings"),
    "DaemonSet": ("apps/v1", "/apis/apps/v1/namespaces/kube-system/daemonsets"),
    "DeviceClass": ("resource.k8s.io/v1", "/apis/resource.k8s.io/v1/deviceclasses"),
}
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def labelled(instance: Instance, **labels: str) -> Instance:
    return dataclasses.replace(instance, labels={f"{OURS}/{name}": value for name, value in labels.items()})


FIRST, SECOND = (labelled(p5(host), fabric="efa", devices="dra") for host in ("17", "18"))
TRAINIUM = labelled(trn1("19"), fabric="efa", accelerator="neuron")
NODES = (FIRST.node_name, SECOND.node_name)
EXPECTED = PoolExpectation(
    pool="dra",
    generation="000000",
    nodes=2,
    node_selector={f"{OURS}/devices": "dra"},
    machine="p5.48xlarge",
    zone="us-west-2b",
    architecture="amd64",
    node_labels={},
    resources={},
    slices={"dra.net": 32},
    plugins=(
        PluginExpectation(
            namespace="kube-system",
            name="dranet-plugin",
            image=plan("dranet").image,
            resource="dra.net",
            setting="s",
            driver="dra.net",
        ),
    ),
    within_seconds=60,
    stable_seconds=1,
    valid_seconds=60,
)


def create(rehearsal: Rehearsal, kind: str, manifest: dict[str, Any]) -> None:
    version, path = PLACES[kind]
    body = {"apiVersion": version, "kind": kind, **manifest}
    if "role_ref" in body:
        body["roleRef"] = body.pop("role_ref")
    rehearsal.api("POST", path, body)


def install(rehearsal: Rehearsal, key: str) -> None:
    for kind, manifest in access(plan(key)).items():
        create(rehearsal, kind, manifest)
    if offered := device_class(plan(key)):
        create(rehearsal, "DeviceClass", offered)
    create(rehearsal, "DaemonSet", daemon_set(plan(key)))


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    running = Rehearsal(tmp_path_factory.mktemp("rehearsal"), Timing(ready=0.2, start=0.1, flap=0.5, slices_kept=0.3))
    for instance in (FIRST, SECOND, TRAINIUM):
        running.wait(running.world.launch(instance))
    for key in ("efa", "dranet", "neuron"):
        install(running, key)
    yield running
    running.close()


def offered(rehearsal: Rehearsal) -> list[list[int]]:
    return [rehearsal.offered(node) for node in NODES]


def whole(rehearsal: Rehearsal) -> None:
    rehearsal.faults()
    eventually(lambda: offered(rehearsal), lambda seen: seen == [[32], [32]])


def judged(rehearsal: Rehearsal) -> PhaseResult:
    kubeconfig = json.dumps(rehearsal.world._planes["train"].kubeconfig())
    return look(EXPECTED, asyncio.run(ClusterReader(kubeconfig, EXPECTED).once()))[-1]


def verdict(rehearsal: Rehearsal, wanted: Verdict, phase: str) -> PhaseResult:
    return eventually(lambda: judged(rehearsal), lambda seen: (seen.verdict, seen.phase) == (wanted, phase))


def test_driver_publishes_with_the_rights_of_its_account_and_the_gate_counts_it(rehearsal: Rehearsal) -> None:
    whole(rehearsal)
    result = verdict(rehearsal, Verdict.PASS, "advertised")
    assert result.seen == {name: {"dra.net": "32"} for name in NODES}


def test_gate_watches_slices_and_proves_the_pool_when_the_fault_is_gone(rehearsal: Rehearsal) -> None:
    rehearsal.faults("one-node-advertises-fewer")
    eventually(lambda: offered(rehearsal), lambda seen: seen == [[31], [32]])
    said: list[str] = []

    def hear(line: str) -> None:
        said.append(line)
        if line == "phase 3 of 3, advertised: dra.net 32 on 1 of 2 nodes":
            rehearsal.faults()

    kubeconfig = json.dumps(rehearsal.world._planes["train"].kubeconfig())
    proof = asyncio.run(prove(EXPECTED, ClusterReader(kubeconfig, EXPECTED), progress=hear))
    assert proof.verdict is Verdict.PASS, proof.headline
    assert "phase 3 of 3, advertised: dra.net 32 on 1 of 2 nodes" in said
    assert {each.advertised["dra.net"] for each in proof.nodes.values()} == {"32"}


def test_plugin_and_driver_keep_off_each_others_nodes_and_neuron_advertises(rehearsal: Rehearsal) -> None:
    amounts = lambda: [  # noqa: E731
        rehearsal.allocatable(TRAINIUM.node_name, resource) for resource in (EFA, NEURON, NEURON_CORE)
    ]
    eventually(amounts, lambda seen: seen == ["8", "16", "32"])
    assert rehearsal.offered(TRAINIUM.node_name) == []
    assert [rehearsal.allocatable(node, EFA) for node in NODES] == [None, None]


def test_scheduler_gives_out_the_devices_by_the_class(rehearsal: Rehearsal) -> None:
    request = {"name": "efa", "exactly": {"deviceClassName": "efa.networking.k8s.aws", "count": 4}}
    claim = {"metadata": {"name": "four"}, "spec": {"devices": {"requests": [request]}}}
    rehearsal.api("POST", CLAIMS, {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **claim})
    spec = {
        "containers": [{"name": "c", "image": "busybox:1", "resources": {"claims": [{"name": "efa"}]}}],
        "resourceClaims": [{"name": "efa", "resourceClaimName": "four"}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job"}, "spec": spec}
    rehearsal.api("POST", "/api/v1/namespaces/default/pods", pod)
    given = lambda: rehearsal.api("GET", f"{CLAIMS}/four").get("status", {}).get("allocation")  # noqa: E731
    results = eventually(given, bool)["devices"]["results"]
    assert {result["driver"] for result in results} == {"dra.net"}
    assert len({result["device"] for result in results}) == 4
    assert len({result["pool"] for result in results} & set(NODES)) == 1


def test_faults_of_one_node_bite_on_one_and_the_gate_names_it(rehearsal: Rehearsal) -> None:
    for fault, count in (("one-node-advertises-fewer", 31), ("one-node-without-efa", 0)):
        rehearsal.faults(fault)
        eventually(lambda: offered(rehearsal), lambda seen, count=count: seen == [[count], [32]])  # type: ignore[misc]
        (diagnosis,) = verdict(rehearsal, Verdict.FAIL, "advertised").diagnoses
        assert diagnosis.nodes == (FIRST.node_name,)
        assert diagnosis.evidence[0] == f"{FIRST.node_name}: devices in ResourceSlices {count}, expected 32"
    rehearsal.faults("advertised-then-lost")
    for count in (0, 32, 0):
        eventually(lambda: offered(rehearsal), lambda seen, count=count: seen == [[count], [32]])  # type: ignore[misc]
    whole(rehearsal)


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("plugin-image-missing", "its image does not exist"),
        ("plugin-wrong-architecture", "its image is built for another architecture"),
        ("plugin-crashloop", "cannot reach the container runtime's NRI socket"),
        ("plugin-selector-matches-nothing", "is kept off 2 nodes that need it"),
    ],
)
def test_slices_of_a_driver_that_is_gone_are_removed_and_come_back(
    rehearsal: Rehearsal, fault: str, cause: str
) -> None:
    rehearsal.faults(fault)
    eventually(lambda: offered(rehearsal), lambda seen: seen == [[], []])
    result = eventually(lambda: judged(rehearsal), lambda seen: cause in "".join(d.cause for d in seen.diagnoses))
    assert (result.verdict, result.phase) == (Verdict.FAIL, "plugins")
    assert result.diagnoses[0].evidence[-1] == "dra.net: expected 32 on each node, in ResourceSlices 0"
    whole(rehearsal)


def test_driver_without_its_role_publishes_nothing_and_says_so(rehearsal: Rehearsal) -> None:
    binding = f"{RBAC}/clusterrolebindings/plumbline-dranet-plugin"
    rehearsal.api("DELETE", binding)
    rehearsal.faults("one-node-advertises-fewer")

    def log() -> str:
        pods = rehearsal.api("GET", "/api/v1/pods?labelSelector=plumbline.dev%2Fplugin%3Ddranet")["items"]
        name = next(p["metadata"]["name"] for p in pods if p["spec"]["nodeName"] == FIRST.node_name)
        return str(rehearsal.api("GET", f"/api/v1/namespaces/kube-system/pods/{name}/log"))

    refused = 'nodes "ip-10-20-1-17.us-west-2.compute.internal" is forbidden'
    eventually(log, lambda text: refused in text and "system:serviceaccount:kube-system:dranet-plugin" in text)
    assert offered(rehearsal) == [[32], [32]]
    create(rehearsal, "ClusterRoleBinding", access(plan("dranet"))["ClusterRoleBinding"])
    eventually(lambda: offered(rehearsal), lambda seen: seen == [[31], [32]])
    whole(rehearsal)


def test_a_new_daemon_leaves_slices_as_they_are_and_a_terminated_machine_takes_its_own_along(
    rehearsal: Rehearsal,
) -> None:
    rehearsal.pause()
    assert offered(rehearsal) == [[32], [32]]
    rehearsal.resume()
    whole(rehearsal)
    rehearsal.wait(rehearsal.world.terminate(SECOND.id))
    eventually(lambda: offered(rehearsal), lambda seen: seen == [[32], []])
