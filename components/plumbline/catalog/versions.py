"""Versions as people write them, compared by their numbers: 1.34, v0.5.20, 570.133.20."""

import re


def numbers(version: str) -> tuple[int, ...]:
    """The numbers in a version, in their order."""
    return tuple(int(part) for part in re.findall(r"[0-9]+", version))


def older(version: str, floor: str) -> bool:
    """Whether a version is older than another."""
    return numbers(version) < numbers(floor)
