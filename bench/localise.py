"""How many rounds, tests and seconds it takes to localise bad nodes and paths, on a simulated fabric."""

import random
import sys
import time

from rich.console import Console
from rich.table import Table

from plumbline.gate.localise import Kind
from tests.gate.fabrics import Fabric, Run, localise, members

SIZES = (64, 512, 4096)
BLOCK = 16
"""Nodes in a block."""


def main() -> int:
    """Measure. Returns 1 where what was found isn't what is bad."""
    table = Table("nodes", "blocks", "bad nodes", "bad paths", "nodes named after", "rounds in all", "tests", "seconds")
    exact = True
    for size in SIZES:
        for bad, paths in ((0, 0), (1, 0), (size // 4, 0), (size // 2, 0), (0, 2), (size // 16, 2)):
            fabric = _fabric(size, bad, paths)
            started = time.perf_counter()
            run = localise(fabric, every=False)
            took = time.perf_counter() - started
            found = run.answer
            exact &= {*found.named(Kind.NODE, Kind.BLOCK)} == {*fabric.bad} and {*found.paths} == {*fabric.paths}
            table.add_row(
                *map(str, (size, size // BLOCK, bad, paths, _named_after(fabric), found.rounds, found.tests)),
                f"{took:.2f}",
            )
    console = Console()
    console.print(table)
    console.print("all found, and nothing else" if exact else "what was found is not what is bad")
    return 0 if exact else 1


def _fabric(size: int, bad: int, paths: int) -> Fabric:
    dice = random.Random(size)  # noqa: S311 - repeatable, and no secret
    nodes = members(size, BLOCK)
    leaves = sorted({each.layers[-1] for each in nodes})
    chosen: set[tuple[str, str]] = set()
    while len(chosen) < paths:
        one, other = sorted(dice.sample(leaves, 2))
        chosen.add((one, other))
    return Fabric(nodes, bad=set(dice.sample([each.name for each in nodes], bad)), paths=chosen)


def _named_after(fabric: Fabric) -> int:
    """The first round after which the bad nodes and no others are named or suspected; 0 where there are none."""
    run: Run = localise(fabric, paths=False)
    told = (i + 1 for i, each in enumerate(run.after) if {*each.named(), *each.suspects} == {*fabric.bad})
    return next(told) if fabric.bad else 0


if __name__ == "__main__":
    sys.exit(main())
