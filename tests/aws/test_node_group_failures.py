"""A node group that fails is never followed by its gate, so the program says what AWS's words mean."""

import pytest

from plumbline.aws.diagnosis import diagnose_node_group
from plumbline.plan import plan_site
from plumbline.site import read_site
from tests.sites import GOOD

POOL = plan_site(read_site(GOOD)[0]).pools[0]


@pytest.mark.parametrize(
    ("error", "cause", "fix"),
    [
        (
            "unexpected state 'CREATE_FAILED'. last error: i-0abc: NodeCreationFailure: Instances failed to join the "
            "kubernetes cluster",
            "instances were launched, and did not join the cluster",
            "console output",
        ),
        (
            "AsgInstanceLaunchFailures: Could not launch On-Demand Instances. ReservationCapacityExceeded - The "
            "requested reservation does not have sufficient compatible and available capacity",
            "does not have as many free instances",
            "nodes in the stack's file",
        ),
        (
            "Could not launch: InvalidParameterValue - The requested Availability Zone us-west-2b does not match the "
            "capacity reservation's us-west-2c",
            "the reservation is in another zone",
            "capacity.zone",
        ),
        ("InvalidCapacityReservationId.NotFound", "the reservation does not exist", "capacity.id"),
        (
            "InvalidCapacityReservationState.PendingActivation - Your Capacity Block is not active yet.",
            "the capacity block has not begun",
            "run `pulumi up` again when it has",
        ),
        (
            "VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit of 192 allows",
            "quota of On-Demand vCPUs",
            "Service Quotas",
        ),
        (
            "InsufficientFreeAddresses: Amazon Autoscaling was unable to launch instances because there are not enough",
            "has no addresses left",
            "a larger subnet",
        ),
        (
            "AttachmentLimitExceeded - Network card '0' of p6-b300.48xlarge takes no efa-only",
            "does not take the interfaces",
            "remove layout of the pool",
        ),
        ("something new", "AWS refused the node group", "AWS's words above"),
    ],
)
def test_cause_and_fix(error: str, cause: str, fix: str) -> None:
    message = diagnose_node_group(POOL, error)
    assert message.startswith(f"fabric not proven on pool h100, generation {POOL.generation}: its nodes could not")
    assert cause in message
    assert fix in message
    assert "2 x p5.48xlarge in us-west-2b from cr-0a1b2c3d4e5f60718" in message
    assert error[:40] in message
