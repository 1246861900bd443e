"""Rehearsals for tests: a state folder of their own, and the Pulumi CLI in it."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tools.toolbox import CHECKOUT
from twin.client import Client, engine_processes, leftovers
from twin.state import StateFolder


@dataclass(frozen=True)
class Result:
    """What a command printed, and how it ended."""

    code: int
    text: str


@dataclass
class Rehearsal:
    """A running rehearsal."""

    state: StateFolder
    client: Client
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.state.environment(), "NO_COLOR": "1", **self.extra}

    def config(self, **changes: Any) -> Path:
        """The stack's file with parts of the site changed; pools' fields are changed in every pool."""
        raw = yaml.safe_load((CHECKOUT / "stacks" / "Pulumi.local.yaml").read_text("utf-8"))
        site = raw["config"]["plumbline:site"]
        for pool in site["pools"]:
            pool.update(changes.pop("pool", {}))
        site.update(changes)
        file = self.state.root / "Pulumi.local.yaml"
        file.write_text(yaml.safe_dump(raw), "utf-8")
        return file

    def command(self, *arguments: str, stack: str = "local", config: Path | None = None) -> list[str]:
        words = ["pulumi", *arguments, "--stack", stack, "--non-interactive"]
        return [*words, "--config-file", str(config)] if config else words

    def pulumi(self, *arguments: str, cwd: Path = CHECKOUT, **options: Any) -> Result:
        done = subprocess.run(
            self.command(*arguments, **options),
            cwd=cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        return Result(done.returncode, done.stdout + done.stderr)

    def up(self, *arguments: str, **options: Any) -> Result:
        return self.pulumi("up", "--yes", "--skip-preview", *arguments, **options)

    def new_stack(self, name: str = "local", cwd: Path = CHECKOUT) -> None:
        """Make a stack; the stack's file in the checkout is left as it is."""
        done = self.pulumi("stack", "init", stack=name, cwd=cwd)
        assert done.code == 0, done.text

    def exported(self, *, secrets: bool = False, stack: str = "local", cwd: Path = CHECKOUT) -> dict[str, Any]:
        done = self.pulumi("stack", "export", *(["--show-secrets"] if secrets else []), stack=stack, cwd=cwd)
        assert done.code == 0, done.text
        state: dict[str, Any] = json.loads(done.text)
        return state

    def resources(self, type_: str, **options: Any) -> list[dict[str, Any]]:
        found = (self.exported(**options).get("deployment") or {}).get("resources") or []
        return [each for each in found if each["type"] == type_]

    def types(self) -> set[str]:
        return {each["type"] for each in self.exported()["deployment"].get("resources") or []}


@contextmanager
def rehearsal(root: Path) -> Iterator[Rehearsal]:
    """A rehearsal in a folder, ended and checked for leftovers afterwards."""
    state = StateFolder(root)
    running = Rehearsal(state, Client(state))
    running.client.start(["--flap", "1", "--capacity-kept", "3"])
    try:
        yield running
    finally:
        running.client.stop()
        assert leftovers(root) == []
        assert engine_processes(state) == []
