"""Starts, stops and talks to the daemon of a state folder."""

import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil

from tools import toolbox
from twin.control_plane import ControlPlane
from twin.state import StateFolder

_START_SECONDS = 60.0


class DaemonFailed(Exception):
    """The daemon did not start, or does not answer; the message says where its log is."""


@dataclass(frozen=True)
class Client:
    """The daemon of one state folder."""

    state: StateFolder

    def start(self, settings: Iterable[str] = ()) -> None:
        """Start it unless it runs, and return when a control plane is ready.

        Raises:
            DaemonFailed: it did not start.
            tools.toolbox.ToolsMissing: the tools have not been built.
        """
        toolbox.bin_folder()
        self.state.prepare()
        log = self.state.logs / "daemon.log"
        if self.state.address() is None:
            self.state.address_file.unlink(missing_ok=True)
            command = [sys.executable, "-m", "twin", "--state", str(self.state.root), "daemon", *settings]
            self.state.daemon.start(["env", "-C", str(toolbox.CHECKOUT), *command], log)
        deadline = time.monotonic() + _START_SECONDS
        while self.state.address() is None:
            if self.state.daemon.process() is None or time.monotonic() > deadline:
                tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-8:])
                raise DaemonFailed(f"the rehearsal's daemon did not start:\n{tail}\nwhole log: {log}")
            time.sleep(0.05)
        self._ask("GET", "/ready")

    def stop(self) -> list[str]:
        """End the daemon and all control planes, also those that a crash left, and plugins whose engine is gone.

        Returns:
            What was ended.
        """
        ended = ["daemon"] if self.state.daemon.stop() else []
        ended += [_end(process) for process in engine_processes(self.state) if _is_orphan(process)]
        for folder in sorted(self.state.planes.glob("*")):
            ended += ControlPlane(folder).stop()
        return ended

    def remove(self) -> list[str]:
        """End everything, and take away all that the rehearsal recorded. Tools and environments stay."""
        ended = self.stop()
        for path in (*_RECORDS, *(p.name for p in self.state.root.glob("kubelet.*"))):
            target = self.state.root / path
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)
        return ended

    def faults(self) -> frozenset[str]:
        """Names of the faults that are on."""
        return frozenset(self._ask("GET", "/faults")["on"])

    def set_faults(self, names: Iterable[str]) -> None:
        """Switch exactly these faults on. Raises: DaemonFailed for a name that is no fault."""
        self._ask("PUT", "/faults", {"on": sorted(names)})

    def world(self) -> dict[str, Any]:
        """Clusters and machines that exist."""
        return self._ask("GET", "/state")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        address = self.state.address()
        if address is None:
            raise DaemonFailed(f"no rehearsal runs in {self.state.root}: run `make rehearse`")
        headers = {"Authorization": f"Bearer {address['token']}"}
        with httpx2.Client(trust_env=False, timeout=90, headers=headers) as client:
            answer = client.request(method, address["http"] + path, json=body)
        found: dict[str, Any] = answer.json() if "json" in answer.headers.get("Content-Type", "") else {}
        if answer.is_error:
            raise DaemonFailed(found.get("error") or f"the daemon answered {answer.status_code}: {answer.text[:200]}")
        return found


_RECORDS = (
    "bin",
    "logs",
    "twin",
    "planes",
    "pulumi",
    "pulumi-home",
    "kubeconfig",
    "aws.port",
    "daemon.json",
    "daemon.pid",
    "token.key",
)


def engine_processes(state: StateFolder) -> list[psutil.Process]:
    """Processes of engines that work for this rehearsal, and of their plugins: they know it by their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            home = process.environ().get("PULUMI_HOME", "")
            name = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if home == str(state.pulumi_home) and any(word in name for word in _ENGINE_WORDS):
            found.append(process)
    return found


_ENGINE_WORDS = ("pulumi", "language_host", "forward.py", "plumbline.provider")


def _is_orphan(process: psutil.Process) -> bool:
    """A killed engine leaves its plugins behind. Ours end by themselves; some look for it every few minutes only."""
    parent = process.parent()
    return parent is None or parent.pid == 1


def _end(process: psutil.Process) -> str:
    name = process.name()
    process.terminate()
    try:
        process.wait(3)
    except psutil.TimeoutExpired:
        process.kill()
    return name


def leftovers(root: Path) -> list[str]:
    """Command lines of processes that still work in a state folder: for tests, and for people who doubt."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        if str(root) in line and process.pid != psutil.Process().pid:
            found.append(line)
    return found
