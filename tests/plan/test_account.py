"""What was read in the account against the declaration: one message for each thing that does not agree."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plumbline.catalog import aws_catalogue
from plumbline.plan import (
    SeenAccount,
    SeenCluster,
    SeenMachine,
    SeenReservation,
    SeenSubnet,
    account_problems,
    plan_site,
)
from plumbline.site import Problem, read_site
from tests.sites import GOOD, declare, declare_pool

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
ID = "cr-0a1b2c3d4e5f60718"
GROUP = "arn:aws:resource-groups:us-west-2:123456789012:group/h100"
RESERVATION = SeenReservation(
    id=ID,
    type="default",
    state="active",
    machine="p5.48xlarge",
    zone="us-west-2b",
    platform="Linux/UNIX",
    tenancy="default",
    match="targeted",
    total=4,
    free=4,
)
BLOCK = replace(RESERVATION, type="capacity-block", starts=NOW - timedelta(hours=1), ends=NOW + timedelta(days=1))
P5 = SeenMachine(accelerators=8, architecture="amd64", cards=dict.fromkeys(range(32), True), efa_interfaces=32)


def seen(**changes: Any) -> SeenAccount:
    return SeenAccount(**{"now": NOW, "reservations": {ID: RESERVATION}, "machines": {"p5.48xlarge": P5}, **changes})


def problems(raw: dict[str, Any], account: SeenAccount) -> list[Problem]:
    site, _ = read_site(raw)
    return account_problems(site, plan_site(site).generations, account, aws_catalogue())


def only(raw: dict[str, Any], account: SeenAccount) -> Problem:
    [problem] = problems(raw, account)
    return problem


def block(**changes: Any) -> SeenAccount:
    return seen(reservations={ID: replace(BLOCK, **changes)})


BLOCK_SITE = declare_pool(capacity={"kind": "capacity-block", "id": ID, "zone": "us-west-2b"})
GROUP_SITE = declare_pool(capacity={"kind": "reservation-group", "arn": GROUP, "zone": "us-west-2b"})
ON_DEMAND = declare_pool(capacity={"kind": "on-demand", "zone": "us-west-2b"})


def test_reservation_that_agrees_has_no_problem() -> None:
    assert problems(GOOD, seen()) == []


@pytest.mark.parametrize(
    ("field", "value", "where", "needed"),
    [
        ("zone", "us-west-2c", "capacity.zone", "us-west-2c: the hardware of cr-0a1b2c3d4e5f60718 is there"),
        ("machine", "p5en.48xlarge", "machine", "p5en.48xlarge: that is what cr-0a1b2c3d4e5f60718 holds"),
        ("state", "expired", "capacity.id", "a reservation that is active"),
        ("platform", "Windows", "capacity.id", "a reservation for Linux/UNIX"),
        ("tenancy", "dedicated", "capacity.id", "tenancy default"),
        ("type", "capacity-block", "capacity.kind", "capacity-block: that is what"),
    ],
)
def test_each_field_that_differs_is_one_message(field: str, value: Any, where: str, needed: str) -> None:
    problem = only(GOOD, seen(reservations={ID: replace(RESERVATION, **{field: value})}))
    assert problem.where == f"plumbline:site.pools[0].{where}"
    assert problem.needed.startswith(needed)
    assert problem.next
    assert not problem.warns


def test_all_that_differs_is_listed_at_once() -> None:
    other = replace(RESERVATION, zone="us-west-2c", machine="p5e.48xlarge", platform="Windows", state="cancelled")
    found = [
        problem.where.removeprefix("plumbline:site.pools[0].")
        for problem in problems(GOOD, seen(reservations={ID: other}))
    ]
    assert sorted(found) == ["capacity.id", "capacity.id", "capacity.zone", "machine"]


def test_reservation_that_does_not_exist_is_named_with_how_to_look() -> None:
    problem = only(GOOD, seen(reservations={}))
    assert problem.found == f"{ID}, which AWS does not know"
    assert "aws ec2 describe-capacity-reservations --region us-west-2" in problem.next


def test_open_reservation_warns() -> None:
    problem = only(GOOD, seen(reservations={ID: replace(RESERVATION, match="open")}))
    assert problem.warns
    assert "any instance of the account that fits takes from it" in problem.found


def test_more_nodes_than_the_reservation_has() -> None:
    problem = only(declare_pool(nodes=5), seen())
    assert (problem.where, problem.needed) == ("plumbline:site.pools[0].nodes", "4 nodes at most")


def test_free_instances_are_compared_with_what_is_still_to_be_launched() -> None:
    generation = plan_site(read_site(GOOD)[0]).pools[0].generation
    full = {ID: replace(RESERVATION, free=0)}
    assert problems(GOOD, seen(reservations=full, running={(ID, generation): 2})) == []
    problem = only(GOOD, seen(reservations=full, running={(ID, "0ther0"): 3}))
    assert problem.found == (
        "2 instances to launch, and 0 of 4 free in cr-0a1b2c3d4e5f60718 (3 by other generations of this site, "
        "1 by others)"
    )


def test_pools_that_share_a_reservation_are_counted_together() -> None:
    raw = declare(pools=[{**GOOD["pools"][0], "nodes": 3}, {**GOOD["pools"][0], "name": "more", "nodes": 2}])
    problem = only(raw, seen())
    assert problem.found == "5 nodes of pools h100, more, from cr-0a1b2c3d4e5f60718 with 4 instances"


def test_block_that_runs_is_good_and_reservation_is_no_block() -> None:
    assert problems(BLOCK_SITE, block()) == []
    assert only(BLOCK_SITE, seen()).needed.startswith("reservation: that is what")


def test_block_to_come_defers_the_pool_and_has_no_nodes_yet() -> None:
    begins = NOW + timedelta(hours=3)
    account = block(state="scheduled", starts=begins, free=0)
    assert problems(BLOCK_SITE, account) == []
    pool = plan_site(read_site(BLOCK_SITE)[0], seen=account).pools[0]
    assert (pool.starts, pool.desired, pool.nodes) == (begins, 0, 2)
    later = plan_site(read_site(BLOCK_SITE)[0], seen=replace(account, now=begins)).pools[0]
    assert (later.starts, later.desired) == (None, 2)
    assert later.generation == pool.generation


def test_last_forty_minutes_of_a_block_warn() -> None:
    problem = only(BLOCK_SITE, block(ends=NOW + timedelta(minutes=39)))
    assert problem.warns
    assert "ends at 2026-12-01 12:39 UTC" in problem.found
    assert problems(BLOCK_SITE, block(ends=NOW + timedelta(minutes=41))) == []


def test_group_needs_a_member_that_fits() -> None:
    members = {ID: RESERVATION, "cr-0b": replace(RESERVATION, id="cr-0b", zone="us-west-2c", free=9, total=9)}
    assert problems(GROUP_SITE, seen(reservations=members, groups={GROUP: tuple(members)})) == []
    problem = only(GROUP_SITE, seen(reservations=members, groups={GROUP: ("cr-0b",)}))
    assert problem.found == "a group with cr-0b: p5.48xlarge in us-west-2c, active"
    assert only(GROUP_SITE, seen(groups={})).found == f"{GROUP}, which AWS does not know"
    many = declare_pool(nodes=5, capacity=GROUP_SITE["pools"][0]["capacity"])
    assert only(many, seen(reservations=members, groups={GROUP: tuple(members)})).needed == "4 nodes at most"


def test_on_demand_machine_has_to_be_offered_in_the_zone() -> None:
    assert problems(ON_DEMAND, seen(offered={"p5.48xlarge": frozenset({"us-west-2b"})})) == []
    problem = only(ON_DEMAND, seen(offered={"p5.48xlarge": frozenset({"us-west-2c"})}))
    assert problem.needed == "a zone where it is offered: us-west-2c"


@pytest.mark.parametrize(
    ("theirs", "says"),
    [
        (replace(P5, accelerators=4), "accelerators: the catalogue says 8, AWS says 4"),
        (replace(P5, architecture="arm64"), "architecture: the catalogue says amd64, AWS says arm64"),
        (replace(P5, cards=dict.fromkeys(range(16), True)), "network cards: the catalogue says 32, AWS says 16"),
        (replace(P5, cards={**P5.cards, 0: False}), "cards without EFA: the catalogue says [], AWS says [0]"),
        (replace(P5, efa_interfaces=31), "EFA interfaces: the catalogue says 32, AWS says 31"),
    ],
)
def test_catalogue_and_aws_disagree_and_the_message_says_which_is_which(theirs: SeenMachine, says: str) -> None:
    problem = only(GOOD, seen(machines={"p5.48xlarge": theirs}))
    assert problem.where == "plumbline:site.pools[0].machine"
    assert says in problem.found
    assert not problem.warns


def test_machine_that_aws_does_not_describe_warns() -> None:
    assert only(GOOD, seen(machines={})).warns


def test_what_could_not_be_read_is_not_missing() -> None:
    blind = SeenAccount(
        now=NOW,
        unread=frozenset(
            {"capacity reservations", "machine types", "instances", "reservation groups", "subnets", "offerings"}
        ),
    )
    for raw in (GOOD, BLOCK_SITE, GROUP_SITE, ON_DEMAND):
        assert problems(raw, blind) == []


SUBNET = SeenSubnet(
    id="subnet-0a1b2c3d", vpc="vpc-0a1b2c3d", zone="us-west-2b", free_addresses=1000, gives_public_addresses=False
)
THEIRS = {"existing": {"vpc": SUBNET.vpc, "subnets": {SUBNET.zone: SUBNET.id, "us-west-2a": "subnet-0a1b2c3e"}}}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"vpc": "vpc-0b1b2c3d"}, "subnet-0a1b2c3d, in vpc-0b1b2c3d and us-west-2b"),
        ({"zone": "us-west-2a"}, "subnet-0a1b2c3d, in vpc-0a1b2c3d and us-west-2a"),
        ({"gives_public_addresses": True}, "subnet-0a1b2c3d, which gives instances public addresses"),
        ({"free_addresses": 1}, "subnet-0a1b2c3d, with 1 free addresses"),
    ],
)
def test_subnet_that_exists_has_to_fit(change: dict[str, Any], found: str) -> None:
    raw = declare(network=THEIRS)
    assert problems(raw, seen(subnets={SUBNET.id: SUBNET})) == []
    problem = only(raw, seen(subnets={SUBNET.id: replace(SUBNET, **change)}))
    assert problem.where == "plumbline:site.network.existing.subnets.us-west-2b"
    assert problem.found == found


def test_placement_group_that_a_reservation_was_made_in_has_to_be_declared_and_no_other() -> None:
    placed = seen(
        reservations={
            ID: replace(RESERVATION, placement_group="arn:aws:ec2:us-west-2:123456789012:placement-group/tight")
        }
    )
    declared = declare_pool(capacity={**GOOD["pools"][0]["capacity"], "placement_group": "tight"})
    assert problems(declared, placed) == []
    assert only(GOOD, placed).next == "set placement_group: tight"
    assert only(declared, seen()).next == "remove placement_group"
    plain, tight = (plan_site(read_site(raw)[0]).pools[0] for raw in (GOOD, declared))
    assert (plain.placement_group, tight.placement_group) == (None, "tight")
    assert plain.generation != tight.generation


ADOPTS = declare(network=THEIRS, cluster={"existing": "shared", "version": "1.33"})
CLUSTER = SeenCluster(version="1.34", vpc=SUBNET.vpc, status="ACTIVE")


@pytest.mark.parametrize(
    ("cluster", "where", "needed"),
    [
        (None, "cluster.existing", "a cluster of this account and region"),
        (replace(CLUSTER, status="DELETING"), "cluster.existing", "a cluster that is active"),
        (replace(CLUSTER, vpc="vpc-0b1b2c3d"), "network.existing.vpc", "vpc-0b1b2c3d, which shared is in"),
        (replace(CLUSTER, version="1.32"), "cluster.version", "1.32 or older: that is what shared has"),
    ],
)
def test_cluster_that_is_adopted_has_to_fit(cluster: SeenCluster | None, where: str, needed: str) -> None:
    there = {SUBNET.id: SUBNET}
    assert problems(ADOPTS, seen(subnets=there, cluster=CLUSTER)) == []
    problem = only(ADOPTS, seen(subnets=there, cluster=cluster))
    assert problem.where == f"plumbline:site.{where}"
    assert problem.needed.startswith(needed)
    assert problems(ADOPTS, seen(subnets=there, unread=frozenset({"cluster"}))) == []
