"""What EC2 refuses when a node group's instances are launched: each rule with what it refuses and what it lets pass."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from twin.aws.facts import account, machine
from twin.aws.launch import Launch, check_launch, reservations_of
from twin.aws.refusal import LaunchFailure

RESERVATION = "cr-0a1b2c3d4e5f60718"


def nic(card: int, device: int, kind: str = "efa-only", **more: Any) -> dict[str, Any]:
    return {"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind, **more}


def target(id_: str, **more: Any) -> dict[str, Any]:
    return {"capacityReservationTarget": {"capacityReservationId": id_}, **more}


def group_target(name: str, **more: Any) -> dict[str, Any]:
    arn = f"arn:aws:resource-groups:us-west-2:123456789012:group/{name}"
    return {"capacityReservationTarget": {"capacityReservationResourceGroupArn": arn}, **more}


P5 = [nic(0, 0, "interface"), nic(0, 1), *(nic(card, 0) for card in range(1, 32))]


def launch(
    count: int = 2,
    used: int = 0,
    capacity_type: str = "ON_DEMAND",
    fault: str | None = None,
    zone: str = "us-west-2b",
    running: dict[str, int] | None = None,
    **template: Any,
) -> Launch:
    return Launch(
        group="train-h100-1",
        template={
            "instanceType": "p5.48xlarge",
            "networkInterfaces": P5,
            "capacityReservationSpecification": target(RESERVATION),
            **template,
        },
        capacity_type=capacity_type,
        instance_types=(),
        zone=zone,
        count=count,
        account=account(),
        used={RESERVATION: used},
        on_demand=running or {},
        reservation_zone=fault,
    )


def test_good_launch_gives_the_machine() -> None:
    assert check_launch(launch()).gpus == 8
    assert check_launch(launch(count=16)).efa_interfaces == 32


BAD: dict[str, tuple[Launch, str, str]] = {
    "unknown machine": (launch(instanceType="p9.huge"), "InvalidParameterValue", "do not exist: [p9.huge]"),
    "two EFA on a card": (
        launch(networkInterfaces=[nic(0, 0, "interface"), nic(1, 0), nic(1, 1)]),
        "AttachmentLimitExceeded",
        "limit of 1 EFA for network card '1'",
    ),
    "card that is not there": (
        launch(networkInterfaces=[nic(0, 0, "interface"), nic(32, 0)]),
        "InvalidParameterValue",
        "index '32' is not valid",
    ),
    "EFA on card 0 of p6-b300": (
        launch(instanceType="p6-b300.48xlarge", networkInterfaces=[nic(0, 0, "interface"), nic(0, 1)]),
        "AttachmentLimitExceeded",
        "'0' of p6-b300.48xlarge takes no efa-only",
    ),
    "no primary": (launch(networkInterfaces=[nic(1, 0)]), "InvalidParameterValue", "device index 0 on network card 0"),
    "primary without address": (
        launch(networkInterfaces=[nic(0, 0)]),
        "InvalidParameterValue",
        "cannot be of type efa-only",
    ),
    "place taken twice": (
        launch(networkInterfaces=[nic(0, 0, "interface"), nic(1, 0, "interface"), nic(1, 0)]),
        "InvalidParameterValue",
        "Duplicate device index '0' on network card '1'",
    ),
    "too many on a card": (
        launch(networkInterfaces=[nic(0, 0, "interface"), nic(0, 1), nic(0, 2, "interface")]),
        "InvalidParameterValue",
        "The maximum devices for this network card is 2. Specify a number from 0 to 1",
    ),
    "public address on several": (
        launch(networkInterfaces=[nic(0, 0, "interface", associatePublicIpAddress="true"), nic(1, 0)]),
        "InvalidParameterCombination",
        "associatePublicIPAddress",
    ),
    "reservation unknown": (
        launch(capacityReservationSpecification=target("cr-0ffffffffffffffff")),
        "InvalidCapacityReservationId.NotFound",
        "does not exist",
    ),
    "reservation over": (
        launch(capacityReservationSpecification=target("cr-0a1b2c3d4e5f6071c")),
        "InvalidCapacityReservationId.NotFound",
        "is expired",
    ),
    "reservation in another zone": (
        launch(capacityReservationSpecification=target("cr-0a1b2c3d4e5f60719")),
        "InvalidParameterValue",
        "is in Availability Zone us-west-2c, and the request is for Availability Zone us-west-2b",
    ),
    "reservation of another machine": (
        launch(capacityReservationSpecification=target("cr-0a1b2c3d4e5f6071a")),
        "InvalidParameterValue",
        "does not match the instance type p5en.48xlarge",
    ),
    "more than the reservation has": (launch(count=17), "ReservationCapacityExceeded", "17 requested, 16 available"),
    "more than is free": (launch(count=3, used=14), "ReservationCapacityExceeded", "3 requested, 2 available"),
    "reservation moved by the fault": (
        launch(fault="us-west-2d"),
        "InvalidParameterValue",
        "Availability Zone us-west-2d",
    ),
    "block without its market": (launch(capacity_type="CAPACITY_BLOCK"), "InvalidParameterCombination", "market type"),
    "market without its block": (
        launch(instanceMarketOptions={"marketType": "capacity-block"}),
        "InvalidParameterCombination",
        "market type",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_launch_fails_in_the_words_of_ec2(case: str) -> None:
    asked, code, words = BAD[case]
    with pytest.raises(LaunchFailure) as caught:
        check_launch(asked)
    text = str(caught.value)
    assert text.startswith("eks-train-h100-1: AsgInstanceLaunchFailures: Could not launch On-Demand Instances.")
    assert code in text
    assert words in text


@pytest.mark.parametrize(
    ("asked", "machine"),
    [
        (launch(networkInterfaces=[nic(0, 0, "interface", associatePublicIpAddress="true")]), "p5.48xlarge"),
        (launch(capacityReservationSpecification={}), "p5.48xlarge"),
        (
            launch(
                instanceType="p6-b300.48xlarge",
                networkInterfaces=[nic(0, 0, "interface"), *(nic(card, 0) for card in range(1, 17))],
                capacityReservationSpecification={},
            ),
            "p6-b300.48xlarge",
        ),
        (
            launch(
                networkInterfaces=[nic(0, 0, "efa"), *(nic(card, 1, "efa") for card in range(1, 32))],
            ),
            "p5.48xlarge",
        ),
    ],
    ids=["public address on one", "no reservation", "p6-b300", "older layout"],
)
def test_good_launches_pass(asked: Launch, machine: str) -> None:
    assert check_launch(asked).efa_interfaces
    assert asked.type_name == machine


CASE = json.loads((Path(__file__).parent.parent / "cases" / "20-device-index.json").read_text("utf-8"))


@pytest.mark.parametrize("key", sorted(key for key in CASE if key.startswith(("bad", "good"))))
def test_20_device_indexes_that_people_reported(key: str) -> None:
    template = {**CASE[key]["props"], "capacityReservationSpecification": {}}
    if key.startswith("good"):
        assert check_launch(launch(**template)).efa_interfaces == 32
    else:
        with pytest.raises(LaunchFailure):
            check_launch(launch(**template))


def test_20_the_words_that_were_reported_are_ours() -> None:
    with pytest.raises(LaunchFailure) as caught:
        check_launch(launch(**{**CASE["bad"]["props"], "capacityReservationSpecification": {}}))
    assert CASE["error"] in str(caught.value)


# --- kinds of capacity ----------------------------------------------------------------------------------------------

IN_BLOCK: dict[str, Any] = {
    "capacity_type": "CAPACITY_BLOCK",
    "instanceMarketOptions": {"marketType": "capacity-block"},
}
BLOCK, LATER_BLOCK, UNPAID_BLOCK = "cr-0a1b2c3d4e5f60750", "cr-0a1b2c3d4e5f60751", "cr-0a1b2c3d4e5f60754"
IN_CLUSTER, FIRST, SECOND = "cr-0a1b2c3d4e5f60760", "cr-0a1b2c3d4e5f60764", "cr-0a1b2c3d4e5f60765"
OPEN, ARM = "cr-0a1b2c3d4e5f60761", "cr-0a1b2c3d4e5f60753"
CLUSTER_GROUP: dict[str, Any] = {"placement": {"groupName": "rehearsal-cluster"}}
P4: dict[str, Any] = {"instanceType": "p4d.24xlarge", "networkInterfaces": [nic(0, 0, "interface"), nic(0, 1)]}
GB200: dict[str, Any] = {
    "instanceType": "p6e-gb200.36xlarge",
    "networkInterfaces": [nic(0, 0, "interface"), *(nic(card, 0) for card in (1, 5, 9, 13))],
}


def spec(specification: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"capacityReservationSpecification": specification, **more}


PLACES: dict[str, tuple[Launch, list[str | None]]] = {
    "a target": (launch(), [RESERVATION, RESERVATION]),
    "a target, and nothing but reservations": (
        launch(**spec(target(RESERVATION, capacityReservationPreference="capacity-reservations-only"))),
        [RESERVATION, RESERVATION],
    ),
    "a block": (launch(**IN_BLOCK, **spec(target(BLOCK)), count=4), [BLOCK] * 4),
    "a block in its last half hour": (
        launch(**IN_BLOCK, **spec(target("cr-0a1b2c3d4e5f60752")), zone="us-west-2c", count=1),
        ["cr-0a1b2c3d4e5f60752"],
    ),
    "a block of GB200": (launch(**IN_BLOCK, **GB200, **spec(target(ARM)), zone="us-west-2d", count=9), [ARM] * 9),
    "a group, one reservation after the other": (
        launch(**spec(group_target("rehearsal-p5")), count=3),
        [FIRST, FIRST, SECOND],
    ),
    "a group that is full, and on-demand beside it": (
        launch(**spec(group_target("rehearsal-p5")), count=5),
        [FIRST, FIRST, SECOND, SECOND, None],
    ),
    "a group without reservations": (launch(**spec(group_target("rehearsal-empty"))), [None, None]),
    "a group whose reservations are elsewhere": (
        launch(**spec(group_target("rehearsal-p5")), zone="us-west-2a"),
        [None, None],
    ),
    "the placement group that a reservation was made in": (
        launch(**spec(target(IN_CLUSTER)), **CLUSTER_GROUP),
        [IN_CLUSTER, IN_CLUSTER],
    ),
    "the same by its id": (
        launch(**spec(target(IN_CLUSTER)), placement={"groupId": "pg-0a1b2c3d4e5f60718"}),
        [IN_CLUSTER, IN_CLUSTER],
    ),
    "dedicated machines": (
        launch(**spec(target("cr-0a1b2c3d4e5f60762")), placement={"tenancy": "dedicated"}),
        ["cr-0a1b2c3d4e5f60762"] * 2,
    ),
    "nothing, where one is open": (launch(**P4, **spec({}), zone="us-west-2c", count=5), [*[OPEN] * 4, None]),
    "what is open": (
        launch(**P4, **spec({"capacityReservationPreference": "open"}), zone="us-west-2c"),
        [OPEN, OPEN],
    ),
    "what is open, and nothing but reservations": (
        launch(**P4, **spec({"capacityReservationPreference": "capacity-reservations-only"}), zone="us-west-2c"),
        [OPEN, OPEN],
    ),
    "none, where one is open": (
        launch(**P4, **spec({"capacityReservationPreference": "none"}), zone="us-west-2c"),
        [None, None],
    ),
    "nothing, where all are targeted": (launch(**spec({})), [None, None]),
    "on-demand up to the quota": (
        launch(**spec({}), count=6, running={"p5.48xlarge": 2, "g5.48xlarge": 9}),
        [None] * 6,
    ),
    "a placement group and on-demand": (launch(**spec({}), **CLUSTER_GROUP), [None, None]),
    "spot has another quota": (launch(**spec({}), count=20, capacity_type="SPOT"), [None] * 20),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_launch_runs_in_the_reservations_that_it_may_use(case: str) -> None:
    asked, places = PLACES[case]
    assert check_launch(asked).cpus
    assert reservations_of(asked) == places


NOT_THERE: dict[str, tuple[Launch, str, str]] = {
    "a block that has not begun": (
        launch(**IN_BLOCK, **spec(target(LATER_BLOCK))),
        "InvalidCapacityReservationState.PendingActivation",
        "Your Capacity Block is not active yet.",
    ),
    "a block that is not paid": (
        launch(
            **IN_BLOCK,
            **spec(target(UNPAID_BLOCK)),
            instanceType="p5en.48xlarge",
            networkInterfaces=[nic(0, 0, "interface")],
            zone="us-west-2d",
        ),
        "InvalidCapacityReservationState.PendingActivation",
        "not active yet",
    ),
    "an on-demand reservation that has not begun": (
        launch(**spec(target("cr-0a1b2c3d4e5f60766"))),
        "InvalidCapacityReservationId.NotFound",
        "is scheduled",
    ),
    "a block that is full": (
        launch(**IN_BLOCK, **spec(target(BLOCK)), count=5),
        "ReservationCapacityExceeded",
        "5 requested, 4 available",
    ),
    "a block without its market": (
        launch(**spec(target(BLOCK))),
        "InvalidParameterCombination",
        f"'{BLOCK}' is of type capacity-block, and the market type of the request is on-demand",
    ),
    "a reservation with the market of blocks": (
        launch(**IN_BLOCK),
        "InvalidParameterCombination",
        "is of type default, and the market type of the request is capacity-block",
    ),
    "the market of blocks without a target": (
        launch(**IN_BLOCK, **spec({})),
        "InvalidParameterCombination",
        "needs a capacity reservation target",
    ),
    "a machine of blocks on demand": (
        launch(**GB200, **spec({}), zone="us-west-2d"),
        "UnsupportedOperation",
        "p6e-gb200.36xlarge can be launched into Capacity Blocks only",
    ),
    "a block in a placement group": (
        launch(**IN_BLOCK, **spec(target(BLOCK)), **CLUSTER_GROUP),
        "InsufficientInstanceCapacity",
        "sufficient p5.48xlarge capacity in the Availability Zone you requested (us-west-2b)",
    ),
    "a placement group that the reservation was not made in": (
        launch(**CLUSTER_GROUP),
        "InsufficientInstanceCapacity",
        "sufficient p5.48xlarge capacity",
    ),
    "a reservation of a placement group without it": (
        launch(**spec(target(IN_CLUSTER))),
        "InsufficientInstanceCapacity",
        "sufficient p5.48xlarge capacity",
    ),
    "a placement group that does not exist": (
        launch(placement={"groupName": "none"}),
        "InvalidPlacementGroup.Unknown",
        "The Placement Group 'none' is unknown.",
    ),
    "open beside a target": (
        launch(**spec(target(RESERVATION, capacityReservationPreference="open"))),
        "InvalidParameterCombination",
        "preference 'open' cannot be specified together with a capacity reservation target",
    ),
    "none beside a group": (
        launch(**spec(group_target("rehearsal-p5", capacityReservationPreference="none"))),
        "InvalidParameterCombination",
        "preference 'none' cannot be specified",
    ),
    "a group that does not exist": (
        launch(**spec(group_target("none"))),
        "InvalidParameterValue",
        "group/none' does not exist",
    ),
    "a group that is full, and nothing but reservations": (
        launch(
            **spec(group_target("rehearsal-p5", capacityReservationPreference="capacity-reservations-only")), count=5
        ),
        "ReservationCapacityExceeded",
        "5 requested, 4 available",
    ),
    "no open reservation, and nothing but reservations": (
        launch(**spec({"capacityReservationPreference": "capacity-reservations-only"})),
        "ReservationCapacityExceeded",
        "2 requested, 0 available",
    ),
    "another tenancy": (
        launch(**spec(target("cr-0a1b2c3d4e5f60762"))),
        "InvalidParameterValue",
        "The tenancy default does not match the tenancy dedicated",
    ),
    "another platform": (
        launch(**spec(target("cr-0a1b2c3d4e5f60763"))),
        "InvalidParameterValue",
        "The platform Linux/UNIX does not match the platform Red Hat Enterprise Linux",
    ),
    "a reservation of another region": (
        launch(**spec(target("cr-0a1b2c3d4e5f60767"))),
        "InvalidCapacityReservationId.NotFound",
        "does not exist",
    ),
    "a zone that does not offer the machine": (
        launch(instanceType="p5e.48xlarge", **spec({})),
        "Unsupported",
        "(p5e.48xlarge) is not supported in your requested Availability Zone (us-west-2b). Please retry your request "
        "by not specifying an Availability Zone or choosing us-west-2c",
    ),
    "more than the quota": (launch(**spec({}), count=9), "VcpuLimitExceeded", "vCPU limit of 1536 allows"),
    "more than the quota with what runs": (
        launch(**spec({}), count=3, running={"p5.48xlarge": 4, "p4d.24xlarge": 4}),
        "VcpuLimitExceeded",
        "vCPU limit of 1536 allows",
    ),
    "a quota of zero": (
        launch(**spec({}), count=1, zone="us-east-1a"),
        "VcpuLimitExceeded",
        "vCPU limit of 0 allows",
    ),
}


@pytest.mark.parametrize("case", NOT_THERE)
def test_capacity_that_is_not_there_fails_in_the_words_of_ec2(case: str) -> None:
    asked, code, words = NOT_THERE[case]
    with pytest.raises(LaunchFailure) as caught:
        check_launch(asked)
    assert f"Could not launch On-Demand Instances. {code} - " in str(caught.value)
    assert words in str(caught.value)


def test_reservations_begin_and_end_by_the_clock() -> None:
    opened = datetime(2026, 1, 1, tzinfo=UTC)

    def state(id_: str, hours: float) -> str:
        return account(opened, opened + timedelta(hours=hours)).reservations[id_].state

    assert [state(LATER_BLOCK, hours) for hours in (0, 19.9, 20, 43.9, 44)] == [
        "scheduled",
        "scheduled",
        "active",
        "active",
        "expired",
    ]
    assert [state(UNPAID_BLOCK, hours) for hours in (0, 21, 45)] == ["payment-pending", "payment-pending", "expired"]
    assert state(RESERVATION, 10_000) == "active"


def test_every_machine_with_efa_has_a_reservation_that_fits() -> None:
    large = Counter[str]()
    for each in account().reservations.values():
        facts = machine(each.machine)
        assert facts
        assert facts.efa_interfaces
        if each.state == "active" and (each.platform, each.tenancy, each.placement_group_arn) == (
            "Linux/UNIX",
            "default",
            None,
        ):
            large[each.machine] = max(large[each.machine], each.total)
    assert set(large) >= {
        *("p4d.24xlarge", "p4de.24xlarge", "p5.4xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"),
        *("p6-b200.48xlarge", "p6-b300.48xlarge", "p6e-gb200.36xlarge", "g5.48xlarge", "g6.48xlarge"),
        *("g6e.8xlarge", "g6e.12xlarge", "g6e.16xlarge", "g6e.24xlarge", "g6e.48xlarge", "g7.48xlarge", "g7e.48xlarge"),
        *("trn1.32xlarge", "trn1n.32xlarge", "trn2.3xlarge", "trn2.48xlarge"),
    }
    assert min(large.values()) >= 4
