"""The pins in `pins.toml`, typed, and the digest that names a build in the cache."""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
MODULES = HERE / "go"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool that is built from one Go module."""

    name: str
    version: str
    module: str
    """Folder under tools/go."""
    binaries: Mapping[str, str]
    """Executables, each with its package."""
    minutes: float
    source: str
    ldflags: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that are copied out of a module: name to `module:path`."""
    generated: str = ""
    """`module:folder` of JSON files that are embedded after their version is filled in."""

    @property
    def folder(self) -> Path:
        """Of its Go module."""
        return MODULES / self.module

    @property
    def outputs(self) -> tuple[str, ...]:
        """Everything a build leaves."""
        return (*self.binaries, *self.files)

    def digest(self, go_version: str) -> str:
        """Of all that decides what a build gives: sources, pins, flags, and the compiler."""
        parts = [self.version, repr(sorted(self.binaries.items())), self.ldflags, self.generated, go_version]
        parts += [repr(sorted(self.files.items()))]
        sources = sorted(p for p in self.folder.iterdir() if p.name in ("go.mod", "go.sum") or p.suffix == ".go")
        content = b"\0".join([*(part.encode() for part in parts), *(path.read_bytes() for path in sources)])
        return hashlib.sha256(content).hexdigest()[:12]

    def required_go(self) -> tuple[int, ...]:
        """The Go version that its go.mod asks for."""
        lines = (self.folder / "go.mod").read_text("utf-8").splitlines()
        return version_tuple(next(line.split()[1] for line in lines if line.startswith("go ")))


def version_tuple(text: str) -> tuple[int, ...]:
    """`v1.26.6`, `go1.26.6` or `1.26` as numbers; a suffix such as `-rc1` or `+build` is left out."""
    core = text.removeprefix("go").removeprefix("v").split("-")[0].split("+")[0]
    return tuple(int(part) for part in core.split("."))


def load(file: Path = HERE / "pins.toml") -> dict[str, Tool]:
    """The tools, in the order in which they are built."""
    raw = tomllib.loads(file.read_text("utf-8"))
    return {name: Tool(name=name, **fields) for name, fields in raw.items()}
