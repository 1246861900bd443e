"""Lengths of time as people write them: `90s`, `30m`, `12h`, `7d`."""

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_PATTERN = re.compile(r"(?P<count>[1-9][0-9]{0,5})(?P<unit>[smhd])")


def parse_duration(value: Any) -> timedelta:
    """A `timedelta` from a text such as `30m`; a timedelta is taken as it is.

    Raises:
        ValueError: `value` is neither.
    """
    if isinstance(value, timedelta):
        return value
    match = _PATTERN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a whole number and a unit (s, m, h or d), such as 30m")
    return timedelta(**{_UNITS[match["unit"]]: int(match["count"])})


def format_duration(value: timedelta) -> str:
    """The shortest text that `parse_duration` reads back as `value`; whole seconds only."""
    seconds = int(value.total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": f"^{_PATTERN.pattern.replace('?P<count>', '').replace('?P<unit>', '')}$",
        }
    ),
]
