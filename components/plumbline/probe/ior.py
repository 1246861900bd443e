"""What IOR measured, from `-O summaryFormat=JSON`.

https://github.com/hpc/ior/blob/main/src/ior-output.c
"""

from dataclasses import dataclass
from typing import Any

from plumbline.probe.documents import at, items, number, place, read_json
from plumbline.probe.lines import Line

_MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """One operation over all tasks and iterations."""

    line: Line
    operation: str
    """`write` or `read`."""
    slowest: float
    """Bytes per second of the slowest iteration."""
    mean: float
    tasks: int | None
    """Tasks that took part; None where it does not say."""


def parse_ior(text: str) -> tuple[Transfer, ...]:
    """The summary's rows; nothing where the text is cut or is no summary."""
    document = read_json(text)
    found: list[Transfer] = []
    for index, row in items(document, "summary"):
        operation, tasks = row.get("operation"), _count(row)
        slowest, mean = number(row, "bwMinMIB"), number(row, "bwMeanMIB")
        if isinstance(operation, str) and slowest and mean:
            found.append(
                Transfer(
                    line=Line(0, place("summary", index)),
                    operation=operation,
                    slowest=slowest.value * _MIB,
                    mean=mean.value * _MIB,
                    tasks=tasks,
                )
            )
    return tuple(found)


def _count(row: Any) -> int | None:
    found = at(row, "numTasks")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None
