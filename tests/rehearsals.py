"""Rehearsals for tests: a state folder of their own, and the Pulumi CLI in it."""

import copy
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.sites import GOOD
from tools.toolbox import CHECKOUT
from twin.client import Client, engine_processes, leftovers
from twin.state import StateFolder


@dataclass(frozen=True)
class Result:
    """What a command printed, and how it ended."""

    code: int
    text: str


@dataclass(frozen=True)
class Preview:
    """What a preview would do, and what it said."""

    code: int
    steps: list[dict[str, Any]]
    text: str

    def operations(self, *ignored: str) -> dict[str, str]:
        """What happens to each resource that does not stay as it is, by `Kind name`."""
        left = ("same", "refresh", "read", *ignored)
        return {_short(step["urn"]): step["op"] for step in self.steps if step["op"] not in left}


def _short(urn: str) -> str:
    *_, types, name = urn.split("::")
    return f"{types.split('$')[-1].split(':')[-1]} {name}"


@dataclass
class Rehearsal:
    """A running rehearsal."""

    state: StateFolder
    client: Client
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.state.environment(), "NO_COLOR": "1", **self.extra}

    def config(self, site: dict[str, Any] | None = None, *, name: str = "local", **changes: Any) -> Path:
        """A stack's file with a site, the small one by default, and parts of it changed.

        Args:
            site: the declaration.
            name: of the file.
            changes: top-level fields of the site; those under `pool` are changed in every pool.
        """
        raw = yaml.safe_load((CHECKOUT / "stacks" / "Pulumi.local.yaml").read_text("utf-8"))
        declared = copy.deepcopy(site or GOOD)
        for pool in declared["pools"]:
            pool.update(changes.get("pool", {}))
        declared.update({field: value for field, value in changes.items() if field != "pool"})
        raw["config"]["plumbline:site"] = declared
        file = self.state.root / f"Pulumi.{name}.yaml"
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
        """`pulumi up`; of the small site, unless another file is given or it is another project's."""
        if "config" not in options and "cwd" not in options:
            options["config"] = self.config()
        return self.pulumi("up", "--yes", "--skip-preview", *arguments, **options)

    def preview(self, config: Path | None = None, stack: str = "local") -> "Preview":
        """`pulumi preview`; of the small site, unless another file is given."""
        done = self.pulumi("preview", "--json", "--show-sames", stack=stack, config=config or self.config())
        document = json.loads(done.text[done.text.index("{") : done.text.rindex("}") + 1])
        messages = [each["message"] for each in document.get("diagnostics", [])]
        return Preview(done.code, document.get("steps", []), "\n".join(messages) or done.text)

    def new_stack(self, name: str = "local", cwd: Path = CHECKOUT) -> None:
        """Make a stack; the stack's file in the checkout is left as it is."""
        file = cwd / "stacks" / f"Pulumi.{name}.yaml"
        there = file.exists()
        done = self.pulumi("stack", "init", stack=name, cwd=cwd)
        assert done.code == 0, done.text
        if not there:
            file.unlink(missing_ok=True)  # the engine writes one, with a salt

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
