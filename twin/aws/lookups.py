"""Data sources of the simulated AWS: what there is, in the outputs and with the errors of the Terraform provider's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twin.aws.facts import account, machine
from twin.aws.kinds import KINDS, Call, Values, addresses_free
from twin.aws.refusal import Refusal
from twin.world import World

CLUSTER_LOOKUP = "aws:eks/getCluster:getCluster"
VPC, SUBNET, CLUSTER = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet", "aws:eks/cluster:Cluster"


class NothingFound(Exception):
    """A data source finds nothing, or more than one, or AWS refuses."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """One data source that is read, in a region."""

    world: World
    region: str
    asked: Values

    def call(self, token: str) -> Call:
        """For a look at resources of a kind."""
        return Call(world=self.world, region=self.region, kind=KINDS[token], inputs=self.asked)

    def all(self, token: str) -> list[Values]:
        """Outputs of all resources of a kind."""
        return list(self.call(token).all(token).values())


def _one(query: Query, token: str, noun: str, names: Mapping[str, str]) -> Values:
    """The only one that has what is asked for.

    Args:
        query: what is asked.
        token: of the kind.
        noun: what Terraform calls it.
        names: outputs by the name of EC2's filter, for `filters`.
    """
    found = query.all(token)
    for name, value in query.asked.items():
        if name in ("filters", "tags", "region", "state", "default", "defaultForAz"):
            continue
        found = [each for each in found if each.get(name) == value]
    for key, value in (query.asked.get("tags") or {}).items():
        found = [each for each in found if (each.get("tagsAll") or {}).get(key) == value]
    for each_filter in query.asked.get("filters") or ():
        name, values = each_filter["name"], [str(value) for value in each_filter["values"]]
        if not name.startswith("tag:") and name not in names:
            raise NothingFound(
                f"reading {noun}: operation error EC2: api error InvalidParameterValue: The filter '{name}' is invalid"
            )
        found = [each for each in found if _filtered(each, name, names) in values]
    if query.asked.get("default") or query.asked.get("defaultForAz") or query.asked.get("state") == "pending":
        found = []  # the account has no default network, and nothing is pending
    if not found:
        raise NothingFound(f"no matching {noun} found")
    if len(found) > 1:
        text = f"multiple {noun}s matched; use additional constraints to reduce matches to a single {noun}"
        raise NothingFound(text)
    return found[0]


def _filtered(outputs: Values, name: str, names: Mapping[str, str]) -> str:
    if name.startswith("tag:"):
        return str((outputs.get("tagsAll") or {}).get(name.removeprefix("tag:"), ""))
    return str(outputs.get(names[name], ""))


def _vpc(query: Query) -> Values:
    found = _one(query, VPC, "EC2 VPC", {"vpc-id": "id", "cidr": "cidrBlock", "cidr-block": "cidrBlock"})
    return {
        **{name: found.get(name) for name in ("arn", "cidrBlock", "id", "mainRouteTableId", "ownerId")},
        "cidrBlockAssociations": [{"associationId": "", "cidrBlock": found["cidrBlock"], "state": "associated"}],
        "default": False,
        "enableDnsHostnames": bool(found.get("enableDnsHostnames")),
        "enableDnsSupport": found.get("enableDnsSupport", True),
        "instanceTenancy": found.get("instanceTenancy") or "default",
        "region": query.region,
        "state": "available",
        "tags": found.get("tagsAll") or {},
    }


def _subnet(query: Query) -> Values:
    names = {
        "subnet-id": "id",
        "vpc-id": "vpcId",
        "availability-zone": "availabilityZone",
        "availabilityZone": "availabilityZone",
        "availability-zone-id": "availabilityZoneId",
        "cidr-block": "cidrBlock",
    }
    found = _one(query, SUBNET, "EC2 Subnet", names)
    same = ("arn", "availabilityZone", "availabilityZoneId", "cidrBlock", "id", "ownerId", "vpcId")
    return {
        **{name: found.get(name) for name in same},
        "availableIpAddressCount": addresses_free(query.call(SUBNET), found),
        "defaultForAz": False,
        "mapPublicIpOnLaunch": bool(found.get("mapPublicIpOnLaunch")),
        "region": query.region,
        "state": "available",
        "tags": found.get("tagsAll") or {},
    }


def _cluster(query: Query) -> Values:
    name = query.asked["name"]
    found = query.call(CLUSTER).find(CLUSTER, name)
    if found is None:
        raise NothingFound(f"reading EKS Cluster ({name}): couldn't find resource")
    same = ("arn", "createdAt", "endpoint", "id", "identities", "name", "platformVersion", "roleArn", "status")
    return {
        **{each: found.get(each) for each in (*same, "version", "vpcConfig")},
        "accessConfigs": [each for each in [found.get("accessConfig")] if each],
        "certificateAuthorities": [found["certificateAuthority"]],
        "deletionProtection": bool(found.get("deletionProtection")),
        "enabledClusterLogTypes": found.get("enabledClusterLogTypes") or [],
        "kubernetesNetworkConfigs": [each for each in [found.get("kubernetesNetworkConfig")] if each],
        "region": query.region,
        "tags": found.get("tagsAll") or {},
        "upgradePolicies": [each for each in [found.get("upgradePolicy")] if each],
    }


def _instance_type(query: Query) -> Values:
    """Of what DescribeInstanceTypes tells, that which the twin knows."""
    name = query.asked["instanceType"]
    found = machine(name)
    if found is None:
        refusal = Refusal(
            "DescribeInstanceTypes",
            "InvalidInstanceType",
            f"The following supplied instance types do not exist: [{name}]",
            what=f"reading EC2 Instance Type ({name})",
        )
        raise NothingFound(str(refusal))
    cards = [{"index": card, "maximumInterfaces": most} for card, most in sorted(found.interfaces_per_card.items())]
    return {
        "id": name,
        "instanceType": name,
        "defaultVcpus": found.cpus,
        "memorySize": found.memory_mib,
        "supportedArchitectures": ["arm64" if found.architecture == "arm64" else "x86_64"],
        "efaSupported": found.efa_interfaces > 0,
        "efaMaximumInterfaces": found.efa_interfaces,
        "gpuses": [{"count": found.gpus}] if found.gpus else [],
        "maximumNetworkCards": len(cards),
        "networkCards": cards,
        "region": query.region,
    }


def _caller(_: Query) -> Values:
    id_ = account().id
    return {"accountId": id_, "arn": f"arn:aws:iam::{id_}:user/rehearsal", "id": id_, "userId": "AIDAREHEARSAL"}


def _region(query: Query) -> Values:
    return {"id": query.region, "name": query.region, "region": query.region}


def _partition(_: Query) -> Values:
    return {"id": "aws", "partition": "aws", "dnsSuffix": "amazonaws.com"}


def _zones(query: Query) -> Values:
    zones = account().zones[query.region]
    return {"id": query.region, "names": list(zones), "zoneIds": list(zones.values()), "region": query.region}


LOOKUPS: Mapping[str, Callable[[Query], dict[str, Any]]] = {
    "aws:ec2/getInstanceType:getInstanceType": _instance_type,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:ec2/getVpc:getVpc": _vpc,
    CLUSTER_LOOKUP: _cluster,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
}
"""Data sources by token. Each raises: NothingFound."""
