"""RDMA devices and the state of their ports, from `ibv_devinfo` and from `rdma link`, as text or with `-j`.

https://github.com/linux-rdma/rdma-core/blob/master/libibverbs/examples/devinfo.c and
https://man7.org/linux/man-pages/man8/rdma-link.8.html
"""

import re
from dataclasses import dataclass

from plumbline.probe.documents import items, place, read_json
from plumbline.probe.lines import Line, lines

_HCA = re.compile(r"hca_id:\s+(\S{1,64})\s*")
_PORT = re.compile(r"\s+port:\s+([0-9]{1,4})\s*")
_STATE = re.compile(r"\s+state:\s+PORT_([A-Z_]{1,32})(?: \([0-9]+\))?\s*")
_LAYER = re.compile(r"\s+link_layer:\s+(\S{1,32})\s*")
_LINK = re.compile(r"(?:[0-9]+: )?link (\S{1,64})/([0-9]{1,4}) state ([A-Z_]{1,32})\b(.*)")
_NETDEV = re.compile(r".*\bnetdev (\S{1,64})")


@dataclass(frozen=True, kw_only=True)
class Port:
    """A port of an RDMA device."""

    line: Line
    device: str
    port: int
    state: str
    """`ACTIVE` where it carries data."""
    link_layer: str | None
    """`InfiniBand`, `Ethernet` or `Unspecified` (EFA); None where it is not said."""
    netdev: str | None = None

    @property
    def active(self) -> bool:
        """Whether it can carry data."""
        return self.state == "ACTIVE"


def parse_ibv_devinfo(text: str) -> tuple[Port, ...]:
    """The ports in what `ibv_devinfo` prints."""
    found: list[Port] = []
    device, port, state = "", None, ""
    for line in lines(text):
        if not line.whole:
            continue
        if match := _HCA.fullmatch(line.text):
            device, port, state = match[1], None, ""
        elif match := _PORT.fullmatch(line.text):
            port, state = int(match[1]), ""
        elif match := _STATE.fullmatch(line.text):
            state = match[1]
        elif (match := _LAYER.fullmatch(line.text)) and device and port is not None and state:
            found.append(Port(line=line, device=device, port=port, state=state, link_layer=match[1]))
            port, state = None, ""
    return tuple(found)


def parse_rdma_link(text: str) -> tuple[Port, ...]:
    """The ports in what `rdma link` prints, or `rdma -j link`."""
    if text.lstrip()[:1] == "[":
        return tuple(
            Port(line=Line(0, place(number)), device=name, port=port, state=state, link_layer=None, netdev=netdev)
            for number, each in items(read_json(text))
            if isinstance(name := each.get("ifname"), str)
            and isinstance(port := each.get("port"), int)
            and isinstance(state := each.get("state"), str)
            and isinstance(netdev := each.get("netdev"), str | None)
        )
    found = [(m, line) for line in lines(text) if line.whole and (m := _LINK.match(line.text))]
    return tuple(
        Port(
            line=line,
            device=m[1],
            port=int(m[2]),
            state=m[3],
            link_layer=None,
            netdev=name[1] if (name := _NETDEV.match(m[4])) else None,
        )
        for m, line in found
    )
