"""What was read in an AWS account, and where it does not agree with a site. Pure: the reading is done elsewhere."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from plumbline.catalog import AwsCatalogue, Machine
from plumbline.catalog.versions import older
from plumbline.site import CapacityBlock, OnDemand, Pool, Problem, Reservation, ReservationGroup, Site
from plumbline.site.problems import Path
from plumbline.site.rules import ADDRESSES_PER_NODE

LAST_MINUTES = timedelta(minutes=40)
"""EKS scales a node group of a capacity block down this long before the block ends.

https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
"""


@dataclass(frozen=True, kw_only=True)
class SeenReservation:
    """A capacity reservation, as AWS describes it."""

    id: str
    type: Literal["default", "capacity-block"]
    state: str
    """`active`, `scheduled`, `payment-pending`, `expired`, …"""
    machine: str
    zone: str
    platform: str
    tenancy: str
    match: str
    """`targeted`, or `open` for one that any fitting instance of the account uses."""
    total: int
    free: int
    starts: datetime | None = None
    ends: datetime | None = None
    placement_group: str | None = None
    """ARN of the cluster placement group that it was made in: instances use it only from there."""


@dataclass(frozen=True, kw_only=True)
class SeenMachine:
    """An instance type, as AWS describes it."""

    accelerators: int
    architecture: str
    cards: Mapping[int, bool]
    """Network cards by index, and whether each takes `efa-only` interfaces."""
    efa_interfaces: int


@dataclass(frozen=True, kw_only=True)
class SeenSubnet:
    """A subnet that exists."""

    id: str
    vpc: str
    zone: str
    free_addresses: int
    gives_public_addresses: bool


@dataclass(frozen=True, kw_only=True)
class SeenCluster:
    """A cluster that exists."""

    version: str
    vpc: str
    status: str
    endpoint: str = ""
    certificate_authority: str = ""
    """Base64 of the PEM."""


Part = Literal[
    "reservation groups", "capacity reservations", "machine types", "offerings", "instances", "subnets", "cluster"
]
"""What is read of an account, each by a call of its own."""


@dataclass(frozen=True, kw_only=True)
class SeenAccount:
    """What was read. What was asked for and is missing here does not exist, unless its part is `unread`."""

    now: datetime
    unread: frozenset[Part] = frozenset()
    """Parts that could not be read, or not wholly."""
    reservations: Mapping[str, SeenReservation] = field(default_factory=dict)
    """By id: those that the site names, and the members of groups that it names."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Ids of the reservations in a resource group, by the group's ARN."""
    machines: Mapping[str, SeenMachine] = field(default_factory=dict)
    offered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Zones in which each machine is offered."""
    running: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Instances of this site, by reservation id and generation label."""
    subnets: Mapping[str, SeenSubnet] = field(default_factory=dict)
    cluster: SeenCluster | None = None
    """The cluster to adopt; None where there is none, or none of that name."""

    def block_of(self, pool: Pool) -> SeenReservation | None:
        """The capacity block that a pool is in; None for any other pool."""
        return self.reservations.get(pool.capacity.id) if isinstance(pool.capacity, CapacityBlock) else None

    def starts(self, pool: Pool) -> datetime | None:
        """When the pool's capacity begins, if it has not begun."""
        block = self.block_of(pool)
        return block.starts if block and block.starts and block.starts > self.now else None


def account_problems(
    site: Site, generations: Mapping[str, str], seen: SeenAccount, catalogue: AwsCatalogue
) -> list[Problem]:
    """Where the site and the account do not agree.

    Args:
        site: the declaration.
        generations: the generation that each pool is declared to have; its own instances do not compete with it.
        seen: what was read in the account.
        catalogue: the facts that plans are made from.
    """
    problems = [
        problem
        for index, pool in enumerate(site.pools)
        for problem in (
            *_capacity(index, pool, seen),
            *_machine(index, pool, catalogue.machines[pool.machine], seen),
            *_subnet(pool, site, seen),
        )
    ]
    return [*problems, *_cluster(site, seen), *_room(site, generations, seen)]


def _capacity(index: int, pool: Pool, seen: SeenAccount) -> Iterator[Problem]:
    path: Path = ("pools", index, "capacity")
    match pool.capacity:
        case Reservation(id=id_) | CapacityBlock(id=id_):
            found = seen.reservations.get(id_)
            if found is None and "capacity reservations" in seen.unread:
                return
            if found is None:
                yield Problem(
                    path=(*path, "id"),
                    found=f"{id_}, which AWS does not know",
                    needed=f"a capacity reservation of this account in {pool.capacity.zone[:-1]}, or shared with it",
                    next=f"see aws ec2 describe-capacity-reservations --region {pool.capacity.zone[:-1]}",
                )
                return
            yield from _reservation(path, pool, found, seen.now)
        case ReservationGroup(arn=arn):
            yield from _group(path, pool, arn, seen)
        case OnDemand():
            zones = seen.offered.get(pool.machine)
            if zones is not None and pool.capacity.zone not in zones:
                where = ", ".join(sorted(zones)) or "no zone of this region"
                yield Problem(
                    path=(*path, "zone"),
                    found=f"{pool.capacity.zone}, where AWS offers no {pool.machine}",
                    needed=f"a zone where it is offered: {where}",
                    next="correct the zone",
                )


def _reservation(path: Path, pool: Pool, found: SeenReservation, now: datetime) -> Iterator[Problem]:
    """One message for each field that does not agree."""
    kind = "capacity-block" if found.type == "capacity-block" else "reservation"
    if pool.capacity.kind != kind:
        yield Problem(
            path=(*path, "kind"),
            found=pool.capacity.kind,
            needed=f"{kind}: that is what {found.id} is",
            next=f"set kind: {kind}",
        )
    block_to_come = found.type == "capacity-block" and found.starts is not None and found.starts > now
    if found.state != "active" and not (block_to_come and found.state in _COMING):
        yield Problem(
            path=(*path, "id"),
            found=f"{found.id}, which is {found.state}",
            needed="a reservation that is active" + (", or one that is scheduled" if kind == "capacity-block" else ""),
            next="name another reservation; one that ended does not come back",
        )
    if found.machine != pool.machine:
        yield Problem(
            path=(*path[:-1], "machine"),
            found=pool.machine,
            needed=f"{found.machine}: that is what {found.id} holds",
            next="correct machine, or capacity.id",
        )
    if found.zone != pool.capacity.zone:
        yield Problem(
            path=(*path, "zone"),
            found=pool.capacity.zone,
            needed=f"{found.zone}: the hardware of {found.id} is there, and is used from no other zone",
            next=f"set zone: {found.zone}",
        )
    if found.platform not in _LINUX:
        yield Problem(
            path=(*path, "id"),
            found=f"{found.id}, for platform {found.platform}",
            needed="a reservation for Linux/UNIX, which EKS nodes are",
            next="name another reservation, or make one for Linux/UNIX",
        )
    if found.tenancy != "default":
        yield Problem(
            path=(*path, "id"),
            found=f"{found.id}, with tenancy {found.tenancy}",
            needed="tenancy default: nodes are launched with it",
            next="name another reservation",
        )
    wanted = pool.capacity.placement_group if isinstance(pool.capacity, Reservation) else None
    group = found.placement_group.rpartition("/")[2] if found.placement_group and kind == "reservation" else None
    if wanted != group:
        yield Problem(
            path=(*path, "placement_group"),
            found=wanted or "nothing",
            needed=f"{group}: {found.id} was made in that group, and is used from nowhere else"
            if group
            else f"nothing: {found.id} was made in no placement group, and instances in one cannot use it",
            next=f"set placement_group: {group}" if group else "remove placement_group",
        )
    if found.type == "default" and found.match != "targeted":
        yield Problem(
            path=(*path, "id"),
            found=f"{found.id}, which is {found.match}: any instance of the account that fits takes from it",
            needed="a targeted reservation, which only who names it uses",
            next="make it targeted: aws ec2 modify-capacity-reservation --instance-match-criteria targeted",
            warns=True,
        )
    if found.ends and now < found.ends <= now + LAST_MINUTES and found.type == "capacity-block":
        yield Problem(
            path=(*path, "id"),
            found=f"{found.id}, which ends at {moment(found.ends)}",
            needed=f"more than {LAST_MINUTES.seconds // 60} minutes: EKS takes nodes of a block away that long before",
            next="take what runs there to its successor now",
            warns=True,
        )


_COMING = frozenset({"scheduled", "payment-pending", "assessing"})
_LINUX = frozenset({"Linux/UNIX"})


def _group(path: Path, pool: Pool, arn: str, seen: SeenAccount) -> Iterator[Problem]:
    members = seen.groups.get(arn)
    if members is None and "reservation groups" in seen.unread:
        return
    if members is None:
        yield Problem(
            path=(*path, "arn"),
            found=f"{arn}, which AWS does not know",
            needed="a resource group of this account and region",
            next="see aws resource-groups list-groups",
        )
        return
    found = [seen.reservations[id_] for id_ in members if id_ in seen.reservations]
    if not _fitting(pool, found) and "capacity reservations" not in seen.unread:
        held = "; ".join(f"{each.id}: {each.machine} in {each.zone}, {each.state}" for each in found) or "nothing"
        yield Problem(
            path=(*path, "arn"),
            found=f"a group with {held}",
            needed=f"an active reservation for {pool.machine} in {pool.capacity.zone} in it",
            next="correct machine, zone or arn, or add a reservation to the group",
        )


def _fitting(pool: Pool, members: list[SeenReservation]) -> list[SeenReservation]:
    return [
        each
        for each in members
        if each.state == "active" and (each.machine, each.zone) == (pool.machine, pool.capacity.zone)
    ]


def _room(site: Site, generations: Mapping[str, str], seen: SeenAccount) -> Iterator[Problem]:
    """Whether what is still to be launched fits, over all pools that share a reservation or a group."""
    if {"instances", "capacity reservations"} & seen.unread:
        return  # how much of what is used is this site's own is not known
    sharing: dict[tuple[str, ...], list[int]] = {}
    for index, pool in enumerate(site.pools):
        if ids := _holders(pool, seen):
            sharing.setdefault(ids, []).append(index)
    for ids, indexes in sharing.items():
        pools = [site.pools[index] for index in indexes]
        total = sum(seen.reservations[id_].total for id_ in ids)
        free = sum(seen.reservations[id_].free for id_ in ids)
        ours = {pool.name: sum(seen.running.get((id_, generations[pool.name]), 0) for id_ in ids) for pool in pools}
        asked = sum(pool.nodes for pool in pools)
        missing = sum(max(0, pool.nodes - ours[pool.name]) for pool in pools)
        path: Path = ("pools", indexes[0], "nodes")
        what = " and ".join(ids)
        whose = (
            f"{asked} nodes of pools {', '.join(pool.name for pool in pools)}" if len(pools) > 1 else f"{asked} nodes"
        )
        if asked > total:
            yield Problem(
                path=path,
                found=f"{whose}, from {what} with {total} instances",
                needed=f"{total} nodes at most",
                next="ask for fewer nodes, or enlarge the reservation",
            )
        elif missing > free:
            used = sum(number for (id_, _), number in seen.running.items() if id_ in ids) - sum(ours.values())
            by = [f"{used} by other generations of this site"] if used else []
            others = total - free - used - sum(ours.values())
            by += [f"{others} by others"] if others > 0 else []
            yield Problem(
                path=path,
                found=f"{missing} instances to launch, and {free} of {total} free in {what}"
                + (f" ({', '.join(by)})" if by else ""),
                needed=f"{missing} free instances",
                next="ask for fewer nodes, end what else uses the reservation, or enlarge it",
            )


def _holders(pool: Pool, seen: SeenAccount) -> tuple[str, ...]:
    """Ids of the reservations that hold the pool's instances, as far as they exist and have begun."""
    match pool.capacity:
        case Reservation(id=id_) | CapacityBlock(id=id_):
            found = seen.reservations.get(id_)
            return (id_,) if found and found.state == "active" and found.machine == pool.machine else ()
        case ReservationGroup(arn=arn):
            members = [seen.reservations[id_] for id_ in seen.groups.get(arn, ()) if id_ in seen.reservations]
            return tuple(each.id for each in _fitting(pool, members))
        case _:
            return ()


def _machine(index: int, pool: Pool, ours: Machine, seen: SeenAccount) -> Iterator[Problem]:
    """The catalogue against AWS's own data: a difference says which is which."""
    theirs = seen.machines.get(pool.machine)
    path: Path = ("pools", index, "machine")
    if theirs is None and "machine types" in seen.unread:
        return
    if theirs is None:
        yield Problem(
            path=path,
            found=f"{pool.machine}, which AWS does not describe in this region",
            needed="a machine that this account can use here; some are described only to accounts that have them",
            next="check the region; if the machine is there, go on",
            warns=True,
        )
        return
    compared: list[tuple[str, object, object]] = [
        ("accelerators", ours.accelerators, theirs.accelerators),
        ("architecture", ours.architecture, theirs.architecture),
        ("network cards", ours.network_cards, len(theirs.cards)),
    ]
    # A card, or an interface, that the catalogue leaves unused by choice is no difference.
    without = {card for card, takes in theirs.cards.items() if not takes}
    if without - set(ours.cards_without_efa):
        compared.append(("cards without EFA", list(ours.cards_without_efa), sorted(without)))
    if ours.efa_interfaces > theirs.efa_interfaces:
        compared.append(("EFA interfaces", ours.efa_interfaces, theirs.efa_interfaces))
    differences = [f"{what}: the catalogue says {a}, AWS says {b}" for what, a, b in compared if a != b]
    if differences:
        yield Problem(
            path=path,
            found=f"{pool.machine}, of which the catalogue of this release and AWS's own data disagree: "
            + "; ".join(differences),
            needed="agreement: interfaces and counts follow from the catalogue",
            next="take a release of Plumbline that knows this machine as it is; AWS's data is "
            "`aws ec2 describe-instance-types`",
        )


def _subnet(pool: Pool, site: Site, seen: SeenAccount) -> Iterator[Problem]:
    existing = site.network.existing
    id_ = existing.subnets.get(pool.capacity.zone) if existing else None
    if existing is None or id_ is None:
        return
    path: Path = ("network", "existing", "subnets", pool.capacity.zone)
    found = seen.subnets.get(id_)
    if found is None and "subnets" in seen.unread:
        return
    if found is None:
        yield Problem(
            path=path,
            found=f"{id_}, which AWS does not know",
            needed=f"a private subnet of {existing.vpc} in {pool.capacity.zone}",
            next=f"see aws ec2 describe-subnets --filters Name=vpc-id,Values={existing.vpc}",
        )
        return
    if found.vpc != existing.vpc or found.zone != pool.capacity.zone:
        yield Problem(
            path=path,
            found=f"{id_}, in {found.vpc} and {found.zone}",
            needed=f"a subnet of {existing.vpc} in {pool.capacity.zone}",
            next="correct the subnet",
        )
    if found.gives_public_addresses:
        yield Problem(
            path=path,
            found=f"{id_}, which gives instances public addresses",
            needed="a private subnet: an instance with several interfaces can have no public address",
            next="name a private subnet, or turn MapPublicIpOnLaunch off",
        )
    needed = pool.nodes * ADDRESSES_PER_NODE
    ours = sum(number for (_, generation), number in seen.running.items() if generation)
    if not ours and found.free_addresses < needed:
        yield Problem(
            path=path,
            found=f"{id_}, with {found.free_addresses} free addresses",
            needed=f"{needed} for {pool.nodes} nodes of pool {pool.name}, about {ADDRESSES_PER_NODE} each",
            next="name a larger subnet, or ask for fewer nodes",
            warns=found.free_addresses >= pool.nodes,
        )


def _cluster(site: Site, seen: SeenAccount) -> Iterator[Problem]:
    """A cluster that is adopted: there, in the VPC of the nodes, and not older than they."""
    name, network = site.cluster.existing, site.network.existing
    if name is None or network is None or "cluster" in seen.unread:
        return
    found = seen.cluster
    if found is None:
        yield Problem(
            path=("cluster", "existing"),
            found=f"{name}, which EKS does not know in {site.region}",
            needed="a cluster of this account and region",
            next=f"see aws eks list-clusters --region {site.region}",
        )
        return
    if found.status not in ("ACTIVE", "UPDATING"):
        yield Problem(
            path=("cluster", "existing"),
            found=f"{name}, which is {found.status}",
            needed="a cluster that is active",
            next="wait until it is, or name another",
        )
    if found.vpc != network.vpc:
        yield Problem(
            path=("network", "existing", "vpc"),
            found=network.vpc,
            needed=f"{found.vpc}, which {name} is in: its nodes join from there",
            next=f"set vpc: {found.vpc}, and subnets of it",
        )
    if older(found.version, site.cluster.version):
        yield Problem(
            path=("cluster", "version"),
            found=site.cluster.version,
            needed=f"{found.version} or older: that is what {name} has, and nodes are never newer than their cluster",
            next=f'set version: "{found.version}", or upgrade the cluster first',
        )


def moment(at: datetime) -> str:
    """A moment for people, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
