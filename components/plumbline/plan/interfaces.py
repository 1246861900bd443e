"""Which network interfaces a node of a machine type is launched with."""

from dataclasses import dataclass
from typing import Literal

from plumbline.catalog import Machine


@dataclass(frozen=True, kw_only=True, order=True)
class Interface:
    """One interface of a launch template."""

    card: int
    """Index of the network card."""
    device: int
    """Device index, counted on its card."""
    kind: Literal["interface", "efa", "efa-only"]
    """`interface` carries IP; `efa-only` carries RDMA and takes no address of the subnet; `efa` carries both."""

    @property
    def carries_efa(self) -> bool:
        """Whether a device plugin finds an EFA device on it."""
        return self.kind != "interface"


def interfaces(
    machine: Machine, fabric: Literal["efa", "none"], layout: Literal["current", "legacy"] = "current"
) -> tuple[Interface, ...]:
    """The interfaces, sorted by card and device. A card takes one EFA interface at most; none is added after launch.

    `current`: the primary is an ordinary interface on card 0. With the fabric, every card that takes EFA carries one
    `efa-only` interface: device 1 on card 0, where the primary has device 0, and device 0 elsewhere.

    `legacy`: the primary is itself an `efa` interface, and the other cards carry `efa-only` as device 1. It fits only
    machines whose every card takes EFA.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
    """
    primary = Interface(card=0, device=0, kind="interface")
    if fabric == "none":
        return (primary,)
    cards = [card for card in range(machine.network_cards) if card not in machine.cards_without_efa]
    if layout == "legacy":
        first = Interface(card=0, device=0, kind="efa")
        return (first, *(Interface(card=card, device=1, kind="efa-only") for card in cards if card))
    return (primary, *(Interface(card=card, device=1 if card == 0 else 0, kind="efa-only") for card in cards))
