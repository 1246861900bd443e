"""EC2: networks, addresses, routes, security groups, endpoints, launch templates, reservations, placement groups."""

import hashlib
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network

from twin.aws.facts import machine
from twin.aws.kinds.base import (
    RESERVATION,
    Call,
    Kind,
    Values,
    arn,
    exactly_one,
    flat,
    folder,
    together,
    wanted,
)
from twin.aws.wire import UNKNOWN

VPC, SUBNET = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
TABLE, ROUTE = "aws:ec2/routeTable:RouteTable", "aws:ec2/route:Route"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
INTERNET, NAT, EIP = "aws:ec2/internetGateway:InternetGateway", "aws:ec2/natGateway:NatGateway", "aws:ec2/eip:Eip"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
PLACEMENT = "aws:ec2/placementGroup:PlacementGroup"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_CLUSTER, _NODE_GROUP = "aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"
_LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
_HELD = "The {noun} '{{id}}' has dependencies and cannot be deleted."


# --- networks -------------------------------------------------------------------------------------------------------


def _vpc_range(call: Call) -> None:
    """https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html ."""
    if not 16 <= IPv4Network(call.inputs["cidrBlock"]).prefixlen <= 28:
        raise call.refuse("InvalidVpc.Range", f"The CIDR '{call.inputs['cidrBlock']}' is invalid.")


def _of_vpc(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html ."""
    if vpc := call.inputs.get("vpcId"):
        wanted(call, VPC, vpc, "InvalidVpcID.NotFound", "The vpc ID '{id}' does not exist")


def _in_subnet(call: Call) -> None:
    if subnet := call.inputs.get("subnetId"):
        wanted(call, SUBNET, subnet, "InvalidSubnetID.NotFound", "The subnet ID '{id}' does not exist")


def _subnet_place(call: Call) -> None:
    """https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html ."""
    vpc = wanted(call, VPC, call.inputs["vpcId"], "InvalidVpcID.NotFound", "The vpc ID '{id}' does not exist")
    zone = call.inputs.get("availabilityZone")
    if zone and zone not in call.account.zones.get(call.region, {}):
        raise call.refuse("InvalidParameterValue", f"Value ({zone}) for parameter availabilityZone is invalid.")
    asked = IPv4Network(call.inputs["cidrBlock"])
    if not asked.subnet_of(IPv4Network(vpc["cidrBlock"])):
        raise call.refuse("InvalidSubnet.Range", f"The CIDR '{asked}' is invalid.")
    for other in call.all(SUBNET).values():
        if other["vpcId"] == call.inputs["vpcId"] and asked.overlaps(IPv4Network(other["cidrBlock"])):
            raise call.refuse("InvalidSubnet.Conflict", f"The CIDR '{asked}' conflicts with another subnet")


def _subnet_made(call: Call, id_: str) -> Values:
    """AWS chooses the zone of a subnet that names none."""
    zones = call.account.zones.get(call.region, {})
    of_id = {zone_id: zone for zone, zone_id in zones.items()}
    zone = call.inputs.get("availabilityZone") or of_id.get(call.inputs.get("availabilityZoneId", "")) or min(zones)
    return {
        **arn("ec2", "subnet/{id}")(call, id_),
        "ownerId": call.account.id,
        "availabilityZone": zone,
        "availabilityZoneId": zones.get(zone, ""),
    }


def addresses_free(call: Call, subnet: Values) -> int:
    """Addresses of a subnet that nobody has.

    AWS keeps five (https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html). An instance counts as one:
    interfaces of type efa-only have none, and what the VPC CNI takes for pods is not simulated.
    """
    alive = call.world.store.list("machine")
    used = sum(d.get("subnet") == subnet["id"] for i, d in call.world.store.list("aws-instance").items() if i in alive)
    used += sum(nat["subnetId"] == subnet["id"] for nat in call.all(NAT).values())
    used += sum(subnet["id"] in (endpoint.get("subnetIds") or ()) for endpoint in call.all(ENDPOINT).values())
    for system in call.all(_LUSTRE).values():
        if subnet["id"] in flat(system["subnetIds"]):
            used += len(system["networkInterfaceIds"])
    for cluster in call.all(_CLUSTER).values():
        # https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html : two to four interfaces, over two subnets.
        used += subnet["id"] in cluster["vpcConfig"]["subnetIds"][:2]
    return int(IPv4Network(subnet["cidrBlock"]).num_addresses - 5 - used)


# --- security groups ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Permission:
    """Traffic that a security group lets through."""

    outward: bool
    protocol: str
    """`tcp`, `udp`, …; `-1` for all of them."""
    ports: tuple[int, int]
    """First and last; meaningless where the protocol has no ports."""
    peer: str
    """A security group's id, or addresses."""

    def covers(self, protocol: str, first: int, last: int) -> bool:
        """Whether it lets all these ports through."""
        ports = self.ports[0] <= first and last <= self.ports[1]
        return self.protocol == "-1" or (self.protocol == protocol and (ports or self.ports == (-1, -1)))


def group_exists(call: Call, id_: str) -> bool:
    """Whether there is such a security group; those that AWS makes for a cluster and a VPC count."""
    made = {cluster["vpcConfig"].get("clusterSecurityGroupId") for cluster in call.all(_CLUSTER).values()}
    made |= {vpc.get("defaultSecurityGroupId") for vpc in call.all(VPC).values()}
    return id_ in made or call.find(GROUP, id_) is not None


def permissions(call: Call, id_: str) -> list[Permission]:
    """What a security group lets through."""
    found = []
    for token, outward in ((INGRESS, False), (EGRESS, True)):
        rules = call.all(token).values()
        found += [_permission(r, outward, _peer(r)) for r in rules if r["securityGroupId"] == id_]
    group = call.find(GROUP, id_)
    if group is None:
        # https://docs.aws.amazon.com/vpc/latest/userguide/default-security-group.html , and for a cluster's
        # https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html : that one lets EFA out, too.
        peers = [(False, id_), (True, "0.0.0.0/0")]
        if all(vpc.get("defaultSecurityGroupId") != id_ for vpc in call.all(VPC).values()):
            peers.append((True, id_))
        return [*found, *(Permission(outward=out, protocol="-1", ports=(-1, -1), peer=peer) for out, peer in peers)]
    for name, outward in (("ingress", False), ("egress", True)):
        for rule in group.get(name) or ():
            peers_of_rule = [*(rule.get("cidrBlocks") or ()), *(rule.get("securityGroups") or ())]
            peers_of_rule += [id_] if rule.get("self") else []
            found += [_permission({**rule, "ipProtocol": rule["protocol"]}, outward, peer) for peer in peers_of_rule]
    return found


def _permission(rule: Values, outward: bool, peer: str) -> Permission:
    ports = (int(rule.get("fromPort", -1)), int(rule.get("toPort", -1)))
    return Permission(outward=outward, protocol=str(rule["ipProtocol"]), ports=ports, peer=peer)


_PEERS = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")


def _peer(rule: Values) -> str:
    return next((str(rule[name]) for name in _PEERS if rule.get(name)), "")


def _group_name(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateSecurityGroup.html ."""
    vpc, name = call.inputs.get("vpcId"), call.inputs["name"]
    if not vpc:
        raise call.refuse("VPCIdNotSpecified", "No default VPC for this user")
    if any(other["name"] == name and other.get("vpcId") == vpc for other in call.all(GROUP).values()):
        raise call.refuse("InvalidGroup.Duplicate", f"The security group '{name}' already exists for VPC '{vpc}'")


def _rule_is_whole(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_IpPermission.html ."""
    protocol = str(call.inputs["ipProtocol"])
    ports = [call.inputs.get("fromPort"), call.inputs.get("toPort")]
    if protocol == "-1" and ports != [None, None]:
        raise call.refuse("InvalidParameterValue", "You may not specify ports when specifying all protocols.")
    if protocol in ("tcp", "udp"):
        if None in ports:
            text = "Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange."
            raise call.refuse("InvalidParameterValue", text)
        if not 0 <= int(ports[0] or 0) <= int(ports[1] or 0) <= 65535:
            raise call.refuse("InvalidParameterValue", f"Invalid TCP/UDP port range ({ports[0]}:{ports[1]})")
    for name in ("securityGroupId", "referencedSecurityGroupId"):
        group = call.inputs.get(name)
        if group and not group_exists(call, group):
            raise call.refuse("InvalidGroup.NotFound", f"The security group '{group}' does not exist")


def _rule_is_new(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_AuthorizeSecurityGroupIngress.html ."""

    def key(rule: Values) -> tuple[object, ...]:
        ports = () if str(rule["ipProtocol"]) == "-1" else (rule.get("fromPort"), rule.get("toPort"))
        return (rule["securityGroupId"], str(rule["ipProtocol"]), _peer(rule), *ports)

    others = [rule for id_, rule in call.all(call.kind.token).items() if id_ != call.id]
    if key(call.inputs) in map(key, others):
        protocol = str(call.inputs["ipProtocol"])
        ports = f", from port: {call.inputs.get('fromPort')}, to port: {call.inputs.get('toPort')}"
        what = "ALL" if protocol == "-1" else f"{protocol.upper()}{ports}"
        text = f'the specified rule "peer: {_peer(call.inputs)}, {what}, ALLOW" already exists'
        raise call.refuse("InvalidPermission.Duplicate", text)


def _rule_addresses(inputs: Values) -> Iterator[tuple[str, str]]:
    for name, version in (("cidrIpv4", 4), ("cidrIpv6", 6)):
        value = inputs.get(name)
        if value in (None, "", UNKNOWN):
            continue
        try:
            right = ip_network(value).version == version
        except ValueError:
            right = False
        if not right:
            text = f"value must be a valid IPv{version} CIDR that represents a network address"
            yield name, f"Attribute {name} {text}, got: {value}"


@dataclass(frozen=True, kw_only=True)
class GroupKind(Kind):
    """A security group: its rules go with it."""

    async def delete(self, call: Call, id_: str) -> None:
        """Take it away with its rules. Raises: Refusal."""
        await Kind.delete(self, call, id_)
        for token in (INGRESS, EGRESS):
            for rule, outputs in call.all(token).items():
                if outputs["securityGroupId"] == id_:
                    call.world.store.delete(folder(token), rule)


def _group_rule(token: str, operation: str) -> Kind:
    return Kind(
        token=token,
        prefix="sgr",
        operation=operation,
        changed_by="ModifySecurityGroupRules",
        doing="creating VPC Security Group Rule",
        gone="InvalidSecurityGroupRuleId.NotFound",
        required=("securityGroupId", "ipProtocol"),
        replaces=frozenset({"securityGroupId"}),
        checks=(exactly_one(*_PEERS), _rule_addresses),
        rules=(_rule_is_whole, _rule_is_new),
        update_rules=(_rule_is_whole, _rule_is_new),
        make=together(arn("ec2", "security-group-rule/{id}"), lambda _c, id_: {"securityGroupRuleId": id_}),
        computed=("arn", "securityGroupRuleId"),
        seconds=1.0,
    )


# --- routes ---------------------------------------------------------------------------------------------------------

_TARGETS = (
    "carrierGatewayId",
    "coreNetworkArn",
    "egressOnlyGatewayId",
    "gatewayId",
    "localGatewayId",
    "natGatewayId",
    "networkInterfaceId",
    "odbNetworkArn",
    "transitGatewayId",
    "vpcEndpointId",
    "vpcPeeringConnectionId",
)
_DESTINATIONS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")


def _destination(route: Values) -> str:
    return next((str(route[name]) for name in (*_DESTINATIONS, "cidrBlock") if route.get(name)), "")


def _table(call: Call, id_: str) -> Values:
    return wanted(call, TABLE, id_, "InvalidRouteTableID.NotFound", "The routeTable ID '{id}' does not exist")


def _route_target(call: Call, table: str, vpc: str, route: Values) -> None:
    """A route's gateway is there, and an internet gateway is that of the VPC.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateRoute.html
    """
    operation = "CreateRoute"
    nat, gateway = route.get("natGatewayId"), route.get("gatewayId")
    if nat and call.find(NAT, nat) is None:
        raise call.refuse("InvalidNatGatewayID.NotFound", f"The natGateway ID '{nat}' does not exist", operation)
    if gateway and gateway.startswith("igw-"):
        found = call.find(INTERNET, gateway)
        if found is None:
            text = f"The internetGateway ID '{gateway}' does not exist"
            raise call.refuse("InvalidInternetGatewayID.NotFound", text, operation)
        if found.get("vpcId") != vpc:
            text = f"route table {table} and network gateway {gateway} belong to different networks"
            raise call.refuse("InvalidParameterValue", text, operation)


def _table_routes(call: Call) -> None:
    for route in call.inputs.get("routes") or ():
        _route_target(call, call.id or "(new)", call.inputs["vpcId"], route)


def _route_rules(call: Call) -> None:
    """Terraform looks for the route first, and says that it is there in EC2's words."""
    id_ = call.inputs["routeTableId"]
    table = _table(call, id_)
    there = [
        _destination(route)
        for other, route in call.all(ROUTE).items()
        if route["routeTableId"] == id_ and other != call.id
    ]
    there += [_destination(route) for route in table.get("routes") or ()]
    destination = _destination(call.inputs)
    if destination in there:
        text = f"Route in Route Table ({id_}) with destination ({destination}) already exists"
        raise call.refuse("RouteAlreadyExists", text)
    _route_target(call, id_, table["vpcId"], call.inputs)


@dataclass(frozen=True, kw_only=True)
class RouteKind(Kind):
    """A route of a table. Terraform makes its id of the table's and of a hash of the destination."""

    def id(self, inputs: Values) -> str:
        """Its id."""
        digest = hashlib.sha256(_destination(inputs).encode()).hexdigest()
        return f"r-{inputs['routeTableId']}{int(digest[:8], 16)}"


def _association_is_new(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_AssociateRouteTable.html ."""
    table, subnet = call.inputs["routeTableId"], call.inputs.get("subnetId")
    _table(call, table)
    _in_subnet(call)
    if subnet and any(o.get("subnetId") == subnet for i, o in call.all(ASSOCIATION).items() if i != call.id):
        text = f"the specified association for route table {table} conflicts with an existing association"
        raise call.refuse("Resource.AlreadyAssociated", text)


def _address_exists(call: Call) -> None:
    if address := call.inputs.get("allocationId"):
        text = "The elastic-ip ID '{id}' does not exist"
        wanted(call, EIP, address, "InvalidElasticIpID.NotFound", text)


# --- endpoints ------------------------------------------------------------------------------------------------------

_GATEWAY_SERVICES = ("dynamodb", "s3")
_SERVICES = frozenset(
    [
        "aps",
        "aps-workspaces",
        "autoscaling",
        "cloudformation",
        "dynamodb",
        "ebs",
        "ec2",
        "ec2messages",
        "ecr.api",
        "ecr.dkr",
        "eks",
        "eks-auth",
        "elasticfilesystem",
        "elasticloadbalancing",
        "events",
        "execute-api",
        "fsx",
        "fsx-fips",
        "kms",
        "kms-fips",
        "lambda",
        "logs",
        "monitoring",
        "rds",
        "sagemaker.api",
        "sagemaker.runtime",
        "s3",
        "secretsmanager",
        "sns",
        "sqs",
        "ssm",
        "ssmmessages",
        "sts",
        "xray",
    ]
)
"""Those that a cluster may need; AWS has more.
https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html"""


def _endpoint_service(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateVpcEndpoint.html ."""
    service, kind = str(call.inputs.get("serviceName")), call.inputs.get("vpcEndpointType") or "Gateway"
    name = service.removeprefix(f"com.amazonaws.{call.inputs.get('serviceRegion') or call.region}.")
    if name == service or name not in _SERVICES:
        raise call.refuse("InvalidServiceName", f"The Vpc Endpoint Service '{service}' does not exist")
    offered = ["Gateway"] if name in _GATEWAY_SERVICES else []
    offered += ["Interface"]
    if kind not in offered:
        text = f"Endpoint type ({kind}) does not match available service types ([{', '.join(offered)}])."
        raise call.refuse("InvalidParameter", text)


def _endpoint_place(call: Call) -> None:
    """https://docs.aws.amazon.com/vpc/latest/privatelink/create-interface-endpoint.html , gateway-endpoints.html ."""
    vpc = call.inputs["vpcId"]
    zones = set()
    for id_ in call.inputs.get("subnetIds") or ():
        subnet = call.find(SUBNET, id_)
        if subnet is None or subnet["vpcId"] != vpc:
            raise call.refuse("InvalidSubnetId.NotFound", f"The subnet ID '{id_}' does not exist")
        if subnet["availabilityZone"] in zones:
            text = (
                f"Found another VPC endpoint subnet in the availability zone of {id_}. VPC endpoint subnets should be "
                "in different availability zones supported by the VPC endpoint service."
            )
            raise call.refuse("DuplicateSubnetsInSameZone", text)
        zones.add(subnet["availabilityZone"])
    for group in call.inputs.get("securityGroupIds") or ():
        if not group_exists(call, group):
            raise call.refuse("InvalidSecurityGroupId.NotFound", f"The securityGroup ID '{group}' does not exist")
    for table in call.inputs.get("routeTableIds") or ():
        if call.find(TABLE, table) is None:
            raise call.refuse("InvalidRouteTableId.NotFound", f"The routeTable ID '{table}' does not exist")


def _endpoint_is_new(call: Call) -> None:
    """Of a service there is one gateway endpoint to a route table, and one with private names to a VPC."""
    inputs = call.inputs
    vpc, service = (
        wanted(call, VPC, inputs["vpcId"], "InvalidVpcId.NotFound", "The Vpc Id {id} does not exist"),
        (inputs.get("serviceName")),
    )
    if inputs.get("privateDnsEnabled") and not (vpc.get("enableDnsHostnames") and vpc.get("enableDnsSupport", True)):
        text = (
            "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC attributes set to true for "
            f"{vpc['id']}"
        )
        raise call.refuse("InvalidParameter", text)
    for id_, other in call.all(ENDPOINT).items():
        if id_ == call.id or other["vpcId"] != vpc["id"] or other.get("serviceName") != service:
            continue
        shared = {*(inputs.get("routeTableIds") or ())} & {*(other.get("routeTableIds") or ())}
        if shared:
            text = (
                f"route table {min(shared)} already has a route with destination-prefix-list-id {other['prefixListId']}"
            )
            raise call.refuse("RouteAlreadyExists", text)
        if inputs.get("privateDnsEnabled") and other.get("privateDnsEnabled"):
            text = (
                "private-dns-enabled cannot be set because there is already a conflicting DNS domain for "
                f"{_domain(str(service))} in the VPC {vpc['id']}"
            )
            raise call.refuse("InvalidParameter", text)


def _domain(service: str) -> str:
    """The name that a service has for its callers: com.amazonaws.us-west-2.ecr.api is api.ecr.us-west-2.amazonaws.com.

    https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html
    """
    _, _, region, name = service.split(".", 3)
    return f"{'.'.join(reversed(name.split('.')))}.{region}.amazonaws.com"


def _endpoint_made(call: Call, id_: str) -> Values:
    gateway = (call.inputs.get("vpcEndpointType") or "Gateway") == "Gateway"
    subnets = call.inputs.get("subnetIds") or ()
    vpc = call.find(VPC, call.inputs["vpcId"]) or {}
    entries = [] if gateway else [{"dnsName": f"{id_}.{_domain(call.inputs['serviceName'])}", "hostedZoneId": ""}]
    return {
        **arn("ec2", "vpc-endpoint/{id}")(call, id_),
        "dnsEntries": entries,
        "networkInterfaceIds": [f"eni-0{secrets.token_hex(8)}" for _ in subnets],
        "ownerId": call.account.id,
        "prefixListId": f"pl-{hashlib.sha256(call.inputs['serviceName'].encode()).hexdigest()[:8]}" if gateway else "",
        "requesterManaged": False,
        "securityGroupIds": call.inputs.get("securityGroupIds") or ([] if gateway else [vpc["defaultSecurityGroupId"]]),
        "state": "available",
    }


# --- placement groups and reservations ------------------------------------------------------------------------------


def _placement_is_new(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html ."""
    name = call.inputs["name"]
    if call.find(PLACEMENT, name):
        raise call.refuse("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")


def _reservation_place(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html ."""
    zone, name = call.inputs["availabilityZone"], call.inputs["instanceType"]
    if zone not in call.account.zones.get(call.region, {}):
        raise call.refuse("InvalidParameterValue", f"Value ({zone}) for parameter availabilityZone is invalid.")
    if machine(name) is None:
        raise call.refuse("InvalidParameterValue", f"The following supplied instance types do not exist: [{name}]")


# --- launch templates -----------------------------------------------------------------------------------------------


def _template_groups_in_one_place(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html ."""
    on_interfaces = any(nic.get("securityGroups") for nic in call.inputs.get("networkInterfaces") or ())
    if call.inputs.get("vpcSecurityGroupIds") and on_interfaces:
        text = "Network interfaces and an instance-level security groups may not be specified on the same request"
        raise call.refuse("InvalidParameterCombination", text)


def _template_name_free(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateLaunchTemplate.html ."""
    name = call.inputs["name"]
    if any(other["name"] == name for other in call.all(call.kind.token).values()):
        text = f"Launch template name already in use: {name}"
        raise call.refuse("InvalidLaunchTemplateName.AlreadyExistsException", text)
    if not re.fullmatch(r"[a-zA-Z0-9()./_-]{3,128}", name):
        raise call.refuse("InvalidLaunchTemplateName.MalformedException", f"'{name}' is not a valid name")


@dataclass(frozen=True, kw_only=True)
class LaunchTemplateKind(Kind):
    """A launch template: every change of what it launches is a version, and the earlier ones stay.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/manage-launch-template-versions.html
    """

    async def create(self, call: Call) -> tuple[str, Values]:
        """Make it, with version 1."""
        id_, outputs = await Kind.create(self, call)
        call.world.store.put(_VERSIONS, f"{id_}@1", outputs)
        return id_, outputs

    async def update(self, call: Call, id_: str, state: Values) -> Values:
        """A new version, if what it launches changed.

        Tags and the like make none: `updateKeys` of Terraform's `aws_launch_template`.
        """
        for rule in self.update_rules:
            rule(call)
        outputs = {**state, **call.inputs, "tagsAll": call.inputs.get("tags") or {}}
        names = {*call.inputs, *call.old_inputs} - _NOT_LAUNCHED
        if any(call.inputs.get(name) != call.old_inputs.get(name) for name in names):
            outputs["latestVersion"] = state["latestVersion"] + 1
        if call.inputs.get("updateDefaultVersion"):
            outputs["defaultVersion"] = outputs["latestVersion"]
        call.world.store.put(folder(self.token), id_, outputs)
        call.world.store.put(_VERSIONS, f"{id_}@{outputs['latestVersion']}", outputs)
        return outputs

    async def delete(self, call: Call, id_: str) -> None:
        """Take it away with its versions."""
        await Kind.delete(self, call, id_)
        for version in call.world.store.list(_VERSIONS):
            if version.startswith(f"{id_}@"):
                call.world.store.delete(_VERSIONS, version)

    def preview_change(self, inputs: Values, state: Values, changed: frozenset[str]) -> Values:
        """A version that is to come is unknown, also after a change of tags, which then makes none.

        `CustomizeDiff` of Terraform's `aws_launch_template`.
        """
        outputs = Kind.preview_change(self, inputs, state, changed)
        if changed - {"name", "namePrefix", "description", "defaultVersion", "updateDefaultVersion"}:
            outputs["latestVersion"] = UNKNOWN
            if inputs.get("updateDefaultVersion"):
                outputs["defaultVersion"] = UNKNOWN
        return outputs


_VERSIONS = "aws-launch-template-version"
_NOT_LAUNCHED = {"name", "namePrefix", "tags", "defaultVersion", "updateDefaultVersion", "region"}


def template_version(call: Call, wanted: Values) -> Values | None:
    """The version of a launch template that a node group names, `$Latest` and `$Default` too; None for none."""
    templates = call.all(TEMPLATE)
    if id_ := wanted.get("id"):
        found = templates.get(id_)
    else:
        found = next((t for t in templates.values() if t["name"] == wanted.get("name")), None)
    if found is None:
        return None
    asked = str(wanted.get("version") or "$Default")
    numbers = {"$Latest": found["latestVersion"], "$Default": found["defaultVersion"]}
    number = str(numbers.get(asked, asked))
    kept = call.world.store.get(_VERSIONS, f"{found['id']}@{number}")
    # A state folder of an earlier release of the twin has only the newest.
    newest = found if number == str(found["latestVersion"]) else None
    version = kept or newest
    return {**version, "latestVersion": int(number)} if version else None


def kinds() -> tuple[Kind, ...]:
    """All kinds of EC2."""
    random = secrets.token_hex
    subnet_holders = (
        (_CLUSTER, "vpcConfig"),
        (_NODE_GROUP, "subnetIds"),
        (NAT, "subnetId"),
        (ENDPOINT, "subnetIds"),
        (_LUSTRE, "subnetIds"),
    )
    vpc_holders = (
        (SUBNET, "vpcId"),
        (GROUP, "vpcId"),
        (INTERNET, "vpcId"),
        (TABLE, "vpcId"),
        (ENDPOINT, "vpcId"),
    )
    endpoint_rules = (_endpoint_service, _endpoint_place, _endpoint_is_new)
    return (
        Kind(
            token=VPC,
            prefix="vpc",
            operation="CreateVpc",
            changed_by="ModifyVpcAttribute",
            gone="InvalidVpcID.NotFound",
            doing="creating EC2 VPC",
            replaces=frozenset({"cidrBlock"}),
            rules=(_vpc_range,),
            make=together(
                arn("ec2", "vpc/{id}"),
                lambda c, _: {
                    "ownerId": c.account.id,
                    "mainRouteTableId": f"rtb-0{random(8)}",
                    "defaultSecurityGroupId": f"sg-0{random(8)}",
                },
            ),
            computed=("arn", "ownerId", "mainRouteTableId", "defaultSecurityGroupId"),
            holds=vpc_holders,
            held=("DependencyViolation", _HELD.format(noun="vpc")),
        ),
        Kind(
            token=SUBNET,
            prefix="subnet",
            operation="CreateSubnet",
            changed_by="ModifySubnetAttribute",
            gone="InvalidSubnetID.NotFound",
            doing="creating EC2 Subnet",
            required=("vpcId",),
            replaces=frozenset({"vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId"}),
            rules=(_subnet_place,),
            make=_subnet_made,
            computed=("arn", "ownerId"),
            defaulted=("availabilityZone", "availabilityZoneId"),
            holds=subnet_holders,
            held=("DependencyViolation", _HELD.format(noun="subnet")),
        ),
        Kind(
            token=INTERNET,
            prefix="igw",
            operation="CreateInternetGateway",
            gone="InvalidInternetGatewayID.NotFound",
            doing="creating EC2 Internet Gateway",
            rules=(_of_vpc,),
            make=arn("ec2", "internet-gateway/{id}"),
        ),
        Kind(
            token=EIP,
            prefix="eipalloc",
            operation="AllocateAddress",
            gone="InvalidAllocationID.NotFound",
            doing="creating EC2 EIP",
            replaces=frozenset({"domain"}),
            make=together(
                arn("ec2", "elastic-ip/{id}"),
                lambda _c, id_: {"allocationId": id_, "publicIp": f"203.0.113.{secrets.randbelow(254) + 1}"},
            ),
            computed=("arn", "allocationId", "publicIp"),
            holds=((NAT, "allocationId"),),
        ),
        Kind(
            token=NAT,
            prefix="nat",
            operation="CreateNatGateway",
            gone="NatGatewayNotFound",
            doing="creating EC2 NAT Gateway",
            required=("subnetId",),
            replaces=frozenset({"subnetId", "allocationId"}),
            rules=(_in_subnet, _address_exists),
            make=lambda _c, _id: {
                "networkInterfaceId": f"eni-0{random(8)}",
                "publicIp": "203.0.113.1",
                "privateIp": "10.0.0.4",
            },
            computed=("networkInterfaceId", "publicIp", "privateIp"),
            seconds=60.0,
        ),
        Kind(
            token=TABLE,
            prefix="rtb",
            operation="CreateRouteTable",
            gone="InvalidRouteTableID.NotFound",
            doing="creating EC2 Route Table",
            required=("vpcId",),
            replaces=frozenset({"vpcId"}),
            rules=(_of_vpc, _table_routes),
            update_rules=(_table_routes,),
            make=together(arn("ec2", "route-table/{id}"), lambda c, _: {"ownerId": c.account.id}),
            computed=("arn", "ownerId"),
        ),
        RouteKind(
            token=ROUTE,
            prefix="",
            operation="CreateRoute",
            changed_by="ReplaceRoute",
            gone="InvalidRoute.NotFound",
            doing="creating EC2 Route",
            required=("routeTableId",),
            replaces=frozenset({"routeTableId", *_DESTINATIONS}),
            checks=(exactly_one(*_DESTINATIONS), exactly_one(*_TARGETS)),
            rules=(_route_rules,),
            update_rules=(_route_rules,),
            make=lambda _c, _id: {"state": "active", "origin": "CreateRoute"},
            computed=("state", "origin"),
        ),
        Kind(
            token=ASSOCIATION,
            prefix="rtbassoc",
            operation="AssociateRouteTable",
            changed_by="ReplaceRouteTableAssociation",
            gone="InvalidAssociationID.NotFound",
            doing="creating EC2 Route Table Association",
            required=("routeTableId",),
            replaces=frozenset({"subnetId", "gatewayId"}),
            checks=(exactly_one("gatewayId", "subnetId"),),
            rules=(_association_is_new,),
            update_rules=(_association_is_new,),
            computed=(),
            seconds=1.0,
        ),
        GroupKind(
            token=GROUP,
            prefix="sg",
            operation="CreateSecurityGroup",
            doing="creating EC2 Security Group",
            replaces=frozenset({"vpcId", "name", "description"}),
            named="name",
            rules=(_group_name, _of_vpc),
            make=together(lambda c, id_: {**arn("ec2", "security-group/{id}")(c, id_), "ownerId": c.account.id}),
            computed=("arn", "ownerId"),
            # Interfaces of what runs hold it; a launch template that names it does not.
            holds=(
                ("aws-instance", "groups"),
                (_CLUSTER, "vpcConfig"),
                (ENDPOINT, "securityGroupIds"),
                (_LUSTRE, "securityGroupIds"),
                (INGRESS, "referencedSecurityGroupId"),
                (EGRESS, "referencedSecurityGroupId"),
            ),
            gone="InvalidGroup.NotFound",
        ),
        _group_rule(INGRESS, "AuthorizeSecurityGroupIngress"),
        _group_rule(EGRESS, "AuthorizeSecurityGroupEgress"),
        Kind(
            token=ENDPOINT,
            prefix="vpce",
            operation="CreateVpcEndpoint",
            changed_by="ModifyVpcEndpoint",
            gone="InvalidVpcEndpointId.NotFound",
            doing="creating EC2 VPC Endpoint",
            required=("vpcId",),
            replaces=frozenset(
                {
                    "resourceConfigurationArn",
                    "serviceName",
                    "serviceNetworkArn",
                    "serviceRegion",
                    "vpcEndpointType",
                    "vpcId",
                }
            ),
            checks=(exactly_one("resourceConfigurationArn", "serviceName", "serviceNetworkArn"),),
            rules=endpoint_rules,
            update_rules=endpoint_rules,
            make=_endpoint_made,
            computed=(
                "arn",
                "dnsEntries",
                "networkInterfaceIds",
                "ownerId",
                "prefixListId",
                "requesterManaged",
                "state",
            ),
            defaulted=("securityGroupIds",),
            defaults={"vpcEndpointType": "Gateway"},
            seconds=60.0,
        ),
        LaunchTemplateKind(
            token=TEMPLATE,
            prefix="lt",
            operation="CreateLaunchTemplate",
            changed_by="CreateLaunchTemplateVersion",
            doing="creating EC2 Launch Template",
            replaces=frozenset({"name", "namePrefix"}),
            named="name",
            rules=(_template_name_free, _template_groups_in_one_place),
            update_rules=(_template_groups_in_one_place,),
            make=together(
                lambda c, id_: {**arn("ec2", "launch-template/{id}")(c, id_), "latestVersion": 1, "defaultVersion": 1}
            ),
            computed=("arn", "latestVersion", "defaultVersion"),
            gone="InvalidLaunchTemplateId.NotFound",
            seconds=1.0,
        ),
        Kind(
            token=RESERVATION,
            prefix="cr",
            operation="CreateCapacityReservation",
            changed_by="ModifyCapacityReservation",
            doing="creating EC2 Capacity Reservation",
            required=("availabilityZone", "instanceCount", "instancePlatform", "instanceType"),
            replaces=frozenset(
                {
                    "availabilityZone",
                    "ebsOptimized",
                    "ephemeralStorage",
                    "instanceMatchCriteria",
                    "instancePlatform",
                    "instanceType",
                    "outpostArn",
                    "placementGroupArn",
                    "tenancy",
                }
            ),
            rules=(_reservation_place,),
            make=together(arn("ec2", "capacity-reservation/{id}"), lambda c, _: {"ownerId": c.account.id}),
            computed=("arn", "ownerId"),
            gone="InvalidCapacityReservationId.NotFound",
        ),
        Kind(
            token=PLACEMENT,
            prefix="",
            operation="CreatePlacementGroup",
            gone="InvalidPlacementGroup.Unknown",
            doing="creating EC2 Placement Group",
            required=("strategy",),
            named="name",
            replaces=frozenset({"name", "strategy", "partitionCount", "spreadLevel"}),
            rules=(_placement_is_new,),
            make=together(
                arn("ec2", "placement-group/{name}"),
                lambda _c, _id: {"placementGroupId": f"pg-0{random(8)}"},
            ),
            computed=("arn", "placementGroupId"),
            seconds=1.0,
        ),
    )
