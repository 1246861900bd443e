"""Node groups of every kind of capacity: what EKS refuses, what fails later and is kept, and where instances run."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.twin_aws.test_resources import GROUP, Site, machines
from tests.twin_aws.worlds import Engine, Refused, engine

BLOCK, LATER_BLOCK = "cr-0a1b2c3d4e5f60750", "cr-0a1b2c3d4e5f60751"
GROUP_ARN = "arn:aws:resource-groups:us-west-2:123456789012:group/rehearsal-p5"


@pytest.fixture
def aws() -> Iterator[Engine]:
    with engine() as running:
        yield running


def in_block(id_: str = BLOCK, **more: Any) -> dict[str, Any]:
    """What a template says for a block."""
    return {
        "instanceMarketOptions": {"marketType": "capacity-block"},
        "capacityReservationSpecification": {"capacityReservationTarget": {"capacityReservationId": id_}},
        **more,
    }


def reservations(aws: Engine) -> list[str | None]:
    return sorted((d["reservation"] for d in aws.world.store.list("aws-instance").values()), key=str)


def test_a_block_is_used_by_a_group_that_says_so_in_all_places(aws: Engine) -> None:
    inputs = Site(aws).group(nodes=2, template=in_block(), capacityType="CAPACITY_BLOCK")
    _, group = aws.create(GROUP, **inputs)
    assert group["status"] == "ACTIVE"
    assert reservations(aws) == [BLOCK, BLOCK]
    assert {m["labels"]["eks.amazonaws.com/capacityType"] for m in machines(aws)} == {"CAPACITY_BLOCK"}


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no market": (in_block(instanceMarketOptions={}), {}, "market type of the launch template must be capacity-block"),
    "no target": (in_block(capacityReservationSpecification={}), {}, "must specify a capacity reservation target"),
    "no type": (in_block(instanceType=""), {}, "the launch template must specify an instance type"),
    "types of the group": (
        in_block(instanceType=""),
        {"instanceTypes": ["p5.48xlarge"]},
        "the instance type is that of the launch template",
    ),
    "no template": (in_block(), {"launchTemplate": {}}, "needs a launch template"),
    "market of blocks in another group": (
        in_block(),
        {"capacityType": "ON_DEMAND"},
        "needs capacity type CAPACITY_BLOCK",
    ),
    "no room ever": (
        in_block(),
        {"scalingConfig": {"desiredSize": 0, "minSize": 0, "maxSize": 0}},
        "maxSize: valid range is at least 1",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_go_with_a_block_is_refused_at_once(aws: Engine, case: str) -> None:
    template, more, words = WRONG[case]
    inputs = Site(aws).group(template=template, **{"capacityType": "CAPACITY_BLOCK", **more})
    with pytest.raises(Refused, match=words) as caught:
        aws.create(GROUP, **inputs)
    assert "InvalidParameterException" in str(caught.value)
    assert caught.value.kept is None
    assert machines(aws) == []


def test_a_block_that_has_not_begun_takes_nobody_until_it_does(aws: Engine) -> None:
    site = Site(aws)
    inputs = site.group(nodes=2, template=in_block(LATER_BLOCK), capacityType="CAPACITY_BLOCK")
    with pytest.raises(Refused, match=r"PendingActivation - Your Capacity Block is not active yet\.") as caught:
        aws.create(GROUP, **inputs)
    assert caught.value.kept
    with pytest.raises(Refused, match="not active yet"):
        aws.update(GROUP, caught.value.kept.id, {"status": "CREATE_FAILED"}, inputs)
    assert machines(aws) == []
    opened = datetime.now(UTC) - timedelta(hours=21)
    aws.world.store.put("account", "aws", {"opened": opened.isoformat()})
    assert aws.update(GROUP, caught.value.kept.id, {"status": "CREATE_FAILED"}, inputs)["status"] == "ACTIVE"
    assert reservations(aws) == [LATER_BLOCK, LATER_BLOCK]


def test_a_group_that_waits_for_its_block_with_no_nodes_is_fine(aws: Engine) -> None:
    scaling = {"desiredSize": 0, "minSize": 0, "maxSize": 4}
    inputs = Site(aws).group(template=in_block(LATER_BLOCK), capacityType="CAPACITY_BLOCK", scalingConfig=scaling)
    _, group = aws.create(GROUP, **inputs)
    assert group["status"] == "ACTIVE"
    assert machines(aws) == []


def test_a_group_of_reservations_is_filled_and_the_rest_is_on_demand(aws: Engine) -> None:
    spec = {"capacityReservationTarget": {"capacityReservationResourceGroupArn": GROUP_ARN}}
    aws.create(GROUP, **Site(aws).group(nodes=5, template={"capacityReservationSpecification": spec}))
    assert reservations(aws) == [None, *["cr-0a1b2c3d4e5f60764"] * 2, *["cr-0a1b2c3d4e5f60765"] * 2]


def test_a_group_of_reservations_only_is_never_on_demand(aws: Engine) -> None:
    spec = {
        "capacityReservationPreference": "capacity-reservations-only",
        "capacityReservationTarget": {"capacityReservationResourceGroupArn": GROUP_ARN},
    }
    inputs = Site(aws).group(nodes=5, template={"capacityReservationSpecification": spec})
    with pytest.raises(Refused, match=r"ReservationCapacityExceeded .* 5 requested, 4 available") as caught:
        aws.create(GROUP, **inputs)
    assert caught.value.kept
    assert machines(aws) == []


def test_what_runs_on_demand_counts_against_the_quota(aws: Engine) -> None:
    site = Site(aws)
    inputs = site.group(nodes=8, template={"capacityReservationSpecification": {}})
    id_, group = aws.create(GROUP, **inputs)
    more = {**inputs, "scalingConfig": {"desiredSize": 9, "minSize": 9, "maxSize": 9}}
    with pytest.raises(Refused, match=r"VcpuLimitExceeded - .* current vCPU limit of 1536"):
        aws.update(GROUP, id_, group, more, inputs)
    assert reservations(aws) == [None] * 8


def test_a_reservation_of_a_placement_group_is_used_from_that_group(aws: Engine) -> None:
    site = Site(aws)
    _, own = aws.create("aws:ec2/placementGroup:PlacementGroup", name="own", strategy="cluster")
    reserved, _ = aws.create(
        "aws:ec2/capacityReservation:CapacityReservation",
        instanceType="p5.48xlarge",
        instancePlatform="Linux/UNIX",
        instanceMatchCriteria="targeted",
        availabilityZone="us-west-2b",
        instanceCount=2,
        placementGroupArn=own["arn"],
    )
    spec = {"capacityReservationTarget": {"capacityReservationId": reserved}}
    template = {"capacityReservationSpecification": spec, "placement": {"groupName": "own"}}
    aws.create(GROUP, **site.group(nodes=2, template=template))
    assert reservations(aws) == [reserved, reserved]
    template = {**template, "name": "other", "placement": {"groupName": "rehearsal-cluster"}}
    with pytest.raises(Refused, match="InsufficientInstanceCapacity"):
        aws.create(GROUP, **site.group(nodes=1, template=template, nodeGroupName="other"))
