"""The engine's protocol, for the resource kinds of this provider.

https://github.com/pulumi/pulumi/blob/master/proto/pulumi/provider.proto
"""

import json
from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from plumbline import __version__
from plumbline.provider.declaration import Declaration
from plumbline.provider.engine import EngineLog
from plumbline.provider.gate import FabricGate
from plumbline.provider.guard import RetireGuard
from plumbline.provider.resource import SECRETS, Outcome, Refused, Resource, Values
from plumbline.provider.session import Session
from plumbline.provider.wire import InitFailed, decode, encode, has_unknown

Context = grpc.aio.ServicerContext[Any, Any]


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """One engine's provider. Replies ask for a refresh before each update, so that a gate is read anew every time."""

    def __init__(self, log: EngineLog, session: Session) -> None:
        self._session = session
        self._log = log
        self._kinds: Mapping[str, Resource] = {
            "plumbline:index:Declaration": Declaration(session),
            "plumbline:index:FabricGate": FabricGate(session),
            "plumbline:index:RetireGuard": RetireGuard(session),
        }

    # --- the provider itself -------------------------------------------------------------------------------------

    async def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: Context
    ) -> provider_pb2.ProviderHandshakeResponse:
        """What both sides can do."""
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    async def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> empty_pb2.Empty:
        """An engine that found this process by PULUMI_DEBUG_PROVIDERS."""
        self._log = EngineLog(request.address)
        return empty_pb2.Empty()

    async def GetPluginInfo(self, request: empty_pb2.Empty, context: Context) -> plugin_pb2.PluginInfo:
        """The version of this provider is that of the package."""
        return plugin_pb2.PluginInfo(version=__version__)

    async def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: Context
    ) -> provider_pb2.GetSchemaResponse:
        """A schema for tools that ask for one; the Python classes are written by hand."""
        tokens = {token: {"isComponent": False} for token in self._kinds}
        schema = {"name": "plumbline", "version": __version__, "resources": tokens}
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema))

    async def CheckConfig(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        """There is nothing to configure."""
        return provider_pb2.CheckResponse(inputs=request.news)

    async def DiffConfig(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        """Never a replacement: a replaced provider would replace every gate and guard."""
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    async def Configure(
        self, request: provider_pb2.ConfigureRequest, context: Context
    ) -> provider_pb2.ConfigureResponse:
        """There is nothing to configure."""
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    async def Cancel(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:
        """The user pressed Ctrl-C: whatever waits, ends and says so."""
        self._session.cancelled.set()
        return empty_pb2.Empty()

    # --- resources -----------------------------------------------------------------------------------------------

    async def Check(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        """All that is wrong with the inputs, at once."""
        kind = await self._kind(request.urn, context)
        inputs = decode(request.news)
        wrong = {} if has_unknown(inputs) else kind.check(inputs)
        failures = [provider_pb2.CheckFailure(property=path, reason=reason) for path, reason in sorted(wrong.items())]
        return provider_pb2.CheckResponse(inputs=_sealed(inputs), failures=failures)

    async def Diff(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        """What makes an update necessary. Nothing is ever replaced: a successor has a name of its own."""
        kind = await self._kind(request.urn, context)
        return _diff(kind.changes(decode(request.news), decode(request.old_inputs), decode(request.olds)))

    async def Create(self, request: provider_pb2.CreateRequest, context: Context) -> provider_pb2.CreateResponse:
        """Create, or fail with what was recorded."""
        kind = await self._kind(request.urn, context)
        inputs = decode(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(properties=_sealed(kind.preview(inputs)))
        outcome = await kind.create(inputs, self._log.progress(request.urn))
        await _settle(outcome, context)
        return provider_pb2.CreateResponse(
            id=outcome.id, properties=_sealed(outcome.properties), refresh_before_update=True
        )

    async def Update(self, request: provider_pb2.UpdateRequest, context: Context) -> provider_pb2.UpdateResponse:
        """Update, or fail with what was recorded."""
        kind = await self._kind(request.urn, context)
        inputs, state = decode(request.news), decode(request.olds)
        if request.preview:
            return provider_pb2.UpdateResponse(properties=_sealed(kind.preview(inputs)), refresh_before_update=True)
        say = self._log.progress(request.urn)
        outcome = await kind.update(request.id, inputs, state, say)
        await _settle(outcome, context)
        return provider_pb2.UpdateResponse(properties=_sealed(outcome.properties), refresh_before_update=True)

    async def Read(self, request: provider_pb2.ReadRequest, context: Context) -> provider_pb2.ReadResponse:
        """See what became of a resource in the state. Nothing can be imported: a proof is made, not found."""
        kind = await self._kind(request.urn, context)
        inputs, state = decode(request.inputs), decode(request.properties)
        if not state:
            return provider_pb2.ReadResponse()
        outcome = await kind.read(request.id, inputs, state)
        await _settle(outcome, context)
        return provider_pb2.ReadResponse(
            id=outcome.id,
            properties=_sealed(outcome.properties),
            inputs=_sealed(outcome.inputs),
            refresh_before_update=True,
        )

    async def Delete(self, request: provider_pb2.DeleteRequest, context: Context) -> empty_pb2.Empty:
        """Let a resource go, or refuse with a reason."""
        kind = await self._kind(request.urn, context)
        try:
            await kind.delete(request.id, decode(request.properties), self._log.progress(request.urn))
        except Refused as refusal:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refusal))
        return empty_pb2.Empty()

    async def _kind(self, urn: str, context: Context) -> Resource:
        token = urn.split("::")[2].split("$")[-1]
        if token not in self._kinds:
            known = ", ".join(self._kinds)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no resource kind {token} here; known: {known}")
        return self._kinds[token]


def _sealed(values: Values) -> Any:
    return encode(values, SECRETS)


async def _settle(outcome: Outcome, context: Context) -> None:
    """End the call as InitFailed where the resource is not as it has to be."""
    if outcome.failure is not None:
        failed = InitFailed(outcome.id, _sealed(outcome.properties), _sealed(outcome.inputs), outcome.failure)
        await failed.abort(context)


def _diff(changed: Mapping[str, str]) -> provider_pb2.DiffResponse:
    kind = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
    return provider_pb2.DiffResponse(changes=kind, diffs=sorted(changed))
