"""What somebody else has in the simulated account: a VPC with private subnets, and a cluster in it.

The network is there from the start. The cluster's control plane is started when somebody first asks for the cluster.
"""

import asyncio
from typing import Any

from twin.aws.facts import declared
from twin.aws.kinds import KINDS, Call, Values
from twin.world import World

_CLUSTER, _VPC, _SUBNET = "aws:eks/cluster:Cluster", "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"
_starting = asyncio.Lock()


def furnish(world: World) -> None:
    """Put the network into a store that does not have it yet."""
    theirs = declared()["existing"]
    region = theirs["region"]
    _put(world, region, _VPC, theirs["vpc"], {"cidrBlock": theirs["cidr"], "tags": {"Name": theirs["cluster"]}})
    for zone, subnet in theirs["subnets"].items():
        inputs = {"vpcId": theirs["vpc"], "availabilityZone": zone, "cidrBlock": subnet["cidr"]}
        _put(world, region, _SUBNET, subnet["id"], {**inputs, "mapPublicIpOnLaunch": subnet.get("public", False)})


def _put(world: World, region: str, token: str, id_: str, inputs: Values) -> None:
    call = Call(world=world, region=region, kind=KINDS[token], inputs=inputs)
    if call.find(token, id_) is None:
        KINDS[token].keep(call, id_)


async def start_if_asked(world: World, name: Any) -> None:
    """Start the cluster, if it is this one that somebody asks for and it does not run yet."""
    theirs = declared()["existing"]
    if name != theirs["cluster"]:
        return
    inputs = {
        "name": theirs["cluster"],
        "version": theirs["version"],
        "roleArn": f"arn:aws:iam::{declared()['id']}:role/{theirs['cluster']}-cluster",
        "accessConfig": {"authenticationMode": "API"},
        "vpcConfig": {"subnetIds": [subnet["id"] for subnet in theirs["subnets"].values()]},
    }
    call = Call(world=world, region=theirs["region"], kind=KINDS[_CLUSTER], inputs=inputs)
    async with _starting:
        if call.find(_CLUSTER, name) is None and call.find(_VPC, theirs["vpc"]) is not None:
            await KINDS[_CLUSTER].create(call)
