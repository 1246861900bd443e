"""Device plugins and drivers that somebody else runs in a cluster, recognised among its DaemonSets. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.catalog.dra import DRIVERS, EFA_DRIVER
from plumbline.gate.snapshot import DaemonSet
from plumbline.plan.labels import PLUGIN

Json = Mapping[str, Any]
GPU_OPERATOR = "GPU Operator"


@dataclass(frozen=True, kw_only=True)
class FoundPlugin:
    """A device plugin or a DRA driver that is not ours."""

    key: str
    """The name of its kind under `plugins` in the declaration."""
    resource: str
    """Extended resource that it advertises; of a DRA driver, its name."""
    hardware: str
    """Extended resource that stands for the hardware which it gives out, by whichever mechanism."""
    image: str
    """Empty where `daemon_set` is None."""
    by: str
    """Who put it there, as far as it can be told: `GPU Operator`, `Helm`, or empty."""
    daemon_set: DaemonSet | None
    """None for what an operator runs, or will run as soon as there is a node for it."""

    def __str__(self) -> str:
        name = f"{self.daemon_set.namespace}/{self.daemon_set.name}" if self.daemon_set else f"a plugin of {self.by}"
        return f"{name} ({self.by})" if self.by and self.daemon_set else name


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """How a plugin is recognised: by its image, or its labels where a mirror renamed the image; and what it mounts.

    The mount is what makes it a plugin: NVIDIA publishes feature discovery and the MPS daemon in the same image.
    """

    key: str
    resource: str
    hardware: str
    images: frozenset[str]
    """Last part of the image's repository."""
    labels: frozenset[str]
    """Values of the labels by which its publishers' manifests select its pods."""
    mounts: str
    """Folder of the kubelet's in which it registers."""
    source: str


_DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
_KINDS = (
    _Kind(
        key="nvidia",
        resource="nvidia.com/gpu",
        hardware="nvidia.com/gpu",
        images=frozenset({"k8s-device-plugin"}),
        labels=frozenset({"nvidia-device-plugin", "nvidia-device-plugin-ds", "nvidia-device-plugin-daemonset"}),
        mounts=_DEVICE_PLUGINS,
        source="https://github.com/NVIDIA/k8s-device-plugin/tree/main/deployments",
    ),
    _Kind(
        key="efa",
        resource="vpc.amazonaws.com/efa",
        hardware="vpc.amazonaws.com/efa",
        images=frozenset({"aws-efa-k8s-device-plugin"}),
        labels=frozenset({"aws-efa-k8s-device-plugin"}),
        mounts=_DEVICE_PLUGINS,
        source="https://github.com/aws/eks-charts/tree/master/stable/aws-efa-k8s-device-plugin",
    ),
    _Kind(
        key="neuron",
        resource="aws.amazon.com/neuron",
        hardware="aws.amazon.com/neuron",
        images=frozenset({"neuron-device-plugin"}),
        labels=frozenset({"neuron-device-plugin", "neuron-device-plugin-ds"}),
        mounts=_DEVICE_PLUGINS,
        source="https://github.com/aws-neuron/neuron-helm-charts/tree/main/charts/neuron-helm-chart",
    ),
    _Kind(
        key="dranet",
        resource=EFA_DRIVER,
        hardware=DRIVERS[EFA_DRIVER].hardware,
        images=frozenset({"dranet"}),
        labels=frozenset({"aws-dranet", "dranet"}),
        mounts="/var/lib/kubelet/plugins",
        source="https://github.com/aws/eks-charts/tree/master/stable/aws-dranet",
    ),
)
_NAME_LABELS = ("app.kubernetes.io/name", "k8s-app", "app", "name")
_OPERATOR_SELECTOR = "nvidia.com/gpu.deploy.device-plugin"
"""By which GPU Operator keeps its plugin's pods on nodes with GPUs.

https://github.com/NVIDIA/gpu-operator/blob/main/assets/state-device-plugin/0500_daemonset.yaml
"""


def found_plugins(daemon_sets: Sequence[Json], cluster_policies: bool) -> list[FoundPlugin]:
    """Other people's device plugins and DRA drivers among DaemonSets; ours are left out.

    Args:
        daemon_sets: DaemonSet objects, of any namespace.
        cluster_policies: whether the cluster has a ClusterPolicy (`nvidia.com/v1`), the declaration of NVIDIA's GPU
            Operator. The operator runs a device plugin of its own unless its policy says `devicePlugin.enabled: false`.

    Returns:
        What was found, by namespace and name of the DaemonSet. Where there is a ClusterPolicy and no plugin of the
        operator's yet, its plugin comes last, without a DaemonSet.
    """
    found = [plugin for each in daemon_sets if not _is_ours(each) for plugin in _recognised(each, cluster_policies)]
    found.sort(key=lambda plugin: str(plugin.daemon_set))
    if cluster_policies and not any(plugin.by == GPU_OPERATOR for plugin in found):
        nvidia = next(kind for kind in _KINDS if kind.key == "nvidia")
        found.append(
            FoundPlugin(
                key=nvidia.key,
                resource=nvidia.resource,
                hardware=nvidia.hardware,
                image="",
                by=GPU_OPERATOR,
                daemon_set=None,
            )
        )
    return found


def _is_ours(daemon_set: Json) -> bool:
    return PLUGIN in (daemon_set["metadata"].get("labels") or {})


def _recognised(daemon_set: Json, cluster_policies: bool) -> Iterable[FoundPlugin]:
    template = (daemon_set.get("spec") or {}).get("template") or {}
    pod = template.get("spec") or {}
    paths = {
        volume["name"]: ((volume.get("hostPath") or {}).get("path") or "").rstrip("/")
        for volume in pod.get("volumes") or ()
    }
    labels = (template.get("metadata") or {}).get("labels") or {}
    named = {labels.get(label) for label in _NAME_LABELS}
    for container in pod.get("containers") or ():
        mounted = {paths.get(mount["name"]) for mount in container.get("volumeMounts") or ()}
        repository = _last_part(container.get("image") or "")
        for kind in _KINDS:
            if kind.mounts not in mounted or not (repository in kind.images or named & kind.labels):
                continue
            yield FoundPlugin(
                key=kind.key,
                resource=kind.resource,
                hardware=kind.hardware,
                image=container.get("image") or "",
                by=_by(daemon_set, pod, cluster_policies),
                daemon_set=DaemonSet.from_json(daemon_set),
            )
            return


def _last_part(image: str) -> str:
    """`k8s-device-plugin` of `nvcr.io/nvidia/k8s-device-plugin:v0.20.0@sha256:...`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _by(daemon_set: Json, pod: Json, cluster_policies: bool) -> str:
    meta = daemon_set["metadata"]
    owned = any(owner.get("kind") == "ClusterPolicy" for owner in meta.get("ownerReferences") or ())
    if owned or (cluster_policies and _OPERATOR_SELECTOR in (pod.get("nodeSelector") or {})):
        return GPU_OPERATOR
    return "Helm" if (meta.get("labels") or {}).get("app.kubernetes.io/managed-by") == "Helm" else ""
