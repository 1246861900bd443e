"""Resource kinds of the simulated AWS: what each needs, gives and replaces, and the rules it is made under."""

from collections.abc import Mapping

from twin.aws.kinds import ec2, eks, fsx, iam, keys
from twin.aws.kinds.base import RESERVATION, Call, Kind, Values
from twin.aws.kinds.ec2 import addresses_free, template_version
from twin.aws.kinds.eks import EKS_VERSIONS, NODES_BEHIND, admit_nodes

__all__ = [
    "EKS_VERSIONS",
    "KINDS",
    "NODES_BEHIND",
    "RESERVATION",
    "Call",
    "Kind",
    "Values",
    "addresses_free",
    "admit_nodes",
    "template_version",
]

KINDS: Mapping[str, Kind] = {kind.token: kind for service in (ec2, eks, fsx, iam, keys) for kind in service.kinds()}
"""All kinds but node groups, by their type tokens."""
