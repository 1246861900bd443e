"""Other people's plugins: recognised by what they are, and reported where they give out the same hardware as ours."""

import dataclasses
from typing import Any

import pytest

from plumbline.gate.phases import look
from plumbline.gate.verdict import Diagnosis, Verdict
from plumbline.kubernetes.adopted import FoundPlugin, found_plugins
from tests.gate.clusters import DRA, EXPECTED, NAMES, dra_snapshot, snapshot

DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
ANY = [{"operator": "Exists"}]


def other(name: str, image: str, *, mounts: str = DEVICE_PLUGINS, **fields: Any) -> dict[str, Any]:
    """A DaemonSet of somebody else's."""
    container = {"name": "c", "image": image, "volumeMounts": [{"name": "d", "mountPath": "/anywhere"}]}
    pod = {
        "containers": [*fields.get("before", ()), container],
        "volumes": [{"name": "d", "hostPath": {"path": mounts}}],
        "tolerations": fields.get("tolerations", ANY),
        "nodeSelector": fields.get("selector", {}),
    }
    meta = {"name": name, "namespace": fields.get("namespace", "kube-system"), "labels": fields.get("labels", {})}
    meta["ownerReferences"] = fields.get("owners", [])
    return {"metadata": meta, "spec": {"template": {"metadata": {"labels": fields.get("app", {})}, "spec": pod}}}


ECR = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks"
NVIDIA = other("gpus", "nvcr.io/nvidia/k8s-device-plugin:v0.17.1", labels={"app.kubernetes.io/managed-by": "Helm"})
OPERATED = other(
    "nvidia-device-plugin-daemonset",
    "nvcr.io/nvidia/k8s-device-plugin:v0.18.0",
    namespace="gpu-operator",
    owners=[{"kind": "ClusterPolicy", "name": "cluster-policy", "controller": True}],
    selector={"nvidia.com/gpu.deploy.device-plugin": "true"},
)
DRANET = other("aws-dranet", f"{ECR}/dranet:v1.2.0-eksbuild.2", mounts="/var/lib/kubelet/plugins")


def brief(found: list[FoundPlugin]) -> list[tuple[str, str, str]]:
    return [(plugin.key, str(plugin), plugin.by) for plugin in found]


@pytest.mark.parametrize(
    ("daemon_set", "key", "hardware"),
    [
        (NVIDIA, "nvidia", "nvidia.com/gpu"),
        (other("x", f"{ECR}/aws-efa-k8s-device-plugin:v0.5.8"), "efa", "vpc.amazonaws.com/efa"),
        (other("x", "public.ecr.aws/neuron/neuron-device-plugin:2.28.27.0"), "neuron", "aws.amazon.com/neuron"),
        (other("x", "mirror:5000/k8s-device-plugin@sha256:0"), "nvidia", "nvidia.com/gpu"),
        (other("x", "mirror/renamed:1", app={"name": "nvidia-device-plugin-ds"}), "nvidia", "nvidia.com/gpu"),
        (other("x", "k8s-device-plugin", mounts=DEVICE_PLUGINS + "/"), "nvidia", "nvidia.com/gpu"),
        (DRANET, "dranet", "vpc.amazonaws.com/efa"),
    ],
)
def test_plugins_are_recognised_by_image_or_label_and_by_what_they_mount(
    daemon_set: dict[str, Any], key: str, hardware: str
) -> None:
    (found,) = found_plugins([daemon_set], cluster_policies=False)
    assert (found.key, found.hardware) == (key, hardware)
    assert found.daemon_set is not None
    assert found.daemon_set.name == daemon_set["metadata"]["name"]


@pytest.mark.parametrize(
    "daemon_set",
    [
        other("gpu-feature-discovery", "nvcr.io/nvidia/k8s-device-plugin:v0.17.1", mounts="/etc/kubernetes/features.d"),
        other("nvidia-device-plugin", "busybox:1"),
        other("aws-node", "amazon-k8s-cni:v1", mounts="/var/run/aws-node"),
        other("ours", "k8s-device-plugin:1", labels={"plumbline.dev/plugin": "nvidia"}),
        {"metadata": {"name": "bare", "namespace": "x"}, "spec": {}},
    ],
    ids=lambda each: each["metadata"]["name"],
)
def test_what_only_looks_like_a_plugin_is_not_found(daemon_set: dict[str, Any]) -> None:
    assert found_plugins([daemon_set], cluster_policies=False) == []


def test_a_sidecar_beside_the_plugin_does_not_hide_or_double_it() -> None:
    sidecar = {"name": "config-manager", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"}
    daemon_set = other("x", "nvcr.io/nvidia/k8s-device-plugin:v0.17.1", before=[sidecar])
    assert len(found_plugins([daemon_set], cluster_policies=False)) == 1


def test_gpu_operators_plugin_is_told_from_others_and_expected_where_there_is_a_policy() -> None:
    both = found_plugins([OPERATED, NVIDIA], cluster_policies=True)
    assert brief(both) == [
        ("nvidia", "gpu-operator/nvidia-device-plugin-daemonset (GPU Operator)", "GPU Operator"),
        ("nvidia", "kube-system/gpus (Helm)", "Helm"),
    ]
    unowned = {**OPERATED, "metadata": {**OPERATED["metadata"], "ownerReferences": []}}
    assert [plugin.by for plugin in found_plugins([unowned], cluster_policies=True)] == ["GPU Operator"]
    assert [plugin.by for plugin in found_plugins([unowned], cluster_policies=False)] == [""]
    assert brief(found_plugins([], cluster_policies=True)) == [
        ("nvidia", "a plugin of GPU Operator", "GPU Operator"),
    ]


# --- in the gate


def rivalry(*others: dict[str, Any]) -> Diagnosis | None:
    results = look(EXPECTED, dataclasses.replace(snapshot(), others=others))
    if results[-1].verdict is Verdict.PASS:
        return None
    assert (results[-1].phase, results[-1].verdict) == ("plugins", Verdict.FAIL)
    (diagnosis,) = results[-1].diagnoses
    return diagnosis


def test_second_plugin_of_the_same_resource_fails_with_both_names_and_the_fix() -> None:
    diagnosis = rivalry(NVIDIA)
    assert diagnosis is not None
    assert diagnosis.cause == (
        "2 DaemonSets advertise nvidia.com/gpu on 2 nodes: kube-system/nvidia-device-plugin and kube-system/gpus (Helm)"
    )
    assert diagnosis.nodes == NAMES
    assert diagnosis.fix == (
        "keep one: remove kube-system/gpus (Helm), or leave it to that one with plugins.nvidia.install: false in the "
        "stack's file"
    )
    assert "image nvcr.io/nvidia/k8s-device-plugin:v0.17.1" in diagnosis.evidence[1]


def test_plugin_that_cannot_run_on_our_nodes_is_no_rival() -> None:
    assert rivalry(OPERATED) is None, "its nodeSelector wants a label that these nodes lack"
    assert rivalry({**NVIDIA, **other("gpus", "k8s-device-plugin:1", tolerations=[])}) is None, "the taint keeps it off"
    assert rivalry(other("x", "public.ecr.aws/neuron/neuron-device-plugin:2.28.27.0")) is None, "other hardware"


def test_both_mechanisms_for_the_same_hardware_are_rivals_too() -> None:
    diagnosis = rivalry(DRANET)
    assert diagnosis is not None
    assert diagnosis.cause == (
        "2 DaemonSets advertise the same hardware, dra.net and vpc.amazonaws.com/efa, on 2 nodes: "
        "kube-system/efa-device-plugin and kube-system/aws-dranet"
    )
    assert diagnosis.fix == "keep one: remove kube-system/aws-dranet"


def test_foreign_efa_plugin_is_a_rival_of_our_driver() -> None:
    foreign = other("efa", f"{ECR}/aws-efa-k8s-device-plugin:v0.5.8")
    (diagnosis,) = look(DRA, dra_snapshot(others=[foreign]))[-1].diagnoses
    assert "kube-system/dranet and kube-system/efa" in diagnosis.cause
