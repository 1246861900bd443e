"""What the simulated AWS knows: the account, and machine types from data that AWS published and moto ships."""

import gzip
import importlib.util
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """An on-demand capacity reservation."""

    machine: str
    zone: str
    total: int
    state: str


@dataclass(frozen=True, kw_only=True)
class Account:
    """The account."""

    id: str
    zones: Mapping[str, Mapping[str, str]]
    """Zone ids by zone, by region."""
    reservations: Mapping[str, Reservation]

    def zone_id(self, zone: str) -> str | None:
        """The id of a zone; None for one that does not exist."""
        return next((zones[zone] for zones in self.zones.values() if zone in zones), None)


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


@cache
def account() -> Account:
    """The account in account.toml."""
    raw = tomllib.loads((Path(__file__).parent / "account.toml").read_text("utf-8"))
    return Account(
        id=raw["id"],
        zones={region: fields["zones"] for region, fields in raw["regions"].items()},
        reservations={id_: Reservation(**fields) for id_, fields in raw["reservations"].items()},
    )


def machine(name: str) -> Machine | None:
    """A machine type; None for a name that AWS does not know."""
    raw = _instance_types().get(name)
    if raw is None:
        return None
    network = raw["NetworkInfo"]
    cards = network.get("NetworkCards") or ()
    return Machine(
        cpus=raw["VCpuInfo"]["DefaultVCpus"],
        memory_mib=raw["MemoryInfo"]["SizeInMiB"],
        architecture="arm64" if "arm64" in raw["ProcessorInfo"]["SupportedArchitectures"] else "amd64",
        gpus=sum(gpu["Count"] for gpu in (raw.get("GpuInfo") or {}).get("Gpus") or ()),
        cards={card["NetworkCardIndex"]: frozenset(card.get("InterfaceTypes") or ("interface",)) for card in cards},
        interfaces_per_card={card["NetworkCardIndex"]: card["MaximumNetworkInterfaces"] for card in cards},
        efa_interfaces=(network.get("EfaInfo") or {}).get("MaximumEfaInterfaces", 0),
    )


@cache
def _instance_types() -> Mapping[str, Any]:
    """Moto's copy of DescribeInstanceTypes; moto itself, which is slow to import, is not needed for it."""
    spec = importlib.util.find_spec("moto")
    assert spec
    assert spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0]) / "ec2" / "resources" / "instance_types.json.gz"
    types: Mapping[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return types
