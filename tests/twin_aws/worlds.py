"""A world in memory for the simulated AWS, and the engine's side of its protocol."""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from twin.aws import servicer
from twin.aws.wire import decode, encode
from twin.faults import FAULTS
from twin.world import ClusterAccess, Document, Fault, Instance


class Memory:
    """A store in memory."""

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], Document] = {}

    def get(self, kind: str, id: str) -> Document | None:
        return copy.deepcopy(self.documents.get((kind, id)))

    def put(self, kind: str, id: str, document: Document) -> None:
        self.documents[kind, id] = copy.deepcopy(document)

    def delete(self, kind: str, id: str) -> None:
        self.documents.pop((kind, id), None)

    def list(self, kind: str) -> dict[str, Document]:
        return {id: copy.deepcopy(d) for (k, id), d in sorted(self.documents.items()) if k == kind}


class Imagined:
    """A world whose machines join at once."""

    def __init__(self) -> None:
        self.store = Memory()
        self.on: set[str] = set()
        self.clusters: set[str] = set()
        self.installed: dict[tuple[str, str], str] = {}
        """Images, by cluster and name."""
        self.pace = 0.0

    async def create_cluster(self, name: str, version: str) -> ClusterAccess:
        self.clusters.add(name)
        return ClusterAccess(endpoint=f"https://{name}", certificate_authority_pem="pem")

    async def delete_cluster(self, name: str) -> None:
        self.clusters.discard(name)

    async def install(self, cluster: str, name: str, image: str) -> None:
        self.installed[cluster, name] = image

    async def launch(self, instance: Instance) -> None:
        self.store.put("machine", instance.id, {**vars(instance), "labels": dict(instance.labels), "taints": []})

    async def joined(self, instance_id: str) -> bool:
        return "node-never-joins" not in self.on and self.store.get("machine", instance_id) is not None

    async def terminate(self, instance_id: str) -> None:
        self.store.delete("machine", instance_id)

    def fault(self, name: str) -> Fault | None:
        return FAULTS[name] if name in self.on else None

    def scaled(self, seconds: float) -> float:
        return seconds * self.pace


class Refused(Exception):
    """What an operation failed with."""

    def __init__(self, error: Any) -> None:
        super().__init__(error.details())
        details = dict(error.trailing_metadata() or ())
        self.kept: provider_pb2.ErrorResourceInitFailed | None = None
        if "grpc-status-details-bin" in details:
            status = status_pb2.Status.FromString(details["grpc-status-details-bin"])
            self.kept = provider_pb2.ErrorResourceInitFailed()
            assert status.details[0].Unpack(self.kept)


class Engine:
    """Calls a provider as the engine does."""

    def __init__(self, world: Imagined) -> None:
        self.world = world
        self._loop = asyncio.new_event_loop()
        self._metadata = (("plumbline-instance", "one"),)

    def start(self) -> None:
        self._server, self._stub = self._loop.run_until_complete(self._serve())
        self.ask("Configure", provider_pb2.ConfigureRequest(args=encode({"region": "us-west-2"})))

    async def _serve(self) -> tuple[grpc.aio.Server, Any]:
        server = grpc.aio.server()
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer(self.world), server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, provider_pb2_grpc.ResourceProviderStub(grpc.aio.insecure_channel(f"127.0.0.1:{port}"))

    def stop(self) -> None:
        self._loop.run_until_complete(self._server.stop(0))
        self._loop.close()

    def ask(self, method: str, request: Any) -> Any:
        call: Callable[..., Awaitable[Any]] = getattr(self._stub, method)

        async def send() -> Any:
            try:
                return await call(request, metadata=self._metadata)
            except grpc.aio.AioRpcError as error:
                raise Refused(error) from None

        return self._loop.run_until_complete(send())

    def check(self, token: str, inputs: dict[str, Any], name: str = "it") -> tuple[dict[str, Any], dict[str, str]]:
        answer = self.ask("Check", provider_pb2.CheckRequest(urn=_urn(token, name), news=encode(inputs)))
        return decode(answer.inputs)[0], {failure.property: failure.reason for failure in answer.failures}

    def create(self, token: str, preview: bool = False, **inputs: Any) -> tuple[str, dict[str, Any]]:
        checked, failures = self.check(token, inputs)
        assert not failures, failures
        request = provider_pb2.CreateRequest(urn=_urn(token), properties=encode(checked), preview=preview)
        answer = self.ask("Create", request)
        return answer.id, decode(answer.properties)[0]

    def create_at_once(self, token: str, all_inputs: list[dict[str, Any]]) -> list[Exception | None]:
        """Several creations in flight together, as the engine makes what does not depend on each other."""

        async def one(inputs: dict[str, Any]) -> Exception | None:
            request = provider_pb2.CreateRequest(urn=_urn(token), properties=encode(inputs))
            try:
                await self._stub.Create(request, metadata=self._metadata)
            except grpc.aio.AioRpcError as error:
                return Refused(error)
            return None

        async def together() -> list[Exception | None]:
            return list(await asyncio.gather(*map(one, all_inputs)))

        return self._loop.run_until_complete(together())

    def update(
        self,
        token: str,
        id_: str,
        olds: dict[str, Any],
        news: dict[str, Any],
        old_inputs: dict[str, Any] | None = None,
        preview: bool = False,
    ) -> dict[str, Any]:
        request = provider_pb2.UpdateRequest(
            urn=_urn(token),
            id=id_,
            olds=encode(olds),
            news=encode(news),
            old_inputs=encode(olds if old_inputs is None else old_inputs),
            preview=preview,
        )
        return decode(self.ask("Update", request).properties)[0]

    def inputs_read(self, token: str, id_: str, inputs: dict[str, Any] | None = None) -> dict[str, Any]:
        """What a refresh makes of inputs; with none, what an import makes of them."""
        request = provider_pb2.ReadRequest(urn=_urn(token), id=id_)
        if inputs is not None:
            request = provider_pb2.ReadRequest(urn=_urn(token), id=id_, inputs=encode(inputs))
        return decode(self.ask("Read", request).inputs)[0]

    def outputs_read(self, token: str, id_: str) -> dict[str, Any]:
        """What a program gets that names a resource by its id."""
        return decode(self.ask("Read", provider_pb2.ReadRequest(urn=_urn(token), id=id_)).properties)[0]

    def look_up(self, token: str, **asked: Any) -> dict[str, Any]:
        answer = self.ask("Invoke", provider_pb2.InvokeRequest(tok=token, args=encode(asked)))
        return decode(getattr(answer, "return"))[0]

    def read(self, token: str, id_: str) -> str:
        return str(self.ask("Read", provider_pb2.ReadRequest(urn=_urn(token), id=id_)).id)

    def delete(self, token: str, id_: str) -> None:
        self.ask("Delete", provider_pb2.DeleteRequest(urn=_urn(token), id=id_, properties=encode({})))

    def replaces(self, token: str, olds: dict[str, Any], news: dict[str, Any]) -> tuple[list[str], list[str]]:
        request = provider_pb2.DiffRequest(
            urn=_urn(token), id="x", olds=encode(olds), old_inputs=encode(olds), news=encode(news)
        )
        answer = self.ask("Diff", request)
        return list(answer.diffs), list(answer.replaces)

    def deletes_first(self, token: str, olds: dict[str, Any], news: dict[str, Any]) -> bool:
        request = provider_pb2.DiffRequest(
            urn=_urn(token), id="x", olds=encode(olds), old_inputs=encode(olds), news=encode(news)
        )
        return bool(self.ask("Diff", request).deleteBeforeReplace)


def _urn(token: str, name: str = "it") -> str:
    return f"urn:pulumi:dev::p::{token}::{name}"


@contextmanager
def engine() -> Iterator[Engine]:
    """An engine with the simulated AWS in an empty account."""
    running = Engine(Imagined())
    running.start()
    try:
        yield running
    finally:
        running.stop()
