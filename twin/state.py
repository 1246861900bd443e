"""The state folder of a rehearsal: what lies where."""

import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools import toolbox
from twin.processes import Supervised

PASSPHRASE = "rehearsal"  # noqa: S105 - no secret: stacks/Pulumi.local.yaml says why
DEFAULT = toolbox.CHECKOUT / ".plumbline"


@dataclass(frozen=True)
class StateFolder:
    """Paths in one state folder, and the small files that others read."""

    root: Path

    @property
    def bin(self) -> Path:
        """Executables that the engine and kubeconfigs find by name."""
        return self.root / "bin"

    @property
    def logs(self) -> Path:
        """Of the daemon and of what it runs."""
        return self.root / "logs"

    @property
    def documents(self) -> Path:
        """Of the store."""
        return self.root / "twin"

    @property
    def planes(self) -> Path:
        """Control planes, a folder each."""
        return self.root / "planes"

    @property
    def pulumi(self) -> Path:
        """Pulumi's backend, a file per stack."""
        return self.root / "pulumi"

    @property
    def kubeconfig(self) -> Path:
        """An administrator's, for the newest cluster's control plane."""
        return self.root / "kubeconfig"

    @property
    def daemon(self) -> Supervised:
        """The daemon's process."""
        return Supervised("daemon", self.root / "daemon.pid")

    @property
    def address_file(self) -> Path:
        """Where a running daemon can be reached, and the token that it asks for."""
        return self.root / "daemon.json"

    def address(self) -> dict[str, Any] | None:
        """What `address_file` says; None while no daemon is ready."""
        try:
            found: dict[str, Any] = json.loads(self.address_file.read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return found if self.daemon.process() is not None else None

    def prepare(self) -> None:
        """Make the folder and its executables."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.bin, self.logs, self.documents, self.planes, self.pulumi):
            folder.mkdir(exist_ok=True)
        forward = f'PLUMBLINE_TWIN_STATE={shlex.quote(str(self.root))} exec {self._python("forward.py")} "$@"'
        self._write("pulumi-resource-aws", forward)
        self._write("aws", f'exec {self._python("credentials.py")} {shlex.quote(str(self.root))} "$@"')

    @staticmethod
    def _python(script: str) -> str:
        return f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).parent / script))}"

    def _write(self, name: str, line: str) -> None:
        fresh = self.bin / f".{name}.{os.getpid()}"
        fresh.write_text(f"#!/bin/sh\n{line}\n", "utf-8")
        fresh.chmod(0o755)
        fresh.replace(self.bin / name)

    def environment(self) -> dict[str, str]:
        """What a shell or a process needs to use the rehearsal by hand."""
        path = [str(self.bin), str(toolbox.bin_folder()), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        return {
            "PATH": os.pathsep.join(dict.fromkeys(path)),
            "PULUMI_BACKEND_URL": f"file://{self.pulumi}",
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PULUMI_HOME": str(self.root / "pulumi-home"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "KUBECONFIG": str(self.kubeconfig),
            "AWS_REGION": "us-west-2",
        }
