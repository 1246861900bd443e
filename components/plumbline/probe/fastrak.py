"""What Google's FasTrak plugin (GPUDirect-TCPXO) says by NCCL's logger, its client lines to RxDM included.

https://github.com/GoogleCloudPlatform/container-engine-accelerators/tree/master/gpudirect-tcpxo; its source is not
public, its lines are known from public logs only: https://github.com/NVIDIA/aicr/pull/1662.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from plumbline.probe.lines import Fact
from plumbline.probe.nccl import Said, texts

_VERSION = re.compile(r"(?:.*\s)?Initializing network FasTrak, version: ([0-9][0-9A-Za-z.-]*)")
_INITIALIZED = re.compile(r"(?:.*\s)?NET/FasTrak plugin initialized.*")
_CLIENT = re.compile(r"(?:.*\s)?NET/FasTrak connect\(\) error: ([0-9]{1,5}): ([^()]{1,100}?)(?: \(([^()]{1,100})\))?")


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A connection to RxDM that failed."""

    errno: int
    text: str
    socket: str | None


@dataclass(frozen=True, kw_only=True)
class FastrakPlugin:
    """What FasTrak said in one process."""

    version: Fact[str] | None
    initialized: Fact[str] | None
    refusals: tuple[Fact[Refusal], ...]


def parse_fastrak(said: Iterable[Said]) -> FastrakPlugin:
    """The plugin's facts among the lines of one process."""
    every = list(said)
    return FastrakPlugin(
        version=next((Fact(m.value[1], m.line) for m in texts(every, _VERSION)), None),
        initialized=next((Fact(m.value[0], m.line) for m in texts(every, _INITIALIZED)), None),
        refusals=tuple(
            Fact(Refusal(errno=int(m.value[1]), text=m.value[2], socket=m.value[3]), m.line)
            for m in texts(every, _CLIENT)
        ),
    )
