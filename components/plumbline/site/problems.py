"""What is wrong with a declaration, as data, and the one message that lists all of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]

NOTHING = object()
"""Stands for a value that is not there."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong: where, what was found, what is needed, and what to do next."""

    path: Path
    found: str
    needed: str
    next: str
    warns: bool = False
    """True for what rests on an unconfirmed fact, or is allowed and rarely meant: it is said, and stops nothing."""

    @property
    def where(self) -> str:
        """The path as people write it: `plumbline:site.pools[0].nodes`."""
        return "plumbline:site" + spelled(self.path)

    def __str__(self) -> str:
        return f"{self.where}\n    found:  {self.found}\n    needed: {self.needed}\n    next:   {self.next}"


class SiteError(ValueError):
    """The declaration cannot be used. `problems` holds all that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = f"{len(self.problems)} problem{'s' if len(self.problems) > 1 else ''}"
        listing = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"the site cannot be built: {count}; nothing was changed\n{listing}")


def spelled(path: Path) -> str:
    """A path as people write it, with a dot before each name: `.pools[0].nodes`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def shown(value: Any) -> str:
    """A value as it stands in the file, shortened; `nothing` where there is none."""
    if value is NOTHING:
        return "nothing"
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
