"""`pulumi up` interrupted, killed, or without its nodes: what is said, what is left, and how it goes on."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest

from tests.rehearsals import Rehearsal
from tests.sites import GOOD
from tools.toolbox import CHECKOUT
from twin.client import engine_processes

pytestmark = pytest.mark.engine
LONG = {"within": "120s", "stable": "2s"}


def test_reservation_in_another_zone_is_seen_before_anything_is_built(stage: Rehearsal) -> None:
    stage.client.set_faults(["reservation-in-other-zone"])
    done = stage.up()
    assert done.code != 0
    assert "plumbline:site.pools[0].capacity.zone" in done.text
    assert "needed: us-west-2d: the hardware of cr-0a1b2c3d4e5f60718 is there" in done.text
    assert stage.types() <= {"pulumi:pulumi:Stack"}


def test_reservation_that_could_not_be_read_fails_the_node_group_and_says_what_it_means(stage: Rehearsal) -> None:
    stage.client.set_faults(["reservation-in-other-zone", "no-right-to-read-reservations"])
    done = stage.up(config=stage.config(proof={**GOOD["proof"], "account": "warn"}))
    assert done.code != 0
    assert "is in Availability Zone us-west-2d, and the request is for Availability Zone us-west-2b" in done.text
    assert "cause (likely): the reservation is in another zone than the pool's subnet" in done.text
    assert "set capacity.zone of the pool in the stack's file" in done.text
    groups = stage.resources("aws:eks/nodeGroup:NodeGroup")
    [failed] = [group for group in groups if not group["id"].startswith("train:train-system-")]
    assert failed["initErrors"], "EKS keeps a node group that failed, and so does the state"
    assert stage.resources("plumbline:index:FabricGate") == []


def test_node_that_never_joins_fails_the_node_group_and_names_the_instance(stage: Rehearsal) -> None:
    stage.client.set_faults(["node-never-joins"])
    done = stage.up()
    assert done.code != 0
    lost = [m for m in stage.client.world()["machines"].values() if m["never_joins"]]
    assert len(lost) == 1
    assert f"{lost[0]['id']}: NodeCreationFailure: Instances failed to join the kubernetes cluster" in done.text
    assert "cause (likely): instances were launched, and did not join the cluster" in done.text


def start_until_the_gate_waits(stage: Rehearsal) -> "subprocess.Popen[str]":
    """`pulumi up` that waits in its gate, for a plugin that may yet come up."""
    stage.client.set_faults(["plugin-crashloop"])
    command = stage.command("up", "--yes", "--skip-preview", config=stage.config(proof=LONG))
    process = subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env=stage.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    for line in process.stdout:
        if "plumbline:index:FabricGate" in line and "phase 2 of 3" in line:
            return process
    raise AssertionError("the gate was not reached")


def until(condition: Callable[[], object], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def ours(stage: Rehearsal) -> list[str]:
    """Processes that work for this rehearsal and should have ended with their engine.

    The Kubernetes provider looks for its engine every five minutes only: it is not ours, and `make down` ends it.
    """
    lines = []
    for process in engine_processes(stage.state):
        with suppress(psutil.Error):  # it ended meanwhile
            lines.append(" ".join(process.cmdline()))
    return [line for line in lines if "pulumi-resource-kubernetes" not in line]


def test_interrupt_in_the_gate_records_it_and_leaves_no_process(stage: Rehearsal) -> None:
    process = start_until_the_gate_waits(stage)
    os.killpg(process.pid, signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "the gate was cancelled" in text
    until(lambda: not ours(stage))
    [gate] = stage.resources("plumbline:index:FabricGate")
    assert gate["outputs"]["proof"]["verdict"] == "unknown"
    assert gate["initErrors"]


def test_kill_in_the_gate_leaves_no_process_and_a_lock_that_is_explained(stage: Rehearsal) -> None:
    process = start_until_the_gate_waits(stage)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    until(lambda: not ours(stage))
    stage.client.set_faults([])
    locked = stage.up()
    assert locked.code != 0
    assert "the stack is currently locked" in locked.text
    assert "pulumi cancel" in locked.text
    assert stage.pulumi("cancel", "--yes").code == 0
    done = stage.up()
    assert done.code == 0, done.text
    assert stage.resources("plumbline:index:FabricGate")[0]["outputs"]["proven"] is True
