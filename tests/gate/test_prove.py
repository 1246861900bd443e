"""The gate's loop, on scripted looks and a clock of our own: it waits, stops, settles, and never passes on doubt."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

from plumbline.gate.expectation import PoolExpectation
from plumbline.gate.message import message
from plumbline.gate.proof import Proof, differences, digest, identities
from plumbline.gate.prove import SETTLE_SECONDS, Clock, prove
from plumbline.gate.reader import Lost
from plumbline.gate.slices import Offer
from plumbline.gate.snapshot import Pod, Snapshot
from plumbline.gate.verdict import Verdict
from tests.gate.clusters import (
    CRASH,
    DRA,
    EFA,
    EXPECTED,
    NAMES,
    crash,
    dra_snapshot,
    node,
    resource_slice,
    snapshot,
    with_pods,
)

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
PLUGIN = "efa-device-plugin"
Scene = Callable[[float], Snapshot | Lost]


class Stage:
    """A reader whose cluster is a function of the time since the start, in steps of half a second."""

    def __init__(self, scene: Scene, logs: str = "") -> None:
        self.scene, self.time, self.logs, self.read_logs = scene, 0.0, logs, 0
        self.clock = Clock(monotonic=lambda: self.time, now=lambda: START + timedelta(seconds=self.time))

    async def looks(self, tick: float) -> AsyncIterator[Snapshot | Lost]:
        while True:
            await asyncio.sleep(0)
            yield self.scene(self.time)
            self.time += 0.5

    async def once(self) -> Snapshot:
        raise AssertionError("the gate watches")

    async def log(self, pod: Pod) -> str:
        self.read_logs += 1
        return self.logs


def run(scene: Scene, logs: str = "", expected: PoolExpectation = EXPECTED) -> tuple[Proof, Stage, list[str]]:
    stage, said = Stage(scene, logs), list[str]()
    proof = asyncio.run(prove(expected, stage, clock=stage.clock, progress=said.append))
    return proof, stage, said


def test_whole_pool_is_proven_once_it_has_held() -> None:
    proof, stage, said = run(lambda _: snapshot())
    assert proof.verdict is Verdict.PASS
    assert proof.seconds == EXPECTED.stable_seconds == stage.time
    assert set(proof.nodes) == set(NAMES)
    assert proof.nodes[NAMES[0]].identity["boot id"] == f"boot-of-{NAMES[0]}"
    assert proof.valid_until == START + timedelta(days=7, seconds=stage.time)
    assert said[0].startswith("all 3 phases pass; they have to hold for")


def test_pool_that_comes_late_is_waited_for() -> None:
    proof, _, said = run(lambda t: snapshot(nodes=[node(NAMES[0])]) if t < 20 else snapshot())
    assert proof.verdict is Verdict.PASS
    assert proof.seconds == 20 + EXPECTED.stable_seconds
    assert said[0] == "phase 1 of 3, nodes: 1 of 2 nodes Ready"


STARTING = {"container": {"ready": False, "state": {"waiting": {"reason": "ContainerCreating"}}}}
BROKEN = {"container": crash("exec format error")}


def test_cause_that_does_not_heal_stops_the_gate_at_once_when_every_node_is_known() -> None:
    def scene(t: float) -> Snapshot:
        return snapshot(pods=with_pods(PLUGIN, dict.fromkeys(NAMES, STARTING if t < 1 else BROKEN)))

    proof, stage, _ = run(scene)
    assert proof.verdict is Verdict.FAIL
    assert stage.time == 1
    assert proof.headline == (
        f"fabric not proven on pool h100, generation {EXPECTED.generation}: "
        "2 of 2 nodes fail in phase 2 of 3, plugins, after 1 s"
    )


def test_cause_that_does_not_heal_waits_a_little_to_name_every_node() -> None:
    def scene(t: float) -> Snapshot:
        late = STARTING if t < 2 else BROKEN
        return snapshot(pods=with_pods(PLUGIN, {NAMES[0]: STARTING if t < 1 else BROKEN, NAMES[1]: late}))

    proof, stage, _ = run(scene)
    assert stage.time == 2 < 1 + SETTLE_SECONDS
    assert proof.diagnoses[0].nodes == NAMES


def test_failure_of_before_the_run_is_no_evidence_until_the_kubelet_tries_again() -> None:
    """After the cause was mended a kubelet shows the old failure for up to five minutes."""
    again = {"container": {**crash("exec format error"), "restartCount": 5}}
    pulling = {"ready": False, "state": {"waiting": {"reason": "ErrImagePull", "message": "manifest unknown"}}}
    backing_off = {"ready": False, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "manifest unknown"}}}

    def healing(t: float) -> Snapshot:
        return snapshot(pods=with_pods(PLUGIN, dict.fromkeys(NAMES, BROKEN))) if t < 20 else snapshot()

    def broken_still(t: float) -> Snapshot:
        return snapshot(pods=with_pods(PLUGIN, dict.fromkeys(NAMES, BROKEN if t < 20 else again)))

    proof, _, _ = run(healing)
    assert proof.verdict is Verdict.PASS
    proof, stage, _ = run(broken_still)
    assert proof.verdict is Verdict.FAIL
    assert stage.time == 20

    def pull(t: float) -> Snapshot:
        state = pulling if t < 1 or t >= 20 else backing_off
        return snapshot(pods=with_pods(PLUGIN, {name: {"container": state} for name in NAMES}))

    proof, stage, _ = run(pull)
    assert (proof.verdict, stage.time) == (Verdict.FAIL, 20), "the end of an earlier try is not a new one"


def test_crash_that_may_heal_is_waited_for_until_the_deadline() -> None:
    pods = with_pods(PLUGIN, {NAMES[1]: {"container": CRASH}})
    proof, stage, _ = run(lambda _: snapshot(pods=pods), logs="No valid EFA devices found")
    assert stage.time == EXPECTED.within_seconds
    assert proof.verdict is Verdict.FAIL
    assert "finds no EFA device on its node" in proof.diagnoses[0].cause
    assert stage.read_logs == 1, "a log is read once for each restart, not at every look"


def test_flap_is_seen_and_named() -> None:
    lost = [node(NAMES[0]), node(NAMES[1], allocatable={EFA: "0"})]
    proof, _, _ = run(lambda t: snapshot(nodes=lost) if int(t) % 3 == 2 else snapshot())
    assert proof.verdict is Verdict.FAIL
    assert proof.diagnoses[0].cause == "devices were advertised and then lost again"
    assert f"{NAMES[1]}: {EFA} 32 -> 0" in proof.diagnoses[0].evidence[0]


def test_devices_of_a_driver_that_come_and_go_are_flapping_and_a_pool_that_is_being_written_is_not() -> None:
    lost = dra_snapshot(slices=[resource_slice(NAMES[0])])
    proof, _, _ = run(lambda t: lost if int(t) % 3 == 2 else dra_snapshot(), expected=DRA)
    assert proof.diagnoses[0].cause == "devices were advertised and then lost again"
    assert f"{NAMES[1]}: dra.net 32 -> 0" in proof.diagnoses[0].evidence[0]

    written = dra_snapshot(slices=[resource_slice(NAMES[0]), resource_slice(NAMES[1], generation=2, slices=2)])
    proof, _, _ = run(lambda t: written if 1 <= t < 3 else dra_snapshot(), expected=DRA)
    assert proof.verdict is Verdict.PASS
    assert proof.seconds == 3 + DRA.stable_seconds
    assert proof.nodes[NAMES[0]].advertised == {"nvidia.com/gpu": "8", "dra.net": "32"}


def test_api_without_slices_ends_the_gate_at_once_as_unknown() -> None:
    proof, stage, _ = run(lambda _: dra_snapshot(offers={"dra.net": Offer(refused=404)}), expected=DRA)
    assert (proof.verdict, stage.time) == (Verdict.UNKNOWN, 0)
    assert proof.diagnoses[0].cause.startswith("the cluster does not serve resource.k8s.io/v1")


def test_plugin_that_dies_during_the_run_is_the_cause_and_its_lost_devices_are_not() -> None:
    gone = [node(name, allocatable={EFA: "0"}) for name in NAMES]
    dead = snapshot(nodes=gone, pods=with_pods(PLUGIN, {name: {"container": CRASH} for name in NAMES}))
    proof, _, _ = run(lambda t: snapshot() if t < 2 else dead)
    assert "in phase 2 of 3, plugins" in proof.headline
    died, lost = proof.diagnoses
    assert died.cause == "the vpc.amazonaws.com/efa device plugin does not start"
    assert lost.cause == "devices were advertised and then lost again"


def test_device_that_is_lost_once_is_counted_and_not_called_flapping() -> None:
    fewer = [node(NAMES[0]), node(NAMES[1], allocatable={EFA: "31"}, capacity={EFA: "31"})]
    proof, _, _ = run(lambda t: snapshot() if t < 2 else snapshot(nodes=fewer))
    assert "1 of 2 nodes fails in phase 3 of 3, advertised" in proof.headline
    assert proof.diagnoses[0].evidence[0] == f"{NAMES[1]}: allocatable 31, capacity 31, expected 32"


def test_unreachable_server_is_unknown_and_never_a_pass() -> None:
    proof, _, said = run(lambda t: snapshot() if t < 2 else Lost(reason="connection refused"))
    assert proof.verdict is Verdict.UNKNOWN
    assert proof.diagnoses[0].evidence == ("connection refused",)
    assert {phase.verdict for phase in proof.phases} == {Verdict.UNKNOWN}
    assert said[-1] == "waiting for the API server: connection refused"


def test_outage_starts_the_window_anew() -> None:
    def scene(t: float) -> Snapshot | Lost:
        return Lost(reason="reset") if 2 <= t < 3 else snapshot()

    proof, stage, _ = run(scene)
    assert proof.verdict is Verdict.PASS
    assert stage.time == 3 + EXPECTED.stable_seconds


def test_phase_without_a_cause_at_the_deadline_says_so() -> None:
    proof, _, _ = run(lambda _: snapshot(pods=with_pods(PLUGIN, {NAMES[1]: STARTING})))
    assert proof.verdict is Verdict.UNKNOWN
    assert proof.diagnoses[0].nodes == (NAMES[1],)
    assert "proof.within" in proof.diagnoses[0].fix


def test_cancelled_gate_ends_as_unknown() -> None:
    async def cancel() -> Proof:
        stage, cancelled = Stage(lambda _: snapshot(nodes=[])), asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, cancelled.set)
        stage.clock = Clock(monotonic=lambda: 0.0, now=lambda: START)
        return await prove(EXPECTED, stage, clock=stage.clock, cancelled=cancelled)

    proof = asyncio.run(cancel())
    assert proof.verdict is Verdict.UNKNOWN
    assert "the gate was cancelled" in proof.headline


def test_deadline_holds_even_when_the_reader_hangs() -> None:
    class Hanging(Stage):
        async def looks(self, tick: float) -> AsyncIterator[Snapshot | Lost]:
            await asyncio.sleep(3600)
            yield snapshot()

    expected = EXPECTED.model_copy(update={"within_seconds": 0.05})
    proof = asyncio.run(prove(expected, Hanging(lambda _: snapshot())))
    assert proof.verdict is Verdict.UNKNOWN


def test_record_survives_the_state_and_newer_fields_are_ignored() -> None:
    proof, _, _ = run(lambda _: snapshot())
    recorded = proof.model_dump(mode="json", by_alias=True)
    assert Proof.model_validate({**recorded, "ofALaterVersion": 1}) == proof


def test_reboot_and_replacement_are_differences_in_words() -> None:
    proof, _, _ = run(lambda _: snapshot())
    rebooted = snapshot(nodes=[node(NAMES[0], info={"bootID": "other"}), node("ip-10-20-1-99")])
    identity = identities(rebooted)
    assert digest(EXPECTED, identity) != proof.digest
    lines = differences(proof, identity)
    assert f"{NAMES[1]}: gone since the proof" in lines
    assert "ip-10-20-1-99: new since the proof" in lines
    assert f"{NAMES[0]}: boot id was boot-of-{NAMES[0]}, is other" in [line.split(";")[0] for line in lines]


def test_message_reads_from_top_to_bottom() -> None:
    pods = with_pods(PLUGIN, {name: {"container": crash("exec format error")} for name in NAMES})
    proof, _, _ = run(lambda _: snapshot(pods=pods))
    lines = message(proof.headline, proof.diagnoses, proof.warnings).splitlines()
    starts = ("fabric not", "  cause (cer", "    Daemon", "    ip-10", "    vpc", "  fix: ", "  left as", "  evidence")
    assert [line.startswith(start) for line, start in zip(lines, starts, strict=True)] == [True] * len(starts)
