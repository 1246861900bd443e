"""Runs of probes in a cluster: made, watched, read and taken away."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from plumbline.gate.expectation import StorageExpectation
from plumbline.gate.snapshot import Node

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One run: one indexed Job with one pod on each of these nodes."""

    name: str
    """Short and unique in a gate's life, such as `all` or `r1-0007`: part of the Job's name."""
    kind: Literal["fabric", "storage"]
    nodes: tuple[Node, ...]
    limit: float
    """Seconds that it may take once its pods have their image."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """For the program in the pods, as JSON."""
    storage: tuple[StorageExpectation, ...] = ()
    """File systems that its pods mount."""


@dataclass(frozen=True, kw_only=True)
class PodOutcome:
    """One pod of a run, when the run was over."""

    index: int
    node: str
    """Where it ran; empty for one that was never scheduled."""
    phase: str
    """As Kubernetes has it; `Gone` for one that somebody took away."""
    log: str
    """Empty where there is none."""
    exit_code: int | None = None
    reason: str = ""
    """Why it waits or ended: `ImagePullBackOff`, `Unschedulable`, `OOMKilled`, `Evicted`, …"""
    message: str = ""
    """The same in Kubernetes' words."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What came of a run."""

    spec: RunSpec
    pods: tuple[PodOutcome, ...]
    """By index; one for each node."""
    seconds: float
    """From the moment at which every pod ran; 0 where that never was."""
    timed_out: bool
    refused: str = ""
    """Why the API server did not take it; empty where it did."""


@dataclass(frozen=True, kw_only=True)
class Pulled:
    """How the image came to the nodes."""

    seconds: Mapping[str, float]
    """By node: how long it took there."""
    failures: Mapping[str, str]
    """Nodes that do not have it, and why: reason and message."""


class Runs(Protocol):
    """What the gate needs to measure in pods."""

    async def pull(self, nodes: Sequence[Node], limit: float) -> Pulled:
        """Bring the image to these nodes, and see when it is there. Repeating it is cheap."""
        ...

    async def run(self, specs: Sequence[RunSpec], say: Say) -> list[RunResult]:
        """Run these at once; each result is in the place of its spec. Every run is taken away before this returns."""
        ...

    async def clean(self) -> None:
        """Take away whatever is left of this gate's probes, of earlier gates that were killed too."""
        ...
