"""AWS's own API over HTTP, for programs that ask by an SDK: the protocols, and who may ask.

Requests are read and answers are written by the service models that AWS publishes, through moto, which is slow to
import: that happens at the first request, not when the daemon starts.
"""

from __future__ import annotations

import asyncio
import re
import uuid
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from aiohttp import web

from twin.aws.describe import OPERATIONS, ApiError, Asked
from twin.aws.existing import start_if_asked
from twin.aws.facts import account_in
from twin.credentials import ACCESS_KEY
from twin.world import World

if TYPE_CHECKING:
    from moto.core.model import OperationModel, ServiceModel

_SCOPE = re.compile(r"Credential=(?P<key>[^/,]+)/\d{8}/(?P<region>[^/,]+)/(?P<service>[^/,]+)/aws4_request")
_UNSIGNED = {"2016-11-15": "ec2", "2011-06-15": "sts"}
"""The service of a request that says only its API version."""


def application(world: World) -> web.Application:
    """An application that answers as AWS does, for one world. It also notes when the account was first seen."""
    account_in(world.store)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", _Api(world).answer)
    return app


@dataclass(frozen=True)
class _Request:
    """What a request says, before the service's model reads it."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: Mapping[str, str]
    body: bytes

    @property
    def form(self) -> list[tuple[str, str]]:
        """Of a request of the query protocols."""
        return parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True)


class _Api:
    """Answers requests of any service that AWS has a model of; it simulates a few of their operations."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._models: dict[str, _Service | None] = {}
        self._lock = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.Response:
        """Answer one request."""
        said = _Request(
            method=request.method,
            path=request.raw_path.split("?")[0],
            query=[(key, str(value)) for key, value in request.query.items()],
            headers=request.headers,
            body=await request.read(),
        )
        scope = _SCOPE.search(said.headers.get("Authorization", ""))
        name = scope["service"] if scope else _UNSIGNED.get(dict(said.form).get("Version", ""), "eks")
        service = await self._service(name)
        if service is None:
            text = f"the rehearsal does not simulate the service {name}; it simulates {', '.join(OPERATIONS)}"
            return web.json_response({"__type": "UnsupportedOperation", "message": text}, status=400)
        if name == "eks" and said.path.startswith("/clusters/"):
            await start_if_asked(self._world, said.path.split("/")[2])
        return service.answer(self._world, said, scope)

    async def _service(self, name: str) -> _Service | None:
        async with self._lock:
            if name not in self._models:
                self._models[name] = await asyncio.to_thread(_Service.load, name)
        return self._models[name]


class _Service:
    """One service, by its model."""

    def __init__(self, name: str, model: ServiceModel) -> None:
        self._name = name
        self._model = model
        self._routes = [
            (operation.http["method"], _route(operation.http["requestUri"]), operation.name)
            for operation in map(model.operation_model, model.operation_names)
            if model.protocol.startswith("rest")
        ]

    @staticmethod
    def load(name: str) -> _Service | None:
        """A service by the name that requests to it are signed with; None where no model has that name."""
        from botocore.exceptions import UnknownServiceError
        from moto.core.loaders import create_loader
        from moto.core.model import ServiceModel

        # Moto wonders about codes that are in no model, which those of a whole account are not.
        warnings.filterwarnings("ignore", message=".*does not match an error shape", module="moto")
        try:
            return _Service(name, ServiceModel(create_loader().load_service_model(name, "service-2"), name))
        except UnknownServiceError:
            return None

    def answer(self, world: World, said: _Request, scope: re.Match[str] | None) -> web.Response:
        """Answer in the service's protocol."""
        operation, in_path = self._operation(said)
        known = operation if operation in self._model.operation_names else self._model.operation_names[0]
        model = self._model.operation_model(known)
        try:
            region = self._allowed(world, scope)
            simulated = OPERATIONS.get(self._name, {})
            if operation not in simulated:
                text = f"the rehearsal does not simulate {self._name}:{operation}"
                some = f"; it simulates {', '.join(simulated)}" if simulated else ""
                raise ApiError("UnsupportedOperation", text + some)
            parameters = self._parameters(model, said, in_path)
            if parameters.get("DryRun"):
                raise ApiError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
            return self._written(model, simulated[operation](Asked(world, region, parameters)))
        except ApiError as error:
            return self._written(model, error)

    def _operation(self, said: _Request) -> tuple[str, dict[str, str]]:
        """The name of the operation, and the parameters that are parts of the path."""
        if self._model.protocol in ("ec2", "query"):
            return dict(said.form).get("Action", ""), {}
        if self._model.protocol == "json":
            return said.headers.get("X-Amz-Target", "").split(".")[-1], {}
        for method, route, name in self._routes:
            if method == said.method and (found := route.fullmatch(said.path)):
                return name, {key: unquote(value) for key, value in found.groupdict().items()}
        return f"{said.method} {said.path}", {}

    def _allowed(self, world: World, scope: re.Match[str] | None) -> str:
        """The region of a request that was signed with the rehearsal's key, for a region that the account has.

        Raises:
            ApiError: as the service says it.
        """
        protocol = self._model.protocol
        if scope is None:
            raise ApiError(*_NOT_SIGNED.get(protocol, _NOT_SIGNED["rest-json"]))
        if scope["key"] != ACCESS_KEY or scope["region"] not in account_in(world.store).zones:
            raise ApiError(*_NOT_KNOWN.get(protocol, _NOT_KNOWN["rest-json"]))
        return scope["region"]

    def _parameters(self, model: OperationModel, said: _Request, in_path: dict[str, str]) -> dict[str, Any]:
        from moto.core.parse import PROTOCOL_PARSERS
        from werkzeug.datastructures import Headers, MultiDict

        form = said.form if self._model.protocol in ("ec2", "query") else said.query
        try:
            parsed: dict[str, Any] = PROTOCOL_PARSERS[self._model.protocol](model).parse(
                {
                    "body": said.body,
                    "headers": Headers(list(said.headers.items())),
                    "method": said.method,
                    "url_params": in_path,
                    "url_path": said.path,
                    "values": MultiDict(form),
                }
            )
        except ValueError as error:
            raise ApiError("InvalidParameterValue", str(error)) from None
        return parsed

    def _written(self, model: OperationModel, result: Mapping[str, Any] | ApiError) -> web.Response:
        from moto.core.serialize import SerializationContext, get_serializer_class

        request_id = str(uuid.uuid4())
        writer = get_serializer_class(self._name, self._model.protocol)(model, SerializationContext(request_id))
        answer = writer.serialize(result)
        body = answer["body"]
        return web.Response(
            status=result.status if isinstance(result, ApiError) else answer["status_code"],
            headers={**answer["headers"], "x-amzn-RequestId": request_id},
            body=body.encode() if isinstance(body, str) else body,
        )


def _route(uri: str) -> re.Pattern[str]:
    """`/clusters/{name}` as a pattern; `{path+}` goes over several parts."""
    parts = re.split(r"({[^}]+})", uri.split("?")[0])
    return re.compile("".join(_part(part) for part in parts))


def _part(part: str) -> str:
    if not part.startswith("{"):
        return re.escape(part)
    name = part.strip("{}")
    # A name of the path is written as the model has it, which a group of a pattern cannot always be named like.
    group, width = re.sub(r"\W", "_", name.removesuffix("+")), ".+" if name.endswith("+") else "[^/]+"
    return f"(?P<{group}>{width})"


_NOT_KNOWN = {
    "ec2": ("AuthFailure", "AWS was not able to validate the provided access credentials", 401),
    "query": ("InvalidClientTokenId", "The security token included in the request is invalid.", 403),
    "rest-json": ("UnrecognizedClientException", "The security token included in the request is invalid.", 403),
}
_NOT_SIGNED = {
    "ec2": ("MissingParameter", "The request must contain the parameter AWSAccessKeyId", 400),
    "query": ("MissingAuthenticationToken", "Request is missing Authentication Token", 403),
    "rest-json": ("MissingAuthenticationTokenException", "Missing Authentication Token", 403),
}
"""What each protocol's services say to a key that they do not know, also in a region that the account does not have,
and to a request without one: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html and
https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html
"""
