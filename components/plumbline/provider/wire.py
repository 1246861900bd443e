"""Property bags as they travel between engine and provider: plain values, with secrets and unknowns marked.

https://github.com/pulumi/pulumi/blob/master/sdk/python/lib/pulumi/runtime/rpc.py
"""

from collections.abc import Collection, Mapping
from typing import Any

import grpc
from google.protobuf import json_format, struct_pb2
from pulumi.runtime import rpc
from pulumi.runtime.proto import provider_pb2, status_pb2

UNKNOWN: str = rpc.UNKNOWN
"""Stands for a value that is known only after something else was created."""

_SIGNATURE = rpc._special_sig_key
_SECRET = rpc._special_secret_sig


def decode(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Plain values; secrets are unwrapped, unknowns stay as `UNKNOWN`."""
    return {key: _plain(value) for key, value in json_format.MessageToDict(struct).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if value.get(_SIGNATURE) == _SECRET:
            return _plain(value.get("value"))
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


def encode(values: Mapping[str, Any], secret: Collection[str] = ()) -> struct_pb2.Struct:
    """A property bag; the keys in `secret` are marked as secrets."""
    struct = struct_pb2.Struct()
    wrapped = {
        key: {_SIGNATURE: _SECRET, "value": value} if key in secret and value != UNKNOWN else value
        for key, value in values.items()
    }
    json_format.ParseDict(wrapped, struct)
    return struct


def has_unknown(value: Any) -> bool:
    """Whether an unknown lies anywhere in the value."""
    if isinstance(value, Mapping):
        return any(has_unknown(each) for each in value.values())
    if isinstance(value, list):
        return any(has_unknown(each) for each in value)
    return bool(value == UNKNOWN)


class InitFailed(Exception):
    """The resource exists, with these properties, and is not as it has to be: the engine records both."""

    def __init__(self, id_: str, properties: struct_pb2.Struct, inputs: struct_pb2.Struct, reason: str) -> None:
        super().__init__(reason)
        self.id = id_
        self.properties = properties
        self.inputs = inputs
        self.reason = reason

    async def abort(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        """End the call with the error detail that the engine understands."""
        detail = provider_pb2.ErrorResourceInitFailed(
            id=self.id,
            properties=self.properties,
            inputs=self.inputs,
            reasons=[self.reason],
            refresh_before_update=True,
        )
        code: int = grpc.StatusCode.UNKNOWN.value[0]
        status = status_pb2.Status(code=code, message=self.reason)
        status.details.add().Pack(detail)
        metadata = (("grpc-status-details-bin", status.SerializeToString()),)
        await context.abort(grpc.StatusCode.UNKNOWN, self.reason, metadata)
