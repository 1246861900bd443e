"""The manifests of plugins and drivers: where their pods go, what they may do, and what Pulumi is given."""

import asyncio
from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from plumbline.gate.placement import why_excluded
from plumbline.gate.snapshot import DaemonSet, Node
from plumbline.kubernetes.adopted import found_plugins
from plumbline.kubernetes.plugins import DevicePlugins, access, daemon_set, device_class
from plumbline.plan import PluginPlan
from tests.aws.test_wiring import Mocks

SELECTORS = {
    "efa": {"plumbline.dev/fabric": "efa"},
    "dranet": {"plumbline.dev/fabric": "efa"},
    "nvidia": {"plumbline.dev/accelerator": "nvidia"},
    "neuron": {"plumbline.dev/accelerator": "neuron"},
}
IMAGES = {
    "efa": "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20",
    "dranet": "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/dranet:v1.2.0-eksbuild.2",
    "nvidia": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
    "neuron": "public.ecr.aws/neuron/neuron-device-plugin:2.28.27.0",
}


def plan(key: str) -> PluginPlan:
    return PluginPlan(
        key=key,
        name=f"{key}-plugin",
        namespace="kube-system",
        image=IMAGES[key],
        resource="r",
        node_selector=SELECTORS[key],
        setting="s",
    )


def excluded(key: str, **labels: str) -> str | None:
    named = {f"plumbline.dev/{name}": value for name, value in labels.items()}
    spec = {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]}
    node = Node.from_json({"metadata": {"name": "n", "labels": named}, "spec": spec})
    return why_excluded(DaemonSet.from_json(daemon_set(plan(key))), node)


def container(key: str) -> dict[str, Any]:
    (only,) = daemon_set(plan(key))["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def test_each_efa_node_has_exactly_one_of_plugin_and_driver() -> None:
    assert excluded("efa", fabric="efa") is None, "nodes from before the label keep their plugin"
    assert excluded("efa", fabric="efa", devices="plugin") is None
    assert excluded("efa", fabric="efa", devices="dra") == (
        "its node affinity wants plumbline.dev/devices NotIn [dra]; the node has plumbline.dev/devices=dra"
    )
    assert excluded("dranet", fabric="efa", devices="dra") is None
    for others in ({}, {"devices": "plugin"}):
        assert "plumbline.dev/devices=dra" in (excluded("dranet", fabric="efa", **others) or "")


@pytest.mark.parametrize("key", IMAGES)
def test_pods_are_placed_by_labels_of_ours_alone_and_leave_their_last_words(key: str) -> None:
    manifest = daemon_set(plan(key))
    pod = manifest["spec"]["template"]["spec"]
    terms = pod.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    keys = [e["key"] for term in terms.get("nodeSelectorTerms", ()) for e in term["matchExpressions"]]
    assert {label.split("/")[0] for label in [*pod["nodeSelector"], *keys]} == {"plumbline.dev"}
    assert container(key)["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert manifest["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}


@pytest.mark.parametrize("key", IMAGES)
def test_what_we_install_would_be_recognised_if_it_were_not_ours(key: str) -> None:
    manifest = daemon_set(plan(key))
    assert found_plugins([manifest], cluster_policies=False) == []
    del manifest["metadata"]["labels"]["plumbline.dev/plugin"]
    assert [plugin.key for plugin in found_plugins([manifest], cluster_policies=False)] == [key]


def test_only_what_needs_rights_has_them_and_a_token() -> None:
    tokens = {key: daemon_set(plan(key))["spec"]["template"]["spec"]["automountServiceAccountToken"] for key in IMAGES}
    assert tokens == {"efa": False, "nvidia": False, "neuron": True, "dranet": True}
    assert access(plan("efa")) == access(plan("nvidia")) == {}
    rules = access(plan("dranet"))["ClusterRole"]["rules"]
    verbs = {
        (group, resource): rule["verbs"]
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert verbs["", "nodes"] == ["get"]
    assert verbs["resource.k8s.io", "resourceclaims"] == ["get"]
    assert "create" in verbs["resource.k8s.io", "resourceslices"]
    assert not [name for name in verbs if "*" in name or "secrets" in name]
    assert not [name for name, allowed in verbs.items() if "*" in allowed]


def test_driver_is_unprivileged_offers_efa_only_and_tells_of_its_health() -> None:
    only = container("dranet")
    assert only["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "runAsUser": 0,
        "runAsGroup": 0,
        "readOnlyRootFilesystem": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert "--bind-address=:9177" in only["args"]
    assert only["readinessProbe"] == {"httpGet": {"path": "/healthz", "port": 9177}}
    assert only["args"][-1] == (
        '--filter="dra.net/pciDevice" in attributes && '
        'attributes["dra.net/pciDevice"].StringValue == "Elastic Fabric Adapter (EFA)"'
    )
    offered = device_class(plan("dranet"))
    assert offered is not None
    assert offered["metadata"]["name"] == "efa.networking.k8s.aws"
    assert offered["spec"]["selectors"][0]["cel"]["expression"] == (
        'device.driver == "dra.net" && device.attributes["dra.net"].pciDevice == "Elastic Fabric Adapter (EFA)"'
    )
    assert device_class(plan("efa")) is None


def test_component_registers_account_rights_and_class_beside_the_daemon_set() -> None:
    mocks = Mocks()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(mocks, project="plumbline", stack="test", preview=False)

    def program() -> None:
        DevicePlugins("train", [plan("efa"), plan("dranet")])

    test: Callable[..., Callable[..., Any]] = pulumi.runtime.test
    test(program)()
    assert {kind: sorted(named) for kind, named in mocks.seen.items()} == {
        "plumbline:index:DevicePlugins": ["train"],
        "kubernetes:apps/v1:DaemonSet": ["train-dranet", "train-efa"],
        "kubernetes:core/v1:ServiceAccount": ["train-dranet"],
        "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole": ["train-dranet"],
        "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding": ["train-dranet"],
        "kubernetes:resource.k8s.io/v1:DeviceClass": ["train-dranet"],
    }
    binding = mocks.seen["kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding"]["train-dranet"]
    assert binding["roleRef"]["name"] == "plumbline-dranet-plugin"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "dranet-plugin", "namespace": "kube-system"}]
