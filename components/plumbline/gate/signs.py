"""What plugin containers say when they fail, and what it means: a table, each row from a public report or a manual."""

import re
from dataclasses import dataclass

from plumbline.gate.snapshot import Container, Pod
from plumbline.gate.verdict import Certainty


@dataclass(frozen=True, kw_only=True)
class Sign:
    """A text that a container runtime or a plugin writes, and what follows from it."""

    pattern: re.Pattern[str]
    cause: str
    """Completes "the <resource> device plugin ..." or "the <driver> DRA driver ..."."""
    fix: str
    """May name {setting}, {image}, {architecture}."""
    certainty: Certainty
    heals: bool
    source: str
    pulling: bool = False
    """Whether it is the container runtime's, about an image: a plugin's own "not found" is about something else."""


def _text(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


SIGNS: tuple[Sign, ...] = (
    Sign(
        pattern=_text(r"exec format error"),
        cause="cannot start; its image is built for another architecture",
        fix="{setting} in the stack's file: use an image that has {architecture}, or remove the line to take the "
        "pinned default; if it is the default already, its tag was published anew: pin another one there",
        certainty=Certainty.CERTAIN,
        heals=False,
        source="https://github.com/ROCm/k8s-device-plugin/issues/34",
    ),
    Sign(
        pattern=_text(r"no match for platform", r"no matching manifest", r"does not match the specified platform"),
        cause="cannot start; its image has no variant for the nodes' architecture",
        fix="{setting} in the stack's file: use an image that has {architecture}, or remove the line to take the "
        "pinned default",
        certainty=Certainty.CERTAIN,
        pulling=True,
        heals=False,
        source="https://github.com/containerd/containerd/blob/main/core/images/image.go",
    ),
    Sign(
        pattern=_text(r"manifest unknown", r"not found", r"name unknown", r"repository does not exist"),
        cause="cannot start; its image does not exist",
        fix="{setting} in the stack's file: correct the image, or remove the line to take the pinned default; if it is "
        "the default already, its registry no longer has it: set one that exists",
        certainty=Certainty.CERTAIN,
        pulling=True,
        heals=False,
        source="https://github.com/opencontainers/distribution-spec/blob/main/spec.md#error-codes",
    ),
    Sign(
        pattern=_text(r"InvalidImageName"),
        cause="cannot start; its image's name is not valid",
        fix="{setting} in the stack's file: correct the image, or remove the line to take the pinned default",
        certainty=Certainty.CERTAIN,
        pulling=True,
        heals=False,
        source="https://kubernetes.io/docs/concepts/containers/images/",
    ),
    Sign(
        pattern=_text(r"401 Unauthorized", r"403 Forbidden", r"no basic auth credentials", r"authorization failed"),
        cause="cannot start; the registry refuses the nodes",
        fix="give the node role the right to pull from the registry of {image}, or set {setting} to a registry that "
        "the nodes may read",
        certainty=Certainty.CERTAIN,
        pulling=True,
        heals=True,
        source="https://kubernetes.io/docs/concepts/containers/images/",
    ),
    Sign(
        pattern=_text(r"No valid EFA devices found"),
        cause="finds no EFA device on its node",
        fix="the node was launched without EFA interfaces, or its EFA driver did not load: compare the interfaces of "
        "the instances with the launch template; replace nodes that differ",
        certainty=Certainty.CERTAIN,
        heals=True,
        source="https://github.com/aws/sagemaker-hyperpod-cli/issues/367",
    ),
    Sign(
        pattern=_text(r"neuron-device-plugin: .* No devices found"),
        cause="finds no Neuron device on its node",
        fix="the node's AMI has no Neuron driver, or it did not load: use the Neuron AMI of EKS, and replace nodes "
        "whose driver does not come up",
        certainty=Certainty.CERTAIN,
        heals=True,
        source="https://github.com/aws/aws-cdk/issues/29262",
    ),
    Sign(
        pattern=_text(r"No devices found\. Waiting indefinitely"),
        cause="found no device when it started, and never looks again",
        fix="the driver was not ready when the plugin started, or the AMI has none: check the driver on the node, then "
        "delete the plugin's pod there",
        certainty=Certainty.CERTAIN,
        heals=True,
        source="https://github.com/zalando-incubator/kubernetes-on-aws/pull/8468",
    ),
    Sign(
        pattern=_text(r'exposing "0" devices', r"rdma_cm not found"),
        cause="runs and exposes no device",
        fix="a kernel module or the driver is missing on the node: load rdma_cm, ib_uverbs and the card's driver, then "
        "delete the plugin's pod there",
        certainty=Certainty.CERTAIN,
        heals=True,
        source="https://github.com/Mellanox/k8s-rdma-shared-dev-plugin/issues/192",
    ),
    Sign(
        pattern=_text(r"NRI plugin failed for \d+ times"),
        cause="cannot reach the container runtime's NRI socket, and gives up",
        fix="NRI is off in the nodes' container runtime; containerd has it on from version 2.0: use a newer AMI "
        "release, or switch it on there",
        certainty=Certainty.CERTAIN,
        heals=True,
        source="https://github.com/kubernetes-sigs/dranet/blob/main/pkg/driver/driver.go",
    ),
    Sign(
        pattern=_text(r"After filtering, publishing 0 devices", r"\] Found 0 devices"),
        cause="finds no device to publish on its node",
        fix="the node was launched without EFA interfaces, or its EFA driver did not load: compare the interfaces of "
        "the instances with the launch template; replace nodes that differ",
        certainty=Certainty.CERTAIN,
        heals=True,
        source="https://github.com/kubernetes-sigs/dranet/blob/main/pkg/inventory/db.go",
    ),
    Sign(
        pattern=_text(
            r"resourceslices\.resource\.k8s\.io.* is forbidden", r"cannot (list|create|update) .*resourceslices"
        ),
        cause="has no right to publish ResourceSlices",
        fix="its ClusterRole or the binding of its service account is gone: run `pulumi refresh`, then `pulumi up`",
        certainty=Certainty.CERTAIN,
        heals=True,
        source="https://kubernetes.io/docs/reference/access-authn-authz/rbac/",
    ),
    Sign(
        pattern=_text(r"OOMKilled"),
        cause="is killed for its memory",
        fix="raise the memory limit of its DaemonSet",
        certainty=Certainty.CERTAIN,
        heals=True,
        source="https://kubernetes.io/docs/tasks/configure-pod-container/assign-memory-resource/",
    ),
)


def read_signs(pod: Pod, log: str) -> Sign | None:
    """The first sign in what the pod's containers and its log say; None if they say nothing known."""
    pulls = [text for c in pod.containers for text in (c.waiting_reason, c.waiting_message)]
    words = [log, *(text for c in pod.containers for text in (c.exit_reason, c.exit_message))]
    return next((sign for sign in SIGNS if any(map(sign.pattern.search, pulls if sign.pulling else words))), None)


def quote(pod: Pod, log: str) -> str:
    """What a pod that is not ready says of itself, in one line: waiting reason, exit code, last words."""
    if not pod.containers:
        return pod.reason or pod.scheduled_message or f"phase {pod.phase or 'unknown'}, no container has started"
    container = next((c for c in pod.containers if not c.ready), pod.containers[0])
    waits = container.waiting_reason not in ("", "CrashLoopBackOff")
    ended = "terminated" if container.exit_code is not None else f"phase {pod.phase}"
    parts = [container.waiting_reason or ended]
    if waits:
        words = container.waiting_message  # how an earlier run ended is another matter
    else:
        parts += [f"exit code {container.exit_code}"] if container.exit_code is not None else []
        words = _last_words(container, log)
    return ", ".join([*parts, f'"{words}"'] if words else parts)


def _last_words(container: Container, log: str) -> str:
    """The line that says most: a known sign's, else the last of the log, of the exit message, of the wait."""
    lines = [line.strip() for text in (container.exit_message, log) for line in text.splitlines() if line.strip()]
    for line in lines:
        if any(sign.pattern.search(line) for sign in SIGNS if not sign.pulling):
            return line
    if lines:
        return lines[-1]
    return "" if container.exit_code is not None else container.waiting_message
