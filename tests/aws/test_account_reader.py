"""Reading an account: the product's boto3 code against the rehearsal's AWS, found by the standard variables."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from plumbline.aws.account import READS, read_account
from plumbline.catalog import aws_catalogue
from plumbline.plan import account_problems, plan_site
from plumbline.site import Problem, SiteError, read_site
from plumbline.stack import agreed
from tests.sites import GOOD, declare, declare_pool
from tests.twin_aws.test_api import served
from tests.twin_aws.worlds import Engine, engine
from twin.aws.api import application
from twin.aws.existing import furnish
from twin.credentials import ACCESS_KEY, SECRET_KEY

BLOCK, BLOCK_TO_COME, BLOCK_ENDING = "cr-0a1b2c3d4e5f60750", "cr-0a1b2c3d4e5f60751", "cr-0a1b2c3d4e5f60752"
GROUP = "arn:aws:resource-groups:us-west-2:123456789012:group/rehearsal-p5"


@pytest.fixture(scope="module")
def account() -> Iterator[Engine]:
    with (
        pytest.MonkeyPatch.context() as environment,
        engine() as running,
        served(application(running.world)) as address,
    ):
        environment.setenv("AWS_ENDPOINT_URL", address)
        environment.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        environment.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield running


@pytest.fixture
def aws(account: Engine) -> Iterator[Engine]:
    yield account
    account.world.on.clear()


def problems(raw: dict[str, Any]) -> list[Problem]:
    site, _ = read_site(raw)
    seen, unread = read_account(site)
    assert unread == ()
    return account_problems(site, plan_site(site, seen=seen).generations, seen, aws_catalogue())


def reserved(id_: str, kind: str = "reservation", zone: str = "us-west-2b", **pool: Any) -> dict[str, Any]:
    return declare_pool(capacity={"kind": kind, "id": id_, "zone": zone}, **pool)


def test_site_of_the_rehearsal_agrees(aws: Engine) -> None:
    assert problems(GOOD) == []


@pytest.mark.parametrize(
    ("id_", "where", "found"),
    [
        ("cr-0a1b2c3d4e5f60719", "capacity.zone", "us-west-2b"),
        ("cr-0a1b2c3d4e5f6071c", "capacity.id", "cr-0a1b2c3d4e5f6071c, which is expired"),
        ("cr-0a1b2c3d4e5f60762", "capacity.id", "cr-0a1b2c3d4e5f60762, with tenancy dedicated"),
        ("cr-0a1b2c3d4e5f60763", "capacity.id", "cr-0a1b2c3d4e5f60763, for platform Red Hat Enterprise Linux"),
        ("cr-0a1b2c3d4e5f60760", "capacity.placement_group", "nothing"),
        (BLOCK, "capacity.kind", "reservation"),
        ("cr-0ffffffffffffffff", "capacity.id", "cr-0ffffffffffffffff, which AWS does not know"),
    ],
)
def test_reservation_that_does_not_fit_is_seen_in_the_account(aws: Engine, id_: str, where: str, found: str) -> None:
    [problem] = problems(reserved(id_))
    assert (problem.where, problem.found) == (f"plumbline:site.pools[0].{where}", found)


def test_blocks_are_told_by_their_times(aws: Engine) -> None:
    assert problems(reserved(BLOCK, "capacity-block")) == []
    raw = reserved(BLOCK_TO_COME, "capacity-block")
    assert problems(raw) == []
    site, _ = read_site(raw)
    assert plan_site(site, seen=read_account(site)[0]).pools[0].desired == 0
    [ending] = problems(reserved(BLOCK_ENDING, "capacity-block", zone="us-west-2c"))
    assert ending.warns
    assert "ends at" in ending.found


def test_group_is_looked_into(aws: Engine) -> None:
    raw = declare_pool(capacity={"kind": "reservation-group", "arn": GROUP, "zone": "us-west-2b"}, nodes=4)
    assert problems(raw) == []
    [many] = problems({**raw, "pools": [{**raw["pools"][0], "nodes": 5}]})
    assert many.needed == "4 nodes at most"
    other = GROUP.replace("rehearsal-p5", "nobodys")
    [absent] = problems(declare_pool(capacity={"kind": "reservation-group", "arn": other, "zone": "us-west-2b"}))
    assert absent.found == f"{other}, which AWS does not know"


def test_subnet_that_does_not_exist_is_named(aws: Engine) -> None:
    subnets = {"us-west-2a": "subnet-0a1b2c3d", "us-west-2b": "subnet-0a1b2c3e"}
    [problem] = problems(declare(network={"existing": {"vpc": "vpc-0a1b2c3d", "subnets": subnets}}))
    assert problem.found == "subnet-0a1b2c3e, which AWS does not know"


@pytest.mark.parametrize("machine", sorted(aws_catalogue().machines))
def test_catalogue_agrees_with_the_account_about_every_machine(aws: Engine, machine: str) -> None:
    site, _ = read_site(GOOD)
    asked = site.model_copy(update={"pools": (site.pools[0].model_copy(update={"machine": machine}),)})
    seen, unread = read_account(asked)
    assert unread == ()
    assert machine in seen.machines
    about = [p for p in account_problems(asked, {"h100": "x"}, seen, aws_catalogue()) if "catalogue" in p.found]
    assert about == []


def test_difference_between_catalogue_and_account_stops(aws: Engine) -> None:
    catalogue = aws_catalogue()
    wrong = catalogue.machines["p5.48xlarge"].model_copy(update={"network_cards": 16, "accelerators": 4})
    other = catalogue.model_copy(update={"machines": {**catalogue.machines, "p5.48xlarge": wrong}})
    site, _ = read_site(GOOD)
    seen, _ = read_account(site)
    [problem] = account_problems(site, {"h100": "x"}, seen, other)
    assert "accelerators: the catalogue says 4, AWS says 8" in problem.found
    assert "network cards: the catalogue says 16, AWS says 32" in problem.found
    assert not problem.warns


def test_right_that_is_missing_is_named_and_the_rest_is_read(aws: Engine) -> None:
    aws.world.on.add("no-right-to-read-reservations")
    site, _ = read_site(GOOD)
    seen, [unread] = read_account(site)
    assert (unread.part, unread.right, unread.cause) == (
        "capacity reservations",
        "ec2:DescribeCapacityReservations",
        "no right",
    )
    assert unread.right in READS
    assert "p5.48xlarge" in seen.machines
    with pytest.raises(SiteError, match="give who runs `pulumi up` ec2:DescribeCapacityReservations") as caught:
        agreed(site, seen, (unread,))
    assert [problem.where for problem in caught.value.problems] == ["plumbline:site.proof.account"]
    lenient, _ = read_site(declare(proof={**GOOD["proof"], "account": "warn"}))
    [warning] = agreed(lenient, seen, (unread,))
    assert warning.warns


def test_credentials_that_are_missing_are_named_once_for_each_part(
    aws: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    site, _ = read_site(GOOD)
    seen, unread = read_account(site)
    assert {each.cause for each in unread} == {"no credentials"}
    assert {each.part for each in unread} == seen.unread == {"capacity reservations", "machine types", "instances"}
    with pytest.raises(SiteError) as caught:
        agreed(site, seen, unread)
    [problem] = caught.value.problems
    assert problem.found.startswith(
        "capacity reservations, machine types, instances could not be read (no credentials)"
    )
    assert "log in" in problem.next


def test_api_that_cannot_be_reached_is_said(aws: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    site, _ = read_site(declare_pool(capacity={"kind": "on-demand", "zone": "us-west-2b"}))
    _, unread = read_account(site)
    assert {each.cause for each in unread} == {"unreachable"}


def test_what_is_read_and_does_not_agree_stops_also_where_reading_may_fail(aws: Engine) -> None:
    raw = {**reserved("cr-0a1b2c3d4e5f60719"), "proof": {**GOOD["proof"], "account": "warn"}}
    site, _ = read_site(raw)
    seen, unread = read_account(site)
    with pytest.raises(SiteError, match="us-west-2c: the hardware of cr-0a1b2c3d4e5f60719 is there"):
        agreed(site, replace(seen), unread)


def test_cluster_and_subnets_that_somebody_else_has_are_read(aws: Engine) -> None:
    furnish(aws.world)
    subnets = {"us-west-2b": "subnet-0a1b2c3d4e5f60718", "us-west-2c": "subnet-0a1b2c3d4e5f60719"}
    raw = declare(
        network={"existing": {"vpc": "vpc-0a1b2c3d4e5f60718", "subnets": subnets}},
        cluster={"existing": "shared", "version": "1.34"},
    )
    assert problems(raw) == []
    raw["pools"][0]["capacity"] = {"kind": "reservation", "id": "cr-0a1b2c3d4e5f60719", "zone": "us-west-2c"}
    [public] = problems(raw)
    assert public.found == "subnet-0a1b2c3d4e5f60719, which gives instances public addresses"
    raw["cluster"]["existing"] = "nobodys"
    assert "nobodys, which EKS does not know in us-west-2" in [problem.found for problem in problems(raw)]
