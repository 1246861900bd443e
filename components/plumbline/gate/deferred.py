"""A pool whose capacity has not begun: nothing can be proven, and that is said."""

from datetime import datetime

from plumbline.gate.expectation import PoolExpectation
from plumbline.gate.proof import DiagnosisRecord, Proof
from plumbline.gate.verdict import Certainty, Diagnosis, Verdict
from plumbline.plan.account import moment


def deferred(expected: PoolExpectation, now: datetime) -> Proof | None:
    """The record of a proof that waits for its capacity; None where there is nothing to wait for.

    It is unknown, and never a pass: with a reason declared the stack completes, unproven.
    """
    if expected.starts is None or now >= expected.starts:
        return None
    at = moment(expected.starts)
    diagnosis = Diagnosis(
        cause=f"its capacity has not begun: it begins at {at}, and until then the pool has no nodes",
        certainty=Certainty.CERTAIN,
        evidence=(f"asked for: {expected.nodes} x {expected.machine} in {expected.zone}",),
        fix=f"run `pulumi up` at {at} or later; or give a reason as plumbline:site.proof.accept_deferred, and the "
        "stack completes before that, unproven",
    )
    accepted = (f'completed unproven: "{expected.accept_deferred}"',) if expected.accept_deferred else ()
    return Proof(
        verdict=Verdict.UNKNOWN,
        at=now,
        seconds=0.0,
        phases=(),
        diagnoses=(DiagnosisRecord.of(diagnosis),),
        warnings=accepted,
        headline=f"fabric not proven on {expected.label}: deferred until {at}",
    )
