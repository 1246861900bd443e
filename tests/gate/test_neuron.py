"""Machines with Neuron devices: one plugin advertises devices and cores, and explains both."""

from plumbline.gate.expectation import PluginExpectation
from plumbline.gate.phases import look, pods_to_read
from plumbline.gate.snapshot import DaemonSet, Node, Pod, Snapshot
from plumbline.gate.verdict import Certainty, Verdict
from tests.gate.clusters import EXPECTED, NAMES, node

DEVICES, CORES = "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"
IMAGE = "public.ecr.aws/neuron/neuron-device-plugin:2.28.27.0"
PLUGIN = PluginExpectation(
    namespace="kube-system", name="neuron-device-plugin", image=IMAGE, resource=DEVICES, setting="its setting"
)
TRAINIUM = EXPECTED.model_copy(update={"resources": {DEVICES: 16, CORES: 32}, "plugins": (PLUGIN,)})
# https://github.com/aws/aws-cdk/issues/29262
NO_DEVICES = """neuron-device-plugin: 2024/03/29 09:31:51 Fetching devices.
neuron-device-plugin: 2024/03/29 09:31:51 No devices found.
neuron-device-plugin: 2024/03/29 09:31:51 Device list: []
"""


def trainium(devices: str, cores: str, logs: dict[str, str] | None = None) -> Snapshot:
    amounts = {DEVICES: devices, CORES: cores}
    meta = {"name": PLUGIN.name, "namespace": PLUGIN.namespace}
    owner = {"kind": "DaemonSet", "name": PLUGIN.name, "controller": True}
    running = {"name": "c", "image": IMAGE, "ready": True, "restartCount": 0, "state": {"running": {}}}
    pods = [
        {
            "metadata": {**meta, "name": f"plugin-{name}", "ownerReferences": [owner]},
            "spec": {"nodeName": name, "containers": [{"image": IMAGE}]},
            "status": {"phase": "Running", "containerStatuses": [running]},
        }
        for name in NAMES
    ]
    return Snapshot(
        nodes=tuple(Node.from_json(node(name, allocatable=amounts, capacity=amounts)) for name in NAMES),
        daemon_sets={(PLUGIN.namespace, PLUGIN.name): DaemonSet.from_json({"metadata": meta})},
        pods=tuple(Pod.from_json(pod) for pod in pods),
        logs=logs or {},
    )


def test_devices_and_cores_are_both_counted() -> None:
    result = look(TRAINIUM, trainium("16", "32"))[-1]
    assert (result.phase, result.verdict) == ("advertised", Verdict.PASS)
    assert result.seen[NAMES[0]] == {DEVICES: "16", CORES: "32"}


def test_the_plugin_explains_missing_devices_and_missing_cores() -> None:
    seen = trainium("0", "0")
    assert {pod.node for pod in pods_to_read(TRAINIUM, seen, look(TRAINIUM, seen))} == set(NAMES)
    logs = {f"kube-system/plugin-{name}": NO_DEVICES for name in NAMES}
    diagnoses = look(TRAINIUM, trainium("0", "0", logs))[-1].diagnoses
    assert [each.cause for each in diagnoses] == [
        f"2 nodes of 2 lack {resource}: the {DEVICES} device plugin finds no Neuron device on its node"
        for resource in (DEVICES, CORES)
    ]
    assert {each.certainty for each in diagnoses} == {Certainty.CERTAIN}


def test_cores_that_are_missing_alone_name_the_same_plugin() -> None:
    seen = trainium("16", "31")
    assert {pod.node for pod in pods_to_read(TRAINIUM, seen, look(TRAINIUM, seen))} == set(NAMES)
    over = look(TRAINIUM, trainium("16", "64"))[-1].diagnoses
    assert [each.fix for each in over] == ["use a newer image of the plugin (its setting)"]
