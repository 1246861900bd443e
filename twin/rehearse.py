"""`make rehearse`: everything from nothing to a real `pulumi up` on the simulated cloud."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
from rich.console import Console

from tools import toolbox
from twin.client import Client
from twin.faults import FAULTS
from twin.state import StateFolder


def rehearse(state: StateFolder, stack: str, fault: str | None) -> int:
    """Run `pulumi up` of a stack. Returns its exit status.

    Faults of earlier rehearsals are switched off, and the one that is named is switched on.
    """
    console = Console(soft_wrap=True)
    started = time.monotonic()
    if fault and fault not in FAULTS:
        console.print(f"no fault {fault}; there are:")
        for each in FAULTS.values():
            console.print(f"  {each.name}: {each.description}")
        return 2
    if not (toolbox.CHECKOUT / "stacks" / f"Pulumi.{stack}.yaml").is_file():
        known = sorted(p.name.split(".")[1] for p in (toolbox.CHECKOUT / "stacks").glob("Pulumi.*.yaml"))
        console.print(f"no stack {stack}: stacks/Pulumi.{stack}.yaml does not exist; there are {', '.join(known)}")
        return 2
    client = Client(state)
    _step(console, "starting the control plane and the simulated cloud")
    client.start()
    client.set_faults([fault] if fault else [])
    if fault:
        _step(console, f"fault {fault}: {FAULTS[fault].description}")
        if FAULTS[fault].bites in _BEFORE_NODES and client.world()["machines"]:
            _step(console, "this fault concerns new node groups, and there are nodes already: run `make down` first")
    ready = time.monotonic()
    _step(console, f"ready after {ready - started:.0f} s; pulumi up of stack {stack}, logs in {_shown(state.logs)}")
    code, unchanged = _up(state, stack)
    _ended(console, state, stack, code, unchanged=unchanged, seconds=time.monotonic() - ready)
    return code


_BEFORE_NODES = ("nodes", "aws")
"""Where a fault bites that nodes of before do not feel."""


def _up(state: StateFolder, stack: str) -> tuple[int, bool]:
    """`pulumi up`, shown as it goes. Returns its exit status, and whether it changed nothing."""
    environment = {**os.environ, **state.environment()}
    subprocess.run(
        ["pulumi", "stack", "select", "--create", "--stack", stack],
        cwd=toolbox.CHECKOUT,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    if _left_locked(state, stack):
        sys.stdout.write("rehearsal: an earlier pulumi up was killed and left the stack locked: pulumi cancel\n")
        cancel = ["pulumi", "cancel", "--yes", "--stack", stack]
        subprocess.run(cancel, cwd=toolbox.CHECKOUT, env=environment, check=True, capture_output=True)
    command = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive", "--stack", stack]
    process = subprocess.Popen(
        command, cwd=toolbox.CHECKOUT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    changes: list[str] = []
    assert process.stdout
    with (state.logs / f"up-{stack}.log").open("w", encoding="utf-8") as log:
        for line in process.stdout:
            log.write(line)
            sys.stdout.write(line)
            sys.stdout.flush()
            if line.startswith("    ") and any(word in line for word in ("created", "updated", "deleted", "replaced")):
                changes.append(line)
    return process.wait(), not changes


def _left_locked(state: StateFolder, stack: str) -> bool:
    """Whether the stack is locked, and by engines that are all gone: a live one's lock is not ours to take."""
    locks = [json.loads(file.read_text("utf-8")) for file in state.pulumi.glob(f".pulumi/locks/*/*/{stack}/*.json")]
    return bool(locks) and not any(psutil.pid_exists(lock["pid"]) for lock in locks)


def _ended(console: Console, state: StateFolder, stack: str, code: int, *, unchanged: bool, seconds: float) -> None:
    environment = {**os.environ, **state.environment()}
    if code == 0:
        console.print("\nwhat was proven:")
        command = [sys.executable, "-m", "plumbline.cli", "report", "--stack", stack, "--cwd", str(toolbox.CHECKOUT)]
        subprocess.run(command, env=environment, check=False)
    console.print(f"\nkubeconfig: {_shown(state.kubeconfig)}   logs: {_shown(state.logs)}   pulumi up: {seconds:.0f} s")
    if code != 0:
        console.print("blocked, as the message above says; mend it, or run `make rehearse` without a fault")
    elif unchanged:
        console.print("nothing changed: the stack is as it was declared, and everything was looked at again")
    console.print('a shell for this rehearsal: eval "$(make -s env)"   the end of it: make down')


def _step(console: Console, text: str) -> None:
    console.print(f"rehearsal: {text}", highlight=False)


def _shown(path: Path) -> str:
    """Relative to the checkout where it lies in it."""
    return str(path.relative_to(toolbox.CHECKOUT)) if path.is_relative_to(toolbox.CHECKOUT) else str(path)
