"""What EC2 refuses when a node group's instances are launched: each rule with what it refuses and what it lets pass."""

import json
from pathlib import Path
from typing import Any

import pytest

from twin.aws.facts import account
from twin.aws.launch import Launch, check_launch
from twin.aws.refusal import LaunchFailure

RESERVATION = "cr-0a1b2c3d4e5f60718"


def nic(card: int, device: int, kind: str = "efa-only", **more: Any) -> dict[str, Any]:
    return {"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind, **more}


def target(id_: str) -> dict[str, Any]:
    return {"capacityReservationTarget": {"capacityReservationId": id_}}


P5 = [nic(0, 0, "interface"), nic(0, 1), *(nic(card, 0) for card in range(1, 32))]


def launch(
    count: int = 2, used: int = 0, capacity_type: str = "ON_DEMAND", fault: str | None = None, **template: Any
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
        zone="us-west-2b",
        count=count,
        account=account(),
        used={RESERVATION: used},
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
