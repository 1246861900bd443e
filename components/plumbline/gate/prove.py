"""The gate itself: look, wait for what can heal, stop at what cannot, and end with a proof or with a cause."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from plumbline.gate.expectation import PoolExpectation
from plumbline.gate.phases import HARMLESS, PHASES, look, pods_to_read
from plumbline.gate.proof import DiagnosisRecord, PhaseRecord, Proof, passed
from plumbline.gate.reader import LOGGED_PODS, Lost, Reader
from plumbline.gate.slices import Offer
from plumbline.gate.snapshot import Node, Pod, Snapshot, count
from plumbline.gate.verdict import Certainty, Diagnosis, PhaseResult, Verdict
from plumbline.gate.wording import names, plural, seconds

TICK_SECONDS = 0.5
"""How long the gate sleeps between looks when nothing changes."""

SETTLE_SECONDS = 3.0
"""How long a cause that does not heal is watched before the gate stops, so that it names every node it concerns."""


@dataclass(frozen=True)
class Clock:
    """The time, for the gate. A test brings its own."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass
class _Run:
    """What a run of the gate remembers between looks."""

    expected: PoolExpectation
    started: float
    results: Sequence[PhaseResult] = ()
    snapshot: Snapshot | None = None
    lost: str = ""
    """Why the cluster cannot be read now; empty while it can."""
    whole_since: float | None = None
    """Since when every phase has passed without a break."""
    stuck_since: float | None = None
    """Since when something has been seen that does not heal."""
    attempts: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Restarts and waiting reason of each plugin pod, as last seen."""
    fresh: set[str] = field(default_factory=set)
    """Plugin pods that were seen to start, or to try again, in this run."""
    advertised: dict[tuple[str, str], int] = field(default_factory=dict)
    flaps: list[str] = field(default_factory=list)
    logs: dict[tuple[str, int], str] = field(default_factory=dict)
    """Logs by pod and number of restarts."""
    turned: dict[str, tuple[Verdict, float]] = field(default_factory=dict)

    def take(self, snapshot: Snapshot, results: Sequence[PhaseResult], now: float) -> None:
        """Remember a look."""
        self._note_attempts(snapshot)
        self.snapshot, self.results, self.lost = snapshot, results, ""
        self._note_flaps(snapshot, now)
        for result in results:
            if self.turned.get(result.phase, (None, 0.0))[0] is not result.verdict:
                self.turned[result.phase] = (result.verdict, now - self.started)
        last = results[-1]
        whole = last.verdict is Verdict.PASS
        self.whole_since = (self.whole_since if self.whole_since is not None else now) if whole else None
        stuck = bool(self._doomed())
        self.stuck_since = (self.stuck_since if self.stuck_since is not None else now) if stuck else None

    def lose(self, reason: str) -> None:
        """The cluster cannot be read: what was seen before is not known to hold."""
        self.lost, self.whole_since, self.stuck_since = reason, None, None

    def proven(self, now: float) -> bool:
        """Whether everything has held for as long as it has to."""
        return self.whole_since is not None and now - self.whole_since >= self.expected.stable_seconds

    def hopeless(self, now: float) -> bool:
        """Whether waiting longer cannot help, and every node concerned is known."""
        if self.stuck_since is None:
            return False
        everywhere = self.results[-1].failing <= self._doomed()
        return everywhere or now - self.stuck_since >= SETTLE_SECONDS

    def _doomed(self) -> frozenset[str]:
        """Nodes with something that does not heal, as far as this run saw it happen.

        A kubelet waits up to five minutes before it tries again, and shows the old failure meanwhile. A gate that
        stopped at that would fail again right after the cause was mended.
        """
        last = self.results[-1]
        if last.phase != "plugins" or self.snapshot is None:
            return last.doomed
        stale = {pod.node for pod in self.snapshot.pods if not pod.ready and pod.full_name not in self.fresh}
        return last.doomed - stale

    def _note_attempts(self, snapshot: Snapshot) -> None:
        for pod in snapshot.pods:
            restarts, reason = _restarts(pod), next((c.waiting_reason for c in pod.containers if not c.ready), "")
            before = self.attempts.get(pod.full_name)
            if before is None:
                starts = self.snapshot is not None or reason in HARMLESS
            else:
                pulls_again = before[1] == "ImagePullBackOff" and reason == "ErrImagePull"
                starts = restarts > before[0] or pulls_again or (before[1] in HARMLESS and reason not in HARMLESS)
            if starts:
                self.fresh.add(pod.full_name)
            self.attempts[pod.full_name] = (restarts, reason)

    def flapped_again(self) -> bool:
        """Whether a device that was lost came back and was lost again: one loss alone is no flapping."""
        return len(self.flaps) > len({flap.split(" -> ")[0] for flap in self.flaps})

    def _note_flaps(self, snapshot: Snapshot, now: float) -> None:
        for node in snapshot.nodes:
            now_there = {resource: _allocatable(node, resource) for resource in self.expected.resources}
            # What cannot be counted at the moment is no loss: that verdict is unknown, and breaks the wait anyway.
            offers = {driver: snapshot.offers.get(driver, Offer()).on(node.name) for driver in self.expected.slices}
            now_there |= {driver: count for driver, count in offers.items() if count is not None}
            for resource, wanted in {**self.expected.resources, **self.expected.slices}.items():
                if resource not in now_there:
                    continue
                amount = now_there[resource]
                before = self.advertised.get((node.name, resource))
                if before == wanted and amount != wanted:
                    self.flaps.append(
                        f"{node.name}: {resource} {before} -> {amount}, {seconds(now - self.started)} after the start"
                    )
                self.advertised[node.name, resource] = amount


def _allocatable(node: Node, resource: str) -> int:
    try:
        return count(node.allocatable.get(resource))
    except ValueError:
        return 0


async def prove(
    expected: PoolExpectation,
    reader: Reader,
    *,
    clock: Clock | None = None,
    cancelled: asyncio.Event | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Proof:
    """Prove a pool, within the time that its expectation gives.

    Args:
        expected: what has to be seen.
        reader: sees it.
        clock: the time.
        cancelled: set when the engine wants the gate to stop; it then ends at once, as unknown.
        progress: is told a line whenever what was seen changes.

    Returns:
        The record: passed, failed, or unknown. Never raises for what the cluster does.
    """
    clock, cancelled = clock or Clock(), cancelled or asyncio.Event()
    run = _Run(expected, clock.monotonic())
    said = ""
    async for seen in _until(reader.looks(TICK_SECONDS), cancelled, expected.within_seconds):
        now = clock.monotonic()
        if isinstance(seen, Lost):
            run.lose(seen.reason)
        elif seen is not None:
            run.take(*await _examined(expected, seen, reader, run), now)
        if (line := _progress(run, now)) != said:
            progress(said := line)
        over = now - run.started >= expected.within_seconds
        if seen is None or cancelled.is_set() or over or run.hopeless(now) or run.proven(now):
            break
    return _ended(run, clock, cancelled.is_set())


async def _until(
    looks: AsyncIterator[Snapshot | Lost], cancelled: asyncio.Event, limit: float
) -> AsyncIterator[Snapshot | Lost | None]:
    """The looks, and None at the end: when the gate is cancelled, or at its deadline whatever the reader does."""
    stop = asyncio.create_task(_wait(cancelled, limit))
    try:
        while True:
            following = asyncio.ensure_future(anext(looks))
            await asyncio.wait({stop, following}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                yield None
                return
            yield following.result()
    finally:
        stop.cancel()
        if close := getattr(looks, "aclose", None):
            await close()


async def _wait(cancelled: asyncio.Event, limit: float) -> None:
    try:
        await asyncio.wait_for(cancelled.wait(), limit)
    except TimeoutError:
        return


async def _examined(
    expected: PoolExpectation, snapshot: Snapshot, reader: Reader, run: _Run
) -> tuple[Snapshot, Sequence[PhaseResult]]:
    """The snapshot and what the phases say of it, with the logs that may name a cause where something is wrong.

    A log is read again only after a restart.
    """
    results = look(expected, snapshot)
    if results[-1].verdict is Verdict.PASS:
        return snapshot, results
    said = {(pod.full_name, _restarts(pod)): pod for pod in pods_to_read(expected, snapshot, results)[:LOGGED_PODS]}
    wanted = [(key, pod) for key, pod in said.items() if key not in run.logs]
    texts = await asyncio.gather(*(reader.log(pod) for _, pod in wanted))
    run.logs.update({key: text for (key, _), text in zip(wanted, texts, strict=True) if text})
    known = {name: run.logs[name, restarts] for name, restarts in said if (name, restarts) in run.logs}
    if not known:
        return snapshot, results
    logged = replace(snapshot, logs=known)
    return logged, look(expected, logged)


def _restarts(pod: Pod) -> int:
    return sum(container.restarts for container in pod.containers)


def _progress(run: _Run, now: float) -> str:
    if run.lost:
        return f"waiting for the API server: {run.lost}"
    if not run.results:
        return "looking for the first time"
    last = run.results[-1]
    if run.whole_since is not None:
        left = max(0.0, run.expected.stable_seconds - (now - run.whole_since))
        return f"all {len(PHASES)} phases pass; they have to hold for {seconds(left)} more"
    return f"phase {len(run.results)} of {len(PHASES)}, {last.phase}: {last.summary}"


def _ended(run: _Run, clock: Clock, cancelled: bool) -> Proof:
    """The record of a run that is over."""
    took = clock.monotonic() - run.started
    phases = _phase_records(run)
    warnings = tuple(dict.fromkeys(warning for result in run.results for warning in result.warnings))
    if run.snapshot and run.proven(clock.monotonic()) and not cancelled:
        times = {"at": clock.now(), "seconds": round(took, 1), "warnings": warnings}
        return passed(run.expected, run.snapshot, phases, run.results[-1], **times)
    verdict, headline, diagnoses = _failure(run, took, cancelled)
    return Proof(
        verdict=verdict,
        at=clock.now(),
        seconds=round(took, 1),
        phases=phases,
        diagnoses=tuple(DiagnosisRecord.of(each) for each in diagnoses),
        warnings=warnings,
        headline=headline,
    )


def _phase_records(run: _Run) -> tuple[PhaseRecord, ...]:
    """Every phase: those that were not reached are unknown, and say so."""
    looked = {result.phase: result for result in run.results}
    records = []
    for name in PHASES:
        verdict, when = run.turned.get(name, (Verdict.UNKNOWN, 0.0))
        result = looked.get(name)
        records.append(
            PhaseRecord(
                name=name,
                verdict=result.verdict if result and not run.lost else Verdict.UNKNOWN,
                summary=result.summary if result else "not reached",
                seconds=round(when if result and verdict is result.verdict else 0.0, 1),
            )
        )
    return tuple(records)


def _failure(run: _Run, took: float, cancelled: bool) -> tuple[Verdict, str, Sequence[Diagnosis]]:
    """Verdict, headline and causes of a run that did not prove its pool."""
    where = f"fabric not proven on {run.expected.label}"
    after = f"after {seconds(took)}"
    if cancelled:
        return Verdict.UNKNOWN, f"{where}: the gate was cancelled {after}", ()
    if run.lost or not run.results:
        reason = run.lost or "no answer yet"
        diagnosis = Diagnosis(
            cause="the cluster's API server cannot be read, so nothing is known of its nodes",
            certainty=Certainty.CERTAIN,
            evidence=(reason,),
            fix="check that the cluster's endpoint is reachable from here and that your credentials for it are good "
            "(`kubectl get nodes` with the kubeconfig of `plumbline kubeconfig`)",
        )
        return Verdict.UNKNOWN, f"{where}: the API server cannot be read, {after}", (diagnosis,)
    last = run.results[-1]
    if last.verdict is Verdict.PASS or (last.phase == "advertised" and run.flapped_again()):
        headline = f"{where}: it did not hold for {seconds(run.expected.stable_seconds)}, {after}"
        return Verdict.FAIL, headline, (_flapping(run) if run.flaps else _too_late(run), *last.diagnoses)
    missing = max(0, run.expected.nodes - len(run.snapshot.nodes)) if run.snapshot else 0
    failing = min(len(last.failing) + missing, run.expected.nodes) or run.expected.nodes
    headline = (
        f"{where}: {failing} of {plural(run.expected.nodes, 'node')} {'fails' if failing == 1 else 'fail'} "
        f"in phase {len(run.results)} of {len(PHASES)}, {last.phase}, {after}"
    )
    causes = last.diagnoses or (_still_waiting(run, last),)
    return last.verdict, headline, (*causes, _flapping(run)) if run.flaps else causes


def _flapping(run: _Run) -> Diagnosis:
    nodes = sorted({flap.split(":")[0] for flap in run.flaps})
    return Diagnosis(
        cause="devices were advertised and then lost again",
        certainty=Certainty.CERTAIN,
        evidence=(*run.flaps[-8:], f"in all: {plural(len(run.flaps), 'time')}"),
        fix=f"a plugin that restarts or a device that comes and goes: read the plugin's log and the kernel's log on "
        f"{names(nodes)}; replace a node whose devices do not stay",
        nodes=tuple(nodes),
    )


def _too_late(run: _Run) -> Diagnosis:
    return Diagnosis(
        cause="the pool came up too late: the deadline left no time to see that it lasts",
        certainty=Certainty.CERTAIN,
        evidence=(
            f"deadline {seconds(run.expected.within_seconds)}, to hold for {seconds(run.expected.stable_seconds)}",
        ),
        fix="run `pulumi up` again; if it is always so, lengthen plumbline:site.proof.within",
    )


def _still_waiting(run: _Run, last: PhaseResult) -> Diagnosis:
    return Diagnosis(
        cause="not there yet at the deadline, and nothing says why",
        certainty=Certainty.NOT_KNOWN,
        evidence=(last.summary, f"not there: {names(last.failing)}"),
        fix=f"look at these nodes' pods and events; if it only takes long, lengthen plumbline:site.proof.within "
        f"({seconds(run.expected.within_seconds)} now)",
        nodes=tuple(sorted(last.failing)),
    )
