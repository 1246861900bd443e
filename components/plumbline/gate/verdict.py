"""What a phase says, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """`PASS` needs positive evidence. `UNKNOWN` is never a pass; there is no skip."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


class Certainty(StrEnum):
    """How sure a cause is."""

    CERTAIN = "certain"
    """The component itself said so."""
    LIKELY = "likely"
    """It follows from what was seen, and other causes are possible."""
    NOT_KNOWN = "not known"
    """The symptom only."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """A cause in one sentence, what was seen, and the next step."""

    cause: str
    certainty: Certainty
    evidence: tuple[str, ...]
    """Lines, each a fact that was read: objects by name, with the values found."""
    fix: str
    nodes: tuple[str, ...] = ()
    """Nodes it concerns."""
    heals: bool = True
    """Whether waiting can cure it: an image that does not exist, for one, stays missing."""


@dataclass(frozen=True, kw_only=True)
class PhaseResult:
    """What one look at one phase gave."""

    phase: str
    verdict: Verdict
    summary: str
    """One line, for progress: what is there of what is expected."""
    diagnoses: tuple[Diagnosis, ...] = ()
    failing: frozenset[str] = frozenset()
    """Nodes that do not pass."""
    warnings: tuple[str, ...] = ()
    seen: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Per node, what was seen: evidence that is kept."""

    @property
    def heals(self) -> bool:
        """Whether waiting can turn a verdict that is not `PASS` into one."""
        return all(diagnosis.heals for diagnosis in self.diagnoses)

    @property
    def doomed(self) -> frozenset[str]:
        """Nodes with something that does not heal."""
        return frozenset(node for each in self.diagnoses if not each.heals for node in each.nodes)
