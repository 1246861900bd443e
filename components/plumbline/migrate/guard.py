"""Whether a generation of a pool may be deleted: pure, and inclined to say no."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from plumbline.gate.inputs import PoolInput
from plumbline.gate.snapshot import Pod
from plumbline.gate.wording import names, plural

UNREACHABLE_VARIABLE = "PLUMBLINE_DELETE_UNSEEN"
"""Environment variable that lets a generation go although its cluster cannot be read; its value has to be `yes`."""


class GuardInputs(PoolInput):
    """The inputs of a RetireGuard, without its kubeconfig."""

    node_selector: Mapping[str, str] = Field(min_length=1)
    """Labels by which the cloud marks the nodes of this generation."""
    resources: tuple[str, ...]
    """Extended resources; a pod that requests one of them is a training pod."""
    on_destroy: Literal["refuse", "wait", "evict"]
    within_seconds: float = Field(default=1800, gt=0)
    """How long `wait` and `evict` wait for training pods to be gone."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What this run of the engine knows of the program."""

    program_ran: bool
    """False in a plain `pulumi destroy`, which deletes by the recorded state alone."""
    generations: Mapping[str, str]
    """The generation that each pool is declared to have."""
    proven: Collection[tuple[str, str]]
    """Pools and generations whose gate passed, or holds a valid proof, in this run."""


def refusal_by_declaration(pool: str, generation: str, declared: Declared) -> str | None:
    """Why the declaration keeps the generation of a pool, in words; None if it does not.

    A generation goes for one of three reasons: everything is destroyed, its pool is no longer declared, or another
    generation took its place. In the last case only a proof of that other one lets it go: with `--continue-on-error`
    the engine deletes the old one even though the new one failed.
    """
    current = declared.generations.get(pool)
    if declared.program_ran and current == generation:
        return (
            f"pool {pool}, generation {generation} is kept: it is still declared, and only its resource moved or its "
            f"provider was replaced\n"
            f"  fix: add an alias for what was renamed or moved; to really delete the pool, remove it from the stack's "
            f"file, or run `pulumi destroy` without --run-program"
        )
    return refusal_before_successor(pool, generation, declared)


def refusal_before_successor(pool: str, generation: str, declared: Declared) -> str | None:
    """Why a generation waits for the one that is declared now; None if that one is proven, or there is none."""
    current = declared.generations.get(pool)
    if not declared.program_ran or current is None or (pool, current) in declared.proven:
        return None
    return (
        f"pool {pool}, generation {generation} is kept: the declared generation, {current}, was not proven in this "
        f"update\n"
        f"  fix: see why the gate of {current} did not pass, mend it, and run `pulumi up` again; or turn the stack's "
        f"file back to what {generation} was built from"
    )


def training_pods(guard: GuardInputs, nodes: Collection[str], pods: Collection[Pod]) -> list[Pod]:
    """Pods on these nodes that hold devices, and whose end would lose work; by name.

    DaemonSet and mirror pods belong to their node, and finished pods hold nothing.
    """
    return sorted(
        (
            pod
            for pod in pods
            if pod.node in nodes
            and not pod.finished
            and not pod.mirror
            and pod.owner_kind != "DaemonSet"
            and any(resource in pod.resources for resource in guard.resources)
        ),
        key=lambda pod: pod.full_name,
    )


def refusal_by_pods(guard: GuardInputs, pods: Collection[Pod]) -> str | None:
    """Why the pods that run there keep the generation; None if there are none."""
    if not pods:
        return None
    lines = [
        f"{pod.full_name} on {pod.node}{f', of {pod.owner_kind} {pod.owner}' if pod.owner else ''}" for pod in pods
    ]
    listing = "\n".join(f"    {line}" for line in lines[:8])
    more = f"\n    and {len(lines) - 8} more" if len(lines) > 8 else ""
    return (
        f"{guard.label} is kept: {plural(len(pods), 'training pod')} still there\n{listing}{more}\n"
        f"  fix: end or move these jobs, then run the command again; or set on_destroy: wait or evict for the pool "
        f"({guard.on_destroy} now), run `pulumi up`, and then delete it"
    )


def refusal_unseen(guard: GuardInputs, reason: str) -> str:
    """Why a generation whose cluster cannot be read is kept."""
    return (
        f"{guard.label} is kept: its cluster cannot be read, so nobody knows what runs there: {reason}\n"
        f"  fix: make the API server reachable and run the command again; if the cluster is gone for good, set "
        f"{UNREACHABLE_VARIABLE}=yes and run it again"
    )


def refusal_blocked(guard: GuardInputs, blocked: Mapping[str, str]) -> str:
    """Why an eviction did not finish: pods, each with the API's own reason."""
    lines = "\n".join(f"    {name}: {reason}" for name, reason in sorted(blocked.items())[:8])
    return (
        f"{guard.label} is kept: {plural(len(blocked), 'training pod')} could not be evicted in time: "
        f"{names(blocked)}\n{lines}\n"
        f"  fix: see the disruption budgets of these pods; nothing was forced; run the command again to go on"
    )
