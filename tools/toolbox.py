"""Where the tools are: in a cache outside the checkout, linked into one folder of this checkout."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tools.pins import HERE, Tool, load, version_tuple

CHECKOUT = HERE.parent
_PULUMI_RANGE = ((3, 274), (4,))
"""Official CLIs of these versions are used instead of a build: the first that asks for refreshes as our gate does,
up to the next major version."""
_STAMP = ".pins"


class ToolsMissing(Exception):
    """Tools have not been built; the message names them and the command that builds them."""


def cache_folder() -> Path:
    """The cache, for all checkouts of this user: `PLUMBLINE_CACHE`, or under the user's own cache folder."""
    if chosen := os.environ.get("PLUMBLINE_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plumbline"


def link_folder() -> Path:
    """The folder of this checkout that holds all tools, by name."""
    return CHECKOUT / ".plumbline" / "tools"


def built(tool: Tool, go_version: str) -> Path:
    """The folder in the cache of a build with this compiler."""
    return cache_folder() / "tools" / tool.name / f"{tool.version}-{tool.digest(go_version)}"


def bin_folder() -> Path:
    """The folder with every tool in it, for PATH.

    Raises:
        ToolsMissing: some have not been built yet.
    """
    folder = link_folder()
    wanted = [*(name for tool in load().values() for name in tool.outputs), "pulumi-language-python"]
    missing = [name for name in wanted if not (folder / name).exists()]
    if missing:
        raise ToolsMissing(f"not built yet: {', '.join(missing)}; run `make tools`")
    if (folder / _STAMP).exists() and (folder / _STAMP).read_text("utf-8") != pins_digest():
        raise ToolsMissing("the pins of the tools have changed since they were built; run `make tools`")
    return folder


def pins_digest() -> str:
    """Of all pins: another one means that the links are of tools that are no longer the pinned ones."""
    return "-".join(tool.digest("") for tool in load().values())


def stamp() -> None:
    """Note that every link is of the pinned tools."""
    (link_folder() / _STAMP).write_text(pins_digest(), "utf-8")


def official(name: str) -> dict[str, Path]:
    """Executables that this machine has already, in place of a build: a name each; empty where there are none."""
    match name:
        case "pulumi":
            return _official_pulumi()
        case "etcd" | "kubernetes":
            return _kubebuilder_assets(load()[name])
        case _:
            return {}


@cache
def _official_pulumi() -> dict[str, Path]:
    """The Pulumi CLI on PATH, with the language host that came with it."""
    path = os.pathsep.join(p for p in os.environ.get("PATH", "").split(os.pathsep) if Path(p) != link_folder())
    cli = shutil.which("pulumi", path=path)
    if cli is None:
        return {}
    beside = Path(cli).resolve().parent
    hosts = {name: beside / name for name in ("pulumi-language-python", "pulumi-language-python-exec")}
    low, high = _PULUMI_RANGE
    if low <= _version([cli, "version"]) < high and all(host.exists() for host in hosts.values()):
        return {"pulumi": Path(cli).resolve(), **hosts}
    return {}


def _kubebuilder_assets(tool: Tool) -> dict[str, Path]:
    """Binaries in KUBEBUILDER_ASSETS, where all of a tool's are there and of its version."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent")
    found = {name: folder / name for name in tool.binaries if (folder / name).is_file()}
    if set(found) != set(tool.binaries):
        return {}
    wanted = version_tuple(tool.version)[:2]
    for name, path in found.items():
        if _version([str(path), *(["version", "--client"] if name == "kubectl" else ["--version"])])[:2] != wanted:
            return {}
    return found


def _version(command: list[str]) -> tuple[int, ...]:
    """The first version that a program prints; empty where it does not run, or prints none."""
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "1"}
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = re.search(r"\d+(\.\d+)+", text)
    return version_tuple(match[0]) if match else ()


def link(sources: dict[str, Path]) -> None:
    """Link tools into this checkout's folder, each in one step."""
    folder = link_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        fresh = folder / f".{name}.{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(source)
        fresh.replace(folder / name)


def write_language_host() -> None:
    """The launcher of our language host: this checkout's host, run by this environment's interpreter."""
    folder = link_folder()
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f".pulumi-language-python.{os.getpid()}"
    fresh.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE / "language_host.py"}" "$@"\n', "utf-8")
    fresh.chmod(0o755)
    fresh.replace(folder / "pulumi-language-python")
