"""What a gate records: whether its pool was proven, when, for which hardware and software, and what was seen."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from plumbline.gate.expectation import PoolExpectation
from plumbline.gate.floors import DRIVER_LABEL, cni_image
from plumbline.gate.snapshot import Node, Snapshot
from plumbline.gate.verdict import Certainty, Diagnosis, PhaseResult, Verdict


class _Record(BaseModel):
    """Written to the stack's state: a field may be added, and keeps its meaning for ever."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True)


class DiagnosisRecord(_Record):
    """See `Diagnosis`."""

    cause: str
    certainty: Certainty
    evidence: tuple[str, ...]
    fix: str
    nodes: tuple[str, ...] = ()

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> "DiagnosisRecord":
        """The part of a diagnosis that is kept."""
        return cls(
            cause=diagnosis.cause,
            certainty=diagnosis.certainty,
            evidence=diagnosis.evidence,
            fix=diagnosis.fix,
            nodes=diagnosis.nodes,
        )


class PhaseRecord(_Record):
    """How one phase ended."""

    name: str
    verdict: Verdict
    summary: str
    seconds: float
    """From the gate's start until the phase last changed its verdict; of a phase in pods, how long it took."""
    off: str = ""
    """Why it was not looked at: declared off by the user, with the reason. Empty for one that was."""
    inapplicable: str = ""
    """Why it does not apply to the pool. Empty for one that does."""


class Point(_Record):
    """One message size of a run."""

    bytes: int
    bus: float
    """Bus bandwidth in GB/s (10^9 bytes)."""


class BandwidthRecord(_Record):
    """What one run measured."""

    run: str
    """`pinned` to the fabric's network, or `chosen` by NCCL as in a user's job."""
    nodes: int
    line: float
    """GB/s of one node."""
    floor: float
    """GB/s."""
    points: tuple[Point, ...]


class StorageRecord(_Record):
    """What was measured of a file system."""

    name: str
    network: str
    """LNet network types seen, such as `efa`."""
    clients: int
    """Nodes that wrote and read at once."""
    provisioned: float | None
    """MB/s (10^6 bytes); None where nobody knows."""
    floor: float | None
    write: float | None
    """MB/s of all clients together; None where it was not measured."""
    read: float | None
    striped_write: float | None = None
    striped_read: float | None = None


class NodeRecord(_Record):
    """What a node was when it was proven, and what it advertised."""

    identity: Mapping[str, str]
    """Provider id, boot id, kernel, kubelet, and the images of the plugins: a change in any of them is a new node."""
    advertised: Mapping[str, str]
    verdict: Verdict = Verdict.PASS
    """Of the node itself: one that is excluded, or that was not looked at, has not passed."""
    proven_at: datetime | None = None
    """When its last pass was: before the proof's `at` where it was busy. None in records of older releases."""
    place: Mapping[str, str] = {}
    """Where it is, for drawing: `zone`, and the network layers above it as `layer-1` (the top) and so on."""
    measured: Mapping[str, Mapping[str, str]] = {}
    """What was seen in pods on it, by phase: ranks, network, connections with GPU-direct, libraries, devices."""


class Proof(_Record):
    """The gate's record."""

    verdict: Verdict
    at: datetime
    """When the gate ended, in UTC."""
    valid_until: datetime | None = None
    """When a passed proof is too old; None for one that did not pass."""
    digest: str = ""
    """Of the nodes' identities and of what was expected; empty for one that did not pass."""
    seconds: float
    """How long the gate took."""
    phases: tuple[PhaseRecord, ...]
    nodes: Mapping[str, NodeRecord] = {}
    diagnoses: tuple[DiagnosisRecord, ...] = ()
    warnings: tuple[str, ...] = ()
    headline: str = ""
    """The first line of the message; empty for one that passed."""
    bandwidth: tuple[BandwidthRecord, ...] = ()
    storage: tuple[StorageRecord, ...] = ()
    excluded: Mapping[str, str] = {}
    """Nodes that the pool completes without, and why."""
    rounds: tuple[str, ...] = ()
    """What was tested to find the bad nodes, a line for each round."""
    pulled_seconds: float | None = None
    """How long the slowest node took to pull the probes' image; None where none was pulled."""

    @property
    def proven(self) -> bool:
        """Whether the pool was proven; how old the proof is, is another question."""
        return self.verdict is Verdict.PASS

    def expired(self, now: datetime) -> bool:
        """Whether a passed proof is too old at `now`."""
        return self.valid_until is not None and now >= self.valid_until


def identities(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """Per node, what it is: hardware, boot and software that the proof speaks of."""
    images: dict[str, dict[str, str]] = {}
    for daemon_set in snapshot.daemon_sets.values():
        for name, pod in snapshot.plugin_pods(daemon_set).items():
            running = ", ".join(sorted(c.image_id or c.image for c in pod.containers))
            images.setdefault(name, {})[f"image of {daemon_set.name}"] = running
    network = {"CNI": cni} if (cni := cni_image(snapshot)) else {}
    return {node.name: {**_identity(node), **network, **images.get(node.name, {})} for node in snapshot.nodes}


def _identity(node: Node) -> dict[str, str]:
    fields = {
        "boot id": "bootID",
        "kernel": "kernelVersion",
        "kubelet": "kubeletVersion",
        "container runtime": "containerRuntimeVersion",
        "operating system": "osImage",
    }
    identity = {"provider id": node.provider_id, **{words: node.info.get(key, "") for words, key in fields.items()}}
    if driver := node.labels.get(DRIVER_LABEL):
        identity["driver"] = driver
    return identity


def digest(expected: PoolExpectation, identity: Mapping[str, Mapping[str, str]]) -> str:
    """A digest of what is proven. How long a gate may take, and when it can begin, are not part of it."""
    plan = expected.model_dump(mode="json", exclude=_NOT_PROVEN)
    text = json.dumps([plan, identity], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


_NOT_PROVEN = {"within_seconds", "stable_seconds", "valid_seconds", "starts", "accept_deferred", "huge_pages"}


def differences(proof: Proof, identity: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What is not as it was proven, in words, one line per node."""
    lines = [f"{name}: gone since the proof" for name in sorted(set(proof.nodes) - set(identity))]
    for name, now in sorted(identity.items()):
        if name not in proof.nodes:
            lines.append(f"{name}: new since the proof")
            continue
        then = proof.nodes[name].identity
        changed = [f"{key} was {then.get(key) or 'unknown'}, is {now[key]}" for key in now if then.get(key) != now[key]]
        if changed:
            lines.append(f"{name}: {'; '.join(changed)}")
    return lines


def passed(
    expected: PoolExpectation, snapshot: Snapshot, phases: Sequence[PhaseRecord], last: PhaseResult, **times: Any
) -> Proof:
    """The record of a pool that was proven; `times` holds `at` and `seconds`."""
    identity = identities(snapshot)
    return Proof(
        verdict=Verdict.PASS,
        valid_until=times["at"] + timedelta(seconds=expected.valid_seconds),
        digest=digest(expected, identity),
        phases=tuple(phases),
        nodes={name: NodeRecord(identity=each, advertised=last.seen.get(name, {})) for name, each in identity.items()},
        **times,
    )
