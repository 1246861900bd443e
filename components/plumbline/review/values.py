"""Inputs of resources as the engine has them in preview: plain values, some of which are not known yet."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

Json = Mapping[str, Any]


class Unknown(Enum):
    """The type of `UNKNOWN`: an enumeration, of which a copy is the same."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN
"""Stands for a value that is known only after something else was created. No rule finds anything in it."""

# How the engine marks values in a property bag.
# https://github.com/pulumi/pulumi/blob/master/sdk/python/lib/pulumi/runtime/rpc.py
_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - the mark of a secret, not one
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


def from_engine(value: Any) -> Any:
    """Plain values from the engine's: its mark of an unknown becomes `UNKNOWN` at any depth, secrets are unwrapped."""
    if value == _UNKNOWN:
        return UNKNOWN
    if isinstance(value, Mapping):
        match value.get(_SIGNATURE):
            case signature if signature == _SECRET:
                return from_engine(value.get("value"))
            case signature if signature == _OUTPUT:
                return from_engine(value["value"]) if "value" in value else UNKNOWN
        return {key: from_engine(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [from_engine(each) for each in value]
    return value


def look(value: Any, *path: str | int) -> Any:
    """What is at the path: None where there is nothing, `UNKNOWN` where it, or what it would be in, is unknown."""
    for part in path:
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(part, int):
            value = value[part] if isinstance(value, list | tuple) and part < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def items(value: Any, *path: str | int) -> Sequence[Any]:
    """The items of the list at the path, of which each may be `UNKNOWN`; none where the list itself is unknown."""
    found = look(value, *path)
    return found if isinstance(found, list | tuple) else ()


def text(value: Any, *path: str | int) -> str | None:
    """The text at the path, if it is known and not empty."""
    found = look(value, *path)
    return found if isinstance(found, str) and found else None


def number(value: Any, *path: str | int) -> int | None:
    """The whole number at the path, which the engine has as a float and manifests have as text; None for no number."""
    found = look(value, *path)
    if isinstance(found, bool):
        return None
    if isinstance(found, int) or (isinstance(found, float) and found.is_integer()):
        return int(found)
    return int(found) if isinstance(found, str) and found.lstrip("-").isdigit() else None


def is_true(value: Any, *path: str | int) -> bool:
    """Whether the value at the path is known to be true, which some properties say in a string."""
    return look(value, *path) in (True, "true")


def has_unknown(value: Any) -> bool:
    """Whether anything in the value is unknown."""
    if isinstance(value, Mapping):
        return any(has_unknown(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(has_unknown(each) for each in value)
    return value is UNKNOWN
