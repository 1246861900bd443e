"""Property bags of the engine: plain values in the middle, secrets and unknowns at the edges."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format, struct_pb2
from pulumi.runtime import rpc

UNKNOWN: str = rpc.UNKNOWN
_SIGNATURE, _SECRET = rpc._special_sig_key, rpc._special_secret_sig


def decode(struct: struct_pb2.Struct) -> tuple[dict[str, Any], frozenset[str]]:
    """Plain values, and the names of top-level properties that hold a secret somewhere."""
    raw = json_format.MessageToDict(struct)
    return {key: _plain(value) for key, value in raw.items()}, frozenset(k for k, v in raw.items() if _is_secret(v))


def _is_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return value.get(_SIGNATURE) == _SECRET or any(map(_is_secret, value.values()))
    return isinstance(value, list) and any(map(_is_secret, value))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if value.get(_SIGNATURE) == _SECRET:
            return _plain(value.get("value"))
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def encode(values: Mapping[str, Any], secret: frozenset[str] = frozenset()) -> struct_pb2.Struct:
    """A property bag; what was a secret on its way in is one on its way out."""
    struct = struct_pb2.Struct()
    wrapped = {k: {_SIGNATURE: _SECRET, "value": v} if k in secret and v != UNKNOWN else v for k, v in values.items()}
    json_format.ParseDict(wrapped, struct)
    return struct


def known(value: Any) -> bool:
    """Whether no unknown lies anywhere in the value."""
    if isinstance(value, Mapping):
        return all(map(known, value.values()))
    return all(map(known, value)) if isinstance(value, list) else value != UNKNOWN
