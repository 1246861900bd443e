"""What one run of the engine has told this process, for gates to write and guards to read."""

import asyncio
from dataclasses import dataclass, field

from plumbline.migrate.guard import Declared


@dataclass
class Session:
    """One engine, one run: the engine starts a provider process for each."""

    program_ran: bool = False
    generations: dict[str, str] = field(default_factory=dict)
    proven: set[tuple[str, str]] = field(default_factory=set)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def declared(self) -> Declared:
        """What a guard may know of the program."""
        return Declared(program_ran=self.program_ran, generations=self.generations, proven=frozenset(self.proven))
