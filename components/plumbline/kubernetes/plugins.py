"""The device plugins' DaemonSets."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from plumbline.plan import PluginPlan
from plumbline.plan.labels import PLUGIN

_HOST_PATHS = {
    "efa": {"device-plugins": "/var/lib/kubelet/device-plugins", "infiniband": "/dev/infiniband"},
    "nvidia": {"device-plugins": "/var/lib/kubelet/device-plugins"},
}

_SECURITY: Mapping[str, Mapping[str, Any]] = {
    # It reads the cards' topology from the host, for which its publisher runs it privileged.
    # https://github.com/aws/eks-charts/tree/master/stable/aws-efa-k8s-device-plugin
    "efa": {"allowPrivilegeEscalation": True, "privileged": True, "runAsUser": 0, "runAsNonRoot": False},
    # https://github.com/NVIDIA/k8s-device-plugin/blob/main/deployments/static/nvidia-device-plugin.yml
    "nvidia": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}

_ENVIRONMENT: Mapping[str, Sequence[Mapping[str, str]]] = {
    "efa": (),
    # A plugin that finds no driver ends and is started again, instead of idling as if all were well.
    "nvidia": ({"name": "FAIL_ON_INIT_ERROR", "value": "true"},),
}


def daemon_set(plugin: PluginPlan) -> dict[str, Any]:
    """The manifest of a device plugin's DaemonSet.

    It selects by a label that we put on nodes, tolerates every taint (it is what makes a tainted node useful), and
    leaves its last words in the pod's status, where the gate reads them.
    """
    labels = {"app.kubernetes.io/name": plugin.name, PLUGIN: plugin.key}
    mounts = _HOST_PATHS[plugin.key]
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
                    "automountServiceAccountToken": False,
                    "hostNetwork": plugin.key == "efa",
                    "nodeSelector": dict(plugin.node_selector),
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [
                        {
                            "name": plugin.name,
                            "image": plugin.image,
                            "env": list(_ENVIRONMENT[plugin.key]),
                            "resources": {
                                "requests": {"cpu": "10m", "memory": "32Mi"},
                                "limits": {"memory": "256Mi"},
                            },
                            "securityContext": dict(_SECURITY[plugin.key]),
                            "terminationMessagePolicy": "FallbackToLogsOnError",
                            "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts.items()],
                        }
                    ],
                    "volumes": [{"name": name, "hostPath": {"path": path}} for name, path in mounts.items()],
                },
            },
        },
    }


class DevicePlugins(pulumi.ComponentResource):
    """The device plugins that a site's pools need: one DaemonSet each, for all pools."""

    daemon_sets: Sequence[k8s.apps.v1.DaemonSet]

    def __init__(self, name: str, plugins: Sequence[PluginPlan], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("plumbline:index:DevicePlugins", name, None, opts)
        self.daemon_sets = [
            k8s.apps.v1.DaemonSet(
                f"{name}-{plugin.key}",
                opts=pulumi.ResourceOptions(parent=self),
                **daemon_set(plugin),
            )
            for plugin in plugins
        ]
        self.register_outputs({})
