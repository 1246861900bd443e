"""When a generation of a pool may go: pure decisions, inclined to say no."""

from typing import Any

import pytest

from plumbline.gate.snapshot import Pod
from plumbline.migrate.guard import (
    Declared,
    GuardInputs,
    refusal_before_successor,
    refusal_by_declaration,
    refusal_by_pods,
    refusal_unseen,
    training_pods,
)

GUARD = GuardInputs(
    pool="h100",
    generation="aaaaaa",
    node_selector={"eks.amazonaws.com/nodegroup": "train-h100-aaaaaa"},
    resources=("nvidia.com/gpu", "vpc.amazonaws.com/efa"),
    on_destroy="refuse",
)


def declared(program_ran: bool = True, proven: tuple[str, ...] = (), **generations: str) -> Declared:
    keys = frozenset(("h100", name) for name in proven)
    return Declared(program_ran=program_ran, generations=generations, proven=keys)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (declared(program_ran=False), None),
        (declared(program_ran=False, h100="aaaaaa"), None),
        (declared(b200="cccccc"), None),
        (declared(h100="aaaaaa"), "it is still declared"),
        (declared(h100="aaaaaa", proven=("aaaaaa",)), "it is still declared"),
        (declared(h100="bbbbbb"), "the declared generation, bbbbbb, was not proven in this update"),
        (declared(h100="bbbbbb", proven=("cccccc",)), "was not proven in this update"),
        (declared(h100="bbbbbb", proven=("bbbbbb",)), None),
    ],
    ids=[
        "destroy",
        "destroy of a declared pool",
        "pool removed",
        "moved",
        "moved and proven",
        "failed",
        "other",
        "proven",
    ],
)
def test_declaration_keeps_what_is_declared_and_what_has_no_proven_successor(
    known: Declared, words: str | None
) -> None:
    refusal = refusal_by_declaration("h100", "aaaaaa", known)
    assert (refusal is None) if words is None else (refusal is not None and words in refusal)
    if refusal:
        assert refusal.startswith("pool h100, generation aaaaaa is kept")
        assert "\n  fix: " in refusal


def test_gate_that_moved_may_go_once_it_is_proven_again() -> None:
    assert refusal_before_successor("h100", "aaaaaa", declared(h100="aaaaaa", proven=("aaaaaa",))) is None
    assert refusal_before_successor("h100", "aaaaaa", declared(h100="aaaaaa")) is not None


def pod(name: str, node: str = "n1", owner: str = "", amount: str | None = "8", **status: Any) -> Pod:
    limits = {"limits": {"nvidia.com/gpu": amount, "cpu": "4"}} if amount else {}
    owners = [{"kind": owner, "name": "owner", "controller": True}] if owner else []
    mirror = {"kubernetes.io/config.mirror": "x"} if status.pop("mirror", False) else {}
    return Pod.from_json(
        {
            "metadata": {"name": name, "namespace": "train", "ownerReferences": owners, "annotations": mirror},
            "spec": {"nodeName": node, "containers": [{"image": "i", "resources": limits}]},
            "status": {"phase": "Running", **status},
        }
    )


def test_training_pods_are_those_that_hold_devices_there_and_can_lose_work() -> None:
    pods = [
        pod("b"),
        pod("a", owner="Job"),
        pod("pending", phase="Pending"),
        pod("elsewhere", node="n9"),
        pod("plugin", owner="DaemonSet"),
        pod("mirror", mirror=True),
        pod("done", phase="Succeeded"),
        pod("failed", phase="Failed"),
        pod("web", amount=None),
    ]
    found = training_pods(GUARD, {"n1"}, pods)
    assert [each.name for each in found] == ["a", "b", "pending"]
    text = refusal_by_pods(GUARD, found) or ""
    assert "3 training pods still there" in text
    assert "train/a on n1, of Job owner" in text
    assert "on_destroy: wait or evict" in text


def test_no_pods_no_refusal_and_many_pods_are_counted() -> None:
    assert refusal_by_pods(GUARD, []) is None
    assert "and 12 more" in (refusal_by_pods(GUARD, [pod(f"p{i:02}") for i in range(20)]) or "")


def test_cluster_that_cannot_be_read_keeps_the_pool_and_names_the_way_out() -> None:
    text = refusal_unseen(GUARD, "connection refused")
    assert "connection refused" in text
    assert "PLUMBLINE_DELETE_UNSEEN=yes" in text
