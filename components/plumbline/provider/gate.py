"""`plumbline:index:FabricGate`: proves a generation of a pool, or blocks what depends on it."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from plumbline.gate.deferred import deferred
from plumbline.gate.expectation import PoolExpectation
from plumbline.gate.message import message
from plumbline.gate.phases import look
from plumbline.gate.proof import DiagnosisRecord, Proof, differences, digest, identities
from plumbline.gate.prove import prove
from plumbline.gate.reader import ClusterReader
from plumbline.gate.snapshot import Snapshot
from plumbline.gate.verdict import Verdict
from plumbline.kubernetes.connection import Unreachable
from plumbline.migrate.guard import refusal_before_successor
from plumbline.provider.resource import Outcome, Refused, Values, changed_inputs, failures
from plumbline.provider.session import Session
from plumbline.provider.wire import UNKNOWN

_READ_ATTEMPTS = 3


class FabricGate:
    """The gate as a resource. Its recorded `proof` is the evidence that `plumbline report` shows."""

    def __init__(self, session: Session, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._session = session
        self._now = now

    def check(self, inputs: Values) -> dict[str, str]:
        """The expectation has to be whole, and the kubeconfig has to be there."""
        wrong = (
            {} if inputs.get("kubeconfig") else {"kubeconfig": "a kubeconfig is needed: the text, not a file's name"}
        )
        try:
            PoolExpectation.from_inputs(inputs)
        except ValidationError as error:
            wrong.update(failures(error))
        return wrong

    def changes(self, inputs: Values, old_inputs: Values, state: Values) -> dict[str, str]:
        """Other inputs, no proof, or one that is too old."""
        changed = changed_inputs(inputs, old_inputs)
        proof = _proof(state)
        if proof is None or not proof.proven:
            changed["proof"] = "not proven yet"
        elif proof.expired(self._now()):
            changed["proof"] = f"the proof of {proof.at:%Y-%m-%d %H:%M} UTC is too old"
        pool, generation = str(inputs["pool"]), str(inputs["generation"])
        if not changed and not self._session.doubted(pool, generation):
            self._session.judge(pool, generation, proven=True)
        return changed

    def preview(self, inputs: Values) -> Values:
        """Nothing is proven in a preview."""
        return {**inputs, "proof": UNKNOWN, "proven": UNKNOWN}

    async def create(self, inputs: Values, say: Callable[[str], None]) -> Outcome:
        """Prove the pool."""
        return await self._prove(f"{inputs['pool']}-{inputs['generation']}", inputs, say)

    async def update(self, id_: str, inputs: Values, state: Values, say: Callable[[str], None]) -> Outcome:
        """Prove it again."""
        return await self._prove(id_, inputs, say)

    async def _prove(self, id_: str, inputs: Values, say: Callable[[str], None]) -> Outcome:
        expected = PoolExpectation.from_inputs(inputs)
        proof = deferred(expected, self._now())
        accepted = proof is not None and expected.accept_deferred is not None
        if proof is None:
            reader = ClusterReader(inputs["kubeconfig"], expected)
            proof = await prove(expected, reader, cancelled=self._session.cancelled, progress=say)
        self._session.judge(expected.pool, expected.generation, proof.proven)
        if accepted:
            say(f"{proof.headline}; {proof.warnings[0]}")
        failure = None if proof.proven or accepted else message(proof.headline, proof.diagnoses, proof.warnings)
        return Outcome(id=id_, properties=_properties(inputs, proof), inputs=inputs, failure=failure)

    async def read(self, id_: str, inputs: Values, state: Values) -> Outcome:
        """Repeat the cheap phases. What is wrong makes the next update prove the pool again.

        Never fails for another reason: an error here would stop the whole stack, `pulumi destroy` included.
        """
        proof = _proof(state)
        try:
            expected = PoolExpectation.from_inputs(inputs)
        except ValidationError:
            return Outcome(id=id_, properties=state, inputs=inputs, failure="recorded by a version with other inputs")
        if waiting := deferred(expected, self._now()):
            self._session.judge(expected.pool, expected.generation, proven=False)
            told = None if expected.accept_deferred else message(waiting.headline, waiting.diagnoses, ())
            return Outcome(id=id_, properties=state, inputs=inputs, failure=told)
        try:
            failure = _found(expected, proof, await _glance(inputs["kubeconfig"], expected))
        except Unreachable as lost:
            failure = (
                f"unknown whether {expected.label} is still as it was proven: {lost}\n"
                f"  its recorded proof is kept; the next `pulumi up` proves it again"
            )
        if failure:
            self._session.judge(expected.pool, expected.generation, proven=False)
        return Outcome(id=id_, properties=state, inputs=inputs, failure=failure)

    async def delete(self, id_: str, state: Values, say: Callable[[str], None]) -> None:
        """Nothing is left in the cluster by these phases.

        `pulumi destroy` is never stopped here. An update is, in one case: what depends on the old generation's gate
        and waits for a new one that failed would be left without what it depends on. With `--continue-on-error`,
        engine 3.274.1 then writes a state that it cannot read any more.

        Raises:
            Refused: the declared generation of the pool was not proven in this update.
        """
        pool, generation = str(state.get("pool")), str(state.get("generation"))
        if refusal := refusal_before_successor(pool, generation, self._session.declared):
            raise Refused(refusal)


def _properties(inputs: Values, proof: Proof) -> dict[str, Any]:
    return {**inputs, "proof": proof.model_dump(mode="json", by_alias=True), "proven": proof.proven}


def _proof(state: Values) -> Proof | None:
    recorded = state.get("proof")
    return Proof.model_validate(recorded) if isinstance(recorded, Mapping) else None


async def _glance(kubeconfig: str, expected: PoolExpectation) -> Snapshot:
    """One look, tried a few times. Raises: Unreachable."""
    attempts = AsyncRetrying(
        stop=stop_after_attempt(_READ_ATTEMPTS),
        wait=wait_fixed(1),
        retry=retry_if_exception_type(Unreachable),
        reraise=True,
    )
    return await attempts(ClusterReader(kubeconfig, expected).once)


def _found(expected: PoolExpectation, proof: Proof | None, snapshot: Snapshot) -> str | None:
    """What a look found that a proof does not cover; None if all is as it was proven."""
    results = look(expected, snapshot)
    last = results[-1]
    if last.verdict is not Verdict.PASS:
        headline = f"no longer as proven: {expected.label}, phase {len(results)}, {last.phase}: {last.summary}"
        return message(headline, [DiagnosisRecord.of(each) for each in last.diagnoses], last.warnings)
    if proof is None or not proof.proven:
        return f"not proven yet: {expected.label}; everything cheap to see is there now, and the gate looks again"
    identity = identities(snapshot)
    if digest(expected, identity) != proof.digest:
        changed = differences(proof, identity) or ["what is expected of it"]
        lines = "\n".join(f"    {line}" for line in changed[:8])
        return f"changed since it was proven: {expected.label}\n{lines}\n  the next `pulumi up` proves it again"
    return None
