"""What aws-ofi-nccl says by NCCL's logger.

The lines are those of https://github.com/aws/aws-ofi-nccl/blob/master/src/net.cpp; "Selected Provider", without a
fabric, is from before 1.14.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from plumbline.probe.lines import Fact
from plumbline.probe.nccl import Said, texts

_PLUGIN = re.compile(r"NET/OFI Initializing aws-ofi-nccl (\S+)")
_LIBFABRIC = re.compile(r"NET/OFI Using Libfabric version ([0-9.]+)")
_PROTOCOL = re.compile(r"NET/OFI Using transport protocol ([A-Z_]+)(?: \(.*\))?")
_PROVIDER = re.compile(
    r"NET/OFI Selected [Pp]rovider is ([A-Za-z0-9_;.-]{1,64}?)(?:, fabric is (\S{1,64}))?"
    r"(?: \(found ([0-9]{1,4}) nics\))?"
)
_FAILURE = re.compile(
    r"(?:.*\s)?NET/OFI (?:No eligible providers were found|aws-ofi-nccl initialization failed"
    r"|Unable to find a protocol that worked\..*|Only EFA provider is supported|Could not find any optimal provider.*"
    r"|GDR disabled on GDR-supported instance type.*)"
)


@dataclass(frozen=True, kw_only=True)
class Provider:
    """Libfabric's provider that the plugin chose."""

    name: str
    fabric: str | None
    nics: int | None
    """Network cards that it found; None where the plugin's version does not say."""


@dataclass(frozen=True, kw_only=True)
class OfiPlugin:
    """What the plugin said in one process; all None where it was not loaded."""

    version: Fact[str] | None
    libfabric: Fact[str] | None
    protocol: Fact[str] | None
    providers: tuple[Fact[Provider], ...]
    failures: tuple[Fact[str], ...]


def parse_ofi(said: Iterable[Said]) -> OfiPlugin:
    """The plugin's facts among the lines of one process."""
    every = list(said)

    def one(pattern: re.Pattern[str]) -> Fact[str] | None:
        return next((Fact(m.value[1], m.line) for m in texts(every, pattern)), None)

    return OfiPlugin(
        version=one(_PLUGIN),
        libfabric=one(_LIBFABRIC),
        protocol=one(_PROTOCOL),
        providers=tuple(
            Fact(Provider(name=m.value[1], fabric=m.value[2], nics=int(m.value[3]) if m.value[3] else None), m.line)
            for m in texts(every, _PROVIDER)
        ),
        failures=tuple(Fact(each.message, each.line) for each in every if _FAILURE.fullmatch(each.message)),
    )
