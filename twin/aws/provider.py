"""The engine's protocol for the simulated AWS. One servicer answers all engine-side instances, each by its region."""

import json
import secrets
from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from twin.aws.existing import start_if_asked
from twin.aws.facts import account
from twin.aws.kinds import KINDS, Call, Kind, Values
from twin.aws.lookups import CLUSTER_LOOKUP, LOOKUPS, NothingFound, Query
from twin.aws.node_groups import NODE_GROUP, Kept
from twin.aws.refusal import Refusal
from twin.aws.wire import UNKNOWN, decode, encode
from twin.aws.words import wrong_words
from twin.world import World

Context = grpc.aio.ServicerContext[Any, Any]
VERSION = "7.51.1"
_DEFAULTS = "__defaults"
"""The input in which pulumi-terraform-bridge keeps the names of inputs that it made up."""
_ALL: Mapping[str, Kind] = {**KINDS, NODE_GROUP.token: NODE_GROUP}


class AwsServicer(provider_pb2_grpc.ResourceProviderServicer):
    """Serves every instance of the provider in every engine of a rehearsal."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._regions: dict[str, str] = {}

    # --- the provider itself -------------------------------------------------------------------------------------

    async def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: Context
    ) -> provider_pb2.ProviderHandshakeResponse:
        """What both sides can do."""
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    async def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> empty_pb2.Empty:
        """An engine that found this by PULUMI_DEBUG_PROVIDERS."""
        return empty_pb2.Empty()

    async def GetPluginInfo(self, request: empty_pb2.Empty, context: Context) -> plugin_pb2.PluginInfo:
        """The version whose SDK is locked."""
        return plugin_pb2.PluginInfo(version=VERSION)

    async def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: Context
    ) -> provider_pb2.GetSchemaResponse:
        """Names only."""
        return provider_pb2.GetSchemaResponse(schema=json.dumps({"name": "aws", "version": VERSION}))

    async def CheckConfig(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        """A region is needed, as the real provider needs one."""
        config, _ = decode(request.news)
        metadata = _metadata(context)
        region = config.get("region") or metadata.get("env-aws-region") or metadata.get("env-aws-default-region")
        if not region:
            failure = provider_pb2.CheckFailure(
                property="region", reason="missing required configuration key aws:region"
            )
            return provider_pb2.CheckResponse(inputs=request.news, failures=[failure])
        if region != UNKNOWN and region not in account().zones:
            reason = f"invalid AWS Region: {region}; the rehearsal's account has {', '.join(account().zones)}"
            failure = provider_pb2.CheckFailure(property="region", reason=reason)
            return provider_pb2.CheckResponse(inputs=request.news, failures=[failure])
        return provider_pb2.CheckResponse(inputs=request.news)

    async def DiffConfig(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        """Another region is another provider."""
        old, new = decode(request.old_inputs)[0], decode(request.news)[0]
        changed = sorted(key for key in {*old, *new} - {"version"} if old.get(key) != new.get(key))
        kinds = provider_pb2.DiffResponse
        return provider_pb2.DiffResponse(
            changes=kinds.DIFF_SOME if changed else kinds.DIFF_NONE,
            diffs=changed,
            replaces=[key for key in changed if key == "region"],
        )

    async def Configure(
        self, request: provider_pb2.ConfigureRequest, context: Context
    ) -> provider_pb2.ConfigureResponse:
        """Learn the region of this instance."""
        config, _ = decode(request.args)
        metadata = _metadata(context)
        region = config.get("region") or metadata.get("env-aws-region") or metadata.get("env-aws-default-region")
        self._regions[metadata.get("plumbline-instance", "")] = str(region)
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    async def Cancel(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:
        """Operations here are short: they end by themselves."""
        return empty_pb2.Empty()

    async def Invoke(self, request: provider_pb2.InvokeRequest, context: Context) -> provider_pb2.InvokeResponse:
        """Data sources; one that finds nothing fails, as Terraform's do."""
        if request.tok not in LOOKUPS:
            text = f"the rehearsal does not simulate {request.tok}; it simulates {', '.join(LOOKUPS)}"
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        asked, _ = decode(request.args)
        query = Query(world=self._world, region=self._region(context, asked), asked=asked)
        if request.tok == CLUSTER_LOOKUP:
            await start_if_asked(self._world, asked.get("name"))
        try:
            found = LOOKUPS[request.tok](query)
        except NothingFound as error:
            text = f"invoking {request.tok}: 1 error occurred:\n\t* {error}\n\n"
            await context.abort(grpc.StatusCode.UNKNOWN, text)
            raise
        answer: dict[str, Any] = {"return": encode(found)}  # a name that Python keeps for itself
        return provider_pb2.InvokeResponse(**answer)

    # --- resources -----------------------------------------------------------------------------------------------

    async def Check(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        """What is missing; and a physical name where the program gives none, kept from then on."""
        kind = await self._kind(request.urn, context)
        inputs, secret = decode(request.news)
        olds, _ = decode(request.olds)
        made_up = bool(kind.named) and not inputs.get(kind.named) and not inputs.get(f"{kind.named}Prefix")
        inputs[_DEFAULTS] = [kind.named] if made_up else []
        if made_up:
            name = f"{request.urn.split('::')[-1]}-{secrets.token_hex(4)[:7]}"
            inputs[kind.named] = olds.get(kind.named) or kind.made_up.format(name=name)
        failures = [
            provider_pb2.CheckFailure(
                property=name, reason=f'Missing required argument. The argument "{name}" is required'
            )
            for name in kind.required
            if inputs.get(name) in (None, "", [])
        ]
        failures += [
            provider_pb2.CheckFailure(property=path, reason=reason)
            for path, reason in wrong_words(kind.token, inputs).items()
        ]
        failures += [
            provider_pb2.CheckFailure(property=path, reason=reason)
            for check in kind.checks
            for path, reason in check(inputs)
        ]
        return provider_pb2.CheckResponse(inputs=encode(inputs, secret), failures=failures)

    async def Diff(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        """Compare what was asked for with what is asked for."""
        kind = await self._kind(request.urn, context)
        old, new = decode(request.old_inputs)[0], decode(request.news)[0]
        fixed_name = kind.named in new and _DEFAULTS in new and kind.named not in new[_DEFAULTS]
        ignored = {*request.ignoreChanges, _DEFAULTS}
        old, new = {**kind.defaults, **old}, {**kind.defaults, **new}
        changed = sorted(name for name in {*old, *new} - ignored if _plain(old.get(name)) != _plain(new.get(name)))
        kinds = provider_pb2.DiffResponse
        return provider_pb2.DiffResponse(
            changes=kinds.DIFF_SOME if changed else kinds.DIFF_NONE,
            diffs=changed,
            replaces=(replaces := sorted(set(kind.replaced(old, new, changed)) & set(changed))),
            # `nameRequiresDeleteBeforeReplace` of pulumi-terraform-bridge: two cannot have one name.
            deleteBeforeReplace=bool(replaces) and fixed_name,
        )

    async def Create(self, request: provider_pb2.CreateRequest, context: Context) -> provider_pb2.CreateResponse:
        """Make it, or refuse as AWS does."""
        kind = await self._kind(request.urn, context)
        inputs, secret = decode(request.properties)
        inputs.pop(_DEFAULTS, None)
        if request.preview:
            return provider_pb2.CreateResponse(properties=encode(kind.preview(inputs), secret))
        try:
            id_, outputs = await kind.create(self._call(kind, kind.named_inputs(inputs, {}), context))
        except Refusal as refusal:
            await context.abort(grpc.StatusCode.UNKNOWN, str(refusal))
            raise
        except Kept as kept:
            await _abort_kept(context, kept, request.properties)
            raise
        return provider_pb2.CreateResponse(id=id_, properties=encode(outputs, secret))

    async def Read(self, request: provider_pb2.ReadRequest, context: Context) -> provider_pb2.ReadResponse:
        """The truth; an empty id for what is gone."""
        kind = await self._kind(request.urn, context)
        inputs, secret = decode(request.inputs)
        outputs = await kind.read(self._call(kind, inputs, context), request.id)
        if outputs is None:
            return provider_pb2.ReadResponse()
        defaults = {_DEFAULTS: inputs.pop(_DEFAULTS)} if _DEFAULTS in inputs else {}
        asked = {**_as_asked(inputs, outputs), **defaults} if inputs else kind.asked(outputs)
        return provider_pb2.ReadResponse(
            id=request.id, properties=encode(outputs, secret), inputs=encode(asked, secret)
        )

    async def Update(self, request: provider_pb2.UpdateRequest, context: Context) -> provider_pb2.UpdateResponse:
        """Change it in place."""
        kind = await self._kind(request.urn, context)
        inputs, secret = decode(request.news)
        old_inputs, _ = decode(request.old_inputs)
        inputs.pop(_DEFAULTS, None)
        old_inputs.pop(_DEFAULTS, None)
        removed = {*old_inputs} - {*inputs} - {*kind.computed, *kind.defaulted}
        state = _without(decode(request.olds)[0], removed)
        if request.preview:
            changed = frozenset(n for n in {*old_inputs, *inputs} if _plain(old_inputs.get(n)) != _plain(inputs.get(n)))
            return provider_pb2.UpdateResponse(properties=encode(kind.preview_change(inputs, state, changed), secret))
        call = self._call(kind, kind.named_inputs(inputs, state), context, old_inputs, request.id)
        try:
            found = await kind.read(call, request.id)
            if found is None:
                raise kind.not_found(call, request.id)
            outputs = await kind.update(call, request.id, _without(found, removed))
        except Refusal as refusal:
            await context.abort(grpc.StatusCode.UNKNOWN, str(refusal))
            raise
        except Kept as kept:
            await _abort_kept(context, kept, request.news)
            raise
        return provider_pb2.UpdateResponse(properties=encode(outputs, secret))

    async def Delete(self, request: provider_pb2.DeleteRequest, context: Context) -> empty_pb2.Empty:
        """Take it away, unless something holds it."""
        kind = await self._kind(request.urn, context)
        try:
            await kind.delete(self._call(kind, decode(request.properties)[0], context), request.id)
        except Refusal as refusal:
            await context.abort(grpc.StatusCode.UNKNOWN, str(refusal))
        return empty_pb2.Empty()

    async def _kind(self, urn: str, context: Context) -> Kind:
        token = urn.split("::")[2].split("$")[-1]
        if token not in _ALL:
            text = f"the rehearsal does not simulate {token}; it simulates {', '.join(sorted(_ALL))}"
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        return _ALL[token]

    def _call(
        self, kind: Kind, inputs: Values, context: Context, old_inputs: Values | None = None, id_: str = ""
    ) -> Call:
        region = self._region(context, inputs)
        return Call(world=self._world, region=region, kind=kind, inputs=inputs, old_inputs=old_inputs or {}, id=id_)

    def _region(self, context: Context, inputs: Values) -> str:
        """Of the resource, or of the provider's instance."""
        return str(inputs.get("region") or self._regions[_metadata(context).get("plumbline-instance", "")])


def _metadata(context: Context) -> dict[str, str]:
    return {str(key): str(value) for key, value in context.invocation_metadata() or ()}


def _plain(value: Any) -> Any:
    """Without what says nothing: empty parts are as good as absent ones."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items() if each not in (None, [], {})} or None
    return [_plain(each) for each in value] or None if isinstance(value, list) else value


def _without(values: Values, names: set[str]) -> Values:
    return {name: value for name, value in values.items() if name not in names}


def _as_asked(asked: Any, found: Any) -> Any:
    """What was found, as far as it was asked for: what AWS decides beside it is no input."""
    if isinstance(asked, Mapping) and isinstance(found, Mapping):
        return {name: _as_asked(value, found[name]) for name, value in asked.items() if name in found}
    return found


async def _abort_kept(context: Context, kept: Kept, inputs: struct_pb2.Struct) -> None:
    """As the Terraform bridge ends a create that failed after the resource was made."""
    detail = provider_pb2.ErrorResourceInitFailed(
        id=kept.id, properties=encode(kept.outputs), inputs=inputs, reasons=[str(kept)]
    )
    status = status_pb2.Status(code=int(grpc.StatusCode.UNKNOWN.value[0]), message=str(kept))
    status.details.add().Pack(detail)
    await context.abort(grpc.StatusCode.UNKNOWN, str(kept), (("grpc-status-details-bin", status.SerializeToString()),))
