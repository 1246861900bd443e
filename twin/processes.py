"""Processes that outlive the one that started them, and are found again by a file that says which they are."""

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psutil


def birth(pid: int) -> str:
    """When a process was born: ticks since the machine started, which setting the clock does not change.

    https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html

    Raises:
        psutil.NoSuchProcess: it does not run.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        raise psutil.NoSuchProcess(pid) from None
    return text.rpartition(")")[2].split()[19]  # after the name, which may hold anything


@dataclass(frozen=True)
class Supervised:
    """A process of its own group, known by a file: its pid, and when it started, because pids are used again."""

    name: str
    file: Path

    def start(self, command: list[str], log: Path) -> None:
        """Start it, unless it runs."""
        if self.process() is not None:
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            child = subprocess.Popen(
                command, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL, start_new_session=True
            )
        started = birth(child.pid)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.file.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_text(json.dumps({"pid": child.pid, "started": started}), "utf-8")
        fresh.replace(self.file)

    def process(self) -> psutil.Process | None:
        """The process, if it still runs."""
        try:
            known = json.loads(self.file.read_text("utf-8"))
            process = psutil.Process(known["pid"])
            same = birth(process.pid) == known["started"]
        except (FileNotFoundError, psutil.NoSuchProcess, json.JSONDecodeError):
            return None
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None

    def stop(self, grace: float = 5.0) -> bool:
        """End it and wait until it is gone. Returns whether it ran."""
        process = self.process()
        if process is None:
            self.file.unlink(missing_ok=True)
            return False
        for end in (process.terminate, process.kill):
            try:
                end()
            except psutil.NoSuchProcess:
                break
            if self._gone_within(grace):
                break
        self.file.unlink(missing_ok=True)
        return True

    def _gone_within(self, seconds: float) -> bool:
        """Wait for its end. A zombie counts as gone: its parent may be a daemon that is busy, or nobody."""
        deadline = time.monotonic() + seconds
        while self.process() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True
