"""Networks of the simulated AWS: rules of security groups, routes, endpoints, placement groups."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.twin_aws.test_resources import CLUSTER, GROUP, RULE, SECURITY, SUBNET, VPC, Site
from tests.twin_aws.worlds import Engine, Refused, engine
from twin.aws.wire import UNKNOWN

OUT = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
TABLE, ROUTE = "aws:ec2/routeTable:RouteTable", "aws:ec2/route:Route"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
INTERNET, NAT = "aws:ec2/internetGateway:InternetGateway", "aws:ec2/natGateway:NatGateway"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
PLACEMENT = "aws:ec2/placementGroup:PlacementGroup"
S3, ECR = "com.amazonaws.us-west-2.s3", "com.amazonaws.us-west-2.ecr.api"


@pytest.fixture
def aws() -> Iterator[Engine]:
    with engine() as running:
        yield running


# --- security groups ------------------------------------------------------------------------------------------------

ALL: dict[str, Any] = {"ipProtocol": "-1", "cidrIpv4": "10.0.0.0/8"}
SSH: dict[str, Any] = {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIpv4": "10.0.0.0/8"}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (ALL, 'the specified rule "peer: 10.0.0.0/8, ALL, ALLOW" already exists'),
        (SSH, 'the specified rule "peer: 10.0.0.0/8, TCP, from port: 22, to port: 22, ALLOW" already exists'),
    ],
    ids=["all", "ssh"],
)
def test_rule_that_there_is_already_is_refused(aws: Engine, rule: dict[str, Any], words: str) -> None:
    site = Site(aws)
    group, _ = aws.create(SECURITY, vpcId=site.vpc)
    aws.create(RULE, securityGroupId=group, **rule)
    with pytest.raises(Refused, match=r"AuthorizeSecurityGroupIngress.*InvalidPermission.Duplicate") as caught:
        aws.create(RULE, securityGroupId=group, **rule, description="another")
    assert words in str(caught.value)
    aws.create(OUT, securityGroupId=group, **rule)
    aws.create(RULE, securityGroupId=group, **{**rule, "cidrIpv4": "10.1.0.0/16"})


def test_rule_changes_in_place_but_not_into_one_that_there_is(aws: Engine) -> None:
    site = Site(aws)
    group, _ = aws.create(SECURITY, vpcId=site.vpc)
    inputs: dict[str, Any] = {"securityGroupId": group, **SSH}
    aws.create(RULE, **inputs)
    other = {**inputs, "cidrIpv4": "10.1.0.0/16"}
    id_, state = aws.create(RULE, **other)
    assert aws.replaces(RULE, other, {**other, "fromPort": 20}) == (["fromPort"], [])
    assert aws.replaces(RULE, other, {**other, "securityGroupId": "sg-2"}) == (
        ["securityGroupId"],
        ["securityGroupId"],
    )
    with pytest.raises(Refused, match=r"ModifySecurityGroupRules.*InvalidPermission.Duplicate"):
        aws.update(RULE, id_, state, inputs, other)
    changed = aws.update(RULE, id_, state, {**other, "description": "ssh"}, other)
    assert changed["description"] == "ssh"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"fromPort": 988}, "Must specify both from and to ports with TCP/UDP."),
        ({"fromPort": 1023, "toPort": 1018}, "Invalid TCP/UDP port range (1023:1018)"),
        ({"fromPort": 0, "toPort": 70000}, "Invalid TCP/UDP port range (0:70000)"),
    ],
    ids=str,
)
def test_ports_make_a_range(aws: Engine, rule: dict[str, Any], words: str) -> None:
    site = Site(aws)
    group, _ = aws.create(SECURITY, vpcId=site.vpc)
    with pytest.raises(Refused, match="InvalidParameterValue") as caught:
        aws.create(RULE, securityGroupId=group, ipProtocol="tcp", cidrIpv4="10.0.0.0/8", **rule)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("peer", "path", "words"),
    [
        ({}, "cidrIpv4", "No attribute specified when one (and only one) of"),
        ({"cidrIpv4": "10.0.0.0/8", "referencedSecurityGroupId": "sg-1"}, "cidrIpv4", "2 attributes specified"),
        ({"cidrIpv4": "10.0.0.1/8"}, "cidrIpv4", "represents a network address, got: 10.0.0.1/8"),
        ({"cidrIpv4": "fd00::/8"}, "cidrIpv4", "must be a valid IPv4 CIDR"),
        ({"cidrIpv6": "10.0.0.0/8"}, "cidrIpv6", "must be a valid IPv6 CIDR"),
    ],
    ids=str,
)
def test_rule_has_one_peer(aws: Engine, peer: dict[str, Any], path: str, words: str) -> None:
    _, failures = aws.check(RULE, {"securityGroupId": "sg-1", "ipProtocol": "-1", **peer})
    assert list(failures) == [path]
    assert words in failures[path]
    assert aws.check(RULE, {"securityGroupId": "sg-1", "ipProtocol": "-1", "cidrIpv4": UNKNOWN})[1] == {}


def test_name_of_a_group_is_its_own_in_a_vpc(aws: Engine) -> None:
    site = Site(aws)
    aws.create(SECURITY, vpcId=site.vpc, name="fabric")
    words = f"InvalidGroup.Duplicate: The security group 'fabric' already exists for VPC '{site.vpc}'"
    with pytest.raises(Refused, match=words):
        aws.create(SECURITY, vpcId=site.vpc, name="fabric")
    other, _ = aws.create(VPC, cidrBlock="10.30.0.0/16")
    aws.create(SECURITY, vpcId=other, name="fabric")
    with pytest.raises(Refused, match="VPCIdNotSpecified: No default VPC for this user"):
        aws.create(SECURITY, name="nowhere")
    with pytest.raises(Refused, match=r"InvalidVpcID.NotFound: The vpc ID 'vpc-none' does not exist"):
        aws.create(SECURITY, vpcId="vpc-none")


def test_groups_that_aws_makes_take_rules_and_groups_take_theirs_with_them(aws: Engine) -> None:
    site = Site(aws)
    of_cluster = site.outputs["vpcConfig"]["clusterSecurityGroupId"]
    group, _ = aws.create(SECURITY, vpcId=site.vpc)
    aws.create(RULE, securityGroupId=of_cluster, ipProtocol="-1", cidrIpv4="10.20.0.0/16")
    rule, _ = aws.create(RULE, securityGroupId=group, ipProtocol="-1", referencedSecurityGroupId=group)
    with pytest.raises(Refused, match="The security group 'sg-none' does not exist"):
        aws.create(RULE, securityGroupId=group, ipProtocol="-1", referencedSecurityGroupId="sg-none")
    aws.delete(SECURITY, group)
    assert aws.read(RULE, rule) == ""


# --- routes ---------------------------------------------------------------------------------------------------------


class Ways:
    """A network with a route table, and both kinds of way out."""

    def __init__(self, aws: Engine) -> None:
        self.site = Site(aws)
        self.internet, _ = aws.create(INTERNET, vpcId=self.site.vpc)
        self.nat, _ = aws.create(NAT, subnetId=self.site.subnets[0])
        self.table, _ = aws.create(TABLE, vpcId=self.site.vpc)
        self.route: dict[str, Any] = {"routeTableId": self.table, "destinationCidrBlock": "0.0.0.0/0"}


def test_route_is_one_to_its_destination(aws: Engine) -> None:
    ways = Ways(aws)
    inputs = {**ways.route, "natGatewayId": ways.nat}
    id_, outputs = aws.create(ROUTE, **inputs)
    assert id_.startswith(f"r-{ways.table}")
    assert outputs["state"] == "active"
    words = rf"RouteAlreadyExists: Route in Route Table \({ways.table}\) with destination \(0.0.0.0/0\) already exists"
    with pytest.raises(Refused, match=words):
        aws.create(ROUTE, **ways.route, gatewayId=ways.internet)
    moved = {**ways.route, "gatewayId": ways.internet}
    assert aws.replaces(ROUTE, inputs, moved) == (["gatewayId", "natGatewayId"], [])
    for name in ("routeTableId", "destinationCidrBlock"):
        assert aws.replaces(ROUTE, inputs, {**inputs, name: "another"})[1] == [name]
    changed = aws.update(ROUTE, id_, outputs, moved, inputs)
    assert "natGatewayId" not in changed


def test_route_inside_of_a_table_counts(aws: Engine) -> None:
    ways = Ways(aws)
    inside = [{"cidrBlock": "0.0.0.0/0", "gatewayId": ways.internet}]
    table, _ = aws.create(TABLE, vpcId=ways.site.vpc, routes=inside)
    with pytest.raises(Refused, match="RouteAlreadyExists"):
        aws.create(ROUTE, routeTableId=table, destinationCidrBlock="0.0.0.0/0", natGatewayId=ways.nat)
    with pytest.raises(Refused, match=r"InvalidNatGatewayID.NotFound: The natGateway ID 'nat-none' does not exist"):
        aws.create(TABLE, vpcId=ways.site.vpc, routes=[{"cidrBlock": "0.0.0.0/0", "natGatewayId": "nat-none"}])


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"natGatewayId": "nat-none"}, "InvalidNatGatewayID.NotFound: The natGateway ID 'nat-none' does not exist"),
        ({"gatewayId": "igw-none"}, "InvalidInternetGatewayID.NotFound"),
        ({"gatewayId": "igw-none", "routeTableId": "rtb-none"}, "InvalidRouteTableID.NotFound"),
    ],
    ids=str,
)
def test_route_needs_its_ends(aws: Engine, target: dict[str, Any], words: str) -> None:
    ways = Ways(aws)
    with pytest.raises(Refused, match=words):
        aws.create(ROUTE, **{**ways.route, **target})


def test_internet_gateway_is_that_of_the_network(aws: Engine) -> None:
    ways = Ways(aws)
    elsewhere, _ = aws.create(INTERNET)
    words = f"route table {ways.table} and network gateway {elsewhere} belong to different networks"
    with pytest.raises(Refused, match=words):
        aws.create(ROUTE, **ways.route, gatewayId=elsewhere)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"natGatewayId": "nat-1"}, "No attribute specified"),
        ({"destinationCidrBlock": "0.0.0.0/0"}, "No attribute specified"),
        ({"destinationCidrBlock": "0.0.0.0/0", "natGatewayId": "nat-1", "gatewayId": "igw-1"}, "2 attributes"),
    ],
    ids=str,
)
def test_route_has_one_destination_and_one_target(aws: Engine, inputs: dict[str, Any], words: str) -> None:
    _, failures = aws.check(ROUTE, {"routeTableId": "rtb-1", **inputs})
    assert [words in reason for reason in failures.values()] == [True]


def test_subnet_has_one_route_table(aws: Engine) -> None:
    ways = Ways(aws)
    subnet = ways.site.subnets[0]
    aws.create(ASSOCIATION, routeTableId=ways.table, subnetId=subnet)
    other, _ = aws.create(TABLE, vpcId=ways.site.vpc)
    words = f"the specified association for route table {other} conflicts with an existing association"
    with pytest.raises(Refused, match=f"Resource.AlreadyAssociated: {words}"):
        aws.create(ASSOCIATION, routeTableId=other, subnetId=subnet)
    with pytest.raises(Refused, match=r"InvalidSubnetID.NotFound"):
        aws.create(ASSOCIATION, routeTableId=other, subnetId="subnet-none")
    with pytest.raises(Refused, match=r"InvalidElasticIpID.NotFound"):
        aws.create(NAT, subnetId=subnet, allocationId="eipalloc-none")


# --- endpoints ------------------------------------------------------------------------------------------------------


class Private:
    """A network whose names AWS resolves, with a route table."""

    def __init__(self, aws: Engine) -> None:
        self.vpc, _ = aws.create(VPC, cidrBlock="10.30.0.0/16", enableDnsHostnames=True)
        self.subnets = [
            aws.create(SUBNET, vpcId=self.vpc, cidrBlock=f"10.30.{i}.0/24", availabilityZone=f"us-west-2{zone}")[0]
            for i, zone in enumerate("aab")
        ]
        self.table, _ = aws.create(TABLE, vpcId=self.vpc)
        self.group, _ = aws.create(SECURITY, vpcId=self.vpc)
        self.gateway: dict[str, Any] = {"vpcId": self.vpc, "serviceName": S3, "routeTableIds": [self.table]}
        self.interface: dict[str, Any] = {
            "vpcId": self.vpc,
            "serviceName": ECR,
            "vpcEndpointType": "Interface",
            "subnetIds": [self.subnets[0], self.subnets[2]],
            "securityGroupIds": [self.group],
            "privateDnsEnabled": True,
        }


def test_gateway_endpoint_is_one_to_a_route_table(aws: Engine) -> None:
    private = Private(aws)
    id_, outputs = aws.create(ENDPOINT, **private.gateway)
    assert id_.startswith("vpce-0")
    assert outputs["prefixListId"].startswith("pl-")
    words = f"RouteAlreadyExists: route table {private.table} already has a route with destination-prefix-list-id pl-"
    with pytest.raises(Refused, match=words):
        aws.create(ENDPOINT, **private.gateway)
    other, _ = aws.create(TABLE, vpcId=private.vpc)
    aws.create(ENDPOINT, **{**private.gateway, "routeTableIds": [other]})
    with pytest.raises(Refused, match=f"The vpc '{private.vpc}' has dependencies"):
        aws.delete(VPC, private.vpc)


def test_interface_endpoint_has_an_interface_in_each_subnet(aws: Engine) -> None:
    private = Private(aws)
    id_, outputs = aws.create(ENDPOINT, **private.interface)
    assert len(outputs["networkInterfaceIds"]) == 2
    assert outputs["dnsEntries"][0]["dnsName"] == f"{id_}.api.ecr.us-west-2.amazonaws.com"
    words = r"because there is already a conflicting DNS domain for api.ecr.us-west-2.amazonaws.com in the VPC"
    with pytest.raises(Refused, match=words):
        aws.create(ENDPOINT, **private.interface)
    aws.create(ENDPOINT, **{**private.interface, "privateDnsEnabled": False})
    for token, held in ((SUBNET, private.subnets[0]), (SECURITY, private.group)):
        with pytest.raises(Refused, match="DependencyViolation"):
            aws.delete(token, held)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"serviceName": "com.amazonaws.us-west-2.ecr-api"}, "InvalidServiceName: The Vpc Endpoint Service 'com"),
        ({"serviceName": "com.amazonaws.us-east-1.ecr.api"}, "InvalidServiceName: The Vpc Endpoint Service 'com"),
        ({"vpcEndpointType": "Gateway"}, r"Endpoint type \(Gateway\) does not match available service types"),
        ({"vpcId": "vpc-none"}, "InvalidSubnetId.NotFound"),
        ({"vpcId": "vpc-none", "subnetIds": []}, "InvalidVpcId.NotFound: The Vpc Id vpc-none does not exist"),
        ({"securityGroupIds": ["sg-none"]}, "InvalidSecurityGroupId.NotFound"),
        ({"routeTableIds": ["rtb-none"]}, "InvalidRouteTableId.NotFound"),
    ],
    ids=str,
)
def test_endpoint_that_is_asked_for_wrongly_is_refused(aws: Engine, change: dict[str, Any], words: str) -> None:
    private = Private(aws)
    with pytest.raises(Refused, match=words):
        aws.create(ENDPOINT, **{**private.interface, **change})


def test_endpoint_has_one_subnet_in_a_zone(aws: Engine) -> None:
    private = Private(aws)
    words = "DuplicateSubnetsInSameZone: Found another VPC endpoint subnet in the availability zone of"
    with pytest.raises(Refused, match=words):
        aws.create(ENDPOINT, **{**private.interface, "subnetIds": private.subnets})


def test_private_names_need_those_of_the_network(aws: Engine) -> None:
    vpc, _ = aws.create(VPC, cidrBlock="10.40.0.0/16")
    words = "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC attributes set to true"
    with pytest.raises(Refused, match=words):
        aws.create(ENDPOINT, vpcId=vpc, serviceName=ECR, vpcEndpointType="Interface", privateDnsEnabled=True)


def test_what_of_an_endpoint_changes_in_place(aws: Engine) -> None:
    private = Private(aws)
    inputs = private.interface
    assert aws.replaces(ENDPOINT, inputs, {**inputs, "serviceName": S3})[1] == ["serviceName"]
    assert aws.replaces(ENDPOINT, inputs, {**inputs, "vpcId": "vpc-2"})[1] == ["vpcId"]
    assert aws.replaces(ENDPOINT, inputs, {**inputs, "vpcEndpointType": "Gateway"})[1] == ["vpcEndpointType"]
    assert aws.replaces(ENDPOINT, inputs, {**inputs, "subnetIds": [private.subnets[0]]}) == (["subnetIds"], [])
    id_, state = aws.create(ENDPOINT, **inputs)
    changed = aws.update(ENDPOINT, id_, state, {**inputs, "subnetIds": private.subnets[1:]}, inputs)
    assert changed["subnetIds"] == private.subnets[1:]
    _, failures = aws.check(ENDPOINT, {"vpcId": private.vpc})
    assert list(failures) == ["resourceConfigurationArn"]


# --- the others -----------------------------------------------------------------------------------------------------


def test_placement_group_has_a_name_of_its_own(aws: Engine) -> None:
    aws.create(PLACEMENT, name="train", strategy="cluster")
    words = "InvalidPlacementGroup.Duplicate: The Placement Group 'train' already exists."
    with pytest.raises(Refused, match=words):
        aws.create(PLACEMENT, name="train", strategy="cluster")
    assert list(aws.check(PLACEMENT, {"name": "other"})[1]) == ["strategy"]
    for name in ("strategy", "partitionCount", "spreadLevel"):
        assert aws.replaces(PLACEMENT, {name: "a"}, {name: "b"})[1] == [name]


def test_subnet_without_a_zone_gets_one(aws: Engine) -> None:
    vpc, _ = aws.create(VPC, cidrBlock="10.40.0.0/16")
    _, outputs = aws.create(SUBNET, vpcId=vpc, cidrBlock="10.40.0.0/24")
    assert (outputs["availabilityZone"], outputs["availabilityZoneId"]) == ("us-west-2a", "usw2-az2")
    _, of_id = aws.create(SUBNET, vpcId=vpc, cidrBlock="10.40.1.0/24", availabilityZoneId="usw2-az1")
    assert of_id["availabilityZone"] == "us-west-2b"


def test_what_there_is_is_found_by_its_id(aws: Engine) -> None:
    site = Site(aws)
    assert aws.outputs_read(VPC, site.vpc)["cidrBlock"] == "10.20.0.0/16"
    assert aws.outputs_read(SUBNET, site.subnets[0])["vpcId"] == site.vpc
    assert aws.outputs_read(CLUSTER, "train") == site.outputs
    assert aws.outputs_read(SUBNET, "subnet-none") == {}
    assert aws.inputs_read(SUBNET, site.subnets[0])["availabilityZone"] == "us-west-2a"


def test_machines_hold_the_groups_that_their_template_names(aws: Engine) -> None:
    site = Site(aws)
    group, _ = aws.create(SECURITY, vpcId=site.vpc)
    nic = {"deviceIndex": 0, "interfaceType": "interface", "securityGroups": [group]}
    id_, _ = aws.create(GROUP, **site.group(template={"networkInterfaces": [nic]}))
    with pytest.raises(Refused, match=f"DependencyViolation: resource {group} has a dependent object"):
        aws.delete(SECURITY, group)
    aws.delete(GROUP, id_)
    aws.delete(SECURITY, group)
