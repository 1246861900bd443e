"""A simulated fabric for the scheduler of `plumbline.gate.localise`: it knows what is bad and answers tests by it."""

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from plumbline.gate.localise import Answer, Localiser, Member, Outcome, Test

LIMIT = 10_000
"""Rounds after which a run counts as endless."""


@dataclass
class Fabric:
    """What is really so."""

    members: list[Member]
    bad: Collection[str] = ()
    paths: Collection[tuple[str, str]] = ()
    """Bad paths, by the names of the nodes' lowest layers, in order."""
    hides: bool = False
    """Whether bad nodes pass a test alone."""
    flaky: Collection[str] = ()
    """Nodes that fail every other test or so."""
    silent: Collection[str] = ()
    """Nodes on which no probe ever runs."""
    seed: int = 0
    _dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)  # repeatable, and no secret
        self._block = {each.name: each.layers[-1] if each.layers else "" for each in self.members}

    def gives(self, test: Test) -> Outcome:
        """The outcome of one test."""
        if any(name in self.silent for name in test):
            return Outcome.NONE
        if len(test) == 1:
            return Outcome.BAD if test[0] in self.bad and not self.hides else Outcome.OK
        one, other = sorted(self._block[name] for name in test)
        if any(name in self.bad for name in test) or (one, other) in self.paths:
            return Outcome.BAD
        if any(name in self.flaky and self._dice.random() < 0.5 for name in test):
            return Outcome.BAD
        return Outcome.OK


@dataclass
class Run:
    """A localisation from its start to its end."""

    localiser: Localiser
    after: list[Answer]
    """The answer after each round."""

    @property
    def answer(self) -> Answer:
        """The last one."""
        return self.after[-1]

    @property
    def accused_and_good(self) -> tuple[int, int]:
        """After round 1: nodes that are not known to be good, and those that are."""
        good = {name for seen in self.localiser.rounds[0] if seen.outcome is Outcome.OK for name in seen.test}
        everyone = {name for nodes in self.localiser.blocks.values() for name in nodes}
        return len(everyone - good), len(good)


def localise(
    fabric: Fabric,
    *,
    paths: bool = True,
    singles: bool = True,
    witnesses: int = 1,
    every: bool = True,
    gives: Callable[[Test], Outcome] | None = None,
) -> Run:
    """Run rounds until the answer is final. Asserts that each round can run at once, and that there is an end.

    Args:
        fabric: What is so.
        paths: As for `Localiser`.
        singles: As for `Localiser`.
        witnesses: As for `Localiser`.
        every: Whether to take the answer after each round; else only after the last.
        gives: Answers tests in place of the fabric.
    """
    localiser = Localiser(fabric.members, paths=paths, singles=singles, witnesses=witnesses)
    after: list[Answer] = []
    while tests := localiser.next_round():
        busy = [name for test in tests for name in test]
        assert len(busy) == len(set(busy)), f"a node is in two tests of one round: {tests}"
        localiser.record({test: (gives or fabric.gives)(test) for test in tests})
        assert len(localiser.rounds) < LIMIT
        if every:
            after.append(localiser.answer())
    return Run(localiser, after if every and after else [localiser.answer()])


def members(count: int, *sizes: int, start: int = 0) -> list[Member]:
    """Nodes of three layers: blocks of these sizes in turn, three blocks under each of the layer above."""
    return list(_members(count, sizes or (count,), start))


def _members(count: int, sizes: tuple[int, ...], start: int) -> Iterator[Member]:
    block, room = 0, sizes[0]
    for number in range(start, start + count):
        if not room:
            block += 1
            room = sizes[block % len(sizes)]
        room -= 1
        yield Member(f"n{number:04}", ("top", f"spine{block // 3:03}", f"leaf{block:03}"))
