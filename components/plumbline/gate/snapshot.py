"""What was read of a cluster at one moment: plain values, made from the API's JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plumbline.gate.slices import Offer

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Taint:
    """A node's taint."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node, as far as phases look at it."""

    name: str
    labels: Mapping[str, str]
    ready: bool
    not_ready_because: str
    """Reason and message of a Ready condition that is not True; empty for a ready node."""
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    taints: tuple[Taint, ...]
    provider_id: str
    info: Mapping[str, str]
    """`status.nodeInfo`: boot id, kernel, kubelet, architecture and so on."""

    @classmethod
    def from_json(cls, node: Json) -> "Node":
        """From a Node object."""
        spec, status = node.get("spec") or {}, node.get("status") or {}
        ready: Json = next((c for c in status.get("conditions") or () if c.get("type") == "Ready"), {})
        reason = ": ".join(part for part in (ready.get("reason"), ready.get("message")) if part)
        is_ready = ready.get("status") == "True"
        return cls(
            name=node["metadata"]["name"],
            labels=node["metadata"].get("labels") or {},
            ready=is_ready,
            not_ready_because="" if is_ready else reason or "no Ready condition",
            capacity=_amounts(status.get("capacity")),
            allocatable=_amounts(status.get("allocatable")),
            taints=tuple(
                Taint(key=t["key"], value=t.get("value") or "", effect=t["effect"]) for t in spec.get("taints") or ()
            ),
            provider_id=spec.get("providerID") or "",
            info=status.get("nodeInfo") or {},
        )

    @property
    def architecture(self) -> str:
        """As the kubelet reports it; the label where it does not."""
        return self.info.get("architecture") or self.labels.get("kubernetes.io/arch", "unknown")


@dataclass(frozen=True, kw_only=True)
class DaemonSet:
    """A DaemonSet: what its controller counted, and what decides where its pods go."""

    namespace: str
    name: str
    generation: int
    observed_generation: int
    desired: int
    ready: int
    images: tuple[str, ...]
    node_selector: Mapping[str, str]
    affinity_terms: tuple[Json, ...]
    """`nodeSelectorTerms` of the required node affinity; empty where there is none."""
    tolerations: tuple[Json, ...]

    @classmethod
    def from_json(cls, daemon_set: Json) -> "DaemonSet":
        """From a DaemonSet object."""
        spec, status = daemon_set.get("spec") or {}, daemon_set.get("status") or {}
        pod = (spec.get("template") or {}).get("spec") or {}
        required = ((pod.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        ) or {}
        return cls(
            namespace=daemon_set["metadata"].get("namespace", "default"),
            name=daemon_set["metadata"]["name"],
            generation=daemon_set["metadata"].get("generation") or 0,
            observed_generation=status.get("observedGeneration") or 0,
            desired=status.get("desiredNumberScheduled") or 0,
            ready=status.get("numberReady") or 0,
            images=tuple(c.get("image", "") for c in pod.get("containers") or ()),
            node_selector=pod.get("nodeSelector") or {},
            affinity_terms=tuple(required.get("nodeSelectorTerms") or ()),
            tolerations=tuple(pod.get("tolerations") or ()),
        )

    def __str__(self) -> str:
        return f"DaemonSet {self.namespace}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container's state: what it waits for, and how it last ended."""

    name: str
    image: str
    image_id: str
    ready: bool
    restarts: int
    waiting_reason: str = ""
    waiting_message: str = ""
    exit_code: int | None = None
    """Of the last end, of this run or of the one before; None if it never ended."""
    exit_reason: str = ""
    exit_message: str = ""

    @classmethod
    def from_json(cls, status: Json) -> "Container":
        """From an entry of `containerStatuses`."""
        state, last = status.get("state") or {}, status.get("lastState") or {}
        waiting = state.get("waiting") or {}
        ended = state.get("terminated") or last.get("terminated") or {}
        return cls(
            name=status.get("name", ""),
            image=status.get("image", ""),
            image_id=status.get("imageID", ""),
            ready=bool(status.get("ready")),
            restarts=status.get("restartCount") or 0,
            waiting_reason=waiting.get("reason") or "",
            waiting_message=waiting.get("message") or "",
            exit_code=ended.get("exitCode"),
            exit_reason=ended.get("reason") or "",
            exit_message=(ended.get("message") or "").strip(),
        )


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod on a node, as far as phases and guards look at it."""

    namespace: str
    name: str
    node: str
    phase: str
    labels: Mapping[str, str]
    owner_kind: str
    """Kind of its controller; empty for a bare pod."""
    owner: str
    images: tuple[str, ...]
    """Images that its specification asks for."""
    resources: Mapping[str, int]
    """Extended resources that it requests, summed over its containers."""
    mirror: bool
    containers: tuple[Container, ...]
    reason: str = ""
    """`status.reason`, such as UnexpectedAdmissionError."""
    scheduled_message: str = ""
    """Why the scheduler could not place it, in its own words."""

    @classmethod
    def from_json(cls, pod: Json) -> "Pod":
        """From a Pod object."""
        meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
        owner: Json = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), {})
        unscheduled: Json = next(
            (
                condition
                for condition in status.get("conditions") or ()
                if condition.get("type") == "PodScheduled" and condition.get("status") != "True"
            ),
            {},
        )
        return cls(
            namespace=meta.get("namespace", "default"),
            name=meta["name"],
            node=spec.get("nodeName") or _affine_node(spec),
            phase=status.get("phase") or "",
            labels=meta.get("labels") or {},
            owner_kind=owner.get("kind", ""),
            owner=owner.get("name", ""),
            images=tuple(c.get("image", "") for c in spec.get("containers") or ()),
            resources=_extended(spec.get("containers") or ()),
            mirror="kubernetes.io/config.mirror" in (meta.get("annotations") or {}),
            containers=tuple(Container.from_json(c) for c in status.get("containerStatuses") or ()),
            reason=status.get("reason") or "",
            scheduled_message=unscheduled.get("message") or "",
        )

    @property
    def ready(self) -> bool:
        """Whether every container is ready."""
        return self.phase == "Running" and bool(self.containers) and all(c.ready for c in self.containers)

    @property
    def finished(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def full_name(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def _affine_node(spec: Json) -> str:
    """The node that a DaemonSet's pod is meant for, while the scheduler has not bound it yet."""
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for field_ in term.get("matchFields") or ():
            if field_.get("key") == "metadata.name" and field_.get("values"):
                return str(field_["values"][0])
    return ""


def _extended(containers: Sequence[Json]) -> dict[str, int]:
    """Requests of resources with a domain that is not Kubernetes' own: devices."""
    total: dict[str, int] = {}
    for container in containers:
        resources = container.get("resources") or {}
        for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            if "/" in name and not name.startswith("kubernetes.io/"):
                total[name] = total.get(name, 0) + count(amount)
    return total


def _amounts(resources: Json | None) -> dict[str, str]:
    return {name: str(amount) for name, amount in (resources or {}).items() if amount is not None}


def count(quantity: Any) -> int:
    """A count of devices from the API's quantity; 0 for what is not there.

    Raises:
        ValueError: it is not a whole number: never read as one.
    """
    if quantity in (None, ""):
        return 0
    text = str(quantity)
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"not a count of devices: {text!r}")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """All that phases look at."""

    nodes: tuple[Node, ...]
    """Nodes of the generation, by name."""
    daemon_sets: Mapping[tuple[str, str], DaemonSet]
    """The plugins' DaemonSets that exist, by namespace and name."""
    pods: tuple[Pod, ...]
    """The plugins' pods, on any node."""
    logs: Mapping[str, str] = field(default_factory=dict)
    """Last lines of plugin pods that were asked for, by `namespace/name`."""
    offers: Mapping[str, Offer] = field(default_factory=dict)
    """What DRA drivers offer, by driver: of those that the gate expects."""
    others: tuple[Json, ...] = ()
    """The cluster's other DaemonSets, as they are."""

    def plugin_pods(self, daemon_set: DaemonSet) -> Mapping[str, Pod]:
        """The pods of a DaemonSet by node; the newest where a node has an old one as well."""
        mine = [p for p in self.pods if p.owner_kind == "DaemonSet" and p.owner == daemon_set.name]
        return {pod.node: pod for pod in mine if pod.namespace == daemon_set.namespace}
