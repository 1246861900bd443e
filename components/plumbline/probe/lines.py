"""Lines of a text that a tool printed, and facts that remember the line they were read from."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)

LONGEST = 4096
"""Characters; NCCL's own buffer for a line has 1024 (https://github.com/NVIDIA/nccl/blob/master/src/debug.cc). What
is longer is no line of a tool that is read here."""


@dataclass(frozen=True)
class Line:
    """One line of a text."""

    number: int
    """From 1; 0 where the fact has no line of its own, and `text` is its path in a document."""
    text: str
    whole: bool = True
    """False for one that may have been cut: it shows what went wrong, and proves nothing."""


@dataclass(frozen=True)
class Fact(Generic[T_co]):
    """A value, and the line it was read from."""

    value: T_co
    line: Line


def lines(text: str) -> list[Line]:
    """The lines of a text that are not blank. The last one is whole only if a line feed ends it."""
    # Not splitlines(): a form feed or a U+2028 in the middle of a line ends no line of a log.
    parts = text.split("\n")
    found = [Line(number, part.rstrip("\r"), number < len(parts)) for number, part in enumerate(parts, 1)]
    return [
        each if len(each.text) <= LONGEST else Line(each.number, each.text[:LONGEST], whole=False)
        for each in found
        if each.text.strip()
    ]
