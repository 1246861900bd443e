"""Localising: what is bad is named, nothing else is, and within the rounds that were promised."""

import random
from collections import Counter
from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.gate.localise import Kind, Localiser, Member, Outcome, Seen, Test, answer_text
from plumbline.gate.verdict import Certainty
from tests.gate.fabrics import Fabric, Run, localise, members

OK, BAD, NONE = Outcome.OK, Outcome.BAD, Outcome.NONE

SHAPES = ((2,), (3,), (4,), (8,), (16,), (4, 5, 3), (1, 4, 6), (8, 8, 1), (32,))
"""Sizes of blocks, in turn."""


def nodes_of(count: int, shape: tuple[int, ...] | None) -> list[Member]:
    return members(count, *shape) if shape else [Member(each.name) for each in members(count)]


@st.composite
def fabrics(draw: st.DrawFn, *, bad: str = "none", paths: bool = False) -> Fabric:
    """Fabrics of up to 80 nodes. `bad` is how many bad nodes: `none`, up to a `quarter`, or `more`."""
    shape = draw(st.sampled_from(SHAPES if paths else (None, *SHAPES)))
    # With fewer nodes there can be too few in each block to tell blocks apart by the lowest layer.
    pool = nodes_of(draw(st.integers(2, 80)), shape)
    if paths:
        sizes = Counter(each.layers[-1] for each in pool)
        pool = pool if 2 * len(sizes) <= len(pool) else members(len(pool), 2)[: len(pool) // 2 * 2]
    count = len(pool)
    most = {"none": 0, "quarter": count // 4, "more": count - 1}[bad]
    least = count // 4 if bad == "more" else 0
    which = draw(st.permutations([each.name for each in pool]))[: draw(st.integers(least, most))]
    leaves = sorted({each.layers[-1] for each in pool if each.layers})
    every = [(one, other) for i, one in enumerate(leaves) for other in leaves[i + 1 :]]
    some = draw(st.sets(st.sampled_from(every), max_size=4)) if paths and every else set()
    return Fabric(pool, bad=frozenset(which), paths=frozenset(some), hides=draw(st.booleans()))


def named_after(run: Run, rounds: int) -> set[str]:
    """Who is named or suspected after so many rounds."""
    answer = run.after[min(rounds, len(run.after)) - 1]
    return {*answer.named(), *answer.suspects}


def bound(run: Run) -> int:
    accused, good = run.accused_and_good
    return 1 + ceil(accused / good)


def assert_none_named_too_many(run: Run, fabric: Fabric) -> None:
    """No innocent node or path is named; a block only if each node is bad, or cut off by several bad paths."""
    for answer in run.after:
        assert {*answer.nodes} <= {*fabric.bad}
        assert {*answer.paths} <= {*fabric.paths}
        for finding in answer.findings:
            if finding.kind is Kind.BLOCK:
                cut = sum(1 for path in fabric.paths if finding.blocks[0] in path)
                assert {*finding.nodes} <= {*fabric.bad} or cut >= min(2, len(run.localiser.blocks) - 1), finding
            assert finding.kind in (Kind.NODE, Kind.PATH, Kind.BLOCK), finding
            for seen in finding.evidence:
                assert seen in run.localiser.rounds[seen.round - 1]


# Bounds


@pytest.mark.parametrize("shape", [None, (16,), (32, 7)], ids=["no labels", "blocks of 16", "blocks of 32 and 7"])
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 33, 64, 127, 256, 512, 1001, 2048, 4096])
def test_two_rounds_name_up_to_a_quarter(count: int, shape: tuple[int, ...] | None) -> None:
    pool = nodes_of(count, shape)
    for seed, share in enumerate((0.25, 0.1)):
        dice = random.Random(count * 10 + seed)
        bad = {each.name for each in dice.sample(pool, int(count * share))}
        run = localise(Fabric(pool, bad=bad), paths=False)
        assert named_after(run, 2) == bad
        assert {*run.answer.named(Kind.NODE, Kind.BLOCK)} == bad
        assert not run.answer.suspects + run.answer.unproven + run.answer.silent
        if shape is None:
            # A third round clears the last innocent one, where there are 4 B + 1 nodes.
            assert run.answer.rounds <= (3 if count == 4 * len(bad) + 1 else 2)


@settings(max_examples=150, deadline=None)
@given(fabrics(bad="quarter"))
def test_a_quarter_is_named_exactly_in_two_rounds(fabric: Fabric) -> None:
    run = localise(fabric)
    assert named_after(run, 2) == {*fabric.bad}
    assert {*run.answer.named(Kind.NODE, Kind.BLOCK)} == {*fabric.bad}
    assert run.answer.paths == ()
    assert run.answer.final
    assert run.answer.rounds <= bound(run) + len(run.localiser.blocks)
    assert_none_named_too_many(run, fabric)


@settings(max_examples=150, deadline=None)
@given(fabrics(bad="more"))
def test_beyond_a_quarter_it_takes_the_accused_by_the_good(fabric: Fabric) -> None:
    run = localise(fabric)
    if not run.accused_and_good[1]:
        # Nobody passed in round 1: who is named failed alone, or with a good node that was found later.
        assert {*run.answer.nodes} <= {*fabric.bad}
        assert run.answer.named() or run.answer.unproven
        return
    assert named_after(run, bound(run)) == {*fabric.bad}
    assert {*run.answer.named(Kind.NODE, Kind.BLOCK)} == {*fabric.bad}
    # Each node of a block without a good one is tested once more.
    assert run.answer.rounds <= 2 * bound(run) - 1 + len(run.localiser.blocks)
    assert_none_named_too_many(run, fabric)


def test_who_was_not_tested_with_a_good_node_comes_first() -> None:
    """Two good nodes among many: second tests of one block may not hold up the first tests of another."""
    for seed in range(40):
        dice = random.Random(seed)
        pool = members(17 + seed, 3, 2)
        good = {pool[-2].name, pool[-3].name, *(each.name for each in dice.sample(pool, 2))}
        run = localise(Fabric(pool, bad={each.name for each in pool} - good))
        if run.accused_and_good[1]:
            assert named_after(run, bound(run)) == {each.name for each in pool} - good


@settings(max_examples=150, deadline=None)
@given(fabrics(paths=True))
def test_bad_paths_are_named_in_as_many_rounds_as_blocks(fabric: Fabric) -> None:
    run = localise(fabric)
    assert_none_named_too_many(run, fabric)
    assert run.answer.rounds <= bound(run) + len(run.localiser.blocks)
    whole = {block for each in run.answer.findings if each.kind is Kind.BLOCK for block in each.blocks}
    assert {path for path in fabric.paths if not whole & {*path}} <= {*run.answer.paths}
    assert run.answer.nodes == ()


@settings(max_examples=200, deadline=None)
@given(fabrics(bad="quarter", paths=True))
def test_bad_nodes_and_bad_paths_together(fabric: Fabric) -> None:
    run = localise(fabric)
    if not run.accused_and_good[1]:
        return
    assert_none_named_too_many(run, fabric)
    assert run.answer.rounds <= bound(run) + len(run.localiser.blocks)
    assert {*fabric.bad} <= {*run.answer.named(Kind.NODE, Kind.BLOCK)}
    whole = {block for each in run.answer.findings if each.kind is Kind.BLOCK for block in each.blocks}
    dead = {block for block, nodes in run.localiser.blocks.items() if {*nodes} <= {*fabric.bad}}
    assert {path for path in fabric.paths if not (whole | dead) & {*path}} <= {*run.answer.paths}


@settings(max_examples=60, deadline=None)
@given(fabrics(bad="quarter"), st.integers(0, 1000), st.data())
def test_no_single_unsteady_node_accuses_another_before_two_witnesses(
    fabric: Fabric, seed: int, data: st.DataObject
) -> None:
    good = [each.name for each in fabric.members if each.name not in fabric.bad]
    unsteady = data.draw(st.sampled_from(good))
    run = localise(replace(fabric, flaky={unsteady}, seed=seed), witnesses=2, paths=False)
    if len(good) >= 2 * (len(fabric.bad) + 2):
        # Else there may be no second good node to ask.
        assert {*run.answer.nodes} <= {*fabric.bad, unsteady}
    failed = [seen for each in run.localiser.rounds for seen in each if seen.outcome is BAD and unsteady in seen.test]
    others = [seen.other(unsteady) for seen in failed if seen.other(unsteady) not in fabric.bad]
    if others:
        assert run.answer.findings, "a good node failed with an unsteady one, and nothing is said of it"


@settings(max_examples=60, deadline=None)
@given(fabrics(bad="quarter", paths=True), st.data())
def test_no_result_is_never_good(fabric: Fabric, data: st.DataObject) -> None:
    fabric.silent = data.draw(st.sets(st.sampled_from([each.name for each in fabric.members]), max_size=3))
    run = localise(fabric)
    answer = run.answer
    assert answer.final
    if any(seen.outcome is OK for each in run.localiser.rounds for seen in each if len(seen.test) == 2):
        # Else nobody is there to show whose silence it was.
        assert {*answer.silent} <= {*fabric.silent}
    assert not {*answer.named()} & {*fabric.silent}
    assert {*fabric.silent} <= {*answer.silent, *answer.unproven}


@settings(max_examples=60, deadline=None)
@given(fabrics(bad="more", paths=True))
def test_the_same_results_lead_to_the_same_state(fabric: Fabric) -> None:
    run = localise(fabric)
    again = Localiser(list(reversed(fabric.members)))
    for each in run.localiser.rounds:
        assert again.next_round() == tuple(seen.test for seen in each)
        again.record({seen.test: seen.outcome for seen in each})
    assert again.answer() == run.answer


# Small pools


def test_a_pool_of_two_that_passes_is_done_after_one_round() -> None:
    run = localise(Fabric(nodes_of(2, None)))
    assert [len(each) for each in run.localiser.rounds] == [1]
    assert run.answer.findings == ()


def test_a_pool_of_two_is_told_apart_alone() -> None:
    run = localise(Fabric(nodes_of(2, None), bad={"n0001"}))
    assert [seen.test for seen in run.localiser.rounds[1]] == [("n0000",), ("n0001",)]
    assert run.answer.nodes == ("n0001",)
    assert run.answer.unproven == ("n0000",)
    text = answer_text(run.answer)
    assert text.cause == (
        "1 node is bad, failing alone or with nodes that pass with others: n0001; "
        "1 node could not be tested with a good node: n0000"
    )
    assert text.evidence == (
        "n0001: round 1: n0000 with n0001: bad; round 2: n0001: bad",
        "n0000: round 1: n0000 with n0001: bad; round 2: n0000: ok",
        "3 tests in 2 rounds",
    )


@pytest.mark.parametrize(("singles", "rounds"), [(True, 2), (False, 1)])
def test_one_of_two_where_no_test_tells_which(singles: bool, rounds: int) -> None:
    run = localise(Fabric(nodes_of(2, None), bad={"n0001"}, hides=True), singles=singles)
    assert run.answer.rounds == rounds
    assert [(each.kind, each.nodes) for each in run.answer.findings] == [(Kind.EITHER, ("n0000", "n0001"))]
    text = answer_text(run.answer)
    assert text.cause == ("one of these two or what is between them is bad, and no test tells which: n0000, n0001")
    assert text.certainty is Certainty.NOT_KNOWN
    assert text.fix == "add a third node, or replace one of n0000, n0001, and look again"


def test_a_pool_of_one_is_tested_alone_and_never_proven() -> None:
    good = localise(Fabric(nodes_of(1, None))).answer
    assert (good.findings, good.unproven, good.final) == ((), ("n0000",), True)
    assert localise(Fabric(nodes_of(1, None), bad={"n0000"})).answer.nodes == ("n0000",)


@pytest.mark.parametrize("bad", ["n0000", "n0001", "n0002"])
@pytest.mark.parametrize("hides", [True, False])
def test_one_bad_of_three(bad: str, hides: bool) -> None:
    run = localise(Fabric(nodes_of(3, None), bad={bad}, hides=hides))
    assert run.answer.nodes == (bad,)
    assert not run.answer.unproven


# Nobody passes


def test_all_fail_with_all_is_a_common_cause() -> None:
    run = localise(Fabric(nodes_of(20, (4,)), bad={f"n{i:04}" for i in range(20)}, hides=True))
    assert [{len(seen.test) for seen in each} for each in run.localiser.rounds] == [{2}, {1}, {2}, {2}]
    pairs = [seen.test for each in run.localiser.rounds for seen in each if len(seen.test) == 2]
    assert len(set(pairs)) == 30
    assert [(each.kind, len(each.nodes)) for each in run.answer.findings] == [(Kind.COMMON, 20)]
    text = answer_text(run.answer)
    assert text.cause == "common cause: all 20 nodes fail, whoever they are paired with"
    assert text.fix.startswith("look for what all of them share: the rules of the network between them")
    assert not text.heals


def test_all_fail_alone() -> None:
    run = localise(Fabric(nodes_of(6, None), bad={f"n{i:04}" for i in range(6)}))
    assert run.answer.rounds == 2
    assert len(run.answer.nodes) == 6


def test_the_only_good_node_is_not_named_and_not_called_good() -> None:
    run = localise(Fabric(nodes_of(9, (3,)), bad={f"n{i:04}" for i in range(9) if i != 4}))
    assert run.answer.nodes == tuple(f"n{i:04}" for i in range(9) if i != 4)
    assert run.answer.unproven == ("n0004",)


def test_one_bad_in_every_pair_is_found_after_other_partners() -> None:
    bad = {"n0000", "n0003", "n0004", "n0007"}
    run = localise(Fabric(nodes_of(8, None), bad=bad, hides=True))
    assert {*run.answer.nodes} == bad


def test_no_result_at_all_names_nobody() -> None:
    pool = nodes_of(4, None)
    run = localise(Fabric(pool, silent={each.name for each in pool}))
    assert (run.answer.rounds, run.answer.findings) == (3, ())
    assert run.answer.silent == tuple(each.name for each in pool)
    text = answer_text(run.answer)
    assert text.cause == "4 nodes gave no result: n0000, n0001, n0002, n0003"
    assert text.certainty is Certainty.NOT_KNOWN
    assert text.heals


def test_silence_is_whose_it_is_once_others_are_paired() -> None:
    run = localise(Fabric(nodes_of(4, None), silent={"n0001", "n0002"}))
    assert run.answer.silent == ("n0001", "n0002")
    assert [seen.test for seen in run.localiser.rounds[1]] == [("n0000", "n0002"), ("n0001", "n0003")]
    assert ("n0000", "n0003") in [seen.test for seen in run.localiser.rounds[2] if seen.outcome is OK]


def test_a_pool_of_one_without_a_result_is_asked_again() -> None:
    answer = localise(Fabric(nodes_of(1, None), silent={"n0000"})).answer
    assert (answer.rounds, answer.silent) == (3, ("n0000",))


# Topology


def test_the_first_round_stays_inside_blocks_and_then_near() -> None:
    pool = members(24, 3, 4, 5)
    first = Localiser(pool).next_round()
    layers = {each.name: each.layers for each in pool}
    across = [test for test in first if layers[test[0]] != layers[test[1]]]
    assert [[layers[name][1:] for name in test] for test in across] == [
        [("spine000", "leaf000"), ("spine000", "leaf002")],
        [("spine001", "leaf003"), ("spine001", "leaf005")],
    ]
    assert len(first) == 12


def test_the_accused_are_tested_in_the_nearest_block_that_has_good_nodes() -> None:
    """Two of the four blocks are below the same layer; in one of them every pair has a bad node."""
    pool = members(24, 4)
    run = localise(Fabric(pool, bad={"n0012", "n0014"}))
    tests = {name: seen.other(name) for seen in run.localiser.rounds[1] for name in seen.test}
    layers = {each.name: each.layers for each in pool}
    assert [layers[tests[f"n{i:04}"]][1:] for i in (12, 13, 14, 15)] == [("spine001", "leaf004")] * 4
    assert run.answer.nodes == ("n0012", "n0014")


def test_a_bad_path_with_all_nodes_good() -> None:
    run = localise(Fabric(members(16, 4), paths={("leaf001", "leaf003")}))
    assert run.answer.paths == (("leaf001", "leaf003"),)
    assert run.answer.named() == ()
    text = answer_text(run.answer)
    assert text.cause == "the path between blocks leaf001 - leaf003 is bad, as nodes at both ends pass with others"
    assert text.nodes == ()
    assert "keep each job inside one block" in text.fix
    assert text.evidence[0].startswith("leaf001 - leaf003: round 2: n0005 with n0013: bad; round 1: ")


def test_a_block_in_which_nobody_passes_is_named_as_a_whole() -> None:
    run = localise(Fabric(members(8, 2), bad={"n0002", "n0003"}))
    assert [(each.kind, each.nodes, each.blocks) for each in run.answer.findings] == [
        (Kind.BLOCK, ("n0002", "n0003"), ("leaf001",))
    ]
    text = answer_text(run.answer)
    assert text.cause == (
        "no node of block leaf001 passes with anyone, so these nodes or what they share are bad: n0002, n0003"
    )
    assert text.fix.startswith("cordon n0002, n0003, and show the cloud's support")


def test_a_block_behind_a_bad_path_is_not_named_if_another_path_is_good() -> None:
    run = localise(Fabric(members(8, 2), bad={"n0002"}, paths={("leaf000", "leaf001")}))
    assert [each.named(Kind.BLOCK) for each in run.after] == [(), (), (), ()]
    assert run.after[1].suspects == ("n0002", "n0003")
    assert run.answer.nodes == ("n0002",)
    assert run.answer.paths == (("leaf000", "leaf001"),)


def test_a_node_is_a_suspect_until_its_path_is_shown_to_be_good() -> None:
    """Two more accused than the block has good nodes: both fail over a path that nobody has passed."""
    run = localise(Fabric(members(12, 6), bad={"n0002", "n0003", "n0004", "n0005"}))
    assert run.after[1].nodes == ("n0002", "n0003")
    assert run.after[1].suspects == ("n0004", "n0005")
    assert "2 nodes or the only path tried to each are bad, which was not told apart: n0004, n0005" in (
        answer_text(run.after[1]).cause
    )
    assert run.answer.nodes == ("n0002", "n0003", "n0004", "n0005")
    assert run.answer.suspects == ()


def test_blocks_are_of_the_lowest_layer_that_has_two_nodes_each() -> None:
    assert len(Localiser(members(12, 2)).blocks) == 6
    assert [*Localiser(members(12, 1)).blocks] == ["spine000", "spine001", "spine002", "spine003"]
    assert [*Localiser(nodes_of(5, None)).blocks] == ["all"]


def test_a_node_without_labels_is_a_block_by_itself() -> None:
    localiser = Localiser([*members(8, 4), Member("bare")])
    assert localiser.blocks["bare"] == ("bare",)
    assert localise(Fabric([*members(8, 4), Member("bare")], bad={"bare"})).answer.named() == ("bare",)


def test_labels_that_are_alike_under_other_layers_are_other_blocks() -> None:
    pool = [Member(f"{top}{i}", (top, "rack-1")) for top in ("a", "b") for i in range(3)]
    assert [*Localiser(pool).blocks] == ["a/rack-1", "b/rack-1"]


# Results that contradict each other


def test_a_pair_that_failed_and_then_passes_is_unsteady() -> None:
    given_results = Counter[Test]()

    def gives(test: Test) -> Outcome:
        given_results[test] += 1
        return BAD if test == ("n0000", "n0001") and given_results[test] == 1 else OK

    run = localise(Fabric(nodes_of(8, None)), gives=gives)
    assert [(each.kind, each.nodes) for each in run.answer.findings] == [(Kind.UNSTEADY_PAIR, ("n0000", "n0001"))]
    text = answer_text(run.answer)
    assert text.cause == ("1 pair failed though both nodes and the path between them pass otherwise: n0000 - n0001")
    assert text.certainty is Certainty.NOT_KNOWN
    assert text.heals
    assert "round 1: n0000 with n0001: bad; round 3: n0000 with n0001: ok" in text.evidence[0]


def test_a_node_that_passes_with_one_and_fails_with_several_good_ones_is_unsteady() -> None:
    def gives(test: Test) -> Outcome:
        return BAD if test in (("n0000", "n0001"), ("n0000", "n0002")) else OK

    run = localise(Fabric(nodes_of(8, None)), gives=gives, witnesses=3)
    assert [(each.kind, each.nodes) for each in run.answer.findings] == [(Kind.UNSTEADY_NODE, ("n0000",))]
    assert "1 node passes and fails by turns" in answer_text(run.answer).cause


def test_a_path_over_which_some_pass_and_some_fail_is_not_called_bad() -> None:
    run = localise(Fabric(members(6, 3)), gives=lambda test: BAD if test == ("n0002", "n0005") else OK)
    assert run.answer.paths == ()
    assert [(each.kind, each.nodes) for each in run.answer.findings] == [(Kind.UNSTEADY_PAIR, ("n0002", "n0005"))]


# Words and arguments


def test_nothing_found_is_said_as_that() -> None:
    text = answer_text(localise(Fabric(members(16, 4))).answer)
    assert text.cause == "no node and no path was found bad, so what failed did not fail again in pairs"
    assert text.certainty is Certainty.NOT_KNOWN
    assert text.nodes == ()


def test_bad_nodes_in_words() -> None:
    text = answer_text(localise(Fabric(nodes_of(8, None), bad={"n0003"})).answer)
    assert text.cause == "1 node is bad, failing alone or with nodes that pass with others: n0003"
    assert text.certainty is Certainty.LIKELY
    assert text.nodes == ("n0003",)
    assert not text.heals
    assert text.fix == "cordon n0003 and have it replaced"
    assert text.evidence == (
        "n0003: round 1: n0002 with n0003: bad; round 2: n0001 with n0003: bad; "
        "round 2: n0000 with n0002: ok; round 1: n0000 with n0001: ok",
        "6 tests in 2 rounds",
    )


def test_many_bad_nodes_are_not_all_written_out() -> None:
    bad = {f"n{i:04}" for i in range(0, 400, 4)}
    text = answer_text(localise(Fabric(nodes_of(400, None), bad=bad)).answer)
    assert len(text.evidence) == 14
    assert text.evidence[12] == "and 88 lines more of this kind"
    assert "and 92 more" in text.cause
    assert {*text.nodes} == bad


def test_a_path_without_a_result_is_said() -> None:
    def gives(test: Test) -> Outcome:
        return NONE if (test[0] < "n0004") != (test[1] < "n0004") else OK

    run = localise(Fabric(members(8, 4)), gives=gives)
    assert run.answer.unmeasured == (("leaf000", "leaf001"),)
    assert answer_text(run.answer).cause == "no result over the path between blocks leaf000 - leaf001"


def test_an_answer_before_the_end_says_so() -> None:
    localiser = Localiser(nodes_of(4, None))
    localiser.record({("n0000", "n0001"): BAD, ("n0002", "n0003"): OK})
    answer = localiser.answer()
    assert (answer.final, answer.findings, answer.suspects) == (False, (), ())
    assert answer.unproven == ("n0000", "n0001")
    assert answer_text(answer).evidence[-1] == "2 tests in 1 round, and there are more to come"


def test_a_result_that_is_missing_is_no_result() -> None:
    localiser = Localiser(nodes_of(4, None))
    localiser.record({("n0000", "n0001"): OK})
    assert localiser.rounds[0][1] == Seen(1, ("n0002", "n0003"), NONE)
    assert localiser.next_round() == (("n0000", "n0002"), ("n0001", "n0003"))


def test_what_can_not_be_localised() -> None:
    with pytest.raises(ValueError, match="a pool without nodes"):
        Localiser([])
    with pytest.raises(ValueError, match="nodes that are there twice: a"):
        Localiser([Member("a"), Member("b"), Member("a")])
    localiser = Localiser(nodes_of(2, None))
    with pytest.raises(ValueError, match="not in this round"):
        localiser.record({("n0000", "n0002"): OK})
    localiser.record({("n0000", "n0001"): OK})
    with pytest.raises(ValueError, match="not in this round"):
        localiser.record({})
