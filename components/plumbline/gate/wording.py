"""Small pieces of messages that several modules write."""

from collections.abc import Iterable, Sequence

_NAMED = 8


def names(items: Iterable[str]) -> str:
    """Names in order, the first eight by name and the rest by count."""
    ordered = sorted(items)
    shown = ", ".join(ordered[:_NAMED])
    return shown if len(ordered) <= _NAMED else f"{shown} and {len(ordered) - _NAMED} more"


def plural(count: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def seconds(value: float) -> str:
    """A length of time for people: `41 s`, `12 min 5 s`."""
    whole = round(value)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"


def indented(lines: Sequence[str], by: int) -> str:
    """Lines, each behind so many spaces."""
    return "\n".join(" " * by + line for line in lines)
