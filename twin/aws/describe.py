"""What AWS's own API answers about the simulated account: one function an operation, in the words of its model."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from ipaddress import IPv4Network
from typing import Any

from twin.aws.facts import Account, Reservation, account_in, instance_types
from twin.world import World

Json = Mapping[str, Any]
_VPC, _SUBNET, _GROUP = "aws-ec2-vpc-Vpc", "aws-ec2-subnet-Subnet", "aws-ec2-securityGroup-SecurityGroup"
_INGRESS = "aws-vpc-securityGroupIngressRule-SecurityGroupIngressRule"
_EGRESS = "aws-vpc-securityGroupEgressRule-SecurityGroupEgressRule"
_CLUSTER, _ADDON = "aws-eks-cluster-Cluster", "aws-eks-addon-Addon"
USER = "rehearsal"
"""The IAM user that every program of a rehearsal is."""


class ApiError(Exception):
    """AWS's no: `code` and `message` in its words, and the HTTP status that goes with them."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


@dataclass(frozen=True)
class Asked:
    """One request, with its parameters as the service's model names them."""

    world: World
    region: str
    parameters: Json

    @cached_property
    def account(self) -> Account:
        """The account, as it is now."""
        return account_in(self.world.store)

    def all(self, kind: str) -> dict[str, Any]:
        """Resources of a kind in the region of the request, by id."""
        return {id_: each for id_, each in self.world.store.list(kind).items() if _region(each["arn"]) == self.region}

    def wanted(self, parameter: str, found: Iterable[Json], key: str, missing: Callable[[str], ApiError]) -> list[Json]:
        """What was asked for by name; all, where nothing is named.

        Raises:
            ApiError: one of the names is unknown.
        """
        by_name = {each[key]: each for each in found}
        names: Sequence[str] = self.parameters.get(parameter) or list(by_name)
        for name in names:
            if name not in by_name:
                raise missing(name)
        return [by_name[name] for name in names]

    def filtered(self, found: Iterable[Json], fields: Mapping[str, str]) -> list[Json]:
        """What passes the filters of the request.

        Args:
            found: to choose from.
            fields: the path of the field that a filter looks at, by the filter's name. Tags can always be asked for.

        Raises:
            ApiError: there is no such filter.
        """
        chosen = list(found)
        for each in self.parameters.get("Filters") or ():
            name, patterns = each["Name"], [_pattern(value) for value in each.get("Values") or ()]
            if name not in fields and name != "tag-key" and not name.startswith("tag:"):
                raise ApiError("InvalidParameterValue", f"The filter '{name}' is invalid")
            chosen = [
                item
                for item in chosen
                if any(pattern.fullmatch(value) for value in _values(item, name, fields) for pattern in patterns)
            ]
        return chosen

    def page(self, key: str, found: Sequence[Json], at_most: int | None = None) -> Json:
        """One page of an answer, and the token by which to ask for the next.

        Args:
            key: under which the answer holds what was found.
            found: everything.
            at_most: how much AWS tells at once, whatever is asked for.

        Raises:
            ApiError: the token is none that was given.
        """
        size = min(self.parameters.get("MaxResults") or len(found), at_most or len(found))
        token = self.parameters.get("NextToken") or "0"
        if not token.isdecimal():
            raise ApiError("InvalidNextToken", f"The token '{token}' is invalid")
        end = int(token) + size
        rest = {"NextToken": str(end)} if end < len(found) else {}
        return {key: found[int(token) : end], **rest}


def _pattern(value: str) -> re.Pattern[str]:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html : `*` and `?` stand for others."""
    return re.compile(re.escape(value).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


def _values(item: Json, name: str, fields: Mapping[str, str]) -> Iterator[str]:
    """The values that a filter compares."""
    tags = {tag["Key"]: tag["Value"] for tag in item.get("Tags") or ()}
    if name == "tag-key":
        yield from tags
    elif name.startswith("tag:"):
        if (key := name.removeprefix("tag:")) in tags:
            yield tags[key]
    else:
        yield from _at(item, fields[name].split("."))


def _at(value: Any, path: list[str]) -> Iterator[str]:
    """Values at a path, each element of a list on its own, as a filter writes them."""
    if isinstance(value, list):
        for each in value:
            yield from _at(each, path)
    elif path:
        if isinstance(value, Mapping) and path[0] in value:
            yield from _at(value[path[0]], path[1:])
    elif value is not None:
        yield str(value).lower() if isinstance(value, bool) else str(value)


def _region(arn: str) -> str:
    return arn.split(":")[3]


def _tags(tags: Mapping[str, str] | None) -> list[Json]:
    return [{"Key": key, "Value": value} for key, value in sorted((tags or {}).items())]


# --- ec2: capacity --------------------------------------------------------------------------------------------------


def capacity_reservations(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeCapacityReservations.html ."""
    if asked.world.fault("no-right-to-read-reservations"):
        action, user = "ec2:DescribeCapacityReservations", f"arn:aws:iam::{asked.account.id}:user/{USER}"
        raise ApiError(
            "UnauthorizedOperation",
            f"You are not authorized to perform this operation. User: {user} is not authorized to perform: {action} "
            f"because no identity-based policy allows the {action} action",
            403,
        )
    used: dict[str, int] = {}
    alive = asked.world.store.list("machine")
    for id_, document in asked.world.store.list("aws-instance").items():
        if id_ in alive and document["reservation"]:
            used[document["reservation"]] = used.get(document["reservation"], 0) + 1
    for id_ in asked.parameters.get("CapacityReservationIds") or ():
        if not re.fullmatch("cr-([0-9a-f]{8}|[0-9a-f]{17})", id_):
            raise ApiError("InvalidCapacityReservationId.Malformed", f'Invalid id: "{id_}"')
    found = [
        _capacity_reservation(asked, id_, each, used.get(id_, 0))
        for id_, each in sorted(asked.account.reservations.items())
        if asked.account.region_of(each.zone) == asked.region
    ]
    named = asked.wanted(
        "CapacityReservationIds",
        found,
        "CapacityReservationId",
        lambda id_: ApiError(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{id_}' does not exist"
        ),
    )
    fields = {
        "availability-zone": "AvailabilityZone",
        "availability-zone-id": "AvailabilityZoneId",
        "end-date-type": "EndDateType",
        "instance-match-criteria": "InstanceMatchCriteria",
        "instance-platform": "InstancePlatform",
        "instance-type": "InstanceType",
        "owner-id": "OwnerId",
        "placement-group-arn": "PlacementGroupArn",
        "state": "State",
        "tenancy": "Tenancy",
    }
    return asked.page("CapacityReservations", asked.filtered(named, fields))


def _capacity_reservation(asked: Asked, id_: str, found: Reservation, used: int) -> Json:
    zone = found.zone
    if asked.world.fault("reservation-in-other-zone"):
        zone = sorted(asked.account.zones[asked.region])[-1]  # the same lie as at a launch
    ends: Json = {"EndDateType": "limited", "EndDate": found.ends} if found.ends else {"EndDateType": "unlimited"}
    return {
        "CapacityReservationId": id_,
        "OwnerId": asked.account.id,
        "CapacityReservationArn": reservation_arn(asked, id_),
        "AvailabilityZoneId": asked.account.zone_id(zone),
        "AvailabilityZone": zone,
        "InstanceType": found.machine,
        "InstancePlatform": found.platform,
        "Tenancy": found.tenancy,
        "TotalInstanceCount": found.total,
        "AvailableInstanceCount": max(0, found.total - used) if found.state == "active" else 0,
        "EbsOptimized": True,
        "EphemeralStorage": False,
        "State": found.state,
        "StartDate": found.starts or asked.account.opened,
        "CreateDate": min(found.starts or asked.account.opened, asked.account.opened),
        **ends,
        "InstanceMatchCriteria": found.criteria,
        "PlacementGroupArn": found.placement_group_arn,
        "ReservationType": found.kind,
        "CapacityAllocations": [{"AllocationType": "used", "Count": used}] if used else [],
        "Tags": _tags(found.tags),
    }


def reservation_arn(asked: Asked, id_: str) -> str:
    """The ARN of a capacity reservation in the region of the request."""
    return f"arn:aws:ec2:{asked.region}:{asked.account.id}:capacity-reservation/{id_}"


def described_instance_types(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html ."""
    names = asked.parameters.get("InstanceTypes") or sorted(instance_types())
    here = [name for name in names if name in instance_types() and asked.account.zones_with(name, asked.region)]
    if asked.parameters.get("InstanceTypes") and (unknown := [name for name in names if name not in here]):
        raise ApiError(
            "InvalidInstanceType", f"The following supplied instance types do not exist: [{', '.join(unknown)}]"
        )
    fields = {
        "bare-metal": "BareMetal",
        "current-generation": "CurrentGeneration",
        "hypervisor": "Hypervisor",
        "instance-type": "InstanceType",
        "memory-info.size-in-mib": "MemoryInfo.SizeInMiB",
        "network-info.efa-info.maximum-efa-interfaces": "NetworkInfo.EfaInfo.MaximumEfaInterfaces",
        "network-info.efa-supported": "NetworkInfo.EfaSupported",
        "network-info.maximum-network-cards": "NetworkInfo.MaximumNetworkCards",
        "processor-info.supported-architecture": "ProcessorInfo.SupportedArchitectures",
        "supported-usage-class": "SupportedUsageClasses",
        "vcpu-info.default-vcpus": "VCpuInfo.DefaultVCpus",
    }
    return asked.page("InstanceTypes", asked.filtered((instance_types()[name] for name in here), fields), 100)


def instance_type_offerings(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypeOfferings.html ."""
    kind = asked.parameters.get("LocationType") or "region"
    zones = asked.account.zones[asked.region]

    def locations(name: str) -> list[str]:
        offered = asked.account.zones_with(name, asked.region)
        if kind == "region":
            return [asked.region] if offered else []
        return [zones[zone] for zone in offered] if kind == "availability-zone-id" else list(offered)

    if kind not in ("region", "availability-zone", "availability-zone-id"):
        raise ApiError("InvalidParameterValue", f"Value ({kind}) for parameter locationType is invalid.")
    found = [
        {"InstanceType": name, "LocationType": kind, "Location": location}
        for name in sorted(instance_types())
        for location in locations(name)
    ]
    fields = {"instance-type": "InstanceType", "location": "Location"}
    return asked.page("InstanceTypeOfferings", asked.filtered(found, fields), 1000)


# --- ec2: what runs -------------------------------------------------------------------------------------------------


def instances(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html ."""
    documents = asked.world.store.list("aws-instance")
    subnets = asked.all(_SUBNET)
    found = [
        _instance(id_, machine, documents.get(id_) or {}, subnets)
        for id_, machine in asked.world.store.list("machine").items()
        if machine["region"] == asked.region
    ]
    named = asked.wanted(
        "InstanceIds",
        found,
        "InstanceId",
        lambda id_: ApiError("InvalidInstanceID.NotFound", f"The instance ID '{id_}' does not exist"),
    )
    fields = {
        "availability-zone": "Placement.AvailabilityZone",
        "capacity-reservation-id": "CapacityReservationId",
        "instance-id": "InstanceId",
        "instance-lifecycle": "InstanceLifecycle",
        "instance-state-code": "State.Code",
        "instance-state-name": "State.Name",
        "instance-type": "InstanceType",
        "placement-group-name": "Placement.GroupName",
        "private-dns-name": "PrivateDnsName",
        "private-ip-address": "PrivateIpAddress",
        "subnet-id": "SubnetId",
        "vpc-id": "VpcId",
    }
    reservations = [
        {
            "ReservationId": f"r-{each['InstanceId'].removeprefix('i-')}",
            "OwnerId": asked.account.id,
            "Instances": [each],
        }
        for each in asked.filtered(named, fields)
    ]
    return asked.page("Reservations", reservations)


def _instance(id_: str, machine: Json, document: Json, subnets: Json) -> Json:
    """`document` is what the launch wrote; it lacks some fields where an earlier release of the twin wrote it."""
    own_tags = {"eks:cluster-name": machine["cluster"], "eks:nodegroup-name": machine["group"]}
    subnet = document.get("subnet") or ""
    lifecycle = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity-block"}.get(document.get("capacity_type") or "")
    launched = document.get("launched")
    return {
        "InstanceId": id_,
        "InstanceType": machine["machine"],
        "State": {"Code": 16, "Name": "running"},
        "Placement": {
            "AvailabilityZone": machine["zone"],
            "AvailabilityZoneId": machine["zone_id"] or None,
            "GroupName": document.get("placement_group") or "",
            "Tenancy": document.get("tenancy") or "default",
        },
        "PrivateIpAddress": machine["private_ip"],
        "PrivateDnsName": machine["node_name"],
        "SubnetId": subnet or None,
        "VpcId": subnets[subnet]["vpcId"] if subnet in subnets else None,
        "Architecture": "arm64" if machine["architecture"] == "arm64" else "x86_64",
        "CapacityReservationId": document.get("reservation"),
        "InstanceLifecycle": lifecycle,
        "LaunchTime": datetime.fromisoformat(launched) if launched else None,
        "SecurityGroups": [{"GroupId": group} for group in document.get("groups") or ()],
        "Tags": _tags(document.get("tags") or own_tags),
    }


# --- ec2: networks and places ---------------------------------------------------------------------------------------


def vpcs(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVpcs.html ."""
    found = [
        {
            "VpcId": id_,
            "CidrBlock": each["cidrBlock"],
            "State": "available",
            "OwnerId": asked.account.id,
            "InstanceTenancy": each.get("instanceTenancy") or "default",
            "IsDefault": False,
            "Tags": _tags(each.get("tagsAll")),
        }
        for id_, each in asked.all(_VPC).items()
    ]
    named = asked.wanted(
        "VpcIds", found, "VpcId", lambda id_: ApiError("InvalidVpcID.NotFound", f"The vpc ID '{id_}' does not exist")
    )
    fields = {
        "vpc-id": "VpcId",
        "cidr": "CidrBlock",
        "state": "State",
        "is-default": "IsDefault",
        "owner-id": "OwnerId",
    }
    return asked.page("Vpcs", asked.filtered(named, fields))


def subnets(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSubnets.html ."""
    alive = asked.world.store.list("machine")
    documents = asked.world.store.list("aws-instance")
    taken = [document["subnet"] for id_, document in documents.items() if id_ in alive]
    found = [
        {
            "SubnetId": id_,
            "SubnetArn": each["arn"],
            "VpcId": each["vpcId"],
            "CidrBlock": each["cidrBlock"],
            "AvailabilityZone": each.get("availabilityZone"),
            "AvailabilityZoneId": each.get("availabilityZoneId") or None,
            # AWS keeps five of each: https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
            "AvailableIpAddressCount": IPv4Network(each["cidrBlock"]).num_addresses - 5 - taken.count(id_),
            "MapPublicIpOnLaunch": bool(each.get("mapPublicIpOnLaunch")),
            "DefaultForAz": False,
            "State": "available",
            "OwnerId": asked.account.id,
            "Tags": _tags(each.get("tagsAll")),
        }
        for id_, each in asked.all(_SUBNET).items()
    ]
    named = asked.wanted(
        "SubnetIds",
        found,
        "SubnetId",
        lambda id_: ApiError("InvalidSubnetID.NotFound", f"The subnet ID '{id_}' does not exist"),
    )
    fields = {
        "availability-zone": "AvailabilityZone",
        "availability-zone-id": "AvailabilityZoneId",
        "cidr-block": "CidrBlock",
        "map-public-ip-on-launch": "MapPublicIpOnLaunch",
        "state": "State",
        "subnet-id": "SubnetId",
        "vpc-id": "VpcId",
    }
    return asked.page("Subnets", asked.filtered(named, fields))


def security_groups(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSecurityGroups.html ."""
    found = [*_made_groups(asked), *_groups_of_clusters(asked)]
    named = asked.wanted(
        "GroupIds",
        found,
        "GroupId",
        lambda id_: ApiError("InvalidGroup.NotFound", f"The security group '{id_}' does not exist"),
    )
    fields = {"group-id": "GroupId", "group-name": "GroupName", "vpc-id": "VpcId", "description": "Description"}
    return asked.page("SecurityGroups", asked.filtered(named, fields))


def _made_groups(asked: Asked) -> Iterator[Json]:
    ingress, egress = asked.all(_INGRESS).values(), asked.all(_EGRESS).values()
    for id_, each in asked.all(_GROUP).items():
        yield {
            "GroupId": id_,
            "GroupName": each["name"],
            "Description": each.get("description") or "Managed by Pulumi",
            "VpcId": each.get("vpcId"),
            "OwnerId": asked.account.id,
            "SecurityGroupArn": each["arn"],
            "IpPermissions": [
                *(_permission(rule, id_) for rule in each.get("ingress") or ()),
                *(_permission(rule, id_) for rule in ingress if rule["securityGroupId"] == id_),
            ],
            "IpPermissionsEgress": [
                *(_permission(rule, id_) for rule in each.get("egress") or ()),
                *(_permission(rule, id_) for rule in egress if rule["securityGroupId"] == id_),
            ],
            "Tags": _tags(each.get("tagsAll")),
        }


def _permission(rule: Json, group: str) -> Json:
    """A rule of its own, or one inside of a group: the two name the same things differently."""
    protocol = str(rule.get("ipProtocol") or rule.get("protocol"))
    others = [*(rule.get("securityGroups") or ()), *([group] if rule.get("self") else ())]
    if rule.get("referencedSecurityGroupId"):
        others.append(rule["referencedSecurityGroupId"])
    ranges = [*(rule.get("cidrBlocks") or ()), *filter(None, [rule.get("cidrIpv4")])]
    ranges6 = [*(rule.get("ipv6CidrBlocks") or ()), *filter(None, [rule.get("cidrIpv6")])]
    prefixes = [*(rule.get("prefixListIds") or ()), *filter(None, [rule.get("prefixListId")])]
    ports = {} if protocol == "-1" else {"FromPort": rule.get("fromPort"), "ToPort": rule.get("toPort")}
    return {
        "IpProtocol": protocol,
        **ports,
        "UserIdGroupPairs": [{"GroupId": other} for other in others],
        "IpRanges": [{"CidrIp": each} for each in ranges],
        "Ipv6Ranges": [{"CidrIpv6": each} for each in ranges6],
        "PrefixListIds": [{"PrefixListId": each} for each in prefixes],
    }


def _groups_of_clusters(asked: Asked) -> Iterator[Json]:
    """https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html ."""
    for name, each in asked.all(_CLUSTER).items():
        id_ = each["vpcConfig"]["clusterSecurityGroupId"]
        itself = {"ipProtocol": "-1", "referencedSecurityGroupId": id_}
        yield {
            "GroupId": id_,
            "GroupName": f"eks-cluster-sg-{name}",
            "Description": "EKS created security group applied to ENI that is attached to EKS Control Plane master "
            "nodes, as well as any managed workloads.",
            "VpcId": each["vpcConfig"]["vpcId"],
            "OwnerId": asked.account.id,
            "SecurityGroupArn": f"arn:aws:ec2:{asked.region}:{asked.account.id}:security-group/{id_}",
            "IpPermissions": [_permission(itself, id_)],
            "IpPermissionsEgress": [
                _permission({"ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0"}, id_),
                _permission(itself, id_),
            ],
            "Tags": _tags({f"kubernetes.io/cluster/{name}": "owned", "aws:eks:cluster-name": name}),
        }


def placement_groups(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribePlacementGroups.html ."""
    found: list[Json] = [
        {
            "GroupName": each.name,
            "GroupId": each.id,
            "GroupArn": each.arn,
            "State": "available",
            "Strategy": each.strategy,
            "Tags": _tags(each.tags),
        }
        for _, each in sorted(asked.account.placement_groups.items())
        if _region(each.arn) == asked.region
    ]

    def unknown(name: str) -> ApiError:
        return ApiError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")

    named = asked.wanted("GroupNames", asked.wanted("GroupIds", found, "GroupId", unknown), "GroupName", unknown)
    fields = {"group-name": "GroupName", "group-arn": "GroupArn", "state": "State", "strategy": "Strategy"}
    return {"PlacementGroups": asked.filtered(named, fields)}


def availability_zones(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html ."""
    found: list[Json] = [
        {
            "ZoneName": zone,
            "ZoneId": id_,
            "ZoneType": "availability-zone",
            "State": "available",
            "OptInStatus": "opt-in-not-required",
            "RegionName": asked.region,
            "GroupName": f"{asked.region}-zg-1",
            "NetworkBorderGroup": asked.region,
        }
        for zone, id_ in sorted(asked.account.zones[asked.region].items())
    ]

    def invalid(name: str) -> ApiError:
        return ApiError("InvalidParameterValue", f"Invalid availability zone: [{name}]")

    named = asked.wanted("ZoneNames", asked.wanted("ZoneIds", found, "ZoneId", invalid), "ZoneName", invalid)
    fields = {
        "opt-in-status": "OptInStatus",
        "region-name": "RegionName",
        "state": "State",
        "zone-id": "ZoneId",
        "zone-name": "ZoneName",
        "zone-type": "ZoneType",
    }
    return {"AvailabilityZones": asked.filtered(named, fields)}


# --- resource-groups, eks, sts --------------------------------------------------------------------------------------


def _resource_group(asked: Asked) -> str:
    """ARN of the group that is asked for by its name or its ARN."""
    wanted = asked.parameters.get("Group") or asked.parameters.get("GroupName") or ""
    for arn in asked.account.groups:
        if _region(arn) == asked.region and wanted in (arn, arn.split("group/")[-1]):
            return arn
    raise ApiError("NotFoundException", f"Group {wanted} not found.", 404)


def resource_group(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/ARG/latest/APIReference/API_GetGroup.html ."""
    arn = _resource_group(asked)
    return {"Group": {"GroupArn": arn, "Name": arn.split("group/")[-1]}}


def resources_of_group(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/ARG/latest/APIReference/API_ListGroupResources.html ."""
    kind = "AWS::EC2::CapacityReservation"
    found: list[Json] = [
        {"Identifier": {"ResourceArn": reservation_arn(asked, id_), "ResourceType": kind}}
        for id_ in asked.account.groups[_resource_group(asked)]
    ]
    for each in asked.parameters.get("Filters") or ():
        if each["Name"] != "resource-type":
            raise ApiError("BadRequestException", f"The filter {each['Name']} is not valid.")
        found = found if kind in each["Values"] else []
    page = asked.page("Resources", found)
    return {**page, "ResourceIdentifiers": [each["Identifier"] for each in page["Resources"]]}


def _cluster(asked: Asked, name: str) -> Json:
    found: Json | None = asked.all(_CLUSTER).get(name)
    if found is None:
        raise ApiError("ResourceNotFoundException", f"No cluster found for name: {name}.", 404)
    return found


def cluster(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html ."""
    found = _cluster(asked, asked.parameters["name"])
    plane = asked.world.store.get("plane", asked.parameters["name"]) or {}
    since = plane.get("since")
    copied = (
        "name",
        "arn",
        "version",
        "endpoint",
        "roleArn",
        "status",
        "platformVersion",
        "certificateAuthority",
        "kubernetesNetworkConfig",
        "accessConfig",
        "deletionProtection",
    )
    return {
        "cluster": {
            **{name: found[name] for name in copied if name in found},
            "createdAt": datetime.fromtimestamp(since, UTC) if since else None,
            "resourcesVpcConfig": found["vpcConfig"],
            "tags": found.get("tagsAll") or {},
            "health": {"issues": []},
        }
    }


def _addons(asked: Asked, cluster_name: str) -> dict[str, Any]:
    _cluster(asked, cluster_name)
    return {each["addonName"]: each for each in asked.all(_ADDON).values() if each["clusterName"] == cluster_name}


def addons(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/eks/latest/APIReference/API_ListAddons.html ."""
    return {"addons": sorted(_addons(asked, asked.parameters["clusterName"]))}


def addon(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddon.html ."""
    cluster_name, name = asked.parameters["clusterName"], asked.parameters["addonName"]
    found = _addons(asked, cluster_name).get(name)
    if found is None:
        text = f"No addon: {name} found in cluster: {cluster_name}"
        raise ApiError("ResourceNotFoundException", text, 404)
    copied = ("addonName", "clusterName", "addonVersion", "serviceAccountRoleArn", "configurationValues")
    return {
        "addon": {
            **{key: found[key] for key in copied if key in found},
            "addonArn": found["arn"],
            "status": "ACTIVE",
            "health": {"issues": []},
            "tags": found.get("tagsAll") or {},
        }
    }


def caller_identity(asked: Asked) -> Json:
    """https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html ."""
    id_ = asked.account.id
    return {"Account": id_, "Arn": f"arn:aws:iam::{id_}:user/{USER}", "UserId": "AIDAREHEARSAL"}


OPERATIONS: Mapping[str, Mapping[str, Callable[[Asked], Json]]] = {
    "ec2": {
        "DescribeAvailabilityZones": availability_zones,
        "DescribeCapacityReservations": capacity_reservations,
        "DescribeInstanceTypeOfferings": instance_type_offerings,
        "DescribeInstanceTypes": described_instance_types,
        "DescribeInstances": instances,
        "DescribePlacementGroups": placement_groups,
        "DescribeSecurityGroups": security_groups,
        "DescribeSubnets": subnets,
        "DescribeVpcs": vpcs,
    },
    "eks": {"DescribeAddon": addon, "DescribeCluster": cluster, "ListAddons": addons},
    "resource-groups": {"GetGroup": resource_group, "ListGroupResources": resources_of_group},
    "sts": {"GetCallerIdentity": caller_identity},
}
"""Operations that the rehearsal simulates, by service."""
