"""What an adopted cluster runs already is not installed a second time."""

from typing import Any

import pytest

from plumbline.kubernetes.adopted import found_plugins
from plumbline.kubernetes.survey import doubled
from plumbline.plan import plan_site
from plumbline.site import Problem, read_site
from tests.sites import declare, declare_pool

THEIRS = {"nvidia": ("nvcr.io/nvidia/k8s-device-plugin:v0.17.1", "/var/lib/kubelet/device-plugins")}
THEIRS["efa"] = (
    "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.3",
    THEIRS["nvidia"][1],
)
THEIRS["dranet"] = ("602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/dranet:v1.2.0", "/var/lib/kubelet/plugins")
ANYWHERE = {"tolerations": [{"operator": "Exists"}]}


def theirs(key: str, **pod: Any) -> dict[str, Any]:
    image, path = THEIRS[key]
    container = {"image": image, "volumeMounts": [{"name": "p", "mountPath": path}]}
    spec = {"containers": [container], "volumes": [{"name": "p", "hostPath": {"path": path}}], **pod}
    return {"metadata": {"name": f"their-{key}", "namespace": "kube-system"}, "spec": {"template": {"spec": spec}}}


def problems(raw: dict[str, Any], *sets: dict[str, Any], policies: bool = False) -> list[Problem]:
    plan = plan_site(read_site(raw)[0])
    return list(doubled(plan, found_plugins(sets, policies)))


@pytest.mark.parametrize("key", ["nvidia", "efa"])
def test_plugin_that_is_there_is_named_with_the_setting_that_leaves_it_alone(key: str) -> None:
    [problem] = problems(declare(), theirs(key, **ANYWHERE))
    assert problem.where == f"plumbline:site.plugins.{key}"
    assert f"kube-system/their-{key}" in problem.found
    assert problem.next.startswith(f"set plugins.{key}.install: false")
    assert problems(declare(plugins={key: {"install": False}}), theirs(key, **ANYWHERE)) == []


@pytest.mark.parametrize(
    ("pod", "lands"),
    [
        ({}, False),  # does not tolerate the taint of the pool
        ({**ANYWHERE, "nodeSelector": {"nvidia.com/gpu.present": "true"}}, True),
        ({**ANYWHERE, "nodeSelector": {"node.kubernetes.io/instance-type": "g5.48xlarge"}}, False),
        ({**ANYWHERE, "nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"}}, True),
    ],
)
def test_plugin_that_does_not_come_to_the_pools_nodes_is_nobodys_business(pod: dict[str, Any], lands: bool) -> None:
    assert bool(problems(declare(), theirs("nvidia", **pod))) is lands


def test_other_mechanism_for_the_same_devices_is_told_apart() -> None:
    [problem] = problems(declare(), theirs("dranet", **ANYWHERE))
    assert problem.where == "plumbline:site.plugins.efa"
    assert "dra.net" in problem.next
    assert [each.where for each in problems(declare_pool(devices="dra"), theirs("dranet", **ANYWHERE))] == [
        "plumbline:site.plugins.dranet"
    ]


def test_gpu_operator_counts_before_its_plugin_is_there() -> None:
    [problem] = problems(declare(), policies=True)
    assert problem.found.startswith("a plugin of GPU Operator in the cluster")
