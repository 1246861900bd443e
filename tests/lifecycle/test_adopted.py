"""A pool in somebody else's cluster: nothing of theirs is changed, and what they run already is not doubled."""

import json
from typing import Any

import pytest
import yaml

from tests.lifecycle.test_green_blocked_recovered import kubectl, report
from tests.rehearsals import Rehearsal
from tools.toolbox import CHECKOUT

pytestmark = pytest.mark.engine
SITE: dict[str, Any] = yaml.safe_load((CHECKOUT / "stacks" / "Pulumi.adopted.yaml").read_text("utf-8"))["config"][
    "plumbline:site"
]
THEIRS = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "nvidia-device-plugin-daemonset", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": {"name": "theirs"}},
        "template": {
            "metadata": {"labels": {"name": "theirs"}},
            "spec": {
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                "containers": [
                    {
                        "name": "plugin",
                        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
                        "volumeMounts": [{"name": "plugins", "mountPath": "/var/lib/kubelet/device-plugins"}],
                    }
                ],
                "volumes": [{"name": "plugins", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}],
            },
        },
    },
}


def test_pool_in_a_capacity_block_is_proven_in_somebody_elses_cluster(stage: Rehearsal) -> None:
    done = stage.up(config=stage.config(SITE))
    assert done.code == 0, done.text
    assert report(stage)["proven"] is True
    kinds = stage.types()
    assert not {"aws:eks/cluster:Cluster", "aws:eks/addon:Addon", "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"} & kinds


def test_plugin_that_they_install_as_well_is_found_before_anything_is_done(stage: Rehearsal) -> None:
    kubectl(stage, "apply", "--filename", "-", stdin=json.dumps(THEIRS))
    done = stage.up(config=stage.config(SITE))
    assert done.code != 0
    assert "plumbline:site.plugins.nvidia" in done.text
    assert "found:  kube-system/nvidia-device-plugin-daemonset in the cluster" in done.text
    assert "next:   set plugins.nvidia.install: false" in done.text


def test_cluster_that_cannot_be_read_is_not_taken_for_an_empty_one(stage: Rehearsal) -> None:
    stage.client.set_faults(["api-server-unreachable"])
    preview = stage.preview(stage.config(SITE))
    stage.client.set_faults([])
    assert preview.code != 0
    assert "shared, whose DaemonSets cannot be read: no connection to the API server" in preview.text


def test_theirs_alone_serves_where_ours_is_not_installed(stage: Rehearsal) -> None:
    done = stage.up(config=stage.config(SITE, plugins={"nvidia": {"install": False}}))
    assert done.code == 0, done.text
    assert report(stage)["proven"] is True
    sets = kubectl(stage, "get", "daemonsets", "--namespace", "kube-system", "--output", "name").split()
    assert "daemonset.apps/nvidia-device-plugin" not in sets


def test_destroy_leaves_what_is_theirs(stage: Rehearsal) -> None:
    done = stage.pulumi("destroy", "--yes", "--skip-preview")
    assert done.code == 0, done.text
    assert stage.types() == set()
    assert list(stage.client.world()["clusters"]) == ["shared"]
    # A DaemonSet goes when its pods are gone: those of nodes that went first, after the collector's 40 s.
    kubectl(
        stage, "wait", "--for=delete", "daemonset/efa-device-plugin", "--namespace", "kube-system", "--timeout=120s"
    )
    sets = kubectl(stage, "get", "daemonsets", "--namespace", "kube-system", "--output", "name").split()
    assert sorted(sets) == ["daemonset.apps/aws-node", "daemonset.apps/nvidia-device-plugin-daemonset"]
    left = {file.name for file in stage.state.documents.glob("aws-ec2-*/*.json")}
    assert all("0a1b2c3d4e5f607" in name for name in left), left
