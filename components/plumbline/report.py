"""What a stack's recorded state says of its gates, also of a stack that is blocked."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.gate.expectation import PoolExpectation
from plumbline.gate.proof import Proof

GATE = "plumbline:index:FabricGate"
_KUBECONFIG_HOLDERS = (GATE, "plumbline:index:RetireGuard", "pulumi:providers:kubernetes")
"""Resources that record a kubeconfig, the first choice first; the last is there as soon as the cluster is."""


class StackUnreadable(Exception):
    """The stack's state could not be read; the message says what was tried and what to do."""


@dataclass(frozen=True, kw_only=True)
class GateReport:
    """One gate: what it was told to expect, and what it recorded."""

    urn: str
    expected: PoolExpectation
    proof: Proof | None
    """None for a gate that was interrupted before it recorded anything."""
    blocked: tuple[str, ...]
    """Why the engine holds it to be not as it has to be; empty for a gate that passed."""

    @property
    def verdict(self) -> str:
        """In one word, for tables: what was recorded, unless a later look found otherwise."""
        if self.proof is None:
            return "unknown"
        if self.blocked and self.proof.proven:
            return "no longer proven"
        return str(self.proof.verdict)


def export_state(folder: Path, stack: str | None, *, secrets: bool = False) -> dict[str, Any]:
    """The state of a stack, by the Pulumi CLI, from whatever backend the project uses.

    Raises:
        StackUnreadable: there is no such project or stack, no CLI, or no access.
    """
    command = ["pulumi", "stack", "export", "--cwd", str(folder)]
    command += ["--stack", stack] if stack else []
    command += ["--show-secrets"] if secrets else []
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise StackUnreadable("no pulumi on PATH: install the Pulumi CLI, or open the rehearsal's shell") from None
    if result.returncode != 0:
        raise StackUnreadable(f"`{' '.join(command)}` failed:\n{result.stderr.strip()}")
    state: dict[str, Any] = json.loads(result.stdout)
    return state


def gates(state: Mapping[str, Any]) -> list[GateReport]:
    """The gates of a state, by name; those that are being deleted are left out."""
    return [
        GateReport(
            urn=each["urn"],
            expected=PoolExpectation.from_inputs(each["inputs"]),
            proof=Proof.model_validate(each["outputs"]["proof"])
            if isinstance((each.get("outputs") or {}).get("proof"), dict)
            else None,
            blocked=tuple(each.get("initErrors") or ()),
        )
        for each in sorted(_resources(state), key=lambda resource: str(resource["urn"]))
        if each["type"] == GATE and not each.get("delete")
    ]


def kubeconfig(state: Mapping[str, Any], pool: str | None = None) -> str | None:
    """A kubeconfig from a state that was exported with its secrets; None where no cluster is recorded yet."""
    for kind in _KUBECONFIG_HOLDERS:
        for each in _resources(state):
            inputs = each.get("inputs") or {}
            if each["type"] == kind and (pool is None or inputs.get("pool") in (None, pool)):
                text = _revealed(inputs.get("kubeconfig"))
                if isinstance(text, str) and text:
                    return text
    return None


def _revealed(value: Any) -> Any:
    """The plain value of a secret, as `--show-secrets` writes it: JSON text under `plaintext`."""
    if isinstance(value, Mapping) and "plaintext" in value:
        return json.loads(value["plaintext"])
    return value


def _resources(state: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (state.get("deployment") or {}).get("resources") or ()


def as_json(reports: Sequence[GateReport]) -> dict[str, Any]:
    """The reports for programs; every field keeps its meaning."""
    return {
        "version": 1,
        "proven": bool(reports) and all(report.verdict == "pass" for report in reports),
        "gates": [
            {
                "urn": report.urn,
                "pool": report.expected.pool,
                "generation": report.expected.generation,
                "verdict": report.verdict,
                "expected": report.expected.inputs(),
                "proof": report.proof.model_dump(mode="json", by_alias=True) if report.proof else None,
                "blocked": list(report.blocked),
            }
            for report in reports
        ],
    }
