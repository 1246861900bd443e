"""Two sides that agree, or do not, in single fields."""

from typing import Any

import pytest

from plumbline.review import Graph, Resource, Step, review, review_steps
from plumbline.review.agreements import SubnetPlace, review_lustre_port, review_memlock, review_reservation
from plumbline.review.types import LAUNCH_TEMPLATE, LUSTRE, NODE_GROUP, SECURITY_GROUP

HERE = SubnetPlace(id="subnet-0a", zone="eu-west-1a", zone_id="euw1-az2")
RESERVATION = {
    "CapacityReservationId": "cr-0a",
    "InstanceType": "p5.48xlarge",
    "InstancePlatform": "Linux/UNIX",
    "AvailabilityZone": "eu-west-1a",
    "AvailabilityZoneId": "euw1-az2",
    "AvailableInstanceCount": 4,
    "State": "active",
    "Tenancy": "default",
}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({}, []),
        # The zone's name is each account's own: with both ids, the names do not matter.
        ({"AvailabilityZone": "eu-west-1c"}, []),
        ({"AvailabilityZone": "eu-west-1c", "AvailabilityZoneId": None}, ["AvailabilityZone"]),
        ({"AvailabilityZoneId": "euw1-az1"}, ["AvailabilityZoneId"]),
        ({"InstancePlatform": "Windows"}, ["InstancePlatform"]),
        ({"Tenancy": "dedicated"}, ["Tenancy"]),
        ({"State": "pending", "AvailableInstanceCount": 0}, ["AvailableInstanceCount", "State"]),
    ],
)
def test_each_field_of_a_reservation_is_said_by_itself(change: dict[str, Any], where: list[str]) -> None:
    found = review_reservation({**RESERVATION, **change}, machine="p5.48xlarge", nodes=4, subnets=[HERE])
    assert [each.where for each in found] == where
    assert {each.resource for each in found} <= {"cr-0a"}


def test_ports_of_lustre_on_gke() -> None:
    assert review_lustre_port(gke_support_enabled=True, client_port=6988) == []
    assert review_lustre_port(gke_support_enabled=False, client_port=988) == []
    (found,) = review_lustre_port(gke_support_enabled=True, client_port=988)
    assert "port 6988; nodes dial 988" in found.found


def test_memory_is_locked_by_a_capability_that_is_effective_or_without_a_limit() -> None:
    chown = 1  # CAP_CHOWN, bit 0: a capability, and not the one
    assert [each.rule for each in review_memlock(uid=0, memlock_kib=8192, effective_mask=chown)] == [
        "memory-can-be-locked"
    ]
    assert review_memlock(uid=1000, memlock_kib=8192, effective_mask=1 << 14) == []
    assert review_memlock(uid=1000, memlock_kib=None, effective_mask=0) == []


def test_pool_that_is_deleted_first_may_keep_its_name_and_is_refused_for_that() -> None:
    props = {"nodeGroupName": "train", "instanceTypes": ["m7i.large"]}
    step = Step(op="replace", type=NODE_GROUP, name="a", old=props, new=props, replace_keys=("subnetIds",))
    assert [each.rule for each in review_steps([step])] == ["replacement-has-its-own-name"]
    first = Step(**{**vars(step), "delete_before_replace": True})
    assert review_steps([first]) == []
    gpu = Step(**{**vars(first), "old": {**props, "instanceTypes": ["p5.48xlarge"]}})
    assert [each.rule for each in review_steps([gpu])] == ["gpu-pool-not-replaced", "gpu-pool-not-deleted-first"]


@pytest.mark.parametrize(("first", "last", "closed"), [(988, 1023, 0), (988, 988, 1), (1018, 1023, 1), (0, 65535, 0)])
def test_both_of_lustres_ranges_of_ports_have_to_be_open(first: int, last: int, closed: int) -> None:
    rule = {"protocol": "tcp", "fromPort": first, "toPort": last, "self": True}
    everywhere = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}
    servers = Resource(type=SECURITY_GROUP, name="fsx", id="sg-fsx", props={"ingress": [rule], "egress": [everywhere]})
    system = Resource(type=LUSTRE, name="data", props={"securityGroupIds": ["sg-fsx"], "fileSystemTypeVersion": "2.15"})
    found = review(Graph([system, servers]))
    assert [each.rule for each in found] == ["lustre-ports-open"] * closed


def test_second_efa_interface_on_a_card_says_when_no_card_is_given() -> None:
    def found(**second: Any) -> str:
        nics = [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "efa"}, {"interfaceType": "efa", **second}]
        template = Resource(type=LAUNCH_TEMPLATE, name="lt", props={"networkInterfaces": nics})
        (one,) = review(Graph([template]))
        assert one.rule == "one-efa-per-card"
        return one.found

    assert found(deviceIndex=1).endswith("no networkCardIndex is given")
    assert not found(deviceIndex=1, networkCardIndex=0).endswith("is given")
