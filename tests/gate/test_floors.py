"""Floors of versions, and huge pages: what a fabric needs of the node beside its devices."""

import pytest

from plumbline.gate.phases import advertised_phase, nodes_phase
from plumbline.gate.proof import identities
from plumbline.gate.verdict import Verdict
from tests.gate.clusters import EXPECTED, NAMES, cni, node, snapshot


@pytest.mark.parametrize(
    ("tag", "verdict"),
    [
        ("v1.18.3-eksbuild.1", Verdict.FAIL),
        ("v1.7.10", Verdict.FAIL),
        ("v1.18.5-eksbuild.1", Verdict.PASS),
        ("v1.21.1", Verdict.PASS),
    ],
)
def test_cni_below_its_floor_fails_every_node_and_says_how_to_update_it(tag: str, verdict: Verdict) -> None:
    result = nodes_phase(EXPECTED, snapshot(others=[cni(tag)]))
    assert result.verdict is verdict
    if verdict is Verdict.FAIL:
        [diagnosis] = result.diagnoses
        assert diagnosis.nodes == NAMES
        assert f"amazon-k8s-cni:{tag}" in diagnosis.evidence[0]
        assert "aws eks update-addon --addon-name vpc-cni" in diagnosis.fix


def test_pool_without_efa_only_interfaces_does_not_care() -> None:
    plain = EXPECTED.model_copy(update={"cni_floor": None})
    result = nodes_phase(plain, snapshot(others=[cni("v1.7.0")]))
    assert (result.verdict, result.warnings) == (Verdict.PASS, ())


@pytest.mark.parametrize(
    ("others", "says"),
    [([], "there is no DaemonSet kube-system/aws-node"), ([cni("latest")], "has no version in its tag")],
)
def test_cni_that_cannot_be_told_warns(others: list[dict[str, object]], says: str) -> None:
    result = nodes_phase(EXPECTED, snapshot(others=others))
    assert result.verdict is Verdict.PASS
    assert says in result.warnings[0]


def test_cni_is_part_of_what_was_proven() -> None:
    before, after = (identities(snapshot(others=[cni(tag)])) for tag in ("v1.20.1", "v1.21.1"))
    assert before[NAMES[0]]["CNI"].endswith(":v1.20.1")
    assert before != after


@pytest.mark.parametrize(("version", "verdict"), [("570.124.06", Verdict.FAIL), ("580.95.05", Verdict.PASS)])
def test_driver_that_is_too_old_for_the_machine_is_named(version: str, verdict: Verdict) -> None:
    b200 = EXPECTED.model_copy(update={"driver_floor": "570.133.20"})
    labelled = node(NAMES[0], labels={"nvidia.com/cuda.driver-version.full": version})
    result = nodes_phase(b200, snapshot(nodes=[labelled, node(NAMES[1])]))
    assert result.verdict is verdict
    if verdict is Verdict.FAIL:
        [diagnosis] = result.diagnoses
        assert diagnosis.nodes == (NAMES[0],)
        assert diagnosis.evidence == (f"{NAMES[0]}: 570.124.06", "needed: 570.133.20 or newer")


def test_node_without_huge_pages_warns_by_name() -> None:
    bare = {"allocatable": {"hugepages-2Mi": "0"}}
    result = advertised_phase(EXPECTED, snapshot(nodes=[node(NAMES[0], **bare), node(NAMES[1])]))
    assert result.verdict is Verdict.PASS
    assert result.warnings == (
        "no huge pages of 2 MiB on ip-10-20-1-17: the image does not set them aside, and EFA is slower",
    )
    assert advertised_phase(EXPECTED, snapshot()).warnings == ()
