"""Node objects as EKS makes them, and statuses of pods as a kubelet writes them."""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from twin.world import Instance

Json = dict[str, Any]


def now() -> str:
    """The time, as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(instance: Instance, kubelet_port: int) -> Json:
    """The Node that a kubelet registers, before it is Ready."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": instance.node_name, "labels": _labels(instance)},
        "spec": {
            "providerID": instance.provider_id,
            "taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in instance.taints],
        },
        "status": node_status(instance, kubelet_port, {}, {}, ready=False, since=now()),
    }


def _labels(instance: Instance) -> dict[str, str]:
    place = hashlib.sha256(f"{instance.zone}/{instance.group}".encode()).hexdigest()
    return {
        "beta.kubernetes.io/arch": instance.architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": instance.architecture,
        "kubernetes.io/hostname": instance.node_name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": instance.machine,
        "topology.kubernetes.io/region": instance.region,
        "topology.kubernetes.io/zone": instance.zone,
        "topology.k8s.aws/zone-id": instance.zone_id,
        # One top and middle layer for each zone and group; pairs of nodes share the bottom one.
        "topology.k8s.aws/network-node-layer-1": f"nn-{place[:17]}",
        "topology.k8s.aws/network-node-layer-2": f"nn-{place[17:34]}",
        **_bottom_layers(instance, place),
        **instance.labels,
    }


def _bottom_layers(instance: Instance, place: str) -> dict[str, str]:
    """Four layers on P6, three on the others.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-topology-prerequisites.html
    """
    leaf = f"nn-{place[34:50]}{int(instance.id[-4:], 16) % 2}"
    prefix = "topology.k8s.aws/network-node-layer"
    if instance.machine.startswith("p6-"):
        return {f"{prefix}-3": f"nn-{place[40:57]}", f"{prefix}-4": leaf}
    return {f"{prefix}-3": leaf}


def boot_id(instance: Instance) -> str:
    """Stays the same until the machine reboots, which none here does."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, instance.id))


def node_status(
    instance: Instance,
    kubelet_port: int,
    allocatable: Mapping[str, int],
    capacity: Mapping[str, int],
    *,
    ready: bool,
    since: str,
) -> Json:
    """The status of a node that advertises these devices and is Ready, or is not, since a time."""
    readiness = ("True", "KubeletReady", "kubelet is posting ready status")
    if not ready:
        readiness = ("False", "KubeletNotReady", "container runtime network not ready: cni plugin not initialized")
    base = {
        "cpu": str(instance.cpus),
        "memory": f"{instance.memory_mib}Mi",
        "pods": str(instance.max_pods),
        "ephemeral-storage": "200Gi",
        "hugepages-2Mi": f"{instance.hugepages_2mi_mib}Mi",
    }
    machine = boot_id(instance).replace("-", "")
    return {
        "addresses": [
            {"type": "InternalIP", "address": instance.private_ip},
            {"type": "InternalDNS", "address": instance.node_name},
            {"type": "Hostname", "address": instance.node_name},
            # The only address that the API server is told to use, to reach the simulated kubelets.
            {"type": "ExternalDNS", "address": "127.0.0.1"},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
        "capacity": {**base, **{name: str(amount) for name, amount in capacity.items()}},
        "allocatable": {**base, **{name: str(amount) for name, amount in allocatable.items()}},
        "conditions": [
            _condition("MemoryPressure", since, "False", "KubeletHasSufficientMemory"),
            _condition("DiskPressure", since, "False", "KubeletHasNoDiskPressure"),
            _condition("PIDPressure", since, "False", "KubeletHasSufficientPID"),
            _condition("Ready", since, *readiness),
        ],
        "nodeInfo": {
            "architecture": instance.architecture,
            "bootID": boot_id(instance),
            "containerRuntimeVersion": "containerd://2.1.5",
            "kernelVersion": instance.kernel,
            "kubeProxyVersion": "",
            "kubeletVersion": instance.kubelet_version,
            "machineID": machine,
            "operatingSystem": "linux",
            "osImage": instance.os_image,
            "systemUUID": boot_id(instance),
        },
    }


def _condition(kind: str, since: str, status: str, reason: str, message: str = "") -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message or reason,
        "lastHeartbeatTime": now(),
        "lastTransitionTime": since,
    }


def slice_name(node_name: str, driver: str) -> str:
    """Name of the one ResourceSlice of a driver on a node."""
    return f"{node_name}-{driver}"


def resource_slice(node: Json, driver: str, generation: int, devices: Sequence[Mapping[str, Any]]) -> Json:
    """What a DRA driver publishes of its node: a pool of one slice, owned by the Node."""
    name = node["metadata"]["name"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"], "controller": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": slice_name(name, driver), "ownerReferences": [owner]},
        "spec": {
            "driver": driver,
            "nodeName": name,
            "pool": {"name": name, "generation": generation, "resourceSliceCount": 1},
            "devices": [dict(device) for device in devices],
        },
    }


def waiting(reason: str, message: str = "") -> Json:
    """A container's state while it waits."""
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def terminated(code: int, log: str, policy: str) -> Json:
    """A container's state after it ended. Its last words are there only if its policy says so."""
    last_words = log if policy == "FallbackToLogsOnError" and code != 0 else ""
    state: Json = {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}
    state |= {"startedAt": now(), "finishedAt": now(), "containerID": "containerd://0"}
    if last_words:
        state["message"] = last_words[-2048:]
    return {"terminated": state}


_NOWHERE = {"key": "eks.amazonaws.com/compute-type", "operator": "In", "values": ["auto"]}
"""Matches nodes of EKS Auto Mode only: https://github.com/aws/eks-charts/issues/1358 tells of its opposite."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def kept_off_all_nodes(affinity: Json | None) -> Json:
    """An affinity that no node of a managed node group satisfies, whatever it was before."""
    before = affinity or {}
    node_affinity = before.get("nodeAffinity") or {}
    terms = (node_affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    edited = [
        {**term, "matchExpressions": [*(e for e in term.get("matchExpressions") or () if e != _NOWHERE), _NOWHERE]}
        for term in terms
    ]
    return {**before, "nodeAffinity": {**node_affinity, _REQUIRED: {"nodeSelectorTerms": edited}}}


def let_back_on_nodes(affinity: Json | None) -> Json | None:
    """Undo `kept_off_all_nodes`; any other affinity stays as it is."""
    required = ((affinity or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    if affinity is None or required is None:
        return affinity
    terms = []
    for term in required["nodeSelectorTerms"]:
        rest = [e for e in term.get("matchExpressions") or () if e != _NOWHERE]
        kept = {k: v for k, v in {**term, "matchExpressions": rest}.items() if v}
        terms += [kept] if kept else []
    node_affinity = {k: v for k, v in affinity["nodeAffinity"].items() if k != _REQUIRED}
    if terms:
        node_affinity[_REQUIRED] = {"nodeSelectorTerms": terms}
    whole = {k: v for k, v in affinity.items() if k != "nodeAffinity"}
    return {**whole, "nodeAffinity": node_affinity} if node_affinity else whole or None


def pod_status(pod: Json, instance: Instance, phase: str, containers: list[Json]) -> Json:
    """A pod's status."""
    ready = bool(containers) and all(c["ready"] for c in containers)
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": now()},
        {"type": "Initialized", "status": "True", "lastTransitionTime": now()},
        {"type": "ContainersReady", "status": str(ready), "lastTransitionTime": now()},
        {"type": "Ready", "status": str(ready), "lastTransitionTime": now()},
    ]
    if not ready:
        for condition in conditions[2:]:
            condition |= {"reason": "ContainersNotReady"}
    return {
        "phase": phase,
        "hostIP": instance.private_ip,
        "podIP": instance.private_ip,
        "podIPs": [{"ip": instance.private_ip}],
        "startTime": (pod.get("status") or {}).get("startTime") or now(),
        "conditions": conditions,
        "containerStatuses": containers,
    }


def daemon_set(name: str, image: str) -> Json:
    """A program of the cloud's own, on every node whatever its taints."""
    labels = {"k8s-app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostNetwork": True,
                    "priorityClassName": "system-node-critical",
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": name, "image": image}],
                },
            },
        },
    }
