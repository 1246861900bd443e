"""How the site's range is divided among zones."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network


@dataclass(frozen=True, kw_only=True)
class SubnetPlan:
    """The subnets of one zone."""

    zone: str
    private: IPv4Network
    """For nodes and pods: an eighth of the range."""
    public: IPv4Network
    """For a NAT gateway: an eighth of the last eighth."""


def plan_subnets(cidr: IPv4Network, zones: Iterable[str]) -> tuple[SubnetPlan, ...]:
    """Subnets by the zone's letter, so that adding or removing a zone moves no other.

    Raises:
        ValueError: a zone's letter is beyond g; the eighth slot is the public one.
    """
    eighths = list(cidr.subnets(prefixlen_diff=3))
    public = list(eighths[-1].subnets(prefixlen_diff=3))

    def place(zone: str) -> int:
        index = ord(zone[-1]) - ord("a")
        if not 0 <= index < len(eighths) - 1:
            raise ValueError(f"zone {zone}: its letter must lie between a and g, to have a place in {cidr}")
        return index

    return tuple(
        SubnetPlan(zone=zone, private=eighths[place(zone)], public=public[place(zone)]) for zone in sorted(set(zones))
    )
