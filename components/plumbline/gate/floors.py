"""Floors of versions: the VPC CNI, of which older ones take `efa-only` interfaces for their own, and the driver."""

import re
from collections.abc import Iterator

from plumbline.catalog.versions import numbers, older
from plumbline.gate.expectation import PoolExpectation
from plumbline.gate.snapshot import DaemonSet, Snapshot
from plumbline.gate.verdict import Certainty, Diagnosis

_NAMESPACE, _NAME = "kube-system", "aws-node"
"""Where EKS has it. https://docs.aws.amazon.com/eks/latest/userguide/managing-vpc-cni.html"""


def cni_image(snapshot: Snapshot) -> str:
    """The image of the CNI; empty where the cluster has another one."""
    for each in snapshot.others:
        meta = each["metadata"]
        if (meta.get("namespace"), meta["name"]) == (_NAMESPACE, _NAME):
            return next(iter(DaemonSet.from_json(each).images), "")
    return ""


def old_cni(expected: PoolExpectation, snapshot: Snapshot) -> Iterator[Diagnosis]:
    """A CNI below the floor that the pool's interfaces need."""
    image = cni_image(snapshot)
    version = _version(image)
    floor = _version(f":v{expected.cni_floor}") if expected.cni_floor else None
    if version and floor and version < floor:
        yield Diagnosis(
            cause="the VPC CNI is too old for efa-only interfaces",
            certainty=Certainty.CERTAIN,
            evidence=(f"DaemonSet {_NAMESPACE}/{_NAME}, image {image}", f"needed: {expected.cni_floor} or newer"),
            fix="update it: plumbline:site.cluster.addons.vpc_cni for a cluster that is built here, "
            "`aws eks update-addon --addon-name vpc-cni` for another; then replace the nodes, whose interfaces it took",
            nodes=tuple(node.name for node in snapshot.nodes),
            heals=False,
        )


def unknown_cni(expected: PoolExpectation, snapshot: Snapshot) -> tuple[str, ...]:
    """A warning where the CNI, or its version, cannot be told."""
    image = cni_image(snapshot)
    if expected.cni_floor is None or _version(image):
        return ()
    seen = f"image {image} has no version in its tag" if image else f"there is no DaemonSet {_NAMESPACE}/{_NAME}"
    return (f"the VPC CNI has to be {expected.cni_floor} or newer, and its version is not known: {seen}",)


DRIVER_LABEL = "nvidia.com/cuda.driver-version.full"
"""Where GPU feature discovery runs. https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery"""


def old_driver(expected: PoolExpectation, snapshot: Snapshot) -> Iterator[Diagnosis]:
    """Nodes whose driver is older than the machine works with, as far as a label tells it."""
    if expected.driver_floor is None:
        return
    told = {node.name: node.labels[DRIVER_LABEL] for node in snapshot.nodes if DRIVER_LABEL in node.labels}
    old = {name: version for name, version in told.items() if older(version, expected.driver_floor)}
    if old:
        yield Diagnosis(
            cause=f"the NVIDIA driver is older than {expected.machine} works with",
            certainty=Certainty.CERTAIN,
            evidence=(
                *(f"{name}: {version}" for name, version in sorted(old.items())[:8]),
                f"needed: {expected.driver_floor} or newer",
            ),
            fix="set ami_release of the pool to a release with a newer driver, or mend the image of your own; "
            "either builds new nodes",
            nodes=tuple(sorted(old)),
            heals=False,
        )


def _version(image: str) -> tuple[int, ...] | None:
    found = re.search(r":v?([0-9]+\.[0-9]+\.[0-9]+)", image)
    return numbers(found[1]) if found else None
