"""What EC2 checks when a node group's instances are launched: each rule with the address that it comes from.

A launch template is accepted with most mistakes in it; they show here.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from twin.aws.facts import Account, Machine, PlacementGroup, Reservation, machine
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
    on_demand: Mapping[str, int] = field(default_factory=dict)
    """Instances that run outside of reservations, by type."""
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
        value = self._target.get("capacityReservationId")
        return str(value) if value else None

    @property
    def reservation_group(self) -> str | None:
        """ARN of the group of reservations that it targets."""
        value = self._target.get("capacityReservationResourceGroupArn")
        return str(value) if value else None

    @property
    def preference(self) -> str | None:
        """What it says of reservations beside its target: `open`, `none`, `capacity-reservations-only`."""
        specification = self.template.get("capacityReservationSpecification") or {}
        return specification.get("capacityReservationPreference") or None

    @property
    def _target(self) -> Json:
        specification = self.template.get("capacityReservationSpecification") or {}
        target: Json = specification.get("capacityReservationTarget") or {}
        return target

    @property
    def of_block(self) -> bool:
        """Whether its market is that of Capacity Blocks."""
        return (self.template.get("instanceMarketOptions") or {}).get("marketType") == "capacity-block"

    @property
    def region(self) -> str:
        """Of the zone."""
        region = self.account.region_of(self.zone)
        assert region, "subnets lie in zones that exist"
        return region

    @property
    def tenancy(self) -> str:
        """In EC2's words."""
        return str((self.template.get("placement") or {}).get("tenancy") or "default")

    @property
    def names_placement_group(self) -> bool:
        """Whether the template names a placement group."""
        placement = self.template.get("placement") or {}
        return bool(placement.get("groupName") or placement.get("groupId"))

    @property
    def placement_group(self) -> PlacementGroup | None:
        """The placement group that it names; None for none, or for one that does not exist."""
        placement = self.template.get("placement") or {}
        if not self.names_placement_group:
            return None
        return self.account.placement_group(self.region, name=placement.get("groupName"), id_=placement.get("groupId"))

    def zone_of(self, reservation: Reservation) -> str:
        """Where a reservation is, also while the fault says that it is elsewhere."""
        return self.reservation_zone or reservation.zone

    def free_in(self, id_: str) -> int:
        """How many more instances a reservation takes now."""
        found = self.account.reservations[id_]
        return max(0, found.total - self.used.get(id_, 0)) if found.state == "active" else 0

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


def _offered(launch: Launch, _: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html ."""
    zones = launch.account.zones_with(launch.type_name, launch.region)
    if launch.zone not in zones:
        others = f" or choosing {', '.join(zones)}" if zones else ""
        yield (
            "Unsupported",
            f"Your requested instance type ({launch.type_name}) is not supported in your requested Availability Zone "
            f"({launch.zone}). Please retry your request by not specifying an Availability Zone{others}",
        )


def _placement_group(launch: Launch, _: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html ."""
    if launch.names_placement_group and launch.placement_group is None:
        placement = launch.template["placement"]
        name = placement.get("groupId") or placement.get("groupName")
        yield "InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown."


def _preference_goes_with_target(launch: Launch, _: Machine) -> Iterator[tuple[str, str]]:
    """A target is for launches that run in reservations only.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservationSpecification.html and
    https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/launch_template
    """
    if (launch.reservation_id or launch.reservation_group) and launch.preference in ("open", "none"):
        yield (
            "InvalidParameterCombination",
            f"The capacity reservation preference '{launch.preference}' cannot be specified together with a capacity "
            "reservation target",
        )
    if launch.reservation_id and launch.reservation_group:
        yield (
            "InvalidParameterCombination",
            "A capacity reservation target names a capacity reservation or a resource group, and not both",
        )


def _market(launch: Launch, facts: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html ."""
    market = (launch.template.get("instanceMarketOptions") or {}).get("marketType")
    if launch.of_block is not (launch.capacity_type == "CAPACITY_BLOCK"):
        yield (
            "InvalidParameterCombination",
            f"capacity type {launch.capacity_type} does not go with market type {market or 'on-demand'}",
        )
    if launch.of_block and not (launch.reservation_id or launch.reservation_group):
        yield "InvalidParameterCombination", "The market type capacity-block needs a capacity reservation target"
    if not launch.of_block and "on-demand" not in facts.usage:
        yield (
            "UnsupportedOperation",
            f"The instance type {launch.type_name} can be launched into Capacity Blocks only",
        )


def _target_exists(launch: Launch, _: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html ."""
    found = launch.account.reservations.get(launch.reservation_id or "")
    if launch.reservation_id and (not found or launch.account.region_of(found.zone) != launch.region):
        yield (
            "InvalidCapacityReservationId.NotFound",
            f"The capacity reservation '{launch.reservation_id}' does not exist",
        )
    if launch.reservation_group and launch.reservation_group not in launch.account.groups:
        yield "InvalidParameterValue", f"The resource group '{launch.reservation_group}' does not exist"


def _target_fits(launch: Launch, _: Machine) -> Iterator[tuple[str, str]]:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-launch.html and
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-launch.html
    """
    if launch.reservation_id:
        yield from _misfits(launch, launch.reservation_id)


def _misfits(launch: Launch, id_: str) -> Iterator[tuple[str, str]]:
    """Why a launch cannot run in a reservation, apart from how many instances it has room for."""
    found = launch.account.reservations[id_]
    if found.kind == "capacity-block" and found.state in ("scheduled", "payment-pending"):
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
        yield "InvalidCapacityReservationState.PendingActivation", "Your Capacity Block is not active yet."
    elif found.state != "active":
        yield "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{id_}' is {found.state}"
    if launch.zone_of(found) != launch.zone:
        yield (
            "InvalidParameterValue",
            f"The capacity reservation '{id_}' is in Availability Zone {launch.zone_of(found)}, and the request is "
            f"for Availability Zone {launch.zone}",
        )
    if found.machine != launch.type_name:
        yield (
            "InvalidParameterValue",
            f"The instance type {launch.type_name} does not match the instance type {found.machine} of the capacity "
            f"reservation '{id_}'",
        )
    if (found.kind == "capacity-block") is not launch.of_block:
        yield (
            "InvalidParameterCombination",
            f"The capacity reservation '{id_}' is of type {found.kind}, and the market type of the request is "
            f"{'capacity-block' if launch.of_block else 'on-demand'}",
        )
    for name, has, asks in (("platform", found.platform, PLATFORM), ("tenancy", found.tenancy, launch.tenancy)):
        if has != asks:
            yield (
                "InvalidParameterValue",
                f"The {name} {asks} does not match the {name} {has} of the capacity reservation '{id_}'",
            )
    yield from _misplaced(launch, found)


def _misplaced(launch: Launch, found: Reservation) -> Iterator[tuple[str, str]]:
    """A reservation is used from the cluster placement group that it was made in, and from no other; a Capacity Block
    is placed as one by itself.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-cpg.html , seen in
    https://github.com/terraform-aws-modules/terraform-aws-eks/issues/3661
    """
    group = launch.placement_group
    cluster = group.arn if group and group.strategy == "cluster" else None
    if cluster != found.placement_group_arn:
        yield "InsufficientInstanceCapacity", _no_capacity(launch)


def _no_capacity(launch: Launch) -> str:
    return (
        f"We currently do not have sufficient {launch.type_name} capacity in the Availability Zone you requested "
        f"({launch.zone}). Our system will be working on provisioning additional capacity."
    )


def _room(launch: Launch, facts: Machine) -> Iterator[tuple[str, str]]:
    """Reservations have what they have, and On-Demand instances beside them have a quota.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-launch.html and
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html#ec2-on-demand-instances-limits
    """
    outside = reservations_of(launch).count(None)
    only_reserved = launch.reservation_id or launch.of_block or launch.preference == "capacity-reservations-only"
    if outside and only_reserved:
        yield (
            "ReservationCapacityExceeded",
            f"The requested reservation does not have sufficient compatible and available capacity for this request: "
            f"{launch.count} requested, {launch.count - outside} available",
        )
    quota = _quota(launch.type_name)
    if not outside or only_reserved or launch.capacity_type == "SPOT" or quota is None:
        return
    counted = Counter(launch.on_demand)
    for each in launch.account.reservations.values():
        if each.made and each.state == "active" and launch.account.region_of(each.zone) == launch.region:
            counted[each.machine] += each.total
    running = sum(
        found.cpus * number for name, number in counted.items() if _quota(name) == quota and (found := machine(name))
    )
    limit = launch.account.on_demand_vcpus[launch.region].get(quota, 0)
    if running + outside * facts.cpus > limit:
        yield (
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance "
            "bucket that the specified instance type belongs to. Please visit "
            "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
        )


def reservations_of(launch: Launch) -> list[str | None]:
    """The reservation that each instance of a launch would run in; None for one that runs outside of all.

    A targeted one is used as far as it has room. A group's are used in turn. Without a target, those are used that are
    open to every launch that fits, unless the launch says `none`.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-launch.html
    """
    reservations = launch.account.reservations
    if launch.reservation_id:
        usable = [launch.reservation_id]
    elif launch.reservation_group:
        usable = [id_ for id_ in launch.account.groups[launch.reservation_group] if id_ in reservations]
    elif launch.preference == "none":
        usable = []
    else:
        usable = [id_ for id_, found in sorted(reservations.items()) if found.criteria == "open"]
    taken = [id_ for id_ in usable if not any(_misfits(launch, id_)) for _ in range(launch.free_in(id_))]
    places: list[str | None] = [*taken[: launch.count]]
    return places + [None] * (launch.count - len(places))


PLATFORM = "Linux/UNIX"
"""Of EKS's images, in the words of capacity reservations."""


def _quota(type_name: str) -> str | None:
    """The quota of On-Demand vCPUs that a type counts against; None for those that the account's file leaves out.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html#ec2-on-demand-instances-limits
    """
    family = re.match("[a-z]+", type_name)
    name = family.group() if family else ""
    known = {"p": "P", "g": "G", "gr": "G", "vt": "G", "trn": "Trn"}
    return known.get(name, "Standard" if name in tuple("acdhimrtz") else None)


_RULES: tuple[Rule, ...] = (
    _cards,
    _one_efa_on_a_card,
    _device_indexes,
    _places,
    _primary_has_an_address,
    _no_public_address_on_several,
    _offered,
    _placement_group,
    _preference_goes_with_target,
    _market,
    _target_exists,
    _target_fits,
    _room,
)


def is_efa(interface: Json) -> bool:
    """Whether an interface carries EFA."""
    return interface.get("interfaceType") in ("efa", "efa-only")
