"""Clusters as their API shows them, for tests of phases: whole and well by default."""

import copy
import dataclasses
from typing import Any

from plumbline.gate.expectation import PluginExpectation, PoolExpectation
from plumbline.gate.slices import Slice, offer
from plumbline.gate.snapshot import DaemonSet, Node, Pod, Snapshot
from plumbline.plan import plan_site
from plumbline.resources import expectation
from plumbline.site import read_site
from tests.sites import GOOD

PLAN = plan_site(read_site(GOOD)[0])
EXPECTED: PoolExpectation = expectation(PLAN, PLAN.pools[0])
DRANET = PluginExpectation(
    namespace="kube-system",
    name="dranet",
    image="602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/dranet:v1.2.0-eksbuild.2",
    resource="dra.net",
    setting="plumbline:site.plugins.dranet.image",
    driver="dra.net",
)
DRA: PoolExpectation = EXPECTED.model_copy(
    update={
        "resources": {"nvidia.com/gpu": 8},
        "slices": {"dra.net": 32},
        "plugins": (*(p for p in EXPECTED.plugins if p.resource == "nvidia.com/gpu"), DRANET),
    }
)
"""The same pool with its EFA devices by DRA."""
PLUGINS = {plugin.name: plugin for plugin in (*EXPECTED.plugins, DRANET)}
NAMES = ("ip-10-20-1-17", "ip-10-20-1-18")
EFA, GPU = "vpc.amazonaws.com/efa", "nvidia.com/gpu"


def node(name: str = NAMES[0], **changes: Any) -> dict[str, Any]:
    """A Node that has everything that is expected of it."""
    labels = {
        **EXPECTED.node_labels,
        **EXPECTED.node_selector,
        **dict.fromkeys(EXPECTED.topology_labels, "nn-1"),
        "node.kubernetes.io/instance-type": EXPECTED.machine,
        "topology.kubernetes.io/zone": EXPECTED.zone,
        "kubernetes.io/arch": "amd64",
    }
    amounts = {GPU: "8", EFA: "32", "cpu": "192", "hugepages-2Mi": "10256Mi"}
    return {
        "metadata": {"name": name, "labels": {**labels, **changes.get("labels", {})}},
        "spec": {
            "providerID": f"aws:///us-west-2b/i-{name}",
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        },
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", **changes.get("ready", {})}],
            "capacity": {**amounts, **changes.get("capacity", {})},
            "allocatable": {**amounts, **changes.get("allocatable", {})},
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": f"boot-of-{name}",
                "kernelVersion": "6.12",
                **changes.get("info", {}),
            },
        },
    }


def daemon_set(plugin: str, **changes: Any) -> dict[str, Any]:
    """A plugin's DaemonSet with all its pods up."""
    image = PLUGINS[plugin].image
    status = {"desiredNumberScheduled": 2, "numberReady": 2, "updatedNumberScheduled": 2, "observedGeneration": 1}
    pod = {"containers": [{"image": image}], "tolerations": [{"operator": "Exists"}], **changes.get("pod", {})}
    return {
        "metadata": {"name": plugin, "namespace": "kube-system", "generation": changes.get("generation", 1)},
        "spec": {"template": {"spec": pod}},
        "status": {**status, **changes.get("status", {})},
    }


def pod(plugin: str, on: str, **changes: Any) -> dict[str, Any]:
    """A plugin's pod, running and ready."""
    image = changes.get("image") or PLUGINS[plugin].image
    status = {"name": plugin, "image": image, "imageID": f"{image}@sha256:1", "ready": True, "restartCount": 0}
    status |= {"state": {"running": {}}, **changes.get("container", {})}
    return {
        "metadata": {
            "name": f"{plugin}-{on}",
            "namespace": "kube-system",
            "ownerReferences": [{"kind": "DaemonSet", "name": plugin, "controller": True}],
        },
        "spec": {"nodeName": on, "containers": [{"image": image}]},
        "status": {"phase": "Running", "containerStatuses": [status], **changes.get("status", {})},
    }


CRASH: dict[str, Any] = {
    "ready": False,
    "restartCount": 4,
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}},
    "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
}


def crash(message: str) -> dict[str, Any]:
    """A container that crash-loops and left these last words in its status."""
    state = copy.deepcopy(CRASH)
    state["lastState"]["terminated"]["message"] = message
    return state


def cni(tag: str = "v1.21.1-eksbuild.1") -> dict[str, Any]:
    """The DaemonSet of the VPC CNI."""
    image = f"602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni:{tag}"
    return {
        "metadata": {"name": "aws-node", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
    }


def snapshot(
    nodes: list[dict[str, Any]] | None = None,
    sets: list[dict[str, Any]] | None = None,
    pods: list[dict[str, Any]] | None = None,
    logs: dict[str, str] | None = None,
    others: list[dict[str, Any]] | None = None,
) -> Snapshot:
    """What is read of a cluster; each part is whole unless given."""
    plugins = [plugin.name for plugin in EXPECTED.plugins]
    nodes = [node(name) for name in NAMES] if nodes is None else nodes
    sets = [daemon_set(plugin) for plugin in plugins] if sets is None else sets
    pods = [pod(plugin, name) for plugin in plugins for name in NAMES] if pods is None else pods
    read = [DaemonSet.from_json(each) for each in sets]
    return Snapshot(
        nodes=tuple(Node.from_json(each) for each in nodes),
        daemon_sets={(each.namespace, each.name): each for each in read},
        pods=tuple(Pod.from_json(each) for each in pods),
        logs=logs or {},
        others=tuple([cni()] if others is None else others),
    )


def with_pods(plugin: str, changed: dict[str, dict[str, Any] | None]) -> list[dict[str, Any]]:
    """All pods, those of one plugin changed by node; None takes one away."""
    others = [pod(p.name, name) for p in EXPECTED.plugins if p.name != plugin for name in NAMES]
    mine = {name: changed.get(name, {}) for name in NAMES}
    return others + [pod(plugin, name, **change) for name, change in mine.items() if change is not None]


def device(name: str, hardware: str = "Elastic Fabric Adapter (EFA)", **fields: Any) -> dict[str, Any]:
    """A device as dranet publishes it."""
    attributes = {"dra.net/pciDevice": {"string": hardware}, "dra.net/rdma": {"bool": True}}
    return {"name": name, "attributes": attributes, **fields}


def resource_slice(node: str, devices: int | list[dict[str, Any]] = 32, **pool: Any) -> dict[str, Any]:
    """A ResourceSlice of dranet: the whole pool of a node, unless `pool` says otherwise."""
    generation, slices = pool.get("generation", 1), pool.get("slices", 1)
    name = f"{node}-dra.net-{pool.get('part', 0)}-{generation}"
    offered = [device(f"pci-{i}") for i in range(devices)] if isinstance(devices, int) else devices
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "spec": {
            "driver": "dra.net",
            "nodeName": node,
            "pool": {"name": pool.get("name", node), "generation": generation, "resourceSliceCount": slices},
            "devices": offered,
        },
    }


def dra_snapshot(slices: list[dict[str, Any]] | None = None, **parts: Any) -> Snapshot:
    """What is read of a cluster whose EFA devices are offered by dranet; whole unless given."""
    plugins = [plugin.name for plugin in DRA.plugins]
    bare = {"allocatable": {EFA: "0"}, "capacity": {EFA: "0"}}
    seen = snapshot(
        nodes=parts.get("nodes", [node(name, **bare) for name in NAMES]),
        sets=[daemon_set(plugin) for plugin in plugins],
        pods=parts.get("pods", [pod(plugin, name) for plugin in plugins for name in NAMES]),
        logs=parts.get("logs"),
    )
    published = [resource_slice(name) for name in NAMES] if slices is None else slices
    offers = parts.get("offers", {"dra.net": offer("dra.net", map(Slice.from_json, published))})
    return dataclasses.replace(seen, offers=offers, others=(cni(), *parts.get("others", ())))
