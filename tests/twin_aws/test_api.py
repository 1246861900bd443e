"""AWS's own API, asked by real boto3 clients: each operation, and each way in which AWS says no."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from aiohttp import web
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.twin_aws.test_resources import CLUSTER, GROUP, RULE, SECURITY, Site
from tests.twin_aws.worlds import Engine, engine
from twin.aws.api import application
from twin.aws.facts import account
from twin.aws.kinds import RESERVATION
from twin.credentials import ACCESS_KEY, SECRET_KEY

Client = Callable[..., Any]
P5, OTHER_ZONE, EXPIRED = "cr-0a1b2c3d4e5f60718", "cr-0a1b2c3d4e5f60719", "cr-0a1b2c3d4e5f6071c"
BLOCK, LATER_BLOCK, IN_CLUSTER = "cr-0a1b2c3d4e5f60750", "cr-0a1b2c3d4e5f60751", "cr-0a1b2c3d4e5f60760"
GROUP_ARN = "arn:aws:resource-groups:us-west-2:123456789012:group/rehearsal-p5"


@contextmanager
def served(app: web.Application) -> Iterator[str]:
    """The address of an application that a thread serves."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(app)

    async def start() -> str:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture
def aws() -> Iterator[Engine]:
    with engine() as running:
        yield running


@pytest.fixture
def client(aws: Engine) -> Iterator[Client]:
    """Makes clients of a service."""
    with served(application(aws.world)) as address:

        def make(service: str, key: str = ACCESS_KEY, region: str = "us-west-2", **config: Any) -> Any:
            return boto3.client(
                service,
                endpoint_url=address,
                region_name=region,
                aws_access_key_id=key,
                aws_secret_access_key=SECRET_KEY,
                config=Config(retries={"total_max_attempts": 1}, **config),
            )

        yield make


def refused(ask: Callable[..., Any], **parameters: Any) -> tuple[str, str, int]:
    """Code, message and HTTP status of an error."""
    with pytest.raises(ClientError) as caught:
        ask(**parameters)
    answer = caught.value.response
    return answer["Error"]["Code"], answer["Error"]["Message"], answer["ResponseMetadata"]["HTTPStatusCode"]


def by_filter(name: str, *values: str) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": list(values)}]


# --- capacity reservations ------------------------------------------------------------------------------------------


def test_a_reservation_has_what_aws_tells_of_one(client: Client) -> None:
    [found] = client("ec2").describe_capacity_reservations(CapacityReservationIds=[P5])["CapacityReservations"]
    assert found["CapacityReservationArn"] == f"arn:aws:ec2:us-west-2:123456789012:capacity-reservation/{P5}"
    assert (found["InstanceType"], found["AvailabilityZone"]) == ("p5.48xlarge", "us-west-2b")
    assert found["AvailabilityZoneId"] == "usw2-az1"
    assert (found["TotalInstanceCount"], found["AvailableInstanceCount"]) == (16, 16)
    assert (found["State"], found["ReservationType"], found["EndDateType"]) == ("active", "default", "unlimited")
    assert (found["InstancePlatform"], found["Tenancy"]) == ("Linux/UNIX", "default")
    assert found["InstanceMatchCriteria"] == "targeted"
    assert found["StartDate"] <= datetime.now(UTC)
    assert "EndDate" not in found
    assert "PlacementGroupArn" not in found


def test_every_kind_of_reservation_is_told_apart(client: Client) -> None:
    ids = [EXPIRED, BLOCK, LATER_BLOCK, IN_CLUSTER, "cr-0a1b2c3d4e5f60754", "cr-0a1b2c3d4e5f60761"]
    answer = client("ec2").describe_capacity_reservations(CapacityReservationIds=ids)["CapacityReservations"]
    expired, block, later, in_cluster, unpaid, open_to_all = answer
    assert [each["CapacityReservationId"] for each in answer] == ids
    assert (expired["State"], expired["AvailableInstanceCount"]) == ("expired", 0)
    assert (block["State"], block["ReservationType"], block["EndDateType"]) == ("active", "capacity-block", "limited")
    assert block["EndDate"] - block["StartDate"] == timedelta(hours=168)
    assert (later["State"], later["AvailableInstanceCount"]) == ("scheduled", 0)
    assert timedelta(hours=19.9) < later["StartDate"] - datetime.now(UTC) < timedelta(hours=20)
    assert in_cluster["PlacementGroupArn"].endswith(":placement-group/rehearsal-cluster")
    assert unpaid["State"] == "payment-pending"
    assert open_to_all["InstanceMatchCriteria"] == "open"


def test_time_passes_for_reservations_and_outlives_the_daemon(aws: Engine, client: Client) -> None:
    opened = datetime.now(UTC) - timedelta(hours=21)
    aws.world.store.put("account", "aws", {"opened": opened.isoformat()})
    application(aws.world)  # another daemon
    ec2 = client("ec2")
    states = {
        each["CapacityReservationId"]: each["State"]
        for each in ec2.describe_capacity_reservations()["CapacityReservations"]
    }
    assert (states[LATER_BLOCK], states["cr-0a1b2c3d4e5f60752"]) == ("active", "expired")
    [found] = ec2.describe_capacity_reservations(CapacityReservationIds=[LATER_BLOCK])["CapacityReservations"]
    assert abs(found["StartDate"] - opened - timedelta(hours=20)) < timedelta(seconds=2)


def test_reservations_are_found_by_filters_and_by_pages(client: Client) -> None:
    ec2 = client("ec2")

    def ids(**parameters: Any) -> set[str]:
        pages = ec2.get_paginator("describe_capacity_reservations").paginate(**parameters)
        return {each["CapacityReservationId"] for page in pages for each in page["CapacityReservations"]}

    filters = [
        *by_filter("instance-type", "p5.48xlarge"),
        *by_filter("availability-zone", "us-west-2c"),
        *by_filter("state", "active", "scheduled"),
    ]
    assert ids(Filters=filters) == {OTHER_ZONE, "cr-0a1b2c3d4e5f60752"}
    assert ids(Filters=by_filter("instance-type", "p6*")) == {
        "cr-0a1b2c3d4e5f60725",
        "cr-0a1b2c3d4e5f60726",
        "cr-0a1b2c3d4e5f60753",
    }
    assert ids(Filters=by_filter("state", "unsupported")) == set()
    here = {i for i, each in account().reservations.items() if each.zone.startswith("us-west-2")}
    assert ids() == ids(PaginationConfig={"PageSize": 5}) == here
    assert len(ec2.describe_capacity_reservations(MaxResults=5)["CapacityReservations"]) == 5


def test_reservations_of_another_region_are_not_here(client: Client) -> None:
    found = client("ec2", region="us-east-1").describe_capacity_reservations()["CapacityReservations"]
    assert [each["CapacityReservationId"] for each in found] == ["cr-0a1b2c3d4e5f60767"]
    ask = client("ec2", region="us-east-1").describe_capacity_reservations
    code, message, status = refused(ask, CapacityReservationIds=[P5])
    assert (code, status) == ("InvalidCapacityReservationId.NotFound", 400)
    assert P5 in message


@pytest.mark.parametrize(
    ("parameters", "code", "words"),
    [
        ({"CapacityReservationIds": ["cr-1"]}, "InvalidCapacityReservationId.Malformed", '"cr-1"'),
        ({"CapacityReservationIds": ["cr-0ffffffffffffffff"]}, "InvalidCapacityReservationId.NotFound", "not exist"),
        ({"Filters": by_filter("colour", "red")}, "InvalidParameterValue", "The filter 'colour' is invalid"),
        ({"NextToken": "x"}, "InvalidNextToken", "'x'"),
    ],
)
def test_wrong_questions_about_reservations(client: Client, parameters: Any, code: str, words: str) -> None:
    found, message, status = refused(client("ec2").describe_capacity_reservations, **parameters)
    assert (found, status) == (code, 400)
    assert words in message


def test_a_right_that_is_missing_is_named_and_others_are_left(aws: Engine, client: Client) -> None:
    ec2 = client("ec2")
    aws.world.on.add("no-right-to-read-reservations")
    code, message, status = refused(ec2.describe_capacity_reservations)
    assert (code, status) == ("UnauthorizedOperation", 403)
    assert message.startswith("You are not authorized to perform this operation. User: arn:aws:iam::123456789012:user/")
    assert "is not authorized to perform: ec2:DescribeCapacityReservations because" in message
    assert ec2.describe_availability_zones()["AvailabilityZones"]
    aws.world.on.clear()
    assert ec2.describe_capacity_reservations()["CapacityReservations"]


def test_the_fault_moves_reservations_in_what_is_told_too(aws: Engine, client: Client) -> None:
    aws.world.on.add("reservation-in-other-zone")
    [found] = client("ec2").describe_capacity_reservations(CapacityReservationIds=[P5])["CapacityReservations"]
    assert (found["AvailabilityZone"], found["AvailabilityZoneId"]) == ("us-west-2d", "usw2-az4")


def test_a_reservation_that_a_program_made_is_there(aws: Engine, client: Client) -> None:
    group, outputs = aws.create("aws:ec2/placementGroup:PlacementGroup", name="mine", strategy="cluster")
    id_, _ = aws.create(
        RESERVATION,
        instanceType="p5.48xlarge",
        instancePlatform="Linux/UNIX",
        availabilityZone="us-west-2a",
        instanceCount=3,
        placementGroupArn=outputs["arn"],
        endDateType="limited",
        endDate="2099-01-01T00:00:00Z",
        tags={"team": "a"},
    )
    ec2 = client("ec2")
    [found] = ec2.describe_capacity_reservations(Filters=by_filter("tag:team", "a"))["CapacityReservations"]
    assert (found["CapacityReservationId"], found["TotalInstanceCount"]) == (id_, 3)
    assert (found["InstanceMatchCriteria"], found["PlacementGroupArn"]) == ("open", outputs["arn"])
    assert (found["EndDateType"], found["EndDate"]) == ("limited", datetime(2099, 1, 1, tzinfo=UTC))
    assert found["Tags"] == [{"Key": "team", "Value": "a"}]
    assert group == "mine"


# --- machines -------------------------------------------------------------------------------------------------------


def test_machines_are_described_as_aws_published_them(client: Client) -> None:
    answer = client("ec2").describe_instance_types(InstanceTypes=["p6-b300.48xlarge", "p6e-gb200.36xlarge"])
    b300, gb200 = answer["InstanceTypes"]
    assert b300["NetworkInfo"]["EfaInfo"] == {"MaximumEfaInterfaces": 16}
    assert b300["NetworkInfo"]["MaximumNetworkCards"] == len(b300["NetworkInfo"]["NetworkCards"]) == 17
    assert b300["GpuInfo"]["Gpus"][0]["Count"] == 8
    assert b300["ProcessorInfo"]["SupportedArchitectures"] == ["x86_64"]
    assert gb200["ProcessorInfo"]["SupportedArchitectures"] == ["arm64"]
    assert gb200["GpuInfo"]["Gpus"][0]["Count"] == 4
    assert gb200["SupportedUsageClasses"] == ["capacity-block"]
    cards = gb200["NetworkInfo"]["NetworkCards"]
    assert [card["NetworkCardIndex"] for card in cards] == list(range(17))
    assert [card["PeakBandwidthInGbps"] for card in cards[:3]] == [100.0, 400.0, 200.0]


def test_machines_that_are_not_here_do_not_exist(client: Client) -> None:
    types = ["p5.48xlarge", "p9.huge"]
    code, message, status = refused(client("ec2").describe_instance_types, InstanceTypes=types)
    assert (code, status) == ("InvalidInstanceType", 400)
    assert message == "The following supplied instance types do not exist: [p9.huge]"
    east = client("ec2", region="us-east-1")
    assert "[p6e-gb200.36xlarge]" in refused(east.describe_instance_types, InstanceTypes=["p6e-gb200.36xlarge"])[1]
    found = east.describe_instance_types(Filters=by_filter("instance-type", "p5*"))["InstanceTypes"]
    assert {each["InstanceType"] for each in found} == {"p5.4xlarge", "p5.48xlarge", "p5en.48xlarge"}


def test_all_machines_come_by_pages(client: Client) -> None:
    pages = list(client("ec2").get_paginator("describe_instance_types").paginate())
    names = [each["InstanceType"] for page in pages for each in page["InstanceTypes"]]
    assert max(len(page["InstanceTypes"]) for page in pages) == 100
    assert len(names) == len(set(names)) > 1000
    assert {"p5.48xlarge", "p6e-gb200.36xlarge", "t3.medium"} <= set(names)


def test_offerings_name_zones_and_their_ids(client: Client) -> None:
    ec2 = client("ec2")

    def places(kind: str, machine: str) -> list[str]:
        answer = ec2.describe_instance_type_offerings(LocationType=kind, Filters=by_filter("instance-type", machine))
        return [each["Location"] for each in answer["InstanceTypeOfferings"]]

    assert places("availability-zone", "p6-b300.48xlarge") == ["us-west-2a", "us-west-2b"]
    assert places("availability-zone-id", "p6-b300.48xlarge") == ["usw2-az2", "usw2-az1"]
    assert places("availability-zone", "p6e-gb200.36xlarge") == ["us-west-2d"]
    assert places("region", "p5.48xlarge") == ["us-west-2"]
    assert places("availability-zone", "p9.huge") == []
    filters = by_filter("location", "us-west-2c") + by_filter("instance-type", "p5e.48xlarge", "p6-b300.48xlarge")
    answer = ec2.describe_instance_type_offerings(LocationType="availability-zone", Filters=filters)
    assert [each["InstanceType"] for each in answer["InstanceTypeOfferings"]] == ["p5e.48xlarge"]


def test_every_reservation_is_where_its_machine_is_offered() -> None:
    found = account()
    for id_, each in found.reservations.items():
        region = found.region_of(each.zone)
        assert region, id_
        assert each.zone in found.zones_with(each.machine, region), id_


def test_zones_have_their_ids(client: Client) -> None:
    ec2 = client("ec2")
    found = ec2.describe_availability_zones()["AvailabilityZones"]
    assert [each["ZoneName"] for each in found] == [f"us-west-2{zone}" for zone in "abcd"]
    [only] = ec2.describe_availability_zones(Filters=by_filter("zone-id", "usw2-az3"))["AvailabilityZones"]
    assert (only["ZoneName"], only["State"], only["RegionName"]) == ("us-west-2c", "available", "us-west-2")
    code, message, _ = refused(ec2.describe_availability_zones, ZoneNames=["us-west-2z"])
    assert (code, message) == ("InvalidParameterValue", "Invalid availability zone: [us-west-2z]")


# --- what was built -------------------------------------------------------------------------------------------------


def test_instances_are_told_with_their_place_and_reservation(aws: Engine, client: Client) -> None:
    site = Site(aws)
    template = {"tagSpecifications": [{"resourceType": "instance", "tags": {"team": "a"}}]}
    aws.create(GROUP, **site.group(nodes=2, template=template))
    ec2 = client("ec2")

    def found(*filters: dict[str, Any]) -> list[Any]:
        answer = ec2.describe_instances(Filters=list(filters))
        return [each for reservation in answer["Reservations"] for each in reservation["Instances"]]

    both = found(*by_filter("tag:eks:nodegroup-name", "train-h100-1"), *by_filter("instance-state-name", "running"))
    assert {each["InstanceId"] for each in both} == {*aws.world.store.list("machine")}
    for each in both:
        assert (each["InstanceType"], each["State"]["Name"]) == ("p5.48xlarge", "running")
        assert (each["Placement"]["AvailabilityZone"], each["Placement"]["Tenancy"]) == ("us-west-2b", "default")
        assert each["CapacityReservationId"] == P5
        assert (each["SubnetId"], each["VpcId"]) == (site.subnets[1], site.vpc)
        assert {"Key": "team", "Value": "a"} in each["Tags"]
        assert each["Architecture"] == "x86_64"
        assert "InstanceLifecycle" not in each
    assert len(found(*by_filter("tag-key", "team"))) == len(found(*by_filter("capacity-reservation-id", P5))) == 2
    assert found(*by_filter("instance-state-name", "terminated")) == []
    assert found(*by_filter("tag:team", "b")) == []
    [reservation] = ec2.describe_capacity_reservations(CapacityReservationIds=[P5])["CapacityReservations"]
    assert reservation["AvailableInstanceCount"] == 14
    assert reservation["CapacityAllocations"] == [{"AllocationType": "used", "Count": 2}]
    assert refused(ec2.describe_instances, InstanceIds=["i-0ffffffffffffffff"])[0] == "InvalidInstanceID.NotFound"
    assert client("ec2", region="us-east-1").describe_instances()["Reservations"] == []


def test_networks_are_told_as_they_were_made(aws: Engine, client: Client) -> None:
    site = Site(aws)
    aws.create(GROUP, **site.group(nodes=2))
    ec2 = client("ec2")
    [vpc] = ec2.describe_vpcs(VpcIds=[site.vpc])["Vpcs"]
    assert (vpc["CidrBlock"], vpc["State"], vpc["IsDefault"]) == ("10.20.0.0/16", "available", False)
    [subnet] = ec2.describe_subnets(Filters=by_filter("availability-zone", "us-west-2b"))["Subnets"]
    assert (subnet["SubnetId"], subnet["AvailabilityZoneId"]) == (site.subnets[1], "usw2-az1")
    assert subnet["AvailableIpAddressCount"] == 2**13 - 5 - 2
    assert len(ec2.describe_subnets(Filters=by_filter("vpc-id", site.vpc))["Subnets"]) == 2
    assert refused(ec2.describe_vpcs, VpcIds=["vpc-1"])[:2] == (
        "InvalidVpcID.NotFound",
        "The vpc ID 'vpc-1' does not exist",
    )
    assert refused(ec2.describe_subnets, SubnetIds=["subnet-1"])[0] == "InvalidSubnetID.NotFound"
    assert client("ec2", region="us-east-1").describe_vpcs()["Vpcs"] == []


def test_security_groups_are_told_with_their_rules_wherever_they_were_written(aws: Engine, client: Client) -> None:
    site = Site(aws)
    inline = {"protocol": "tcp", "fromPort": 988, "toPort": 1023, "self": True, "cidrBlocks": ["10.0.0.0/8"]}
    id_, _ = aws.create(SECURITY, name="efa", description="fabric", vpcId=site.vpc, ingress=[inline])
    aws.create(RULE, securityGroupId=id_, ipProtocol="-1", referencedSecurityGroupId=id_)
    ec2 = client("ec2")
    [found] = ec2.describe_security_groups(GroupIds=[id_])["SecurityGroups"]
    assert (found["GroupName"], found["VpcId"], found["IpPermissionsEgress"]) == ("efa", site.vpc, [])
    some, everything = found["IpPermissions"]
    assert (some["IpProtocol"], some["FromPort"], some["ToPort"]) == ("tcp", 988, 1023)
    assert some["IpRanges"] == [{"CidrIp": "10.0.0.0/8"}]
    assert [pair["GroupId"] for pair in some["UserIdGroupPairs"]] == [id_]
    assert everything["IpProtocol"] == "-1"
    assert "FromPort" not in everything
    assert [pair["GroupId"] for pair in everything["UserIdGroupPairs"]] == [id_]
    of_cluster = site.outputs["vpcConfig"]["clusterSecurityGroupId"]
    [found] = ec2.describe_security_groups(Filters=by_filter("group-id", of_cluster))["SecurityGroups"]
    assert found["IpPermissions"][0]["UserIdGroupPairs"][0]["GroupId"] == of_cluster
    assert len(found["IpPermissionsEgress"]) == 2
    assert refused(ec2.describe_security_groups, GroupIds=["sg-1"])[0] == "InvalidGroup.NotFound"


def test_placement_groups_are_the_accounts_and_the_programs(aws: Engine, client: Client) -> None:
    aws.create("aws:ec2/placementGroup:PlacementGroup", name="spread", strategy="spread")
    ec2 = client("ec2")
    found = ec2.describe_placement_groups()["PlacementGroups"]
    assert {each["GroupName"]: each["Strategy"] for each in found} == {
        "rehearsal-cluster": "cluster",
        "spread": "spread",
    }
    [only] = ec2.describe_placement_groups(Filters=by_filter("strategy", "cluster"))["PlacementGroups"]
    assert only["GroupArn"] == "arn:aws:ec2:us-west-2:123456789012:placement-group/rehearsal-cluster"
    code, message, _ = refused(ec2.describe_placement_groups, GroupNames=["none"])
    assert (code, message) == ("InvalidPlacementGroup.Unknown", "The Placement Group 'none' is unknown.")


def test_groups_of_reservations_are_found_by_name_and_by_arn(client: Client) -> None:
    groups = client("resource-groups")
    assert groups.get_group(Group=GROUP_ARN)["Group"] == {"GroupArn": GROUP_ARN, "Name": "rehearsal-p5"}
    for name in ("rehearsal-p5", GROUP_ARN):
        answer = groups.list_group_resources(Group=name)
        assert [each["ResourceArn"].split("/")[-1] for each in answer["ResourceIdentifiers"]] == [
            "cr-0a1b2c3d4e5f60764",
            "cr-0a1b2c3d4e5f60765",
        ]
        kinds = {each["Identifier"]["ResourceType"] for each in answer["Resources"]}
        assert kinds == {"AWS::EC2::CapacityReservation"}
    assert groups.list_group_resources(Group="rehearsal-empty")["Resources"] == []
    filters = by_filter("resource-type", "AWS::EC2::Instance")
    assert groups.list_group_resources(Group="rehearsal-p5", Filters=filters)["Resources"] == []
    code, message, status = refused(groups.get_group, Group="none")
    assert (code, status) == ("NotFoundException", 404)
    assert "none" in message
    east = client("resource-groups", region="us-east-1")
    assert refused(east.list_group_resources, Group=GROUP_ARN)[0] == "NotFoundException"


def test_clusters_and_their_add_ons(aws: Engine, client: Client) -> None:
    site = Site(aws)
    for name in ("vpc-cni", "coredns"):
        aws.create("aws:eks/addon:Addon", clusterName="train", addonName=name)
    eks = client("eks")
    found = eks.describe_cluster(name="train")["cluster"]
    assert (found["name"], found["version"], found["status"]) == ("train", "1.34", "ACTIVE")
    assert found["endpoint"] == site.outputs["endpoint"]
    assert found["resourcesVpcConfig"]["vpcId"] == site.vpc
    assert found["resourcesVpcConfig"]["subnetIds"] == site.subnets
    assert found["resourcesVpcConfig"]["clusterSecurityGroupId"].startswith("sg-")
    assert found["certificateAuthority"] == site.outputs["certificateAuthority"]
    assert eks.list_addons(clusterName="train")["addons"] == ["coredns", "vpc-cni"]
    addon = eks.describe_addon(clusterName="train", addonName="vpc-cni")["addon"]
    assert (addon["addonName"], addon["status"], addon["health"]) == ("vpc-cni", "ACTIVE", {"issues": []})
    assert addon["addonVersion"]
    code, message, status = refused(eks.describe_cluster, name="none")
    assert (code, message, status) == ("ResourceNotFoundException", "No cluster found for name: none.", 404)
    assert refused(eks.list_addons, clusterName="none")[0] == "ResourceNotFoundException"
    code, message, _ = refused(eks.describe_addon, clusterName="train", addonName="none")
    assert (code, message) == ("ResourceNotFoundException", "No addon: none found in cluster: train")
    assert refused(client("eks", region="us-east-1").describe_cluster, name="train")[2] == 404
    with pytest.raises(eks.exceptions.ResourceNotFoundException):
        eks.describe_cluster(name="none")


def test_a_clusters_age_is_that_of_its_control_plane(aws: Engine, client: Client) -> None:
    Site(aws)
    aws.world.store.put("plane", "train", {"folder": "x", "version": "1.34", "since": 1764547200.5})
    found = client("eks").describe_cluster(name="train")["cluster"]
    assert found["createdAt"].astimezone(UTC) == datetime(2025, 12, 1, 0, 0, 0, 500000, tzinfo=UTC)
    assert CLUSTER == "aws:eks/cluster:Cluster"


def test_who_asks(client: Client) -> None:
    found = client("sts").get_caller_identity()
    assert found["Account"] == account().id
    assert found["Arn"] == f"arn:aws:iam::{account().id}:user/rehearsal"


# --- who may not ask, and what is not simulated ----------------------------------------------------------------------

_ASK: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "ec2": lambda ec2: ec2.describe_vpcs,
    "eks": lambda eks: lambda: eks.describe_cluster(name="train"),
    "sts": lambda sts: sts.get_caller_identity,
    "resource-groups": lambda groups: lambda: groups.get_group(Group="rehearsal-p5"),
}
_INVALID = "The security token included in the request is invalid."


@pytest.mark.parametrize(
    ("service", "code", "message", "status"),
    [
        ("ec2", "AuthFailure", "AWS was not able to validate the provided access credentials", 401),
        ("eks", "UnrecognizedClientException", _INVALID, 403),
        ("sts", "InvalidClientTokenId", _INVALID, 403),
        ("resource-groups", "UnrecognizedClientException", _INVALID, 403),
    ],
)
def test_other_keys_and_regions_that_the_account_does_not_have(
    client: Client, service: str, code: str, message: str, status: int
) -> None:
    for asking in (client(service, key="AKIAIOSFODNN7EXAMPLE"), client(service, region="eu-south-2")):
        assert refused(_ASK[service](asking)) == (code, message, status)


@pytest.mark.parametrize(
    ("service", "code", "status"),
    [
        ("ec2", "MissingParameter", 400),
        ("eks", "MissingAuthenticationTokenException", 403),
        ("sts", "MissingAuthenticationToken", 403),
    ],
)
def test_requests_without_credentials(client: Client, service: str, code: str, status: int) -> None:
    found, _, said = refused(_ASK[service](client(service, signature_version=UNSIGNED)))
    assert (found, said) == (code, status)


@pytest.mark.parametrize(
    ("service", "ask", "words"),
    [
        ("ec2", lambda c: c.describe_images, "does not simulate ec2:DescribeImages; it simulates DescribeAvail"),
        ("eks", lambda c: c.list_clusters, "does not simulate eks:ListClusters; it simulates DescribeAddon"),
        ("sts", lambda c: c.get_session_token, "does not simulate sts:GetSessionToken; it simulates GetCaller"),
        ("fsx", lambda c: c.describe_file_systems, "does not simulate fsx:DescribeFileSystems"),
        ("iam", lambda c: c.list_roles, "does not simulate iam:ListRoles"),
        ("s3", lambda c: c.list_buckets, "does not simulate s3:ListBuckets"),
    ],
)
def test_what_is_not_simulated_says_so_in_the_services_protocol(
    client: Client, service: str, ask: Callable[[Any], Callable[[], Any]], words: str
) -> None:
    region = "us-east-1" if service == "iam" else "us-west-2"
    code, message, status = refused(ask(client(service, region=region)))
    assert (code, status) == ("UnsupportedOperation", 400)
    assert words in message


def test_a_trial_is_answered_as_one(client: Client) -> None:
    code, _, status = refused(client("ec2").describe_capacity_reservations, DryRun=True)
    assert (code, status) == ("DryRunOperation", 412)
