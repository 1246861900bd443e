"""The one message of a blocked gate: which nodes, what was expected, what was seen, why, and what to do."""

from collections.abc import Sequence

from plumbline.gate.proof import DiagnosisRecord
from plumbline.gate.wording import indented

AFTERWARDS = "everything that depends on this gate; run `pulumi up` again after the fix, and the gate looks again"


def message(headline: str, diagnoses: Sequence[DiagnosisRecord], warnings: Sequence[str] = ()) -> str:
    """The whole message; the headline comes first, and stands for itself where one line is shown."""
    parts = [headline]
    for each in diagnoses:
        parts.append(f"  cause ({each.certainty}): {each.cause}")
        parts.append(indented(each.evidence, 4))
        parts.append(f"  fix: {each.fix}")
    parts += [f"  warning: {warning}" for warning in warnings]
    parts.append(f"  left as it was: {AFTERWARDS}")
    parts.append("  evidence: `plumbline report`")
    return "\n".join(part for part in parts if part)
