"""The DaemonSets of device plugins and DRA drivers, and what they need in the cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from plumbline.catalog.dra import DRIVERS, EFA_DRIVER
from plumbline.plan import PluginPlan
from plumbline.plan.labels import DEVICES, PLUGIN

_PLUGINS_FOLDER = "/var/lib/kubelet/device-plugins"
_NODE_NAME = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
_HEALTH_PORT = 9177
_RESOURCE_API = "resource.k8s.io"


@dataclass(frozen=True, kw_only=True)
class _Mount:
    """A folder of the host in the container, at the same path."""

    path: str
    read_only: bool = False
    propagated: bool = False
    """Whether mounts that come later on the host appear in the container too."""
    made: bool = False
    """Whether the kubelet makes the folder where the host has none."""


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """What is particular to one plugin, by its publisher's manifest."""

    mounts: Mapping[str, _Mount]
    security: Mapping[str, Any]
    source: str
    environment: Sequence[Mapping[str, Any]] = ()
    arguments: Sequence[str] = ()
    host_network: bool = False
    health_port: int | None = None
    scratch: str | None = None
    """Path of a small folder in memory, for one whose root file system is read-only."""
    rules: Sequence[Mapping[str, Any]] = ()
    """Its rights at the API server; without any, it gets no token."""
    kept_off: Mapping[str, str] = field(default_factory=dict)
    """Labels of ours on nodes that it must never be on. A node without such a label keeps it."""
    only_on: Mapping[str, str] = field(default_factory=dict)
    """Labels of ours without which it must not be on a node, whatever the plan selects."""


_UNPRIVILEGED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

_SHAPES: Mapping[str, _Shape] = {
    "efa": _Shape(
        mounts={"device-plugins": _Mount(path=_PLUGINS_FOLDER), "infiniband": _Mount(path="/dev/infiniband")},
        # It reads the cards' topology from the host, for which its publisher runs it privileged.
        security={"allowPrivilegeEscalation": True, "privileged": True, "runAsUser": 0, "runAsNonRoot": False},
        host_network=True,
        # Where a driver gives out the same devices, each would be given to two pods.
        # https://docs.aws.amazon.com/eks/latest/userguide/device-management-efa.html
        kept_off={DEVICES: "dra"},
        source="https://github.com/aws/eks-charts/tree/master/stable/aws-efa-k8s-device-plugin",
    ),
    "nvidia": _Shape(
        mounts={"device-plugins": _Mount(path=_PLUGINS_FOLDER)},
        security=_UNPRIVILEGED,
        # A plugin that finds no driver ends and is started again, instead of idling as if all were well.
        environment=({"name": "FAIL_ON_INIT_ERROR", "value": "true"},),
        source="https://github.com/NVIDIA/k8s-device-plugin/blob/main/deployments/static/nvidia-device-plugin.yml",
    ),
    "neuron": _Shape(
        mounts={
            "device-plugins": _Mount(path=_PLUGINS_FOLDER),
            "run": _Mount(path="/run"),
            "aws": _Mount(path="/opt/aws", read_only=True),
        },
        security=_UNPRIVILEGED,
        # Without the file that this names, it uses its service account.
        environment=({"name": "KUBECONFIG", "value": "/etc/kubernetes/kubelet.conf"}, _NODE_NAME),
        # Its publisher's: it reads its node when it starts, and marks on node and pods which cores it gave away.
        rules=(
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["update", "patch", "get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch", "update"]},
            {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get", "list"]},
        ),
        source="https://github.com/aws-neuron/neuron-helm-charts/tree/main/charts/neuron-helm-chart",
    ),
    "dranet": _Shape(
        mounts={
            "plugins": _Mount(path="/var/lib/kubelet/plugins", made=True),
            "plugins-registry": _Mount(path="/var/lib/kubelet/plugins_registry", made=True),
            "nri": _Mount(path="/var/run/nri", made=True),
            "netns": _Mount(path="/var/run/netns", propagated=True, made=True),
            "infiniband": _Mount(path="/dev/infiniband", propagated=True, made=True),
            "state": _Mount(path="/var/run/dranet", made=True),
        },
        security={
            **_UNPRIVILEGED,
            "privileged": False,
            "runAsUser": 0,
            "runAsGroup": 0,
            "readOnlyRootFilesystem": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        environment=(_NODE_NAME,),
        arguments=(
            "/dranet",
            "--v=4",
            "--hostname-override=$(NODE_NAME)",
            f"--bind-address=:{_HEALTH_PORT}",
            "--cloud-provider-hint=AWS",
            # Nothing else: ordinary interfaces of the host are not for pods to take.
            f'--filter="{DRIVERS[EFA_DRIVER].attribute}" in attributes && '
            f'attributes["{DRIVERS[EFA_DRIVER].attribute}"].StringValue == "{DRIVERS[EFA_DRIVER].value}"',
        ),
        host_network=True,
        health_port=_HEALTH_PORT,
        scratch="/tmp",  # noqa: S108 - in the container
        rules=(
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
            {
                "apiGroups": [_RESOURCE_API],
                "resources": ["resourceslices"],
                "verbs": ["list", "watch", "create", "update", "delete"],
            },
            {"apiGroups": [_RESOURCE_API], "resources": ["resourceclaims", "deviceclasses"], "verbs": ["get"]},
            {"apiGroups": [_RESOURCE_API], "resources": ["resourceclaims/status"], "verbs": ["patch", "update"]},
            {
                "apiGroups": [_RESOURCE_API],
                "resources": ["resourceclaims/driver"],
                "verbs": ["associated-node:patch", "associated-node:update"],
                "resourceNames": [EFA_DRIVER],
            },
        ),
        only_on={DEVICES: "dra"},
        source="https://github.com/aws/eks-charts/tree/master/stable/aws-dranet",
    ),
}


def daemon_set(plugin: PluginPlan) -> dict[str, Any]:
    """The manifest of a plugin's DaemonSet.

    It selects by labels that we put on nodes, tolerates every taint (it is what makes a tainted node useful), and
    leaves its last words in the pod's status, where the gate reads them.
    """
    shape = _SHAPES[plugin.key]
    labels = {"app.kubernetes.io/name": plugin.name, PLUGIN: plugin.key}
    return {
        "metadata": {
            "name": plugin.name,
            "namespace": plugin.namespace,
            "labels": {**labels, "app.kubernetes.io/managed-by": "plumbline"},
            # The gate waits for it, and names the cause when it does not come up.
            "annotations": {"pulumi.com/skipAwait": "true"},
        },
        "spec": {
            "selector": {"matchLabels": labels},
            # As many at once as there are: half a pool without devices serves nobody.
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "automountServiceAccountToken": bool(shape.rules),
                    **({"serviceAccountName": plugin.name} if shape.rules else {}),
                    "hostNetwork": shape.host_network,
                    "nodeSelector": {**plugin.node_selector, **shape.only_on},
                    **_affinity(shape),
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [_container(plugin, shape)],
                    "volumes": _volumes(shape),
                },
            },
        },
    }


def _container(plugin: PluginPlan, shape: _Shape) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": plugin.name,
        "image": plugin.image,
        "env": list(shape.environment),
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": dict(shape.security),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {
                "name": name,
                "mountPath": mount.path,
                **({"readOnly": True} if mount.read_only else {}),
                **({"mountPropagation": "HostToContainer"} if mount.propagated else {}),
            }
            for name, mount in shape.mounts.items()
        ],
    }
    if shape.arguments:
        container["args"] = list(shape.arguments)
    if shape.health_port:
        container["readinessProbe"] = {"httpGet": {"path": "/healthz", "port": shape.health_port}}
    if shape.scratch:
        container["volumeMounts"].append({"name": "scratch", "mountPath": shape.scratch})
    return container


def _volumes(shape: _Shape) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": name, "hostPath": {"path": mount.path, **({"type": "DirectoryOrCreate"} if mount.made else {})}}
        for name, mount in shape.mounts.items()
    ]
    if shape.scratch:
        volumes.append({"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "10Mi"}})
    return volumes


def _affinity(shape: _Shape) -> dict[str, Any]:
    """`NotIn` is true of a node without the label too."""
    if not shape.kept_off:
        return {}
    terms = [{"key": key, "operator": "NotIn", "values": [value]} for key, value in sorted(shape.kept_off.items())]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def access(plugin: PluginPlan) -> dict[str, dict[str, Any]]:
    """The manifests of a plugin's account and rights, by kind; empty for one that needs none."""
    rules = _SHAPES[plugin.key].rules
    if not rules:
        return {}
    role = f"plumbline-{plugin.name}"
    labels = {PLUGIN: plugin.key, "app.kubernetes.io/managed-by": "plumbline"}
    return {
        "ServiceAccount": {"metadata": {"name": plugin.name, "namespace": plugin.namespace, "labels": labels}},
        "ClusterRole": {"metadata": {"name": role, "labels": labels}, "rules": [dict(rule) for rule in rules]},
        "ClusterRoleBinding": {
            "metadata": {"name": role, "labels": labels},
            "role_ref": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": plugin.name, "namespace": plugin.namespace}],
        },
    }


def device_class(plugin: PluginPlan) -> dict[str, Any] | None:
    """The manifest of the DeviceClass by which pods ask for a DRA driver's devices; None for a device plugin.

    https://github.com/aws/eks-charts/blob/master/stable/aws-dranet/templates/deviceclass.yaml
    """
    if plugin.key != "dranet":
        return None
    driver = DRIVERS[EFA_DRIVER]
    domain, _, attribute = driver.attribute.partition("/")
    means = f'device.driver == "{EFA_DRIVER}" && device.attributes["{domain}"].{attribute} == "{driver.value}"'
    return {
        "metadata": {
            "name": driver.device_class,
            "labels": {PLUGIN: plugin.key, "app.kubernetes.io/managed-by": "plumbline"},
        },
        "spec": {"selectors": [{"cel": {"expression": means}}]},
    }


class DevicePlugins(pulumi.ComponentResource):
    """The device plugins and DRA drivers that a site's pools need: one DaemonSet each, for all pools."""

    daemon_sets: Sequence[k8s.apps.v1.DaemonSet]

    def __init__(self, name: str, plugins: Sequence[PluginPlan], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("plumbline:index:DevicePlugins", name, None, opts)
        self.daemon_sets = [
            k8s.apps.v1.DaemonSet(
                f"{name}-{plugin.key}",
                opts=pulumi.ResourceOptions(parent=self, depends_on=self._needed(f"{name}-{plugin.key}", plugin)),
                **daemon_set(plugin),
            )
            for plugin in plugins
        ]
        self.register_outputs({})

    def _needed(self, name: str, plugin: PluginPlan) -> list[pulumi.Resource]:
        """What a plugin has to find when it starts."""
        opts = pulumi.ResourceOptions(parent=self)
        needed: list[pulumi.Resource] = []
        if manifests := access(plugin):
            needed += [
                k8s.core.v1.ServiceAccount(name, opts=opts, **manifests["ServiceAccount"]),
                k8s.rbac.v1.ClusterRole(name, opts=opts, **manifests["ClusterRole"]),
                k8s.rbac.v1.ClusterRoleBinding(name, opts=opts, **manifests["ClusterRoleBinding"]),
            ]
        if manifest := device_class(plugin):
            # The SDK that we support at least has no class of its own for it; the type token is the same.
            version = f"{_RESOURCE_API}/v1"
            needed.append(k8s.apiextensions.CustomResource(name, version, "DeviceClass", opts=opts, **manifest))
        return needed
