"""The provider on the engine's protocol, over real gRPC, with nothing behind it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from plumbline.gate.proof import Proof
from plumbline.provider.engine import EngineLog
from plumbline.provider.servicer import Servicer
from plumbline.provider.session import Session
from plumbline.provider.wire import UNKNOWN, decode, encode
from tests.gate.clusters import EXPECTED, snapshot
from tests.gate.test_prove import START, run

GATE = "urn:pulumi:dev::p::plumbline:index:AwsSite$plumbline:index:FabricGate::train-h100-1"
GUARD = "urn:pulumi:dev::p::plumbline:index:RetireGuard::train-h100-1-guard"
DECLARATION = "urn:pulumi:dev::p::plumbline:index:Declaration::train"
Call = Callable[[Any], Awaitable[Any]]


def serve(tmp_path: Path, call: Callable[[Any], Awaitable[Any]]) -> Any:
    """Run `call` with a stub of a provider."""

    async def main() -> Any:
        server = grpc.aio.server()
        servicer = Servicer(EngineLog(""), Session(tmp_path / "run.jsonl"))
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            try:
                return await call(provider_pb2_grpc.ResourceProviderStub(channel))
            finally:
                await server.stop(0)

    return asyncio.run(main())


INPUTS = {**EXPECTED.inputs(), "kubeconfig": "{}"}
PROOF = run(lambda _: snapshot())[0]


def state(proof: Proof = PROOF) -> dict[str, Any]:
    return {**INPUTS, "proof": proof.model_dump(mode="json", by_alias=True), "proven": proof.proven}


def test_check_lists_everything_that_is_wrong_by_property(tmp_path: Path) -> None:
    bad = {**INPUTS, "nodes": 0, "kubeconfig": "", "zone": None}
    request = provider_pb2.CheckRequest(urn=GATE, news=encode(bad))
    answer = serve(tmp_path, lambda stub: stub.Check(request))
    assert sorted(failure.property for failure in answer.failures) == ["kubeconfig", "nodes", "zone"]


def test_check_of_unknown_inputs_passes_and_keeps_the_kubeconfig_secret(tmp_path: Path) -> None:
    request = provider_pb2.CheckRequest(urn=GATE, news=encode({**INPUTS, "kubeconfig": UNKNOWN}))
    assert not serve(tmp_path, lambda stub: stub.Check(request)).failures
    known = provider_pb2.CheckRequest(urn=GATE, news=encode(INPUTS))
    answer = serve(tmp_path, lambda stub: stub.Check(known))
    assert answer.inputs.fields["kubeconfig"].WhichOneof("kind") == "struct_value", "wrapped as a secret"
    assert decode(answer.inputs)["kubeconfig"] == "{}"


def test_preview_of_a_gate_proves_nothing(tmp_path: Path) -> None:
    request = provider_pb2.CreateRequest(urn=GATE, properties=encode(INPUTS), preview=True)
    properties = decode(serve(tmp_path, lambda stub: stub.Create(request)).properties)
    assert properties["proven"] == properties["proof"] == UNKNOWN


@pytest.mark.parametrize(
    ("old", "new", "diffs"),
    [
        (state(PROOF.model_copy(update={"valid_until": None})), INPUTS, []),
        (state(), INPUTS, ["proof"]),
        (state(PROOF.model_copy(update={"valid_until": None})), {**INPUTS, "nodes": 3}, ["nodes"]),
        (INPUTS, INPUTS, ["proof"]),
    ],
    ids=["proven", "too old", "declared otherwise", "never proven"],
)
def test_diff_is_about_inputs_and_about_the_age_of_the_proof(
    tmp_path: Path, old: dict[str, Any], new: dict[str, Any], diffs: list[str]
) -> None:
    """START, when the proof was made, lies in the past by more than the proof is valid."""
    assert START.year == 2026
    request = provider_pb2.DiffRequest(urn=GATE, olds=encode(old), old_inputs=encode(INPUTS), news=encode(new))
    answer = serve(tmp_path, lambda stub: stub.Diff(request))
    assert list(answer.diffs) == diffs
    assert not answer.replaces


def test_unreachable_cluster_is_an_init_error_of_create_with_its_proof_recorded(tmp_path: Path) -> None:
    kubeconfig = json.dumps(
        {
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )
    inputs = {**INPUTS, "kubeconfig": kubeconfig, "withinSeconds": 5, "stableSeconds": 1, "plugins": []}
    request = provider_pb2.CreateRequest(urn=GATE, properties=encode(inputs))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        serve(tmp_path, lambda stub: stub.Create(request))
    assert caught.value.code() is grpc.StatusCode.UNKNOWN
    assert "no connection to the API server" in str(caught.value.details())
    assert any(key == "grpc-status-details-bin" for key, _ in caught.value.trailing_metadata() or ())


IN_FUTURE = {**INPUTS, "starts": "2999-01-01T00:00:00Z", "acceptDeferred": None}


def test_gate_waits_for_capacity_that_has_not_begun(tmp_path: Path) -> None:
    request = provider_pb2.CreateRequest(urn=GATE, properties=encode(IN_FUTURE))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        serve(tmp_path, lambda stub: stub.Create(request))
    said = str(caught.value.details())
    assert f"fabric not proven on {EXPECTED.label}: deferred until 2999-01-01 00:00 UTC" in said
    assert "run `pulumi up` at 2999-01-01 00:00 UTC or later" in said


def test_reason_lets_the_stack_complete_unproven_and_a_read_keeps_silent(tmp_path: Path) -> None:
    inputs = {**IN_FUTURE, "acceptDeferred": "the block begins on new year"}
    request = provider_pb2.CreateRequest(urn=GATE, properties=encode(inputs))
    answer = serve(tmp_path, lambda stub: stub.Create(request))
    recorded = decode(answer.properties)
    assert recorded["proven"] is False
    assert Proof.model_validate(recorded["proof"]).warnings == ('completed unproven: "the block begins on new year"',)
    read = provider_pb2.ReadRequest(urn=GATE, id=answer.id, inputs=encode(inputs), properties=encode(recorded))
    assert serve(tmp_path, lambda stub: stub.Read(read)).id == answer.id
    diff = provider_pb2.DiffRequest(urn=GATE, olds=encode(recorded), old_inputs=encode(inputs), news=encode(INPUTS))
    assert "proof" in serve(tmp_path, lambda stub: stub.Diff(diff)).diffs, "proven as soon as it can be"


def test_guard_refuses_after_a_declaration_and_lets_go_without_one(tmp_path: Path) -> None:
    guard = {
        "pool": "h100",
        "generation": "1",
        "nodeSelector": {"a": "b"},
        "resources": ["nvidia.com/gpu"],
        "onDestroy": "refuse",
        "kubeconfig": "not a kubeconfig",
    }
    declaration = provider_pb2.CheckRequest(urn=DECLARATION, news=encode({"site": "s", "generations": {"h100": "2"}}))
    delete = provider_pb2.DeleteRequest(urn=GUARD, id="h100-1", properties=encode(guard))

    async def retire(stub: Any) -> str:
        await stub.Check(declaration)
        try:
            await stub.Delete(delete)
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
            return str(error.details())
        return "deleted"

    assert "generation 1 is kept: the declared generation, 2, was not proven" in serve(tmp_path, retire)

    async def destroy(stub: Any) -> str:
        try:
            await stub.Delete(delete)
        except grpc.aio.AioRpcError as error:
            return str(error.details())
        return "deleted"

    refusal = serve(tmp_path / "another-run", destroy)
    assert "its cluster cannot be read" in refusal
    assert "not a kubeconfig" not in refusal


def test_guard_of_an_unreadable_cluster_goes_when_it_is_allowed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUMBLINE_DELETE_UNSEEN", "yes")
    guard = {
        "pool": "h100",
        "generation": "1",
        "nodeSelector": {"a": "b"},
        "resources": [],
        "onDestroy": "refuse",
        "kubeconfig": "{}",
    }
    serve(
        tmp_path,
        lambda stub: stub.Delete(provider_pb2.DeleteRequest(urn=GUARD, id="h100-1", properties=encode(guard))),
    )


def test_provider_is_never_replaced(tmp_path: Path) -> None:
    request = provider_pb2.DiffRequest(urn="u", olds=encode({"version": "1"}), news=encode({"version": "2"}))
    answer = serve(tmp_path, lambda stub: stub.DiffConfig(request))
    assert answer.changes == provider_pb2.DiffResponse.DIFF_NONE
    assert not answer.replaces


def test_unknown_kind_is_refused_by_name(tmp_path: Path) -> None:
    request = provider_pb2.CheckRequest(urn="urn:pulumi:d::p::plumbline:index:Gate::x", news=encode({}))
    with pytest.raises(grpc.aio.AioRpcError, match="no resource kind plumbline:index:Gate"):
        serve(tmp_path, lambda stub: stub.Check(request))
