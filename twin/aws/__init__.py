"""The simulated AWS: a Pulumi provider that keeps resources, and refuses what AWS refuses, at AWS's stage."""

from twin.aws.existing import furnish
from twin.aws.provider import AwsServicer
from twin.world import World

__all__ = ["furnish", "servicer"]


def servicer(world: World) -> AwsServicer:
    """The provider's servicer for a world."""
    return AwsServicer(world)
