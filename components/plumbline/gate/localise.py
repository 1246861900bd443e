"""Which nodes or paths of a fabric are bad, from tests of disjoint pairs in rounds. Pure and deterministic.

What is told of a pair is only whether it passed its floor, which is absolute: two slow nodes that agree are no pass.

- A pair that passed shows both of its nodes, and the path between their blocks, to be good.
- A pair that failed accuses both nodes and the path. A node is named when it never passed, and failed with a good node
  inside its block or over a path that is good.
- A path is named when nodes at both ends are good and no pair passed over it.
- Inside a block there is no path apart from the nodes: whatever leaves a node goes through the block's switch.
- A block of which no node ever passed is named as a whole: its nodes, or what they share, look the same from outside.
- No result is no evidence: neither good nor bad.

Round 1 pairs all nodes, inside their blocks as far as that goes. Each later round tests everyone who is not yet cleared
or named with a good node, and lets good nodes that are idle test the paths between blocks, in a tournament's order.
Where nodes alone are bad they are told after `1 + ceil(accused / good)` rounds, both counted after round 1: that is 2
while at most a quarter of an even pool is bad. Who is left over in an odd pool counts as accused; if there are
4 B + 1 nodes with B of them bad, round 2 has named them all, and a third may be needed to clear the last innocent one.
One round can't tell which of a pair it is, so 2 is the floor. Where a node failed over a path that nobody passed yet,
further rounds tell which of the two it was; until then it is a suspect. Paths take at most as many further rounds as
there are blocks, since each completes a round of the tournament at least.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from plumbline.gate.verdict import Certainty, Diagnosis
from plumbline.gate.wording import names, plural

Test = tuple[str, ...]
"""The names of two nodes, in order, that are tested with each other; or of one that is tested alone."""

SILENCES = 3
"""After so many tests with good nodes, all without a result, a node is left as not measured; a path likewise."""

REPAIRINGS = 2
"""Rounds with other partners, after a first one in which nobody passed. If all of these fail as well, half of the nodes
or more would have to be bad one by one; a common cause is likelier."""

TARGETS = 2
"""Other blocks with which a node has to fail, before its block is named as a whole where nobody in it ever passed."""


class Outcome(StrEnum):
    """What a test gave."""

    OK = "ok"
    BAD = "bad"
    NONE = "no result"
    """The probe never ran, or said nothing: unknown, never good."""


@dataclass(frozen=True)
class Member:
    """A node, and where it is in the network."""

    name: str
    layers: tuple[str, ...] = ()
    """Labels of the network's layers above it, the top one first; empty where they are not known."""


@dataclass(frozen=True)
class Seen:
    """One result."""

    round: int
    """From 1."""
    test: Test
    outcome: Outcome

    def other(self, name: str) -> str:
        """The partner of a node; empty where it was alone."""
        return next((each for each in self.test if each != name), "")


class Kind(StrEnum):
    """What a finding names."""

    NODE = "node"
    """A bad node."""
    PATH = "path"
    """A bad path between two blocks."""
    BLOCK = "block"
    """A block of which no node passed with anyone: its nodes, or what they share."""
    EITHER = "either"
    """One of two nodes, which no test tells apart."""
    COMMON = "common"
    """All that were tested: a common cause."""
    UNSTEADY_NODE = "unsteady node"
    """A node that passes, and fails with several nodes that pass."""
    UNSTEADY_PAIR = "unsteady pair"
    """Two nodes, or two blocks, that failed with each other, and whose every part passes."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that is not good, and what shows it."""

    kind: Kind
    nodes: tuple[str, ...] = ()
    """The nodes it names, in order; none where it names a path."""
    blocks: tuple[str, ...] = ()
    """The two blocks of a path; the block that is named as a whole."""
    evidence: tuple[Seen, ...]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the rounds so far tell."""

    findings: tuple[Finding, ...] = ()
    suspects: tuple[str, ...] = ()
    """Nodes that failed with a good node over a path which nobody has passed: the node or the path."""
    unproven: tuple[str, ...] = ()
    """Nodes that neither passed nor failed with a good node, for want of one."""
    silent: tuple[str, ...] = ()
    """Nodes of which no test gave a result."""
    unmeasured: tuple[tuple[str, str], ...] = ()
    """Paths between blocks of which no test gave a result."""
    rounds: int
    tests: int
    final: bool
    """Whether no further round would tell more."""
    seen: tuple[Seen, ...] = ()
    """The results that concern `suspects`, `unproven` and `silent`."""

    def named(self, *kinds: Kind) -> tuple[str, ...]:
        """Nodes that findings of these kinds name, of all kinds where none is given."""
        return tuple(sorted({n for each in self.findings if not kinds or each.kind in kinds for n in each.nodes}))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The bad nodes."""
        return self.named(Kind.NODE)

    @property
    def paths(self) -> tuple[tuple[str, str], ...]:
        """The bad paths, each the names of two blocks."""
        return tuple((each.blocks[0], each.blocks[1]) for each in self.findings if each.kind is Kind.PATH)


def pair(one: str, other: str) -> Test:
    """The test of two nodes with each other."""
    return (one, other) if one < other else (other, one)


class Localiser:
    """Says the next round of tests, takes its results, and says what they tell.

    It holds nothing but what the results say: the same results recorded anew lead to the same state.
    """

    def __init__(
        self, members: Sequence[Member], *, paths: bool = True, singles: bool = True, witnesses: int = 1
    ) -> None:
        """For a pool.

        Args:
            members: All nodes.
            paths: Whether to test the paths between blocks as well.
            singles: Whether there is a test of one node alone, for when no pair passes.
            witnesses: How many good nodes have to fail with a node, and how many pairs over a path, before it counts as
                settled: 2 costs a further round, and then no single unsteady node can accuse an innocent one. Where
                there are no more good ones to ask, fewer have to do.

        Raises:
            ValueError: There is no node, or a name twice.
        """
        if not members:
            raise ValueError("a pool without nodes can't be localised")
        twice = sorted(name for name, count in Counter(each.name for each in members).items() if count > 1)
        if twice:
            raise ValueError(f"nodes that are there twice: {names(twice)}")
        self._test_paths, self._singles, self._wanted = paths, singles, max(1, witnesses)
        ordered = sorted(members, key=lambda each: (each.layers, each.name))
        self._nodes = [each.name for each in ordered]
        self._place = {name: i for i, name in enumerate(self._nodes)}
        self._set_blocks(ordered)
        self.rounds: list[tuple[Seen, ...]] = []
        """The results so far, by round."""
        self._planned: tuple[Test, ...] | None = None
        self._by_node: dict[str, list[Seen]] = defaultdict(list)
        self._by_pair: dict[Test, list[Seen]] = defaultdict(list)
        self._good: dict[str, Seen] = {}
        self._path_ok: dict[tuple[int, int], Seen] = {}
        self._path_bad: dict[tuple[int, int], list[Seen]] = defaultdict(list)
        self._silences: Counter[str] = Counter()
        self._unheard: Counter[str] = Counter()
        """Silences of a node with a good one."""
        self._failures: Counter[str] = Counter()
        self._path_silences: Counter[tuple[int, int]] = Counter()
        self._failed_alone: set[str] = set()
        self._asked_alone = False
        self._pending = list(_tournament(len(self._blocks))) if paths else []

    def _set_blocks(self, ordered: Sequence[Member]) -> None:
        """Blocks are those of the lowest layer at which a block has two nodes or more on average.

        With smaller ones there would be as many paths as pairs. A bad path below that layer can't be told from a bad
        node. A node without the label is a block by itself, as nothing is known of its neighbours; where nobody has
        labels, all nodes are one block.
        """
        depth = max(len(each.layers) for each in ordered)
        while depth and 2 * _count_at(depth, ordered) > len(ordered):
            depth -= 1
        keys = [each.layers[:depth] if len(each.layers) >= depth else (*each.layers, "", each.name) for each in ordered]
        number: dict[tuple[str, ...], int] = {}
        self._blocks: list[list[str]] = []
        self._keys: list[tuple[str, ...]] = []
        self._block: dict[str, int] = {}
        for each, key in zip(ordered, keys, strict=True):
            if key not in number:
                number[key] = len(self._blocks)
                self._blocks.append([])
                self._keys.append(key)
            self._block[each.name] = number[key]
            self._blocks[number[key]].append(each.name)
        short = Counter(key[-1] for key in self._keys if key)
        self._block_names = [
            "all" if not key else key[-1] if short[key[-1]] == 1 else "/".join(filter(None, key)) for key in self._keys
        ]

    @property
    def blocks(self) -> Mapping[str, tuple[str, ...]]:
        """The nodes of each block, by its name."""
        return {name: tuple(nodes) for name, nodes in zip(self._block_names, self._blocks, strict=True)}

    # What comes next

    def next_round(self) -> tuple[Test, ...]:
        """Tests that can run at once, as no node is in two of them; none where the answer is final."""
        if self._planned is None:
            if not self.rounds:
                self._planned = tuple(self._first())
            else:
                self._planned = tuple(self._with_good() if self._good else self._without_good())
        return self._planned

    def record(self, results: Mapping[Test, Outcome]) -> None:
        """Take what the tests of the round gave. A test that is not there gave no result.

        Raises:
            ValueError: A result of a test that is not in the round, or there is no further round.
        """
        planned = self.next_round()
        strange = sorted(set(results) - set(planned))
        if strange or not planned:
            raise ValueError(f"results of tests that are not in this round: {strange}")
        number = len(self.rounds) + 1
        seen = tuple(Seen(number, test, results.get(test, Outcome.NONE)) for test in planned)
        self.rounds.append(seen)
        self._planned = None
        for each in seen:
            self._take(each)
        self._pending = [path for path in self._pending if self._path_wanted(path)]

    def _take(self, seen: Seen) -> None:
        for name in seen.test:
            self._by_node[name].append(seen)
            if seen.outcome is Outcome.NONE:
                self._silences[name] += 1
                self._unheard[name] += any(other in self._good for other in seen.test if other != name)
            elif seen.outcome is Outcome.BAD:
                self._failures[name] += 1
        if len(seen.test) == 1:
            self._asked_alone = True
            if seen.outcome is Outcome.BAD:
                self._failed_alone.add(seen.test[0])
            return
        self._by_pair[seen.test].append(seen)
        path = self._path(*seen.test)
        if seen.outcome is Outcome.OK:
            for name in seen.test:
                self._good.setdefault(name, seen)
            self._path_ok.setdefault(path, seen)
        elif seen.outcome is Outcome.BAD:
            self._path_bad[path].append(seen)
        elif all(name in self._good for name in seen.test):
            self._path_silences[path] += 1

    def _first(self) -> Iterator[Test]:
        """Everyone, inside blocks; those left over in a block with the nearest of those left over elsewhere."""
        if len(self._nodes) == 1:
            yield from ([(self._nodes[0],)] if self._singles else [])
            return
        left: list[str] = []
        for block in self._blocks:
            yield from (pair(*two) for two in zip(block[::2], block[1::2], strict=False))
            left += block[len(block) // 2 * 2 :]
        yield from (pair(*two) for two in zip(left[::2], left[1::2], strict=False))

    def _without_good(self) -> list[Test]:
        """Nobody has passed: each alone, then other partners for those who pass alone."""
        if len(self._nodes) == 1:
            silent = self.rounds[-1][0].outcome is Outcome.NONE
            return list(self._first()) if silent and len(self.rounds) < SILENCES else []
        if all(seen.outcome is Outcome.NONE for each in self.rounds for seen in each):
            return self._fresh_pairs() if len(self.rounds) < SILENCES else []
        if self._singles and not self._asked_alone:
            return [(name,) for name in self._nodes]
        tried = sum(1 for each in self.rounds[1:] if any(len(seen.test) == 2 for seen in each))
        return self._fresh_pairs() if tried < REPAIRINGS else []

    def _fresh_pairs(self) -> list[Test]:
        """Pairs without a result, among those who did not fail alone; new ones and near ones first."""
        left = deque(name for name in self._nodes if name not in self._failed_alone)
        tests = []
        while left:
            name = left.popleft()
            partner = next((other for other in left if pair(name, other) not in self._by_pair), None)
            if partner is None:
                partner = next((other for other in left if not self._told(name, other)), None)
            if partner is not None:
                left.remove(partner)
                tests.append(pair(name, partner))
        return tests

    def _with_good(self) -> list[Test]:
        """Those who are neither cleared nor named with good ones; the idle good ones over paths not tested yet."""
        free = _Free(self, self._good)
        tests: list[Test] = []
        accused = list(self._open())
        # Whoever was not yet tested with a good node comes first, wherever it is: that is what bounds the rounds.
        for asked in (False, True):
            elsewhere: dict[int, list[str]] = defaultdict(list)
            for name in accused:
                if bool(self._accusers(name)) is asked:
                    block = self._block[name]
                    tester = free.take(block, name)
                    if tester:
                        tests.append(pair(name, tester))
                    else:
                        elsewhere[block].append(name)
            for block, left in elsewhere.items():
                tests += self._abroad(block, left, free)
        tests += [test for test in self._contradictions() if free.take_both(test)]
        for path in self._pending:
            if free.blocks < 2:
                break
            two = free.take_path(path)
            if two is not None:
                tests.append(two)
        return tests

    def _abroad(self, block: int, accused: Sequence[str], free: "_Free") -> Iterator[Test]:
        """Tests with good nodes of other blocks.

        Over paths that are good; else all over the same one, so that whoever passes proves it for the others, and not
        again where this node failed before.
        """
        dark = self._is_dark(block)
        targets = sorted(
            (other for other in free if other != block),
            key=lambda other: (
                _path(block, other) not in self._path_ok,
                -_shared(self._keys[block], self._keys[other]),
                -free.count(other),
                other,
            ),
        )
        for name in accused:
            failed = {self._block[each] for each in self._accusers(name)}
            for other in targets:
                proven = _path(block, other) in self._path_ok
                if not proven and (other in failed or len(failed) >= (TARGETS if dark else 1)):
                    continue
                tester = free.take(other, name)
                if tester:
                    yield pair(name, tester)
                    break

    # What is known

    def _path(self, one: str, other: str) -> tuple[int, int]:
        return _path(self._block[one], self._block[other])

    def _told(self, one: str, other: str) -> bool:
        """Whether a pair has a result."""
        return any(seen.outcome is not Outcome.NONE for seen in self._by_pair.get(pair(one, other), ()))

    def _is_proven(self, path: tuple[int, int]) -> bool:
        return path[0] == path[1] or path in self._path_ok

    def _bad_between_good(self, path: tuple[int, int]) -> list[Seen]:
        return [seen for seen in self._path_bad.get(path, ()) if all(name in self._good for name in seen.test)]

    def _path_wanted(self, path: tuple[int, int]) -> bool:
        """Whether a path is to be tested still."""
        if path in self._path_ok or self._path_silences[path] >= SILENCES:
            return False
        return len({seen.test for seen in self._bad_between_good(path)}) < self._wanted

    def _is_dark(self, block: int) -> bool:
        """Whether no node of a block ever passed."""
        return not any(name in self._good for name in self._blocks[block])

    def _accusers(self, name: str) -> list[str]:
        """Good nodes with which a node failed."""
        bad = (seen.other(name) for seen in self._by_node.get(name, ()) if seen.outcome is Outcome.BAD)
        return [other for other in dict.fromkeys(bad) if other in self._good]

    def _witnesses(self, name: str) -> list[str]:
        """Those of the accusers that the path does not excuse."""
        return [other for other in self._accusers(name) if self._is_proven(self._path(name, other))]

    def _open(self) -> Iterator[str]:
        """Nodes that are neither cleared, nor named, nor given up."""
        for name in self._nodes:
            if name in self._good or name in self._failed_alone or self._unheard[name] >= SILENCES:
                continue
            if len(self._witnesses(name)) < self._wanted:
                yield name

    def _contradictions(self) -> Iterator[Test]:
        """Pairs that failed once though both nodes and the path are good: once more."""
        for path, bad in self._path_bad.items():
            if self._is_proven(path):
                for seen in bad:
                    before = self._by_pair[seen.test]
                    told = sum(1 for each in before if each.outcome is not Outcome.NONE)
                    if told == 1 and len(before) <= SILENCES and all(name in self._good for name in seen.test):
                        yield seen.test

    # What it tells

    def answer(self) -> Answer:
        """What the rounds so far tell. Before the last round something may be missing in it, or among the suspects."""
        findings: list[Finding] = []
        left = self._add_with_good(findings) if self._good else self._add_without_good(findings)
        suspects = [name for name in left if self._accusers(name)]
        silent = [name for name in left if not any(s.outcome is not Outcome.NONE for s in self._by_node.get(name, ()))]
        unproven = sorted({*left} - {*suspects} - {*silent})
        unmeasured = [path for path, count in self._path_silences.items() if count and self._is_unmeasured(path)]
        return Answer(
            findings=tuple(findings),
            suspects=tuple(sorted(suspects)),
            unproven=tuple(unproven),
            silent=tuple(sorted(silent)),
            unmeasured=tuple(self._names_of(path) for path in sorted(unmeasured)),
            rounds=len(self.rounds),
            tests=sum(map(len, self.rounds)),
            final=not self.next_round(),
            seen=tuple(dict.fromkeys(seen for name in sorted(left) for seen in self._by_node.get(name, ()))),
        )

    def _is_unmeasured(self, path: tuple[int, int]) -> bool:
        return path[0] != path[1] and path not in self._path_ok and not self._bad_between_good(path)

    def _names_of(self, path: tuple[int, int]) -> tuple[str, str]:
        return self._block_names[path[0]], self._block_names[path[1]]

    def _add_with_good(self, findings: list[Finding]) -> list[str]:
        """The findings; and those who are neither good nor in a finding."""
        left: list[str] = []
        dark: dict[int, list[str]] = defaultdict(list)
        for name in sorted(self._nodes):
            if name in self._good:
                continue
            if name in self._failed_alone or self._witnesses(name):
                findings.append(Finding(kind=Kind.NODE, nodes=(name,), evidence=self._against(name)))
            elif self._accusers(name) and self._is_dark(self._block[name]):
                dark[self._block[name]].append(name)
            else:
                left.append(name)
        final = not self.next_round()
        for block, nodes in sorted(dark.items()):
            if not final and any(len({self._block[each] for each in self._accusers(n)}) < TARGETS for n in nodes):
                left += nodes
                continue
            evidence = dict.fromkeys(seen for name in nodes for seen in self._against(name))
            whole = (self._block_names[block],)
            findings.append(Finding(kind=Kind.BLOCK, nodes=tuple(nodes), blocks=whole, evidence=tuple(evidence)))
        contradicted: list[tuple[tuple[int, int], list[Seen]]] = []
        for path in sorted(self._path_bad):
            bad = self._bad_between_good(path)
            if bad and self._is_proven(path):
                contradicted.append((path, bad))
            elif bad:
                evidence = dict.fromkeys([*bad, *(self._good[name] for seen in bad for name in seen.test)])
                findings.append(Finding(kind=Kind.PATH, blocks=self._names_of(path), evidence=tuple(evidence)))
        findings += self._unsteady(contradicted)
        return left

    def _unsteady(self, contradicted: Sequence[tuple[tuple[int, int], list[Seen]]]) -> Iterator[Finding]:
        """Nodes that failed with several though all of them pass; and the pairs that these nodes do not explain."""
        partners: dict[str, set[str]] = defaultdict(set)
        for _, bad in contradicted:
            for seen in bad:
                for name in seen.test:
                    partners[name].add(seen.other(name))
        several = {name for name, others in partners.items() if len(others) > 1}
        for name in sorted(several):
            yield Finding(kind=Kind.UNSTEADY_NODE, nodes=(name,), evidence=tuple(self._by_node[name]))
        pairs = dict.fromkeys(seen.test for _, bad in contradicted for seen in bad if not several & {*seen.test})
        for test in pairs:
            passed = (self._good[name] for name in test)
            yield Finding(
                kind=Kind.UNSTEADY_PAIR, nodes=test, evidence=tuple(dict.fromkeys([*self._by_pair[test], *passed]))
            )

    def _against(self, name: str) -> tuple[Seen, ...]:
        """What shows that a node is bad: its results, and that those with whom it failed passed with others."""
        own = self._by_node[name]
        return tuple(dict.fromkeys([*own, *(self._good[other] for other in self._accusers(name))]))

    def _add_without_good(self, findings: list[Finding]) -> list[str]:
        """The same where nobody has passed with anyone."""
        for name in sorted(self._failed_alone):
            findings.append(Finding(kind=Kind.NODE, nodes=(name,), evidence=tuple(self._by_node[name])))
        rest = sorted({*self._nodes} - self._failed_alone)
        among = {*rest}
        bad = [
            seen for each in self.rounds for seen in each if seen.outcome is Outcome.BAD and among.issuperset(seen.test)
        ]
        failed = tuple(sorted({name for seen in bad for name in seen.test}))
        if len(failed) == 2 and len(rest) == 2:
            alone = (seen for name in failed for seen in self._by_node[name] if len(seen.test) == 1)
            findings.append(Finding(kind=Kind.EITHER, nodes=failed, evidence=(*bad, *alone)))
        elif len(rest) > 2 and failed and not self.next_round():
            findings.append(Finding(kind=Kind.COMMON, nodes=failed, evidence=tuple(bad)))
        else:
            return rest
        return [name for name in rest if name not in failed]


_LINES = 12
"""Findings whose evidence is written out; the others are counted."""

_NAMING = (Kind.NODE, Kind.PATH, Kind.BLOCK)

_FIXES = {
    Kind.NODE: "cordon {nodes} and have {them} replaced",
    Kind.BLOCK: "cordon {nodes}, and show the cloud's support that they fail with everyone else",
    Kind.PATH: "show the cloud's support the pairs that fail; keep each job inside one block until it is mended",
    Kind.EITHER: "add a third node, or replace one of {nodes}, and look again",
    Kind.COMMON: "look for what all of them share: the rules of the network between them, the driver, the device "
    "plugin, the image and the settings of the test",
    Kind.UNSTEADY_NODE: "cordon {nodes}, and test {them} for longer",
    Kind.UNSTEADY_PAIR: "run the tests again; if it is the same nodes, cordon both of a pair",
}


def answer_text(answer: Answer) -> Diagnosis:
    """An answer in words."""
    groups: dict[Kind, list[Finding]] = defaultdict(list)
    for each in answer.findings:
        groups[each.kind].append(each)
    ordered = [(kind, groups[kind]) for kind in Kind if kind in groups]
    causes = [_cause(kind, findings) for kind, findings in ordered]
    causes += [
        f"{plural(len(left), 'node')} {what}: {names(left)}"
        for left, what in (
            (answer.suspects, "or the only path tried to each are bad, which was not told apart"),
            (answer.unproven, "could not be tested with a good node"),
            (answer.silent, "gave no result"),
        )
        if left
    ]
    if answer.unmeasured:
        causes.append(f"no result over {_paths(answer.unmeasured)}")
    fixes = [_fix(kind, findings) for kind, findings in ordered]
    if answer.suspects or answer.unproven or answer.silent or answer.unmeasured:
        fixes.append("see why these tests gave no more, and run them again")
    if not causes:
        causes.append("no node and no path was found bad, so what failed did not fail again in pairs")
        fixes.append("run it again; if it fails again, what fails needs more than two nodes at once")
    lines = [line for _, findings in ordered for each in findings for line in _evidence(each)]
    lines += _left_over(answer)
    more = len(lines) - _LINES
    if more > 0:
        lines = [*lines[:_LINES], f"and {plural(more, 'line')} more of this kind"]
    until = "" if answer.final else ", and there are more to come"
    nodes = answer.named()
    return Diagnosis(
        cause="; ".join(causes),
        certainty=Certainty.LIKELY if any(kind in groups for kind in _NAMING) else Certainty.NOT_KNOWN,
        evidence=(*lines, f"{plural(answer.tests, 'test')} in {plural(answer.rounds, 'round')}{until}"),
        fix="; ".join(fixes),
        nodes=tuple(sorted({*nodes, *answer.suspects, *answer.unproven, *answer.silent})),
        heals=not any(kind in groups for kind in (*_NAMING, Kind.EITHER, Kind.COMMON)),
    )


def _paths(paths: Sequence[tuple[str, ...]]) -> str:
    listed = names(f"{one} - {other}" for one, other in paths)
    return f"the path between blocks {listed}" if len(paths) == 1 else f"the paths between blocks {listed}"


def _cause(kind: Kind, findings: Sequence[Finding]) -> str:
    nodes = sorted({name for each in findings for name in each.nodes})
    listed = names(nodes)
    match kind:
        case Kind.NODE:
            verb = "is" if len(nodes) == 1 else "are"
            return (
                f"{plural(len(nodes), 'node')} {verb} bad, failing alone or with nodes that pass with others: {listed}"
            )
        case Kind.PATH:
            listed = _paths([each.blocks for each in findings])
            return f"{listed} {'is' if len(findings) == 1 else 'are'} bad, as nodes at both ends pass with others"
        case Kind.BLOCK:
            blocks = names(each.blocks[0] for each in findings)
            which = f"block {blocks}" if len(findings) == 1 else f"each of the blocks {blocks}"
            return f"no node of {which} passes with anyone, so these nodes or what they share are bad: {listed}"
        case Kind.EITHER:
            return f"one of these two or what is between them is bad, and no test tells which: {listed}"
        case Kind.COMMON:
            return f"common cause: all {plural(len(nodes), 'node')} fail, whoever they are paired with"
        case Kind.UNSTEADY_NODE:
            verb = "passes and fails" if len(nodes) == 1 else "pass and fail"
            return f"{plural(len(nodes), 'node')} {verb} by turns with nodes that pass with others: {listed}"
        case Kind.UNSTEADY_PAIR:
            pairs = names(" - ".join(each.nodes) for each in findings)
            count = plural(len(findings), "pair")
            return f"{count} failed though both nodes and the path between them pass otherwise: {pairs}"


def _fix(kind: Kind, findings: Sequence[Finding]) -> str:
    nodes = sorted({name for each in findings for name in each.nodes})
    return _FIXES[kind].format(nodes=names(nodes), them="it" if len(nodes) == 1 else "them")


def _evidence(finding: Finding) -> Iterator[str]:
    """One line for each node that a finding names; one for the whole of others."""
    if finding.kind not in (Kind.NODE, Kind.BLOCK, Kind.UNSTEADY_NODE):
        what = " - ".join(finding.blocks or finding.nodes) if finding.kind is not Kind.COMMON else "all"
        yield f"{what}: {_results(finding.evidence)}"
        return
    for name in finding.nodes:
        own = [seen for seen in finding.evidence if name in seen.test]
        partners = {seen.other(name) for seen in own}
        others = [seen for seen in finding.evidence if name not in seen.test and partners & {*seen.test}]
        yield f"{name}: {_results(own + others)}"


def _left_over(answer: Answer) -> Iterator[str]:
    for name in (*answer.suspects, *answer.unproven, *answer.silent):
        own = [seen for seen in answer.seen if name in seen.test]
        yield f"{name}: {_results(own) if own else 'not tested'}"


def _results(seen: Sequence[Seen]) -> str:
    shown = "; ".join(f"round {each.round}: {' with '.join(each.test)}: {each.outcome}" for each in seen[:_LINES])
    return shown if len(seen) <= _LINES else f"{shown}; and {plural(len(seen) - _LINES, 'result')} more"


class _Free:
    """The good nodes that are not in a test of this round, by block; first those whose tests give results, and pass."""

    def __init__(self, localiser: Localiser, good: Collection[str]) -> None:
        self._of = localiser
        blocks: dict[int, list[str]] = defaultdict(list)
        silences, failures, place = localiser._silences, localiser._failures, localiser._place
        for name in sorted(good, key=lambda each: (silences[each], failures[each], place[each])):
            blocks[localiser._block[name]].append(name)
        self._blocks = dict(blocks)

    def __iter__(self) -> Iterator[int]:
        return iter([block for block, nodes in self._blocks.items() if nodes])

    @property
    def blocks(self) -> int:
        """How many blocks have a free node."""
        return len(self._blocks)

    def count(self, block: int) -> int:
        """How many are free in a block."""
        return len(self._blocks.get(block, ()))

    def take(self, block: int, partner: str) -> str:
        """One of a block that has not been tested with this partner; empty where there is none."""
        for name in self._blocks.get(block, ()):
            if not self._of._told(name, partner):
                self._remove(name)
                return name
        return ""

    def take_both(self, test: Test) -> bool:
        """Whether both nodes were free; they are taken then."""
        if not all(name in self._blocks.get(self._of._block[name], ()) for name in test):
            return False
        for name in test:
            self._remove(name)
        return True

    def take_path(self, path: tuple[int, int]) -> Test | None:
        """A pair over a path, of nodes that were not tested with each other; none where there is none."""
        one, other = (self._blocks.get(block, ()) for block in path)
        if not one or not other:
            return None
        for first in one:
            second = next((each for each in other if not self._of._told(first, each)), None)
            if second is not None:
                self._remove(first)
                self._remove(second)
                return pair(first, second)
        return None

    def _remove(self, name: str) -> None:
        block = self._of._block[name]
        self._blocks[block].remove(name)
        if not self._blocks[block]:
            del self._blocks[block]


def _count_at(depth: int, members: Sequence[Member]) -> int:
    """How many blocks there are at a layer, each node without a label there being one."""
    labelled = [each.layers[:depth] for each in members if len(each.layers) >= depth]
    return len(set(labelled)) + len(members) - len(labelled)


def _path(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many layers from the top two places have in common."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _tournament(count: int) -> Iterator[tuple[int, int]]:
    """All pairs of so many, in rounds in which everyone plays once: as many rounds as there are, or one fewer if even.

    The last one stays, the others go round: https://en.wikipedia.org/wiki/Round-robin_tournament#Circle_method
    """
    ring = list(range(count)) + ([-1] if count % 2 else [])
    for _ in range(len(ring) - 1):
        for one, other in zip(ring[: len(ring) // 2], reversed(ring[len(ring) // 2 :]), strict=True):
            if one >= 0 and other >= 0:
                yield _path(one, other)
        ring = [ring[0], ring[-1], *ring[1:-1]]
