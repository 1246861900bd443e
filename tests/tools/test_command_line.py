"""`python -m tools`, run in a copy of `tools/` with a cache of its own and a stand-in for Go."""

import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tools.toolbox import CHECKOUT

GO = """#!/bin/sh
case "$1" in
    version) echo "go version go1.26.9 linux/amd64" ;;
    mod) [ -z "$FAKE_GO_OFFLINE" ] || { echo "dial tcp: no route to host" >&2; exit 1; } ;;
    list) echo "$HOME/module" ;;
    build)
        while [ "$1" != -o ]; do shift; done
        echo "$$" > "$HOME/building"
        [ -z "$FAKE_GO_HANGS" ] || { echo half > "$2"; exec sleep 60; }
        cat generated/schema.json > "$2" 2> /dev/null || echo whole > "$2" ;;
esac
"""


@dataclass
class Copy:
    """A copy of the tools, with everything that they write below it."""

    root: Path

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        here = {"HOME": str(self.root), "PLUMBLINE_CACHE": str(self.root / "cache")}
        path = {"PATH": f"{self.root / 'bin'}:/usr/bin:/bin"}
        return subprocess.Popen(
            [sys.executable, "-m", "tools", *arguments],
            cwd=self.root,
            env={**here, **path, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        process = self.start(*arguments, **environment)
        _, words = process.communicate(timeout=60)
        return process.returncode, words

    def executable(self, name: str, text: str) -> None:
        (self.root / "bin" / name).write_text(text)
        (self.root / "bin" / name).chmod(0o755)

    def cached(self, tool: str) -> list[str]:
        """What the cache holds of a tool, whole or half."""
        folder = self.root / "cache" / "tools" / tool
        return sorted(p.name for p in folder.iterdir() if p.name != ".lock") if folder.exists() else []

    def built(self, name: str) -> str:
        return (self.root / ".plumbline" / "tools" / name).read_text()


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    for folder in ("tools", "requirements"):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("generated", "__pycache__"))
    (tmp_path / "bin").mkdir()
    made = Copy(tmp_path)
    made.executable("go", GO)
    return made


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_build_that_is_told_to_end_takes_its_compiler_along_and_leaves_nothing(
    copy: Copy, number: signal.Signals
) -> None:
    process = copy.start("build", "etcd", FAKE_GO_HANGS="1")
    building = copy.root / "building"
    while not (building.exists() and building.read_text()):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    _, words = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "`make tools` goes on from here" in words
    assert "Traceback" not in words
    assert not psutil.pid_exists(int(building.read_text()))
    assert copy.cached("etcd") == []


def test_a_registry_that_does_not_answer_is_said_in_gos_words(copy: Copy) -> None:
    code, words = copy.run("build", "kubernetes-provider", FAKE_GO_OFFLINE="1")
    assert code == 1
    assert "no route to host" in words
    assert "Traceback" not in words
    assert copy.cached("kubernetes-provider") == []


def test_the_schema_that_is_embedded_carries_the_version(copy: Copy) -> None:
    folder = copy.root / "module" / "cmd" / "pulumi-resource-kubernetes"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text('{\n  "name": "kubernetes"\n}\n')
    (folder / "terraform-mapping.json").write_text("{}\n")
    code, words = copy.run("build", "kubernetes-provider")
    assert code == 0, words
    assert copy.built("pulumi-resource-kubernetes") == '{"name":"kubernetes","version":"4.25.0"}'
    assert not (copy.root / "tools" / "go" / "kubernetes-provider" / "generated").exists()


def test_a_pulumi_that_does_not_say_its_version_is_not_used(copy: Copy) -> None:
    (copy.root / "module" / "python" / "cmd").mkdir(parents=True)
    (copy.root / "module" / "python" / "cmd" / "pulumi-language-python-exec").touch()
    for name in ("pulumi", "pulumi-language-python", "pulumi-language-python-exec"):
        copy.executable(name, "#!/bin/sh\necho no such command\n")
    code, words = copy.run("build", "pulumi")
    assert code == 0, words
    assert copy.built("pulumi") == "whole\n"


def test_an_unknown_tool_is_refused_with_the_known_ones(copy: Copy) -> None:
    code, words = copy.run("build", "etdc")
    assert code == 2
    assert "no tool etdc; there are etcd, kubernetes, pulumi" in words
