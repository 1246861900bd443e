"""What the simulated AWS knows: the account, and machine types from data that AWS published and moto ships."""

import gzip
import importlib.util
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal

from twin.world import Store


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A capacity reservation, as it is at one moment."""

    machine: str
    zone: str
    total: int
    state: str = "active"
    """In EC2's words: `active`, `scheduled`, `expired`, `payment-pending`, …"""
    kind: Literal["default", "capacity-block"] = "default"
    platform: str = "Linux/UNIX"
    tenancy: str = "default"
    criteria: str = "targeted"
    """`targeted`, or `open`: also for launches that name no reservation."""
    starts: datetime | None = None
    ends: datetime | None = None
    """None for one that does not end by itself."""
    placement_group_arn: str | None = None
    """Of the cluster placement group in which it was made."""
    made: bool = False
    """Whether a program made it here, so that it counts against what the quotas leave."""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PlacementGroup:
    """A placement group."""

    id: str
    name: str
    arn: str
    strategy: str
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Account:
    """The account, as it is at one moment."""

    id: str
    zones: Mapping[str, Mapping[str, str]]
    """Zone ids by zone, by region."""
    reservations: Mapping[str, Reservation]
    opened: datetime
    """When the state folder first saw it."""
    groups: Mapping[str, tuple[str, ...]]
    """Reservations by the ARN of the resource group that they are in."""
    placement_groups: Mapping[str, PlacementGroup]
    """By ARN."""
    on_demand_vcpus: Mapping[str, Mapping[str, int]]
    """What the quotas of On-Demand instances leave beside the reservations of before: vCPUs by quota, by region."""
    offered: Mapping[str, tuple[str, ...]]
    """Zones of machines of which the account says something else than what AWS published."""

    def zone_id(self, zone: str) -> str | None:
        """The id of a zone; None for one that does not exist."""
        return next((zones[zone] for zones in self.zones.values() if zone in zones), None)

    def region_of(self, zone: str) -> str | None:
        """The region of a zone; None for one that does not exist."""
        return next((region for region, zones in self.zones.items() if zone in zones), None)

    def zones_with(self, machine_name: str, region: str) -> tuple[str, ...]:
        """The zones of a region in which a machine is offered."""
        zones = self.zones.get(region, {})
        if machine_name in self.offered:
            return tuple(zone for zone in self.offered[machine_name] if zone in zones)
        published = _published_zone_ids(region).get(machine_name, frozenset())
        return tuple(zone for zone, id_ in sorted(zones.items()) if id_ in published)

    def placement_group(self, region: str, *, name: str | None = None, id_: str | None = None) -> PlacementGroup | None:
        """A placement group of a region by its name or its id; None for one that does not exist."""
        here = (group for group in self.placement_groups.values() if group.arn.split(":")[3] == region)
        return next((group for group in here if (group.id == id_ if id_ else group.name == name)), None)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """An instance type, as DescribeInstanceTypes tells of it."""

    cpus: int
    memory_mib: int
    architecture: Literal["amd64", "arm64"]
    gpus: int
    cards: Mapping[int, frozenset[str]]
    """Interface types that each network card takes, by its index."""
    interfaces_per_card: Mapping[int, int]
    efa_interfaces: int
    neuron_devices: int = 0
    neuron_cores: int = 0
    """Of all its Neuron devices together."""
    usage: frozenset[str] = frozenset({"on-demand"})
    """How it can be had: `on-demand`, `spot`, `capacity-block`."""


def account(opened: datetime | None = None, now: datetime | None = None) -> Account:
    """The account in account.toml.

    Args:
        opened: From when its hours are counted; now, unless it is given.
        now: The moment of which it tells.
    """
    now = now or datetime.now(UTC)
    opened = opened or now
    raw = declared()
    id_: str = raw["id"]
    groups = {
        f"arn:aws:resource-groups:{region}:{id_}:group/{name}": tuple(fields["reservations"])
        for region, named in raw["groups"].items()
        for name, fields in named.items()
    }
    placement_groups = {
        group.arn: group
        for region, named in raw["placement_groups"].items()
        for name, fields in named.items()
        for group in (PlacementGroup(**fields, name=name, arn=f"arn:aws:ec2:{region}:{id_}:placement-group/{name}"),)
    }
    by_name = {group.name: group.arn for group in placement_groups.values()}
    return Account(
        id=id_,
        zones={region: fields["zones"] for region, fields in raw["regions"].items()},
        reservations={key: _reservation(fields, by_name, opened, now) for key, fields in raw["reservations"].items()},
        opened=opened,
        groups=groups,
        placement_groups=placement_groups,
        on_demand_vcpus={region: fields["on_demand_vcpus"] for region, fields in raw["regions"].items()},
        offered={name: tuple(zones) for name, zones in raw["offered"].items()},
    )


def account_in(store: Store, now: datetime | None = None) -> Account:
    """The account of a state folder: with what was made in it, and as time has passed since it was opened."""
    now = now or datetime.now(UTC)
    document = store.get("account", "aws")
    if document is None:
        document = {"opened": now.isoformat()}
        store.put("account", "aws", document)
    before = account(datetime.fromisoformat(document["opened"]), now)
    made = {id_: _made_reservation(each, now) for id_, each in store.list(RESERVATIONS).items()}
    groups = {
        each["arn"]: PlacementGroup(
            id=each["placementGroupId"],
            name=each["name"],
            arn=each["arn"],
            strategy=each.get("strategy") or "cluster",
            tags=each.get("tagsAll") or {},
        )
        for each in store.list(PLACEMENT_GROUPS).values()
    }
    return replace(
        before,
        reservations={**before.reservations, **made},
        placement_groups={**before.placement_groups, **groups},
    )


RESERVATIONS = "aws-ec2-capacityReservation-CapacityReservation"
PLACEMENT_GROUPS = "aws-ec2-placementGroup-PlacementGroup"
"""Where the store keeps what programs made."""


def _reservation(
    fields: Mapping[str, Any], placement_groups: Mapping[str, str], opened: datetime, now: datetime
) -> Reservation:
    given = dict(fields)
    starts, ends = (
        opened + timedelta(hours=hours) if (hours := given.pop(name, None)) is not None else None
        for name in ("starts_in_hours", "ends_in_hours")
    )
    group = given.pop("placement_group", None)
    return _judged(
        Reservation(
            **given, starts=starts or opened, ends=ends, placement_group_arn=placement_groups[group] if group else None
        ),
        now,
    )


def _made_reservation(outputs: Mapping[str, Any], now: datetime) -> Reservation:
    """One that a program made; EC2 takes it as `open` where the program does not say.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html
    """
    ends = outputs.get("endDate") if outputs.get("endDateType") == "limited" else None
    return _judged(
        Reservation(
            machine=outputs["instanceType"],
            zone=outputs["availabilityZone"],
            total=outputs["instanceCount"],
            platform=outputs["instancePlatform"],
            tenancy=outputs.get("tenancy") or "default",
            criteria=outputs.get("instanceMatchCriteria") or "open",
            ends=datetime.fromisoformat(ends) if ends else None,
            placement_group_arn=outputs.get("placementGroupArn") or None,
            made=True,
            tags=outputs.get("tagsAll") or {},
        ),
        now,
    )


def _judged(reservation: Reservation, now: datetime) -> Reservation:
    """What is said to be active may not have begun, or may be over."""
    if reservation.ends and now >= reservation.ends:
        return replace(reservation, state="expired")
    if reservation.state == "active" and reservation.starts and now < reservation.starts:
        return replace(reservation, state="scheduled")
    return reservation


@cache
def declared() -> Mapping[str, Any]:
    """All of account.toml."""
    return tomllib.loads((Path(__file__).parent / "account.toml").read_text("utf-8"))


def machine(name: str) -> Machine | None:
    """A machine type; None for a name that AWS does not know."""
    raw = instance_types().get(name)
    if raw is None:
        return None
    network = raw["NetworkInfo"]
    cards = network.get("NetworkCards") or ()
    neuron = (raw.get("NeuronInfo") or {}).get("NeuronDevices") or ()
    return Machine(
        cpus=raw["VCpuInfo"]["DefaultVCpus"],
        memory_mib=raw["MemoryInfo"]["SizeInMiB"],
        architecture="arm64" if "arm64" in raw["ProcessorInfo"]["SupportedArchitectures"] else "amd64",
        gpus=sum(gpu["Count"] for gpu in (raw.get("GpuInfo") or {}).get("Gpus") or ()),
        cards={card["NetworkCardIndex"]: frozenset(card.get("InterfaceTypes") or ("interface",)) for card in cards},
        interfaces_per_card={card["NetworkCardIndex"]: card["MaximumNetworkInterfaces"] for card in cards},
        efa_interfaces=(network.get("EfaInfo") or {}).get("MaximumEfaInterfaces", 0),
        usage=frozenset(raw["SupportedUsageClasses"]),
        neuron_devices=sum(device["Count"] for device in neuron),
        neuron_cores=sum(device["Count"] * device["CoreInfo"]["Count"] for device in neuron),
    )


@cache
def instance_types() -> Mapping[str, Any]:
    """What DescribeInstanceTypes tells of each type: moto's copy, and machines.toml for what that lacks."""
    types: dict[str, Any] = json.loads(_of_moto("instance_types.json.gz"))
    own = tomllib.loads((Path(__file__).parent / "machines.toml").read_text("utf-8"))
    return {**types, **{name: _with_cards(fields) for name, fields in own.items()}}


def _with_cards(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """A type of machines.toml, whose cards of one sort are written once."""
    cards = [
        {"NetworkCardIndex": index, **{key: value for key, value in sort.items() if key != "indexes"}}
        for sort in fields["cards"]
        for index in sort["indexes"]
    ]
    network = {
        **fields["NetworkInfo"],
        "MaximumNetworkInterfaces": sum(card["MaximumNetworkInterfaces"] for card in cards),
        "NetworkCards": sorted(cards, key=lambda card: int(card["NetworkCardIndex"])),
    }
    return {**{key: value for key, value in fields.items() if key != "cards"}, "NetworkInfo": network}


@cache
def _published_zone_ids(region: str) -> Mapping[str, frozenset[str]]:
    """Moto's copy of DescribeInstanceTypeOfferings: ids of zones by instance type."""
    found: dict[str, set[str]] = {}
    rows: Iterable[Mapping[str, str]] = json.loads(
        _of_moto(f"instance_type_offerings/availability-zone-id/{region}.json.gz")
    )
    for row in rows:
        found.setdefault(row["InstanceType"], set()).add(row["Location"])
    return {name: frozenset(ids) for name, ids in found.items()}


def _of_moto(file: str) -> bytes:
    """Data that moto ships; moto itself, which is slow to import, is not needed for it."""
    spec = importlib.util.find_spec("moto")
    assert spec
    assert spec.submodule_search_locations
    return gzip.decompress((Path(spec.submodule_search_locations[0]) / "ec2" / "resources" / file).read_bytes())
