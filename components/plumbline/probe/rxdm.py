"""What RxDM, the daemon beside TCPX and TCPXO jobs, logs: glog's lines, which name neither host nor rank.

Known from public logs only: https://github.com/NVIDIA/aicr/pull/1662.
"""

import re
from dataclasses import dataclass

from plumbline.probe.lines import Fact, Line, lines

_GLOG = re.compile(r"([IWEF])[0-9]{4,8} [0-9:.]+\s+[0-9]+ (\S{1,100}:[0-9]{1,6})\] (.*)")
_COUNT = re.compile(
    r".*Number of GPUs detected in the PCI tree ([0-9]{1,4}) is not equal to the actual number of GPUs reported by "
    r"CUDA ([0-9]{1,4})\b.*"
)


@dataclass(frozen=True, kw_only=True)
class GpuCount:
    """GPUs that the daemon finds behind the node's network devices, of those that CUDA has."""

    found: int
    present: int


@dataclass(frozen=True, kw_only=True)
class RxdmLog:
    """What one daemon said."""

    started: Line | None
    short: Fact[GpuCount] | None
    """A count that made it stop."""
    errors: tuple[Fact[str], ...]


def parse_rxdm(text: str) -> RxdmLog:
    """The facts of a daemon's log."""
    said = [(m, line) for line in lines(text) if (m := _GLOG.search(line.text))]
    counts = [Fact(GpuCount(found=int(c[1]), present=int(c[2])), line) for m, line in said if (c := _COUNT.match(m[3]))]
    return RxdmLog(
        started=next((line for m, line in said if line.whole and m[3].strip() == "Starting RxDM"), None),
        short=counts[0] if counts else None,
        errors=tuple(Fact(m[3], line) for m, line in said if m[1] in "EF"),
    )
