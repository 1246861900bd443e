"""What runs on the pools, and how Kubernetes' resources wait and end."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from plumbline.catalog import aws_catalogue
from plumbline.plan.labels import ARCHITECTURE, MACHINE
from plumbline.plan.tolerations import tolerates
from plumbline.review.graph import Graph, Resource, at
from plumbline.review.rule import Rule
from plumbline.review.templates import templates_of
from plumbline.review.types import (
    CLAIM,
    CLUSTER,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NODE_GROUP,
    POD,
    STATEFUL_SET,
    STORAGE_CLASS,
)
from plumbline.review.values import UNKNOWN, has_unknown, is_true, items, look, number, text
from plumbline.site.problems import Path, Problem

_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute"}
_WITH_TEMPLATE = (DAEMON_SET, DEPLOYMENT, STATEFUL_SET, JOB)
_GPU = aws_catalogue().plugins["nvidia"].resource
_EFA = aws_catalogue().plugins["efa"].resource

# What a GPU pool needs on its nodes before it offers anything: discovery, driver, device plugins.
_CHAIN = re.compile(r"device-plugin|feature-discovery|gpu-operator|nvidia-driver|rdma|dranet", re.IGNORECASE)


def _pod_path(resource: Resource) -> Path:
    return ("spec", "template", "spec") if resource.type in _WITH_TEMPLATE else ("spec",)


def _containers(resource: Resource) -> Iterator[tuple[Path, Any]]:
    for key in ("initContainers", "containers"):
        path = (*_pod_path(resource), key)
        for i, each in enumerate(items(resource.props, *path)):
            yield (*path, i), each


def _may_run_on(resource: Resource, group: Resource) -> bool:
    """False where the pods' node selector wants another value of a label that the group's nodes have."""
    selector, labels = at(resource, *_pod_path(resource), "nodeSelector"), at(group, "labels")
    if not isinstance(selector, Mapping):
        return selector is None
    architecture = _architecture(group)
    known = dict(labels) if isinstance(labels, Mapping) else {}
    if architecture:
        known[ARCHITECTURE] = architecture
    return all(known.get(key, value) in (value, UNKNOWN) for key, value in selector.items())


def _architecture(group: Resource) -> str | None:
    """The architecture of a node group's nodes, from its AMI type."""
    ami = text(group.props, "amiType") or ""
    return "arm64" if "ARM_64" in ami else "amd64" if "x86_64" in ami else None


def _machines(group: Resource, graph: Graph) -> set[str]:
    named = {each for each in items(group.props, "instanceTypes") if isinstance(each, str)}
    return named | {name for each in templates_of(group, graph) if (name := text(each.props, "instanceType"))}


def _tolerations(daemon_set: Resource, graph: Graph) -> Iterator[Problem]:
    path = (*_pod_path(daemon_set), "tolerations")
    given = at(daemon_set, *path)
    if given is UNKNOWN or has_unknown(given):
        return
    listed = [each for each in items(given) if isinstance(each, Mapping)]
    images = [text(each, "image") or "" for _, each in _containers(daemon_set)]
    in_chain = any(_CHAIN.search(each) for each in (text(daemon_set.props, "metadata", "name") or "", *images))
    for group in graph.of(NODE_GROUP):
        if not _may_run_on(daemon_set, group):
            continue
        for taint in items(group.props, "taints"):
            key, value = text(taint, "key"), look(taint, "value")
            effect = _EFFECTS.get(text(taint, "effect") or "")
            if key is None or value is UNKNOWN or effect is None:
                continue
            value = str(value or "")
            if tolerates(listed, key, value, effect):
                continue
            near = [each for each in listed if look(each, "key") == key]
            if not near and not in_chain:
                continue
            said = ", ".join(
                f"toleration {look(each, 'value') or look(each, 'operator') or 'of no value'}" for each in near
            )
            yield Problem(
                path=path,
                found=f"{said or 'no toleration'} for {key}, and taint {value or 'without a value'} on node group "
                f"{group.name} ({key}={value}:{effect})",
                needed=f"a toleration that is for {key}={value}:{effect}: without it no pod of this DaemonSet runs "
                "there, and nothing says so",
                next=f"tolerate {key} with operator Exists",
            )


def _images(resource: Resource, graph: Graph) -> Iterator[Problem]:
    groups = [(group.name, _architecture(group)) for group in graph.of(NODE_GROUP) if _may_run_on(resource, group)]
    for path, container in _containers(resource):
        image = text(container, "image")
        platforms = graph.image_platforms.get(image or "")
        if not platforms:
            continue
        architectures = sorted({each.split("/")[1] for each in platforms if each.startswith("linux/")})
        for name, architecture in groups:
            if architecture and architecture not in architectures:
                yield Problem(
                    path=(*path, "image"),
                    found=f"{image}, which is for {' and '.join(architectures) or 'nothing'} only, on node group "
                    f"{name}, whose nodes are {architecture}",
                    needed=f"an image for {architecture}: any other ends with exec format error, again and again",
                    next=f"use an image that has {architecture}, or a nodeSelector {ARCHITECTURE}",
                )


def _efa_requested(resource: Resource, _: Graph) -> Iterator[Problem]:
    selector = at(resource, *_pod_path(resource), "nodeSelector")
    machine = aws_catalogue().machines.get(text(selector, MACHINE) or "")
    pods = max(number(resource.props, "spec", key) or 1 for key in ("parallelism", "completions", "replicas"))
    for path, container in _containers(resource):
        resources = look(container, "resources")
        if has_unknown(resources):
            continue
        gpus, devices = (
            max(number(resources, each, name) or 0 for each in ("requests", "limits")) for name in (_GPU, _EFA)
        )
        if not gpus or devices:
            continue
        wants = any(
            text(each, "name") == "FI_PROVIDER" and text(each, "value") == "efa" for each in items(container, "env")
        )
        if wants or (pods > 1 and machine is not None):
            why = "FI_PROVIDER is efa" if wants else f"{pods} pods on {text(selector, MACHINE)}"
            count = machine.efa_interfaces if machine else None
            yield Problem(
                path=(*path, "resources", "limits"),
                found=f"{_EFA} not requested, while {why}",
                needed=f"{_EFA} beside {_GPU}: without it the devices are not in the container, and NCCL takes TCP",
                next=f'add {_EFA}: "{count}" to limits' if count else f"add {_EFA} to limits, as many as the node has",
            )


def _ipc_lock(resource: Resource, _: Graph) -> Iterator[Problem]:
    pod = at(resource, *_pod_path(resource), "securityContext")
    for path, container in _containers(resource):
        added = items(container, "securityContext", "capabilities", "add")
        user = look(container, "securityContext", "runAsUser")
        user = look(pod, "runAsUser") if user is None else user
        not_root = is_true(container, "securityContext", "runAsNonRoot") or is_true(pod, "runAsNonRoot")
        if "IPC_LOCK" in added and ((number(user) or 0) > 0 or (user is None and not_root)):
            yield Problem(
                path=(*path, "securityContext", "capabilities", "add"),
                found=f"IPC_LOCK, and user {number(user) if user is not None else 'other than root'}",
                needed="IPC_LOCK not effective for non-root: the capability is not among the effective ones, so the "
                "limit on locked memory holds",
                next="run as user 0, or raise the limit on the node (containerd's LimitMEMLOCK=infinity)",
            )


@dataclass(frozen=True, kw_only=True)
class _Fault:
    """Versions of a device plugin that are known to go wrong on some machines."""

    repository: str
    """How the image's name ends, without the tag."""
    broken: Callable[[tuple[int, ...]], bool]
    machines: str
    """Beginning of the machine types."""
    effect: str
    needed: str
    source: str


_FAULTS = (
    _Fault(
        repository="aws-efa-k8s-device-plugin",
        # The reports disagree on the version that mends it, 0.5.6 or 0.5.10: the higher one is safe.
        broken=lambda version: version < (0, 5, 10),
        machines="p6-b200.",
        effect="counts two NVLink devices as EFA, 10 instead of 8",
        needed="0.5.10 or newer",
        source="https://github.com/aws/sagemaker-hyperpod-cli/pull/282",
    ),
    _Fault(
        repository="aws-efa-k8s-device-plugin",
        broken=lambda version: version < (0, 5, 14),
        machines="p6e-gb200.",
        effect="does not run on arm64, or does not know the machine",
        needed="0.5.14 or newer",
        source="https://docs.aws.amazon.com/eks/latest/userguide/ml-eks-nvidia-ultraserver.html",
    ),
    _Fault(
        repository="k8s-device-plugin",
        broken=lambda version: (0, 19, 0) <= version <= (0, 19, 2),
        machines="p",
        effect="takes the RDMA devices for itself",
        needed="0.19.3 or newer",
        source="https://github.com/NVIDIA/k8s-device-plugin/releases",
    ),
)


def _plugin_version(daemon_set: Resource, graph: Graph) -> Iterator[Problem]:
    for path, container in _containers(daemon_set):
        repository, _, tag = (text(container, "image") or "").partition("@")[0].rpartition(":")
        numbers = re.match(r"v?(\d+)\.(\d+)\.(\d+)", tag)
        if not numbers:
            continue
        version = tuple(int(each) for each in numbers.groups())
        for fault in _FAULTS:
            if repository.rpartition("/")[2] != fault.repository or not fault.broken(version):
                continue
            for group in graph.of(NODE_GROUP):
                hit = sorted(each for each in _machines(group, graph) if each.startswith(fault.machines))
                if hit and _may_run_on(daemon_set, group):
                    yield Problem(
                        path=(*path, "image"),
                        found=f"version {'.'.join(numbers.groups())}, which {fault.effect}, for node group "
                        f"{group.name} of {', '.join(hit)}",
                        needed=f"{fault.needed} ({fault.source})",
                        next="use the catalogue's default, or a newer tag",
                    )


def _claim_waits(claim: Resource, graph: Graph) -> Iterator[Problem]:
    wanted = text(claim.props, "spec", "storageClassName")
    skip = look(claim.props, "metadata", "annotations", "pulumi.com/skipAwait")
    if wanted is None or skip is UNKNOWN or skip == "true":
        return
    for storage in graph.of(STORAGE_CLASS):
        if text(storage.props, "metadata", "name") != wanted:
            continue
        if text(storage.props, "volumeBindingMode") == "WaitForFirstConsumer":
            yield Problem(
                path=("metadata", "annotations"),
                found=f"no pulumi.com/skipAwait, with storage class {wanted}, which binds with WaitForFirstConsumer",
                needed='pulumi.com/skipAwait: "true": the claim is bound only once a pod uses it, and the update waits '
                "for that before it creates the pod",
                next="add the annotation, or let the storage class bind with Immediate",
            )


def _deleted_with(resource: Resource, graph: Graph) -> Iterator[Problem]:
    clusters = list(graph.of(CLUSTER))
    if clusters and resource.deleted_with is None:
        yield Problem(
            path=(),
            found="no deletedWith, though the cluster is in the same stack",
            needed="deletedWith the cluster: once the cluster is gone, its API cannot be asked to delete anything",
            next=f"set the option deletedWith to {clusters[0].name}",
        )


RULES = (
    Rule(
        id="daemon-set-tolerates-pool",
        types=(DAEMON_SET,),
        judge=_tolerations,
        source="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
        relates=True,
    ),
    Rule(
        id="image-runs-on-nodes",
        types=(DAEMON_SET, DEPLOYMENT, STATEFUL_SET, JOB, POD),
        judge=_images,
        source="https://github.com/opencontainers/image-spec/blob/main/image-index.md",
        relates=True,
    ),
    Rule(
        id="efa-requested",
        types=(DEPLOYMENT, STATEFUL_SET, JOB, POD),
        judge=_efa_requested,
        source="https://docs.aws.amazon.com/eks/latest/userguide/device-management-efa.html",
    ),
    Rule(
        id="ipc-lock-is-effective",
        types=(DAEMON_SET, DEPLOYMENT, STATEFUL_SET, JOB, POD),
        judge=_ipc_lock,
        source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/2037",
        # The node's limit may be unlimited, which no manifest says.
        confirmed=False,
    ),
    Rule(
        id="device-plugin-version",
        types=(DAEMON_SET,),
        judge=_plugin_version,
        source="https://github.com/aws/sagemaker-hyperpod-cli/pull/282",
        relates=True,
        confirmed=False,
    ),
    Rule(
        id="claim-is-not-awaited",
        types=(CLAIM,),
        judge=_claim_waits,
        source="https://github.com/pulumi/pulumi-kubernetes/issues/895",
        relates=True,
        # Later versions of the provider may not wait.
        confirmed=False,
    ),
    Rule(
        id="deleted-with-cluster",
        types=("kubernetes:*",),
        judge=_deleted_with,
        source="https://www.pulumi.com/docs/iac/concepts/resources/options/deletedwith/",
        relates=True,
        # Whether it is needed depends on the order of deletion; it never harms.
        confirmed=False,
    ),
)
