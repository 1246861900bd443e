"""Which Go builds the tools, and which of the user's settings it sees."""

from pathlib import Path

import pytest

from tools import go_toolchain
from tools.go_toolchain import Go

PYPI = Go(Path("/cache/go"), "1.26.6")


@pytest.mark.parametrize(
    ("says", "used"),
    [
        ("go version go1.26.6 linux/amd64", True),
        ("go version go1.27.1 linux/arm64", True),
        ("go version go1.26.5 linux/amd64", False),
        ("go version go1.9 linux/amd64", False),
        ("gccgo (Debian) 12", False),
    ],
)
def test_go_on_path_is_used_from_the_version_that_the_modules_ask_for(
    says: str, used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable = tmp_path / "go"
    executable.write_text(f"#!/bin/sh\necho '{says}'\n")
    executable.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(go_toolchain, "_from_pypi", lambda: PYPI)
    assert (go_toolchain.find((1, 26, 6)).executable == executable) is used


def test_without_go_on_path_the_one_from_pypi_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(go_toolchain, "_from_pypi", lambda: PYPI)
    assert go_toolchain.find((1, 26, 6)) == PYPI


def test_the_users_settings_decide_where_modules_come_from_and_not_what_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    for name in ("GOFLAGS", "GOOS", "GOARCH", "GOEXPERIMENT", "GO111MODULE"):
        monkeypatch.setenv(name, "theirs")
    environment = PYPI.environment()
    assert environment["GOPROXY"] == "off"
    assert "theirs" not in environment.values()
    assert environment["GOTOOLCHAIN"] == "local"
