"""Our provider's process, driven as the engine drives it, without an engine."""

import subprocess
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from plumbline.provider.wire import decode, encode


@dataclass(frozen=True)
class Failed:
    """An operation that ended as InitFailed."""

    reason: str
    properties: dict[str, Any]


class GateProcess:
    """`pulumi-resource-plumbline` with one gate in it."""

    def __init__(self, environment: dict[str, str], urn: str, inputs: dict[str, Any]) -> None:
        self._urn = urn
        self._inputs = inputs
        command = [sys.executable, "-m", "plumbline.provider"]
        self._process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        port = self._process.stdout.readline().strip()
        # The engine, a Go program, takes 16 MiB of metadata; Python's client takes 8 KiB unless it is told.
        options = [("grpc.max_metadata_size", 16 * 1024 * 1024), ("grpc.absolute_max_metadata_size", 16 * 1024 * 1024)]
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", options)
        self._stub = provider_pb2_grpc.ResourceProviderStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()
        self._process.terminate()
        assert self._process.wait(10) == 0

    def _asked(self, within: float, stable: float) -> dict[str, Any]:
        return {**self._inputs, "withinSeconds": within, "stableSeconds": stable}

    def prove(self, *, within: float, stable: float) -> dict[str, Any]:
        """Properties of a gate that passed."""
        properties = encode(self._asked(within, stable))
        answer = self._stub.Create(provider_pb2.CreateRequest(urn=self._urn, properties=properties))
        assert answer.refresh_before_update
        return decode(answer.properties)

    def retire(self, on_destroy: str, *, within: float) -> str:
        """Delete a guard of the gate's pool, as a plain destroy does. Returns its refusal; empty if it let go."""
        resources = sorted(self._inputs["resources"])
        guard = {key: self._inputs[key] for key in ("pool", "generation", "nodeSelector", "kubeconfig")}
        properties = encode({**guard, "resources": resources, "onDestroy": on_destroy, "withinSeconds": within})
        urn = "urn:pulumi:local::plumbline::plumbline:index:RetireGuard::guard"
        try:
            self._stub.Delete(provider_pb2.DeleteRequest(urn=urn, id="guard", properties=properties))
        except grpc.RpcError as error:
            refused: Any = error
            assert refused.code() is grpc.StatusCode.FAILED_PRECONDITION
            return str(refused.details())
        return ""

    def until_proven(self, *, within: float, stable: float) -> dict[str, Any]:
        """Properties of a gate that passed. What is mended takes a moment to be felt: until then it may fail again."""
        for _ in range(5):
            try:
                return self.prove(within=within, stable=stable)
            except grpc.RpcError as error:
                last = _failed(error).reason
        raise AssertionError(f"the gate failed five times with the fault off: {last}")

    def until_failed(self, *, within: float, stable: float) -> Failed:
        """How the gate fails. A fault takes a moment to bite: until it has, the gate may pass."""
        for _ in range(20):
            try:
                self.prove(within=within, stable=stable)
            except grpc.RpcError as error:
                return _failed(error)
        raise AssertionError("the gate passed twenty times with the fault on")

    def read(self, state: dict[str, Any]) -> Failed:
        """How a read finds a gate that is not as it was proven."""
        request = provider_pb2.ReadRequest(
            id="gate", urn=self._urn, properties=encode(state), inputs=encode(self._asked(30, 1))
        )
        try:
            self._stub.Read(request)
        except grpc.RpcError as error:
            return _failed(error)
        raise AssertionError("the read found nothing")


def _failed(error: Any) -> Failed:
    details = dict(error.trailing_metadata())
    status = status_pb2.Status.FromString(details["grpc-status-details-bin"])
    failed = provider_pb2.ErrorResourceInitFailed()
    assert status.details[0].Unpack(failed)
    assert failed.refresh_before_update
    assert list(failed.reasons) == [error.details()]
    return Failed(failed.reasons[0], decode(failed.properties))
