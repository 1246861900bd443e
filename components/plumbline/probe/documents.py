"""JSON documents that tools print, read without trust: what is not there, or not of the kind, is None."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from plumbline.probe.lines import Fact, Line

LARGEST = 16 * 2**20
"""Characters; more than any of these tools prints."""


def read_json(text: str) -> Any:
    """The document; None where the text is none, or is cut, or too deep or too large to be one of a tool."""
    if len(text) > LARGEST:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def at(document: Any, *path: str | int) -> Any:
    """What lies at a path; None where nothing does."""
    for step in path:
        if isinstance(document, Mapping) and isinstance(step, str):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int) and 0 <= step < len(document):
            document = document[step]
        else:
            return None
    return document


def items(document: Any, *path: str | int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a list at a path, with their places."""
    found = at(document, *path)
    for number, each in enumerate(found if isinstance(found, list) else []):
        if isinstance(each, Mapping):
            yield number, each


def number(document: Any, *path: str | int) -> Fact[float] | None:
    """A number that is finite and not negative, with its path as its line."""
    found = at(document, *path)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        value = float(found)
    except OverflowError:
        return None
    return Fact(value, Line(0, place(*path))) if math.isfinite(value) and value >= 0 else None


def place(*path: str | int) -> str:
    """A path in words: `jobs[0].write.bw_bytes`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")
