"""Who keeps a security group from being deleted."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CLUSTER_TAG = "cluster.k8s.amazonaws.com/name"
"""On network interfaces that the VPC CNI made: the cluster's name.

https://github.com/aws/amazon-vpc-cni-k8s/blob/master/README.md
"""


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A network interface that has the group."""

    id: str
    description: str
    status: str
    ours: bool
    """Whether this cluster's CNI made it."""

    @property
    def removable(self) -> bool:
        """Whether it may be removed once the nodes are gone: it is this cluster's, and attached to nothing."""
        return self.ours and self.status == "available"

    def __str__(self) -> str:
        what = "left by this cluster, can be removed" if self.removable else "not to be touched"
        return f"{self.id} ({self.description or 'no description'}, {self.status}): {what}"


def group_held(message: str) -> str | None:
    """The security group that a message of EC2 says cannot be deleted yet; None where it says something else."""
    found = re.search(r"DependencyViolation\b.*?\b(sg-[0-9a-f]+)\b", message, re.DOTALL)
    return found and found.group(1)


def holders(interfaces: Mapping[str, Any], group: str, cluster: str) -> list[Holder]:
    """The interfaces that have the group, from DescribeNetworkInterfaces."""
    return [
        Holder(
            id=each["NetworkInterfaceId"],
            description=each.get("Description", ""),
            status=each["Status"],
            ours={"Key": CLUSTER_TAG, "Value": cluster} in each.get("TagSet", ()),
        )
        for each in interfaces["NetworkInterfaces"]
        if group in [held["GroupId"] for held in each.get("Groups", ())]
    ]
