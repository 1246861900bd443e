"""A declaration with mistakes gets one message that lists all of them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.site import Problem, SiteError, read_site
from plumbline.site.schema import text
from tests.sites import GOOD, declare, declare_pool


def problems(raw: object) -> dict[str, Problem]:
    with pytest.raises(SiteError) as caught:
        read_site(raw)
    return {problem.where: problem for problem in caught.value.problems}


def test_good_declaration_is_read() -> None:
    site, warnings = read_site(GOOD)
    assert site.pools[0].nodes == 2
    assert site.proof.valid.days == 7
    assert warnings == ()


def test_structure_and_rules_are_reported_together_each_with_its_path() -> None:
    raw = declare(
        name="Train",
        regio="us-west-2",
        network={"cidr": "10.20.0.0/28", "zone": ["x"]},
        cluster={"version": 1.34},
        proof={"within": "soon"},
        pools=[
            {**GOOD["pools"][0], "machine": "p5.48xlarg", "nodes": "two", "fabric": "ef"},
            {**GOOD["pools"][0], "capacity": {"kind": "reservatio", "id": "cr-0", "zone": "us-west-2b"}},
            {**GOOD["pools"][0], "name": "c", "capacity": {"kind": "on-demand", "zone": "eu-west-1a"}},
        ],
    )
    found = problems(raw)
    assert set(found) == {
        "plumbline:site.name",
        "plumbline:site.regio",
        "plumbline:site.network.zone",
        "plumbline:site.cluster.version",
        "plumbline:site.proof.within",
        "plumbline:site.pools[0].machine",
        "plumbline:site.pools[0].nodes",
        "plumbline:site.pools[0].fabric",
        "plumbline:site.pools[1].capacity.kind",
        "plumbline:site.pools[1].name",
        "plumbline:site.pools[2].capacity.zone",
    }
    assert found["plumbline:site.regio"].next == "did you mean region?"
    assert found["plumbline:site.pools[0].machine"].next == "did you mean p5.48xlarge?"
    assert found["plumbline:site.pools[0].nodes"].found == '"two"'
    assert found["plumbline:site.pools[0].fabric"].next == "did you mean efa?"
    assert found["plumbline:site.pools[1].capacity.kind"].next == "did you mean reservation?"
    assert "us-west-2" in found["plumbline:site.pools[2].capacity.zone"].needed


def test_message_names_path_found_needed_and_next_step() -> None:
    with pytest.raises(SiteError) as caught:
        read_site(declare_pool(nodes=0))
    message = str(caught.value)
    assert message.startswith("the site cannot be built: 1 problem; nothing was changed")
    assert "plumbline:site.pools[0].nodes\n    found:  0\n    needed: greater than or equal to 1" in message


def test_missing_fields_say_what_to_add() -> None:
    found = problems({})
    assert found["plumbline:site.region"].found == "nothing"
    assert found["plumbline:site.region"].next == 'add region, for example "us-west-2"'
    assert found["plumbline:site.pools"].needed == "a list of pools, one at least"


@pytest.mark.parametrize("raw", [None, 3, "site", [], {"pools": {}}, {"pools": [None, 7, "x"]}])
def test_nonsense_is_refused_and_never_crashes(raw: object) -> None:
    assert problems(raw)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(field=st.sampled_from(sorted(GOOD)), value=_json)
def test_any_value_in_any_field_is_read_or_refused_with_a_message(field: str, value: object) -> None:
    try:
        site, _ = read_site({**GOOD, field: value})
    except SiteError as error:
        assert all(problem.next and problem.needed for problem in error.problems)
    else:
        assert site.pools


@given(field=st.sampled_from([*GOOD["pools"][0], "ami_release", "on_destroy", "other"]), value=_json)
def test_any_value_in_any_field_of_a_pool_is_read_or_refused(field: str, value: object) -> None:
    try:
        read_site(declare_pool(**{field: value}))
    except SiteError as error:
        assert all(problem.where.startswith("plumbline:site") for problem in error.problems)


def test_one_zone_is_refused_before_eks_refuses_it() -> None:
    found = problems(declare(network={"cidr": "10.20.0.0/16"}))
    assert found["plumbline:site.network.zones"].next.startswith("add zones: [us-west-2a] under network")


def test_name_has_to_fit_every_generation() -> None:
    found = problems({**declare_pool(name="p" * 40), "name": "s" * 40})
    assert "63 characters" in found["plumbline:site.pools[0].name"].needed


def test_stable_has_to_fit_before_the_deadline() -> None:
    assert "plumbline:site.proof.stable" in problems(declare(proof={"within": "30s", "stable": "60s"}))


def test_version_that_is_not_known_warns_and_does_not_fail() -> None:
    _, warnings = read_site(declare(cluster={"version": "1.99"}))
    assert [warning.where.rpartition(".")[2] for warning in warnings] == ["version", "addons"]


def test_schema_for_editors_is_current() -> None:
    shipped = Path("stacks/site.schema.json").read_text("utf-8")
    assert shipped == text(), "run `make schema`"
    assert json.loads(shipped)["properties"]["config"]["properties"]["plumbline:site"]["required"]
