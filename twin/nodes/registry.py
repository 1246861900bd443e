"""What a pull of an image gives."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image that exists."""

    platforms: frozenset[str]
    """Architectures; empty for all."""
    plugin: str = ""
    """Which device plugin it is; empty for any other program."""
    executable: str = "/entrypoint"
    counts_nvlink: bool = False
    """Whether it is an EFA device plugin so old that it takes the NVLink devices of a B200 machine for EFA."""

    def runs_on(self, architecture: str) -> bool:
        """Whether its program can be executed there."""
        return not self.platforms or architecture in self.platforms


@dataclass(frozen=True, kw_only=True)
class PullFailure:
    """A pull that failed, in the container runtime's words."""

    message: str


def pull(reference: str, faults: Collection[str]) -> Image | PullFailure:
    """Resolve an image. A tag for one platform is pulled on every machine, as a single-platform manifest is."""
    name, tag, digest = _parts(reference)
    known = next((known for pattern, known in _repositories().items() if fnmatchcase(name, pattern)), None)
    if known is None:
        return Image(platforms=frozenset())
    for_efa = known["plugin"] in ("efa", "dranet")
    broken = for_efa and "plugin-image-missing" in faults
    if broken or not (digest or tag in known["tags"]):
        text = f'failed to pull and unpack image "{reference}": failed to resolve reference "{reference}"'
        return PullFailure(
            message=f"rpc error: code = NotFound desc = {text}: {reference}: not found: manifest unknown"
        )
    platforms = frozenset() if digest else frozenset(known["tags"][tag])
    if for_efa and "plugin-wrong-architecture" in faults:
        platforms = frozenset({"arm64"})
    return Image(
        platforms=platforms if len(platforms) == 1 else frozenset(),
        plugin=known["plugin"],
        executable=known["executable"],
        counts_nvlink=tag in known.get("counts_nvlink", ()),
    )


def _parts(reference: str) -> tuple[str, str, str]:
    """Repository, tag and digest; a colon before the last slash belongs to the registry's port."""
    tagged, _, digest = reference.partition("@")
    folder, slash, last = tagged.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{folder}{slash}{name}", tag or "latest", digest


@cache
def _repositories() -> Mapping[str, Mapping[str, Any]]:
    raw = tomllib.loads((Path(__file__).parent / "registry.toml").read_text("utf-8"))
    return {repository["name"]: repository for repository in raw["repositories"]}
