"""`plumbline:index:RetireGuard`: deleted before its generation's node groups, and able to refuse."""

import asyncio
import os
import time
from collections.abc import Callable

import httpx2
from pydantic import ValidationError

from plumbline.gate.snapshot import Pod
from plumbline.gate.wording import plural
from plumbline.kubernetes.connection import Connection, Unreachable, connect
from plumbline.migrate.guard import (
    UNREACHABLE_VARIABLE,
    GuardInputs,
    refusal_blocked,
    refusal_by_declaration,
    refusal_by_pods,
    refusal_unseen,
    training_pods,
)
from plumbline.provider.resource import Outcome, Refused, Values, changed_inputs, failures
from plumbline.provider.session import Session

_POLL_SECONDS = 1.0


class RetireGuard:
    """The guard as a resource. Only its deletion does anything."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def check(self, inputs: Values) -> dict[str, str]:
        """The inputs have to be whole."""
        wrong = (
            {} if inputs.get("kubeconfig") else {"kubeconfig": "a kubeconfig is needed: the text, not a file's name"}
        )
        try:
            GuardInputs.from_inputs(inputs)
        except ValidationError as error:
            wrong.update(failures(error))
        return wrong

    def changes(self, inputs: Values, old_inputs: Values, state: Values) -> dict[str, str]:
        """Other inputs."""
        return changed_inputs(inputs, old_inputs)

    def preview(self, inputs: Values) -> Values:
        """Its inputs are all there is."""
        return inputs

    async def create(self, inputs: Values, say: Callable[[str], None]) -> Outcome:
        """Record what its deletion will need."""
        return Outcome(id=f"{inputs['pool']}-{inputs['generation']}", properties=inputs, inputs=inputs)

    async def update(self, id_: str, inputs: Values, state: Values, say: Callable[[str], None]) -> Outcome:
        """Record it anew."""
        return Outcome(id=id_, properties=inputs, inputs=inputs)

    async def read(self, id_: str, inputs: Values, state: Values) -> Outcome:
        """It exists nowhere but in the state."""
        return Outcome(id=id_, properties=state, inputs=inputs)

    async def delete(self, id_: str, state: Values, say: Callable[[str], None]) -> None:
        """Let the generation go, or say why not. Raises: Refused."""
        guard = GuardInputs.from_inputs(state)
        if refusal := refusal_by_declaration(guard.pool, guard.generation, self._session.declared):
            raise Refused(refusal)
        try:
            async with connect(state["kubeconfig"]) as connection:
                await self._let_go(guard, connection, say)
        except Unreachable as lost:
            if os.environ.get(UNREACHABLE_VARIABLE) != "yes":
                raise Refused(refusal_unseen(guard, str(lost))) from lost

    async def _let_go(self, guard: GuardInputs, connection: Connection, say: Callable[[str], None]) -> None:
        """Return when no training pod is left there. Raises: Refused, Unreachable."""
        deadline = time.monotonic() + guard.within_seconds
        blocked: dict[str, str] = {}
        while pods := training_pods(guard, await _nodes(guard, connection), await _pods(connection)):
            over = time.monotonic() >= deadline or self._session.cancelled.is_set()
            if guard.on_destroy == "refuse" or (over and not blocked):
                raise Refused(refusal_by_pods(guard, pods) or "")
            if over:
                raise Refused(refusal_blocked(guard, blocked))
            if guard.on_destroy == "evict":
                blocked = await _evict(connection, pods)
            say(f"waiting for {plural(len(pods), 'training pod')} to be gone")
            await asyncio.sleep(_POLL_SECONDS)


async def _nodes(guard: GuardInputs, connection: Connection) -> frozenset[str]:
    selector = ",".join(f"{key}={value}" for key, value in sorted(guard.node_selector.items()))
    listing = await connection.get("/api/v1/nodes", labelSelector=selector)
    return frozenset(node["metadata"]["name"] for node in listing["items"])


async def _pods(connection: Connection) -> list[Pod]:
    """Pods that have not finished, on any node."""
    listing = await connection.get("/api/v1/pods", fieldSelector="status.phase!=Succeeded,status.phase!=Failed")
    return [Pod.from_json(pod) for pod in listing["items"]]


async def _evict(connection: Connection, pods: list[Pod]) -> dict[str, str]:
    """Ask for each pod's eviction; budgets are honoured. Returns what was refused, with the API's words."""
    answers = await asyncio.gather(*(_evict_one(connection, pod) for pod in pods))
    return {pod.full_name: reason for pod, reason in zip(pods, answers, strict=True) if reason}


async def _evict_one(connection: Connection, pod: Pod) -> str | None:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
    }
    answer = await connection.post(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction", body)
    if answer.is_success or answer.status_code == httpx2.codes.NOT_FOUND:
        return None
    return str(answer.json().get("message") or f"HTTP {answer.status_code}")
