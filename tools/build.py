"""Builds the tools that are missing, once for all checkouts, and links them into this one."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from tools import go_toolchain, toolbox
from tools.go_toolchain import Go
from tools.pins import Tool, load

_SAY_EVERY_SECONDS = 20.0
Say = Callable[[str], None]


class BuildFailed(Exception):
    """A tool could not be built; the message holds the end of the log and where the rest is."""


def say(text: str) -> None:
    """One line of progress, for people and for logs alike."""
    print(f"tools: {text}", file=sys.stderr, flush=True)


def ensure(names: Sequence[str] = (), say: Say = say) -> Path:
    """Everything built and linked. Returns the folder for PATH.

    Args:
        names: tools to build; all by default.
        say: is told what happens.

    Raises:
        BuildFailed: a build failed; what was built before stays in the cache.
    """
    tools = load()
    chosen = [tools[name] for name in names] if names else list(tools.values())
    own = [tool for tool in chosen if not toolbox.official(tool.name)]
    for tool in chosen:
        if found := toolbox.official(tool.name):
            toolbox.link(found)
    if own:
        go = go_toolchain.find(max(tool.required_go() for tool in own))
        missing = [tool for tool in own if not toolbox.built(tool, go.version).exists()]
        if missing:
            minutes = sum(tool.minutes for tool in missing)
            say(
                f"building {', '.join(t.name for t in missing)} from source, once: about {minutes:.0f} min on two cores"
            )
        for tool in own:
            _built(tool, go, say)
            toolbox.link({name: toolbox.built(tool, go.version) / name for name in tool.outputs})
            if tool.name == "pulumi":
                toolbox.write_language_host()
    if not names:
        toolbox.stamp()
    return toolbox.link_folder()


def _built(tool: Tool, go: Go, say: Say) -> None:
    """Build a tool into the cache unless it is there. Of several processes, one builds and the others wait."""
    target = toolbox.built(tool, go.version)
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock(target.parent / ".lock", tool, say):
        if not target.exists():
            _build(tool, go, target, say)


@contextmanager
def _lock(file: Path, tool: Tool, say: Say) -> Iterator[None]:
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"{tool.name}: another build is at work on it, waiting")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _build(tool: Tool, go: Go, target: Path, say: Say) -> None:
    """Build beside the target and rename at the end, so that the cache never holds half a tool."""
    for leftover in target.parent.glob(".building-*"):
        shutil.rmtree(leftover, ignore_errors=True)  # of a build that was killed: the lock is ours
    work = target.parent / f".building-{os.getpid()}"
    log = toolbox.cache_folder() / "logs" / f"{tool.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    try:
        (work / "out").mkdir(parents=True)
        source = _source(tool, go, work)
        for index, (name, package) in enumerate(tool.binaries.items(), 1):
            part = f"{tool.name} {tool.version}, {index} of {len(tool.binaries)}: {name}"
            say(f"{part}, {_minutes(started)} of about {tool.minutes:.0f} min")
            flags = ["-trimpath", "-ldflags", f"-s -w {tool.ldflags}".strip()]
            command = [str(go.executable), "build", *flags, "-o", str(work / "out" / name), package]
            _run(command, source, go, log, partial(_still, say, part, started))
        for name, place in tool.files.items():
            copied = work / "out" / name
            shutil.copyfile(_in_module(place, source, go), copied)
            copied.chmod(0o755)
        (work / "out").replace(target)
        say(f"{tool.name} {tool.version} is built, {_minutes(started)} min")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _still(say: Say, part: str, started: float) -> None:
    say(f"{part}, {_minutes(started)} min so far")


def _minutes(started: float) -> str:
    return f"{(time.monotonic() - started) / 60:.1f}"


def _source(tool: Tool, go: Go, work: Path) -> Path:
    """The folder to build in: the module's own, or a copy of it where files have to be generated first."""
    if not tool.generated:
        return tool.folder
    copy = work / "source"
    shutil.copytree(tool.folder, copy, ignore=shutil.ignore_patterns("generated"))
    folder = _in_module(tool.generated, copy, go)
    (copy / "generated").mkdir()
    for name in ("schema.json", "terraform-mapping.json"):
        content = json.loads((folder / name).read_text("utf-8"))
        if name == "schema.json":
            content["version"] = tool.version
        (copy / "generated" / name).write_text(json.dumps(content, separators=(",", ":")), "utf-8")
    return copy


def _in_module(place: str, source: Path, go: Go) -> Path:
    """The path of `module:path` in Go's module cache."""
    module, path = place.split(":")
    _ask(go, source, "mod", "download", module)
    return Path(_ask(go, source, "list", "-m", "-f", "{{.Dir}}", module).strip()) / path


def _ask(go: Go, folder: Path, *arguments: str) -> str:
    """What a short Go command prints.

    Raises:
        BuildFailed: it exited with an error, a registry that did not answer for instance.
    """
    command = [str(go.executable), *arguments]
    result = subprocess.run(command, cwd=folder, env=go.environment(), check=False, capture_output=True, text=True)
    if result.returncode != 0:
        raise BuildFailed(f"{' '.join(command)} failed ({result.returncode}):\n{result.stderr.strip()}")
    return result.stdout


def _run(command: list[str], folder: Path, go: Go, log: Path, still: Callable[[], None]) -> None:
    """Run a build, with its words in a log. Whatever ends this process ends the build's processes too.

    Raises:
        BuildFailed: it exited with an error.
    """
    with log.open("w", encoding="utf-8") as stream:
        stream.write(f"{' '.join(command)}\n")
        stream.flush()
        process = subprocess.Popen(
            command, cwd=folder, env=go.environment(), stdout=stream, stderr=stream, start_new_session=True
        )
        try:
            while True:
                try:
                    code = process.wait(_SAY_EVERY_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    still()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if code != 0:
        tail = "\n".join(log.read_text("utf-8").splitlines()[-15:])
        raise BuildFailed(f"{' '.join(command[:2])} for {command[-1]} failed ({code}):\n{tail}\nwhole log: {log}")
