"""What Google's GPUDirect-TCPX plugin says by NCCL's logger.

https://github.com/google/nccl-plugin-gpudirecttcpx/blob/main/src/net_tcpx.cc
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from plumbline.probe.lines import Fact
from plumbline.probe.nccl import Said, texts

_VERSION = re.compile(r"(?:.*\s)?NET/GPUDirectTCPX ver\. ([0-9][0-9A-Za-z._]*?)\.?")
_ENABLED = re.compile(r"(?:.*\s)?NET/GPUDirectTCPX : GPUDirectTCPX enable: ([01])")


@dataclass(frozen=True, kw_only=True)
class TcpxPlugin:
    """What the plugin said in one process."""

    version: Fact[str] | None
    enabled: Fact[bool] | None
    """Whether it moves data by GPU-direct; False is sockets with another name."""


def parse_tcpx(said: Iterable[Said]) -> TcpxPlugin:
    """The plugin's facts among the lines of one process."""
    every = list(said)
    return TcpxPlugin(
        version=next((Fact(m.value[1], m.line) for m in texts(every, _VERSION)), None),
        enabled=next((Fact(m.value[1] == "1", m.line) for m in texts(every, _ENABLED)), None),
    )
