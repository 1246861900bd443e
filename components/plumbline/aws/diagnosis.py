"""What AWS says when a node group fails, and what it means: the gate is never reached then, so the program says it."""

import re
from dataclasses import dataclass

import pulumi

from plumbline.gate.message import message
from plumbline.gate.proof import DiagnosisRecord
from plumbline.gate.verdict import Certainty, Diagnosis
from plumbline.plan import PoolPlan


@dataclass(frozen=True, kw_only=True)
class _Sign:
    pattern: re.Pattern[str]
    cause: str
    fix: str
    certainty: Certainty
    source: str


_HEALTH = "https://docs.aws.amazon.com/eks/latest/APIReference/API_Issue.html"
_CODES = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html"

_SIGNS = (
    _Sign(
        pattern=re.compile(r"PendingActivation|not active yet", re.I),
        cause="the capacity block has not begun",
        fix="run `pulumi up` again when it has; with ec2:DescribeCapacityReservations it is known before, and the pool "
        "waits without nodes",
        certainty=Certainty.CERTAIN,
        source=_CODES,
    ),
    _Sign(
        pattern=re.compile(r"VcpuLimitExceeded", re.I),
        cause="the account's quota of On-Demand vCPUs does not hold these instances",
        fix="ask AWS for more (Service Quotas, EC2, Running On-Demand instances of the machine's family); reservations "
        "count too",
        certainty=Certainty.CERTAIN,
        source=_CODES,
    ),
    _Sign(
        pattern=re.compile(r"InsufficientFreeAddresses", re.I),
        cause="the pool's subnet has no addresses left for its nodes",
        fix="name a larger subnet, or take a larger network.cidr for a new site",
        certainty=Certainty.CERTAIN,
        source=_HEALTH,
    ),
    _Sign(
        pattern=re.compile(r"AttachmentLimitExceeded|network card|device index", re.I),
        cause="the machine does not take the interfaces of the launch template",
        fix="remove layout of the pool, if it is set; otherwise this release's catalogue is wrong about the machine: "
        "compare it with `aws ec2 describe-instance-types`",
        certainty=Certainty.LIKELY,
        source=_CODES,
    ),
    _Sign(
        pattern=re.compile(r"NodeCreationFailure|failed to join", re.I),
        cause="instances were launched, and did not join the cluster",
        fix="look at the instances' console output: a node that runs and does not join has no route to the API server, "
        "no access entry for its role, or an AMI that does not start; then run `pulumi up` again",
        certainty=Certainty.LIKELY,
        source=_HEALTH,
    ),
    _Sign(
        pattern=re.compile(r"ReservationCapacityExceeded|InsufficientInstanceCapacity", re.I),
        cause="the capacity does not have as many free instances as the pool asks for",
        fix="compare the reservation's free count with nodes in the stack's file; others may be using it",
        certainty=Certainty.LIKELY,
        source=_CODES,
    ),
    _Sign(
        pattern=re.compile(r"InvalidCapacityReservationId|CapacityReservation.*not.*(found|exist)", re.I),
        cause="the reservation does not exist in this account and region, or is no longer active",
        fix="correct capacity.id of the pool in the stack's file",
        certainty=Certainty.CERTAIN,
        source=_CODES,
    ),
    _Sign(
        pattern=re.compile(r"Availability ?Zone", re.I),
        cause="the reservation is in another zone than the pool's subnet",
        fix="set capacity.zone of the pool in the stack's file to the zone that the reservation is in",
        certainty=Certainty.LIKELY,
        source=_CODES,
    ),
    _Sign(
        pattern=re.compile(r"instance type", re.I),
        cause="the reservation is for another machine than the pool's, or the machine does not exist there",
        fix="correct machine or capacity.id of the pool in the stack's file",
        certainty=Certainty.LIKELY,
        source=_CODES,
    ),
)


def diagnose_node_group(plan: PoolPlan, error: str) -> str:
    """The message for a node group that failed with this error of AWS."""
    sign = next((sign for sign in _SIGNS if sign.pattern.search(error)), None)
    diagnosis = Diagnosis(
        cause=sign.cause if sign else "AWS refused the node group, or could not fill it",
        certainty=sign.certainty if sign else Certainty.NOT_KNOWN,
        evidence=(
            f"node group {plan.full_name}: {plan.nodes} x {plan.machine} in {plan.zone} from {plan.paid_by}",
            f'AWS says "{_one_line(error)}"',
        ),
        fix=sign.fix if sign else "read AWS's words above, and the node group's health issues in its console",
    )
    headline = f"fabric not proven on pool {plan.name}, generation {plan.generation}: its nodes could not be created"
    return message(headline, [DiagnosisRecord.of(diagnosis)])


def _one_line(error: str) -> str:
    text = " ".join(error.split())
    return text if len(text) <= 600 else text[:597] + "..."


def explain_node_group(plan: PoolPlan) -> pulumi.ErrorHook:
    """A hook that says what a failure of the node group means. It changes nothing: the update fails as it would."""

    def explain(args: pulumi.ErrorHookArgs) -> bool:
        if args.errors:
            pulumi.log.error(diagnose_node_group(plan, args.errors[0]))
        return False

    return pulumi.ErrorHook(f"explain-{plan.full_name}", explain)
