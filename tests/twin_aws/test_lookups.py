"""Data sources of the simulated AWS: what they find, and what they say when there is nothing to find."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.twin_aws.test_resources import GROUP, SUBNET, VPC, Site
from tests.twin_aws.worlds import Engine, Refused, engine

GET_VPC, GET_SUBNET = "aws:ec2/getVpc:getVpc", "aws:ec2/getSubnet:getSubnet"
GET_CLUSTER, GET_TYPE = "aws:eks/getCluster:getCluster", "aws:ec2/getInstanceType:getInstanceType"


@pytest.fixture
def aws() -> Iterator[Engine]:
    with engine() as running:
        yield running


@pytest.mark.parametrize(
    "asked",
    [
        {"cidrBlock": "10.40.0.0/16"},
        {"tags": {"team": "a"}},
        {"filters": [{"name": "tag:team", "values": ["a", "c"]}]},
        {"filters": [{"name": "cidr", "values": ["10.40.0.0/16"]}], "state": "available"},
    ],
    ids=str,
)
def test_network_is_found_by_what_it_has(aws: Engine, asked: dict[str, Any]) -> None:
    id_, _ = aws.create(VPC, cidrBlock="10.40.0.0/16", tags={"team": "a"}, enableDnsHostnames=True)
    aws.create(VPC, cidrBlock="10.50.0.0/16", tags={"team": "b"})
    found = aws.look_up(GET_VPC, **asked)
    assert (found["id"], found["cidrBlock"], found["enableDnsHostnames"]) == (id_, "10.40.0.0/16", True)
    assert found["tags"] == {"team": "a"}
    assert aws.look_up(GET_VPC, id=id_)["arn"] == found["arn"]


@pytest.mark.parametrize(
    ("token", "asked", "words"),
    [
        (GET_VPC, {"id": "vpc-none"}, "no matching EC2 VPC found"),
        (GET_VPC, {"default": True}, "no matching EC2 VPC found"),
        (GET_VPC, {}, "multiple EC2 VPCs matched; use additional constraints to reduce matches to a single EC2 VPC"),
        (GET_VPC, {"filters": [{"name": "colour", "values": ["red"]}]}, "The filter 'colour' is invalid"),
        (GET_SUBNET, {"id": "subnet-none"}, "no matching EC2 Subnet found"),
        (GET_SUBNET, {"vpcId": "vpc-none"}, "no matching EC2 Subnet found"),
        (GET_SUBNET, {}, "multiple EC2 Subnets matched"),
        (GET_CLUSTER, {"name": "none"}, r"reading EKS Cluster \(none\): couldn't find resource"),
        (GET_TYPE, {"instanceType": "p9.huge"}, r"InvalidInstanceType: .* do not exist: \[p9.huge\]"),
    ],
    ids=str,
)
def test_what_is_not_there_fails(aws: Engine, token: str, asked: dict[str, Any], words: str) -> None:
    Site(aws)
    aws.create(VPC, cidrBlock="10.40.0.0/16")
    with pytest.raises(Refused, match=rf"invoking {token}: 1 error occurred:\n\t\* .*{words}"):
        aws.look_up(token, **asked)


def test_data_source_that_is_not_simulated_is_refused_by_name(aws: Engine) -> None:
    with pytest.raises(Refused, match="does not simulate aws:s3/getBucket:getBucket; it simulates aws:ec2/getInstance"):
        aws.look_up("aws:s3/getBucket:getBucket")


def test_subnet_tells_how_many_addresses_are_free(aws: Engine) -> None:
    site = Site(aws)
    vpc, _ = aws.create(VPC, cidrBlock="10.40.0.0/16")
    alone, _ = aws.create(SUBNET, vpcId=vpc, cidrBlock="10.40.0.0/24")
    found = aws.look_up(GET_SUBNET, id=alone)
    assert (found["availableIpAddressCount"], found["vpcId"]) == (251, vpc)
    zone = [{"name": "availability-zone", "values": ["us-west-2b"]}]
    before = aws.look_up(GET_SUBNET, vpcId=site.vpc, filters=zone)["availableIpAddressCount"]
    assert before == 2**13 - 5 - 1, "the cluster has an interface there"
    group, _ = aws.create(GROUP, **site.group(nodes=3))
    assert aws.look_up(GET_SUBNET, id=site.subnets[1])["availableIpAddressCount"] == before - 3
    aws.create("aws:ec2/natGateway:NatGateway", subnetId=site.subnets[1])
    endpoint: dict[str, Any] = {"serviceName": "com.amazonaws.us-west-2.sts", "vpcEndpointType": "Interface"}
    aws.create("aws:ec2/vpcEndpoint:VpcEndpoint", vpcId=site.vpc, subnetIds=[site.subnets[1]], **endpoint)
    lustre: dict[str, Any] = {"deploymentType": "SCRATCH_2", "storageCapacity": 2400, "subnetIds": site.subnets[1]}
    _, system = aws.create("aws:fsx/lustreFileSystem:LustreFileSystem", **lustre)
    used = 3 + 1 + 1 + len(system["networkInterfaceIds"])
    assert aws.look_up(GET_SUBNET, id=site.subnets[1])["availableIpAddressCount"] == before - used
    aws.delete(GROUP, group)
    assert aws.look_up(GET_SUBNET, id=site.subnets[1])["availableIpAddressCount"] == before - used + 3


def test_cluster_is_found_by_its_name(aws: Engine) -> None:
    site = Site(aws)
    found = aws.look_up(GET_CLUSTER, name="train")
    assert (found["endpoint"], found["version"]) == ("https://train", "1.34")
    assert found["certificateAuthorities"] == [site.outputs["certificateAuthority"]]
    assert found["accessConfigs"] == [{"authenticationMode": "CONFIG_MAP"}]
    assert found["vpcConfig"]["clusterSecurityGroupId"] == site.outputs["vpcConfig"]["clusterSecurityGroupId"]


@pytest.mark.parametrize(("name", "cards", "efa", "gpus"), [("p5.48xlarge", 32, 32, 8), ("m5.large", 1, 0, 0)])
def test_machine_type_tells_its_cards(aws: Engine, name: str, cards: int, efa: int, gpus: int) -> None:
    found = aws.look_up(GET_TYPE, instanceType=name)
    assert found["maximumNetworkCards"] == len(found["networkCards"]) == cards
    assert (found["efaSupported"], found["efaMaximumInterfaces"]) == (efa > 0, efa)
    assert [each["count"] for each in found["gpuses"]] == ([gpus] if gpus else [])
    assert found["supportedArchitectures"] == ["x86_64"]
