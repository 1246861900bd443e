"""The state folder of a rehearsal: what lies where."""

import json
import os
import secrets
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools import toolbox
from twin.control_plane import free_ports
from twin.credentials import ACCESS_KEY, SECRET_KEY
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
    def pulumi_home(self) -> Path:
        """What Pulumi keeps for itself; by it engines of this rehearsal are known."""
        return self.root / "pulumi-home"

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

    @property
    def aws_port(self) -> int:
        """Where the daemon serves AWS's own API: chosen at the first question, and kept, as environments hold it."""
        file = self.root / "aws.port"
        if not file.exists():
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = self.root / f".aws.port.{secrets.token_hex(4)}"
            fresh.write_text(str(free_ports(1)[0]), "utf-8")
            try:
                file.hardlink_to(fresh)
            except FileExistsError:
                pass  # another process was quicker, and its choice holds
            finally:
                fresh.unlink()
        return int(file.read_text("utf-8"))

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
            "PULUMI_HOME": str(self.pulumi_home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "KUBECONFIG": str(self.kubeconfig),
            "AWS_REGION": "us-west-2",
            "AWS_DEFAULT_REGION": "us-west-2",  # the one that boto3 reads
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.aws_port}",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_EC2_METADATA_DISABLED": "true",
            **_past_proxies(),
        }


def _past_proxies() -> dict[str, str]:
    """boto3, other than Go's programs, asks a proxy for loopback addresses too, unless it is told not to."""
    told = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    hosts = ",".join(dict.fromkeys([*filter(None, told.split(",")), "127.0.0.1", "localhost"]))
    return {"NO_PROXY": hosts, "no_proxy": hosts}
