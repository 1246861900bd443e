"""The builder of the tools: its cache never holds half a tool, whatever happens to a build."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools import build, go_toolchain, toolbox
from tools.go_toolchain import Go
from tools.pins import Tool, load, version_tuple

FAKE_GO = """#!/bin/sh
# `go build … -o OUT PACKAGE`: writes OUT slowly, so that a build can be caught in the middle.
echo "$@" >> "$FAKE_GO_CALLS"
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
printf half > "$out"
sleep "${FAKE_GO_SECONDS:-0}"
[ -n "$FAKE_GO_FAILS" ] && { echo "syntax error: everything is wrong"; exit 2; }
printf whole > "$out"
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """A tool of one binary, an empty cache, and a Go that is not one."""
    go = tmp_path / "go"
    go.write_text(FAKE_GO)
    go.chmod(0o755)
    monkeypatch.setenv("PLUMBLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_GO_CALLS", str(tmp_path / "calls"))
    monkeypatch.setattr(toolbox, "link_folder", lambda: tmp_path / "links")
    monkeypatch.setattr(go_toolchain, "find", lambda _: Go(go, "1.26.6"))
    return load()["etcd"]


def calls(tmp_path: Path) -> int:
    file = tmp_path / "calls"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_build_is_made_once_and_linked(tool: Tool, tmp_path: Path) -> None:
    said: list[str] = []
    folder = build.ensure(["etcd"], said.append)
    assert (folder / "etcd").read_text() == "whole"
    assert said[0] == "building etcd from source, once: about 1 min on two cores"
    build.ensure(["etcd"], said.append)
    assert calls(tmp_path) == 1


def test_failed_build_leaves_nothing_and_shows_the_end_of_its_log(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GO_FAILS", "1")
    with pytest.raises(build.BuildFailed, match=r"failed \(2\):(.|\n)*everything is wrong\nwhole log: "):
        build.ensure(["etcd"], lambda _: None)
    assert list((tmp_path / "cache" / "tools" / "etcd").glob("[!.]*")) == []
    monkeypatch.delenv("FAKE_GO_FAILS")
    assert (build.ensure(["etcd"], lambda _: None) / "etcd").read_text() == "whole"


BUILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit it ignored
from pathlib import Path
from tools import build, go_toolchain, toolbox
from tools.go_toolchain import Go
go_toolchain.find = lambda _: Go(Path(sys.argv[1]) / "go", "1.26.6")
toolbox.link_folder = lambda: Path(sys.argv[1]) / "links"
build.ensure(["etcd"])
"""


def in_another_process(tmp_path: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "FAKE_GO_SECONDS": "1"}
    command = [sys.executable, "-c", BUILD, str(tmp_path)]
    return subprocess.Popen(command, cwd=toolbox.CHECKOUT, env=environment, stderr=subprocess.PIPE, text=True)


def test_two_builds_at_once_make_one(tool: Tool, tmp_path: Path) -> None:
    both = [in_another_process(tmp_path), in_another_process(tmp_path)]
    words = [process.communicate(timeout=60)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], words
    assert calls(tmp_path) == 1
    assert sum("another build is at work on it, waiting" in text for text in words) == 1
    assert (tmp_path / "links" / "etcd").read_text() == "whole"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_build_that_is_ended_midway_is_made_anew(tool: Tool, tmp_path: Path, number: signal.Signals) -> None:
    process = in_another_process(tmp_path)
    while calls(tmp_path) == 0:
        time.sleep(0.02)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(number)  # again, as a person does: one may come while a process is being started
        time.sleep(0.5)
    process.communicate(timeout=10)
    assert process.returncode != 0
    target = toolbox.built(tool, "1.26.6")
    assert not target.exists()
    time.sleep(1.2)  # a compiler that outlived its builder would write now
    assert not target.exists()
    assert (build.ensure(["etcd"], lambda _: None) / "etcd").read_text() == "whole"
    assert [p.name for p in target.parent.iterdir() if p.name.startswith(".building")] == []


def test_digest_follows_the_flags_the_version_and_the_compiler(tool: Tool) -> None:
    other = [
        tool.digest("1.26.7"),
        Tool(**{**vars(tool), "ldflags": "-X a=b"}).digest("1.26.6"),
        Tool(**{**vars(tool), "version": "9"}).digest("1.26.6"),
    ]
    assert len({tool.digest("1.26.6"), *other}) == 4
    assert tool.digest("1.26.6") == load()["etcd"].digest("1.26.6")


def test_pins_name_modules_that_are_there_and_versions_that_their_go_mod_asks_for() -> None:
    for tool in load().values():
        text = (tool.folder / "go.mod").read_text()
        assert tool.required_go() >= (1, 24)
        if tool.name != "kubernetes-provider":  # its module has no release tags
            assert f"v{tool.version}" in text, tool.name


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("v3.274.1", (3, 274, 1)), ("go1.26.6", (1, 26, 6)), ("1.34", (1, 34)), ("v3.275.0-alpha.1+x", (3, 275, 0))],
)
def test_versions_are_read(text: str, numbers: tuple[int, ...]) -> None:
    assert version_tuple(text) == numbers


def test_missing_tools_are_named_with_the_command_that_builds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolbox, "link_folder", lambda: tmp_path)
    with pytest.raises(toolbox.ToolsMissing, match=r"etcd, .*pulumi-language-python; run `make tools`"):
        toolbox.bin_folder()


def test_tools_of_other_pins_are_not_used_unnoticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolbox, "link_folder", lambda: tmp_path)
    for name in (*(name for tool in load().values() for name in tool.outputs), "pulumi-language-python"):
        (tmp_path / name).touch()
    toolbox.stamp()
    assert toolbox.bin_folder() == tmp_path
    monkeypatch.setattr(toolbox, "pins_digest", lambda: "others")
    with pytest.raises(toolbox.ToolsMissing, match="have changed since they were built; run `make tools`"):
        toolbox.bin_folder()


@pytest.mark.parametrize(
    ("version", "used"), [("v3.274.1", True), ("v3.300.0", True), ("v3.273.0", False), ("v4.0.0", False), ("", False)]
)
def test_official_cli_is_used_from_the_version_on_that_serves_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, used: bool
) -> None:
    for name in ("pulumi", "pulumi-language-python", "pulumi-language-python-exec"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    toolbox._official_pulumi.cache_clear()
    try:
        assert bool(toolbox.official("pulumi")) is used
    finally:
        toolbox._official_pulumi.cache_clear()


def test_kubebuilder_assets_are_used_when_they_are_whole_and_of_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert toolbox.official("etcd") == {}
    binary = tmp_path / "etcd"
    for text, used in (("etcd Version: 3.5.1", False), ("etcd Version: 3.7.9", True)):
        binary.write_text(f"#!/bin/sh\necho {text}\n")
        binary.chmod(0o755)
        assert bool(toolbox.official("etcd")) is used
    assert toolbox.official("kubernetes") == {}, "kube-apiserver is not there"
