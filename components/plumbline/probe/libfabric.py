"""What `fi_info` prints: one block of `key: value` for each way to reach a network.

https://ofiwg.github.io/libfabric/main/man/fi_info.1.html
"""

import re
from dataclasses import dataclass

from plumbline.probe.lines import Fact, Line, lines

_KEY = re.compile(r"\s*(provider|fabric|domain|version|type|protocol): (\S(?:.*\S)?)\s*")
_FAILURE = re.compile(r".*fi_getinfo: (-[0-9]{1,5})\b.*")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One block."""

    line: Line
    provider: str
    fabric: str
    domain: str
    """The device, such as `rdmap16s27-rdm`."""
    type: str
    """`FI_EP_RDM` is the one that NCCL's plugin uses; `FI_EP_DGRAM` is the same device once more."""
    protocol: str


@dataclass(frozen=True, kw_only=True)
class FiInfo:
    """What one run of `fi_info` said."""

    endpoints: tuple[Endpoint, ...]
    failure: Fact[int] | None
    """The error that it ended with; -61 is that no provider has a device."""

    def devices(self, provider: str) -> frozenset[str]:
        """Devices of a provider that have a reliable endpoint. Blocks are more: `efa` and `efa-direct` repeat them."""
        return frozenset(
            each.domain for each in self.endpoints if each.provider == provider and each.type == "FI_EP_RDM"
        )


def parse_fi_info(text: str) -> FiInfo:
    """The blocks that are complete; a cut one is left out."""
    found = lines(text)
    blocks: list[tuple[Line, dict[str, str]]] = []
    for line in found:
        match = _KEY.fullmatch(line.text)
        if not match or not line.whole:
            continue
        if match[1] == "provider":
            blocks.append((line, {}))
        if blocks:
            blocks[-1][1].setdefault(match[1], match[2])
    return FiInfo(
        endpoints=tuple(
            Endpoint(
                line=line,
                provider=block["provider"],
                fabric=block["fabric"],
                domain=block["domain"],
                type=block["type"],
                protocol=block["protocol"],
            )
            for line, block in blocks
            if {"provider", "fabric", "domain", "type", "protocol"} <= set(block)
        ),
        failure=next((Fact(int(m[1]), line) for line in found if (m := _FAILURE.fullmatch(line.text))), None),
    )
