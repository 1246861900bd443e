"""Devices by Dynamic Resource Allocation: what ResourceSlices offer, and what phase 3 makes of it."""

import json
from typing import Any

import pytest

from plumbline.gate.expectation import PoolExpectation
from plumbline.gate.phases import look, pods_to_read
from plumbline.gate.proof import Proof, digest
from plumbline.gate.slices import Offer, Slice
from plumbline.gate.slices import offer as offer_of
from plumbline.gate.verdict import Certainty, Diagnosis, PhaseResult, Verdict
from tests.gate.clusters import (
    DRA,
    EFA,
    EXPECTED,
    GPU,
    NAMES,
    crash,
    device,
    dra_snapshot,
    node,
    pod,
    resource_slice,
)
from tests.recorded.record import HERE

FIRST, SECOND = NAMES
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def offer(driver: str, slices: list[dict[str, Any]]) -> Offer:
    return offer_of(driver, map(Slice.from_json, slices))


def last(**parts: Any) -> PhaseResult:
    return look(DRA, dra_snapshot(**parts))[-1]


def only(result: PhaseResult) -> Diagnosis:
    assert len(result.diagnoses) == 1, result.diagnoses
    return result.diagnoses[0]


# --- counting


def test_devices_are_counted_by_node_over_the_slices_of_a_pool() -> None:
    parts = [device(f"a{i}") for i in range(3)], [device(f"b{i}") for i in range(2)]
    slices = [resource_slice(FIRST, part, part=i, slices=2) for i, part in enumerate(parts)]
    assert offer("dra.net", [*slices, resource_slice(SECOND, 4)]).devices == {FIRST: 5, SECOND: 4}


def test_only_devices_that_are_efa_count_however_the_attribute_is_written() -> None:
    short = {"name": "short", "attributes": {"pciDevice": {"string": "Elastic Fabric Adapter (EFA)"}}}
    others = [device("ena", "Elastic Network Adapter (ENA)"), {"name": "bare"}, device("nvlink", "ConnectX")]
    assert offer("dra.net", [resource_slice(FIRST, [short, device("efa"), *others])]).devices == {FIRST: 2}


def test_older_generations_and_other_drivers_are_passed_over() -> None:
    other = resource_slice(FIRST, 9)
    other["spec"]["driver"] = "gpu.nvidia.com"
    slices = [resource_slice(FIRST, 32, generation=1), resource_slice(FIRST, 30, generation=2), other]
    assert offer("dra.net", slices).devices == {FIRST: 30}
    assert offer("gpu.nvidia.com", slices).devices == {FIRST: 9}


def test_a_pool_without_all_its_slices_is_not_known_even_if_an_older_generation_was_whole() -> None:
    slices = [resource_slice(FIRST, 32), resource_slice(FIRST, 16, generation=2, slices=2), resource_slice(SECOND)]
    offered = offer("dra.net", slices)
    assert offered.on(FIRST) is None
    assert offered.on(SECOND) == 32
    assert offered.incomplete == {FIRST: f"pool {FIRST}, generation 2: 1 of 2 slices"}


def test_devices_that_name_their_node_themselves_count_there_and_tainted_ones_nowhere() -> None:
    taint = [{"key": "sick", "effect": "NoSchedule"}]
    spread = resource_slice(FIRST, [device("x", nodeName=SECOND), device("y", nodeName=SECOND, taints=taint)])
    del spread["spec"]["nodeName"]
    offered = offer("dra.net", [spread])
    assert (offered.devices, offered.tainted) == ({SECOND: 1}, {SECOND: 1})


# --- phase 3


def test_whole_pool_passes_and_keeps_what_was_seen() -> None:
    result = last()
    assert (result.phase, result.verdict) == ("advertised", Verdict.PASS)
    assert result.summary == "nvidia.com/gpu 8 on 2 of 2 nodes; dra.net 32 on 2 of 2 nodes"
    assert result.seen[FIRST] == {GPU: "8", "dra.net": "32"}


@pytest.mark.parametrize(("devices", "heals", "words"), [(31, True, "less"), (33, False, "more")])
def test_devices_are_compared_by_equality(devices: int, heals: bool, words: str) -> None:
    result = last(slices=[resource_slice(FIRST), resource_slice(SECOND, devices)])
    diagnosis = only(result)
    assert (result.verdict, result.heals, diagnosis.nodes) == (Verdict.FAIL, heals, (SECOND,))
    assert diagnosis.cause.startswith(f"1 node of 2 advertise {words} dra.net devices than the machine has")
    assert diagnosis.evidence == (f"{SECOND}: devices in ResourceSlices {devices}, expected 32",)


def test_node_without_a_slice_is_offered_none_and_the_drivers_log_says_why() -> None:
    seen = dra_snapshot(slices=[resource_slice(FIRST)])
    assert [each.node for each in pods_to_read(DRA, seen, look(DRA, seen))] == [SECOND]
    line = "I0105 09:12:44.986562       1 db.go:261] Found 0 devices"
    diagnosis = only(last(slices=[resource_slice(FIRST)], logs={f"kube-system/dranet-{SECOND}": line}))
    assert diagnosis.cause == (
        "1 node of 2 lack dra.net devices: the dra.net DRA driver finds no device to publish on its node"
    )
    assert diagnosis.evidence[-1] == f'kube-system/dranet-{SECOND} on {SECOND} says "{line}"'
    assert diagnosis.certainty is Certainty.CERTAIN


def test_tainted_devices_are_named_where_they_are_missing() -> None:
    devices = [device(f"d{i}") for i in range(31)]
    sick = device("sick", taints=[{"key": "sick", "effect": "NoExecute"}])
    diagnosis = only(last(slices=[resource_slice(FIRST), resource_slice(SECOND, [*devices, sick])]))
    assert diagnosis.evidence == (f"{SECOND}: devices in ResourceSlices 31, expected 32; 1 more carry a taint",)


def test_incomplete_pool_is_unknown_and_waited_for() -> None:
    result = last(slices=[resource_slice(FIRST), resource_slice(SECOND, 32, slices=2)])
    diagnosis = only(result)
    assert (result.verdict, result.heals, set(result.failing)) == (Verdict.UNKNOWN, True, {SECOND})
    assert diagnosis.cause == "the dra.net DRA driver has published only a part of its devices on 1 node"
    assert diagnosis.evidence == (f"{SECOND}: pool {SECOND}, generation 1: 1 of 2 slices",)
    assert result.seen[SECOND]["dra.net"] == "unknown"


@pytest.mark.parametrize(
    ("status", "heals", "cause", "fix"),
    [
        (403, True, "the credentials may not list ResourceSlices", "the right to list and watch resourceslices"),
        (404, False, "the cluster does not serve resource.k8s.io/v1", "Kubernetes 1.34 or newer"),
    ],
)
def test_slices_that_cannot_be_read_are_unknown_with_cause_and_fix(
    status: int, heals: bool, cause: str, fix: str
) -> None:
    result = last(offers={"dra.net": Offer(refused=status)})
    diagnosis = only(result)
    assert (result.verdict, result.heals, set(result.failing)) == (Verdict.UNKNOWN, heals, set(NAMES))
    assert diagnosis.cause.startswith(cause)
    assert diagnosis.evidence == (f"HTTP {status} for {SLICES}",)
    assert fix in diagnosis.fix


def test_slices_that_nobody_read_are_never_a_pass() -> None:
    assert last(offers={}).verdict is Verdict.FAIL


def test_both_mechanisms_on_one_node_fail() -> None:
    bare = node(FIRST, allocatable={EFA: "0"}, capacity={EFA: "32"})
    result = last(nodes=[bare, node(SECOND)])
    diagnosis = only(result)
    assert (result.verdict, diagnosis.nodes) == (Verdict.FAIL, (SECOND,))
    assert "by both mechanisms, vpc.amazonaws.com/efa and dra.net" in diagnosis.cause
    assert diagnosis.evidence == (f"{SECOND}: allocatable {EFA} 32, devices in ResourceSlices 32",)
    assert "plumbline.dev/devices=dra" in diagnosis.fix


# --- phase 2


def test_driver_that_does_not_start_is_called_a_driver_and_its_devices_are_told() -> None:
    said = crash("F0105 driver.go:198] NRI plugin failed for 5 times to be restarted")
    gpu = [pod("nvidia-device-plugin", name) for name in NAMES]
    result = last(slices=[], pods=[*gpu, *(pod("dranet", name, container=said) for name in NAMES)])
    diagnosis = only(result)
    assert result.phase == "plugins"
    assert diagnosis.cause.startswith("the dra.net DRA driver cannot reach the container runtime's NRI socket")
    assert diagnosis.evidence[-1] == "dra.net: expected 32 on each node, in ResourceSlices 0"


# --- what older releases recorded


def _gates(version: str) -> list[dict[str, Any]]:
    state = json.loads((HERE / version / "state.json").read_text("utf-8"))
    return [r for r in state["deployment"]["resources"] if r["type"] == "plumbline:index:FabricGate"]


def test_inputs_and_digest_of_a_recorded_proof_are_what_they_were() -> None:
    (gate,) = _gates("0.1.0")
    expected = PoolExpectation.from_inputs(gate["inputs"])
    proof = Proof.model_validate(gate["outputs"]["proof"])
    assert (expected.slices, [plugin.driver for plugin in expected.plugins]) == ({}, [None, None])
    assert {key: gate["inputs"][key] for key in expected.inputs()} == expected.inputs()
    assert digest(expected, {name: each.identity for name, each in proof.nodes.items()}) == proof.digest


def test_slices_are_part_of_the_inputs_and_of_the_digest_where_there_are_any() -> None:
    inputs = DRA.inputs()
    assert inputs["slices"] == {"dra.net": 32}
    assert [plugin.get("driver") for plugin in inputs["plugins"]] == [None, "dra.net"]
    assert PoolExpectation.from_inputs(inputs) == DRA
    other = DRA.model_copy(update={"slices": {"dra.net": 16}})
    assert len({digest(each, {}) for each in (EXPECTED, DRA, other)}) == 3
