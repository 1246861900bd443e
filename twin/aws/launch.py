"""What EC2 checks when a node group's instances are launched: each rule with the address that it comes from.

A launch template is accepted with most mistakes in it; they show here.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from twin.aws.facts import Account, Machine, Reservation, machine
from twin.aws.refusal import LaunchFailure

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A launch of some instances of one template into one subnet."""

    group: str
    template: Json
    capacity_type: str
    instance_types: tuple[str, ...]
    """Of the node group; the template names one instead."""
    zone: str
    count: int
    account: Account
    used: Mapping[str, int]
    """Instances that run in each reservation."""
    reservation_zone: str | None = None
    """Where the fault says that the reservation is."""

    @property
    def type_name(self) -> str:
        """The instance type."""
        return self.template.get("instanceType") or self.instance_types[0]

    @property
    def interfaces(self) -> list[Json]:
        """Of the template."""
        return list(self.template.get("networkInterfaces") or ())

    @property
    def reservation_id(self) -> str | None:
        """The reservation that it targets."""
        target = (self.template.get("capacityReservationSpecification") or {}).get("capacityReservationTarget") or {}
        value = target.get("capacityReservationId")
        return str(value) if value else None

    def fail(self, code: str, message: str) -> LaunchFailure:
        """A failure, as the node group's health shows it."""
        return LaunchFailure(
            "AsgInstanceLaunchFailures",
            f"Could not launch On-Demand Instances. {code} - {message}. Launching EC2 instance failed.",
            [f"eks-{self.group}"],
        )


Rule = Callable[[Launch, Machine], Iterator[tuple[str, str]]]


def check_launch(launch: Launch) -> Machine:
    """The machine that is launched.

    Raises:
        LaunchFailure: EC2 refuses the launch, in its own words.
    """
    facts = machine(launch.type_name)
    if facts is None:
        raise launch.fail(
            "InvalidParameterValue", f"The following supplied instance types do not exist: [{launch.type_name}]"
        )
    for rule in _RULES:
        for code, message in rule(launch, facts):
            raise launch.fail(code, message)
    return facts


def _cards(launch: Launch, facts: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html#network-cards ."""
    for nic in launch.interfaces:
        card, kind = int(nic.get("networkCardIndex") or 0), nic.get("interfaceType") or "interface"
        if card not in facts.cards:
            yield "InvalidParameterValue", f"Network card index '{card}' is not valid for {launch.type_name}"
        elif kind not in facts.cards[card]:
            yield (
                "AttachmentLimitExceeded",
                f"Network card '{card}' of {launch.type_name} takes no {kind}",
            )


def _one_efa_on_a_card(launch: Launch, _: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html#efa-limits ."""
    on_card = Counter(int(n.get("networkCardIndex") or 0) for n in launch.interfaces if is_efa(n))
    for card, number in sorted(on_card.items()):
        if number > 1:
            yield (
                "AttachmentLimitExceeded",
                f"Interface count {number} exceeds the limit of 1 EFA for network card '{card}'",
            )


def _device_indexes(launch: Launch, facts: Machine) -> Iterator[tuple[str, str]]:
    """https://github.com/terraform-aws-modules/terraform-aws-eks/issues/2654 and others quote it."""
    for nic in launch.interfaces:
        card, device = int(nic.get("networkCardIndex") or 0), int(nic.get("deviceIndex") or 0)
        limit = facts.interfaces_per_card.get(card, device + 1)
        if device >= limit:
            yield (
                "InvalidParameterValue",
                f"The specified number '{device}' for the device index exceeds the maximum number of network "
                f"interfaces supported by the network card at network card index {card}. The maximum devices for this "
                f"network card is {limit}. Specify a number from 0 to {limit - 1}, and try again.",
            )


def _places(launch: Launch, facts: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceNetworkInterfaceSpecification.html ."""
    places = Counter((int(n.get("networkCardIndex") or 0), int(n.get("deviceIndex") or 0)) for n in launch.interfaces)
    if places and (0, 0) not in places:
        yield "InvalidParameterValue", "Each instance needs a network interface with device index 0 on network card 0"
    for (card, device), number in sorted(places.items()):
        if number > 1:
            yield "InvalidParameterValue", f"Duplicate device index '{device}' on network card '{card}'"
    for card, number in sorted(Counter(card for card, _ in places).items()):
        if number > facts.interfaces_per_card.get(card, number):
            yield "AttachmentLimitExceeded", f"Interface count {number} exceeds the limit for network card '{card}'"


def _primary_has_an_address(launch: Launch, _: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html#efa-basics ."""
    for nic in launch.interfaces:
        place = (int(nic.get("networkCardIndex") or 0), int(nic.get("deviceIndex") or 0))
        if place == (0, 0) and nic.get("interfaceType") == "efa-only":
            yield "InvalidParameterValue", "The primary network interface cannot be of type efa-only"


def _no_public_address_on_several(launch: Launch, _: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-instance-addressing.html#public-ip-addresses ."""
    public = any(str(nic.get("associatePublicIpAddress", "")).lower() == "true" for nic in launch.interfaces)
    if public and len(launch.interfaces) > 1:
        yield (
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network "
            "interfaces",
        )


def _reservation(launch: Launch, _: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-launch.html ."""
    if launch.reservation_id is None:
        return
    found: Reservation | None = launch.account.reservations.get(launch.reservation_id)
    if found is None or found.state != "active":
        state = "does not exist" if found is None else f"is {found.state}"
        yield "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{launch.reservation_id}' {state}"
        return
    zone = launch.reservation_zone or found.zone
    if zone != launch.zone:
        yield (
            "InvalidParameterValue",
            f"The capacity reservation '{launch.reservation_id}' is in Availability Zone {zone}, and the request is "
            f"for Availability Zone {launch.zone}",
        )
    if found.machine != launch.type_name:
        yield (
            "InvalidParameterValue",
            f"The instance type {launch.type_name} does not match the instance type {found.machine} of the capacity "
            f"reservation '{launch.reservation_id}'",
        )
    free = found.total - launch.used.get(launch.reservation_id, 0)
    if launch.count > free:
        yield (
            "ReservationCapacityExceeded",
            f"The requested reservation does not have sufficient compatible and available capacity for this request: "
            f"{launch.count} requested, {free} available",
        )


def _market(launch: Launch, _: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html ."""
    market = (launch.template.get("instanceMarketOptions") or {}).get("marketType")
    if (market == "capacity-block") is not (launch.capacity_type == "CAPACITY_BLOCK"):
        yield (
            "InvalidParameterCombination",
            f"capacity type {launch.capacity_type} does not go with market type {market or 'on-demand'}",
        )


_RULES: tuple[Rule, ...] = (
    _cards,
    _one_efa_on_a_card,
    _device_indexes,
    _places,
    _primary_has_an_address,
    _no_public_address_on_several,
    _market,
    _reservation,
)


def is_efa(interface: Json) -> bool:
    """Whether an interface carries EFA."""
    return interface.get("interfaceType") in ("efa", "efa-only")
