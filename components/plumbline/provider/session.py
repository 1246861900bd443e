"""What one run of the engine has told this provider, for gates to write and guards to read.

The engine may start several processes of a provider in one run: one that checks its configuration, one for each
instance that the state or the program names. What one of them learns, the others have to know: a guard whose provider
was replaced is deleted by a process that never heard of the program. So it is kept in a file of that run, named after
the engine's process; files of engines that have ended are swept away by the next run.
"""

import asyncio
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from plumbline.migrate.guard import Declared
from plumbline.provider.birth import birth


@dataclass
class Session:
    """One run of one engine. Writes are appended, a line each, so that several processes can write at once."""

    file: Path
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of_engine(cls, pid: int) -> "Session":
        """The session of the engine with this process id."""
        started = birth(pid)
        folder = Path(tempfile.gettempdir()) / f"plumbline-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise PermissionError(f"{folder} must belong to this user alone: remove it, and run the command again")
        _sweep(folder)
        return cls(folder / f"run-{pid}-{started}.jsonl")

    def declare(self, generations: dict[str, str]) -> None:
        """The program ran, and declares these generations of its pools."""
        self._append({"declared": generations})

    def judge(self, pool: str, generation: str, proven: bool) -> None:
        """A generation's gate passed, or did not, in this run."""
        self._append({"pool": pool, "generation": generation, "proven": proven})

    def doubted(self, pool: str, generation: str) -> bool:
        """Whether the generation's gate was seen not to pass in this run, and has not passed since."""
        return self._judgements().get((pool, generation)) is False

    @property
    def declared(self) -> Declared:
        """What a guard may know of the program and of the gates."""
        declarations = [event["declared"] for event in self._events() if "declared" in event]
        generations = {pool: name for declaration in declarations for pool, name in declaration.items()}
        proven = frozenset(key for key, passed in self._judgements().items() if passed)
        return Declared(program_ran=bool(declarations), generations=generations, proven=proven)

    def _judgements(self) -> dict[tuple[str, str], bool]:
        """The last word on each generation."""
        return {(e["pool"], e["generation"]): e["proven"] for e in self._events() if "proven" in e}

    def _append(self, event: dict[str, object]) -> None:
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(event) + "\n")

    def _events(self) -> list[dict[str, Any]]:
        try:
            lines = self.file.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]


def _sweep(folder: Path) -> None:
    """Remove the files of engines that have ended. A preview's processes end while the update's are at work already,
    so no process takes away a file of an engine that lives.
    """
    for file in folder.glob("run-*.jsonl"):
        _, pid, started = file.stem.split("-")
        try:
            alive = birth(int(pid)) == started
        except psutil.NoSuchProcess:
            alive = False
        if not alive:
            file.unlink(missing_ok=True)
