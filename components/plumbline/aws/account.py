"""Reads what a site names in an AWS account: reservations, machines, subnets. The only module that calls AWS itself.

Pulumi's provider has no data source for a capacity reservation, so this is boto3; it finds its credentials as every
AWS tool does. It only reads, and `READS` lists the rights that it needs.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from plumbline.plan import SeenAccount, SeenCluster, SeenMachine, SeenReservation, SeenSubnet, labels
from plumbline.plan.account import Part
from plumbline.site import CapacityBlock, Reservation, ReservationGroup, Site

READS = (
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstances",
    "ec2:DescribeSubnets",
    "resource-groups:ListGroupResources",
    "eks:DescribeCluster",
)
"""Rights that reading takes, apart from those of the provider."""

_NO_RIGHT = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthFailure"})
_NOT_THERE = frozenset(
    {
        "InvalidCapacityReservationId.NotFound",
        "InvalidCapacityReservationId.Malformed",
        "NotFoundException",
        "ResourceNotFoundException",
    }
)
_WAIT = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "max_attempts": 3})


T = TypeVar("T")
Cause = Literal["no right", "no credentials", "unreachable"]


@dataclass(frozen=True, kw_only=True)
class Unread:
    """Something that could not be read, and why."""

    part: Part
    right: str
    """The right that reading it takes."""
    why: str
    """In AWS's words, or those of the network."""
    cause: Cause

    @property
    def next(self) -> str:
        """What to do."""
        match self.cause:
            case "no right":
                return f"give who runs `pulumi up` {self.right}; docs/aws.md has the whole policy"
            case "no credentials":
                return "log in (aws sso login, or AWS_PROFILE), and run it again"
            case _:
                return "check the network and the region, and run it again"


def read_account(
    site: Site, *, session: boto3.Session | None = None, now: Callable[[], datetime] | None = None
) -> tuple[SeenAccount, tuple[Unread, ...]]:
    """What the site names in its account, and what could not be read.

    Args:
        site: the declaration.
        session: boto3's session; by default one from the environment.
        now: the clock.
    """
    return _Reader(site, session or boto3.Session()).read((now or _utc)())


def _utc() -> datetime:
    return datetime.now(UTC)


class _Reader:
    """One reading. A part that cannot be read is noted, and the others are read nevertheless."""

    def __init__(self, site: Site, session: boto3.Session) -> None:
        self._site = site
        self._session = session
        self._unread: list[Unread] = []

    @functools.cached_property
    def _ec2(self) -> Any:
        return self._session.client("ec2", region_name=self._site.region, config=_WAIT)

    def read(self, now: datetime) -> tuple[SeenAccount, tuple[Unread, ...]]:
        groups = self._groups()
        named = {
            pool.capacity.id for pool in self._site.pools if isinstance(pool.capacity, Reservation | CapacityBlock)
        }
        wanted = named | {id_ for members in groups.values() for id_ in members}
        seen = SeenAccount(
            now=now,
            groups=groups,
            reservations=self._reservations(wanted),
            machines=self._machines({pool.machine for pool in self._site.pools}),
            offered=self._offered({pool.machine for pool in self._site.pools if pool.capacity.kind == "on-demand"}),
            running=self._running() if wanted else {},
            subnets=self._subnets(),
            cluster=self._cluster(),
            # Last: known once all the others were asked for.
            unread=frozenset(each.part for each in self._unread),
        )
        return seen, tuple(self._unread)

    def _groups(self) -> dict[str, tuple[str, ...]]:
        arns = {pool.capacity.arn for pool in self._site.pools if isinstance(pool.capacity, ReservationGroup)}
        found: dict[str, tuple[str, ...]] = {}
        for arn in sorted(arns):

            def members(arn: str = arn) -> list[str]:
                client = self._session.client("resource-groups", region_name=self._site.region, config=_WAIT)
                pages = client.get_paginator("list_group_resources").paginate(Group=arn)
                return [each["Identifier"]["ResourceArn"] for page in pages for each in page.get("Resources", ())]

            held = self._try("reservation groups", "resource-groups:ListGroupResources", members)
            if held is not None:
                found[arn] = tuple(each.rpartition("/")[2] for each in held if ":capacity-reservation/" in each)
        return found

    def _reservations(self, ids: Iterable[str]) -> dict[str, SeenReservation]:
        found: dict[str, SeenReservation] = {}
        # One by one: a single id that does not exist fails the whole call.
        for id_ in sorted(ids):

            def described(id_: str = id_) -> list[Any]:
                return list(
                    self._ec2.describe_capacity_reservations(CapacityReservationIds=[id_])["CapacityReservations"]
                )

            raws = self._try("capacity reservations", "ec2:DescribeCapacityReservations", described) or []
            found |= {raw["CapacityReservationId"]: _reservation(raw) for raw in raws}
        return found

    def _machines(self, names: Iterable[str]) -> dict[str, SeenMachine]:
        # By a filter: a name that AWS does not know is left out, and fails nothing.
        wanted = [{"Name": "instance-type", "Values": sorted(names)}]

        def described() -> list[Any]:
            pages = self._ec2.get_paginator("describe_instance_types").paginate(Filters=wanted)
            return [each for page in pages for each in page["InstanceTypes"]]

        raws = self._try("machine types", "ec2:DescribeInstanceTypes", described) or []
        return {raw["InstanceType"]: _machine(raw) for raw in raws}

    def _offered(self, names: Iterable[str]) -> dict[str, frozenset[str]]:
        if not (wanted := sorted(names)):
            return {}

        def described() -> list[Any]:
            pages = self._ec2.get_paginator("describe_instance_type_offerings").paginate(
                LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": wanted}]
            )
            return [each for page in pages for each in page["InstanceTypeOfferings"]]

        raws = self._try("offerings", "ec2:DescribeInstanceTypeOfferings", described)
        if raws is None:
            return {}
        return {name: frozenset(r["Location"] for r in raws if r["InstanceType"] == name) for name in wanted}

    def _running(self) -> Mapping[tuple[str, str], int]:
        """This site's instances by reservation and generation: they hold capacity that is theirs."""

        def described() -> list[Any]:
            pages = self._ec2.get_paginator("describe_instances").paginate(
                Filters=[
                    {"Name": f"tag:{labels.SITE}", "Values": [self._site.name]},
                    {"Name": "instance-state-name", "Values": ["pending", "running"]},
                ]
            )
            return [instance for page in pages for each in page["Reservations"] for instance in each["Instances"]]

        raws = self._try("instances", "ec2:DescribeInstances", described) or []
        return Counter((raw.get("CapacityReservationId", ""), _tag(raw, labels.GENERATION)) for raw in raws)

    def _subnets(self) -> dict[str, SeenSubnet]:
        existing = self._site.network.existing
        if existing is None:
            return {}
        wanted = [{"Name": "subnet-id", "Values": sorted(set(existing.subnets.values()))}]

        def described() -> list[Any]:
            pages = self._ec2.get_paginator("describe_subnets").paginate(Filters=wanted)
            return [each for page in pages for each in page["Subnets"]]

        raws = self._try("subnets", "ec2:DescribeSubnets", described) or []
        return {
            raw["SubnetId"]: SeenSubnet(
                id=raw["SubnetId"],
                vpc=raw["VpcId"],
                zone=raw["AvailabilityZone"],
                free_addresses=raw["AvailableIpAddressCount"],
                gives_public_addresses=raw["MapPublicIpOnLaunch"],
            )
            for raw in raws
        }

    def _cluster(self) -> SeenCluster | None:
        name = self._site.cluster.existing
        if name is None:
            return None

        def described() -> Any:
            client = self._session.client("eks", region_name=self._site.region, config=_WAIT)
            return client.describe_cluster(name=name)["cluster"]

        raw = self._try("cluster", "eks:DescribeCluster", described)
        if raw is None:
            return None
        return SeenCluster(
            version=raw["version"],
            vpc=raw["resourcesVpcConfig"]["vpcId"],
            status=raw["status"],
            endpoint=raw.get("endpoint", ""),
            certificate_authority=raw.get("certificateAuthority", {}).get("data", ""),
        )

    def _try(self, part: Part, right: str, ask: Callable[[], T]) -> T | None:
        """The answer; None, and a note, where there is none."""
        try:
            return ask()
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in _NOT_THERE:
                return None
            cause: Cause = "unreachable"
            if code in _NO_RIGHT:
                cause = "no right"
            elif "Token" in code or "Credential" in code:
                cause = "no credentials"
            self._note(part, right, str(error), cause)
        except BotoCoreError as error:
            lacks = "Credential" in type(error).__name__ or "Token" in type(error).__name__
            self._note(part, right, str(error), "no credentials" if lacks else "unreachable")
        return None

    def _note(self, part: Part, right: str, why: str, cause: Cause) -> None:
        if part not in {each.part for each in self._unread}:
            self._unread.append(Unread(part=part, right=right, why=why, cause=cause))


def _reservation(raw: Mapping[str, Any]) -> SeenReservation:
    return SeenReservation(
        id=raw["CapacityReservationId"],
        type="capacity-block" if raw.get("ReservationType") == "capacity-block" else "default",
        state=raw["State"],
        machine=raw["InstanceType"],
        zone=raw["AvailabilityZone"],
        platform=raw["InstancePlatform"],
        tenancy=raw.get("Tenancy", "default"),
        match=raw.get("InstanceMatchCriteria", "open"),
        total=raw["TotalInstanceCount"],
        free=raw["AvailableInstanceCount"],
        starts=raw.get("StartDate"),
        ends=raw.get("EndDate"),
        placement_group=raw.get("PlacementGroupArn") or None,
    )


def _machine(raw: Mapping[str, Any]) -> SeenMachine:
    gpus = sum(each["Count"] for each in raw.get("GpuInfo", {}).get("Gpus", ()))
    neurons = sum(each["Count"] for each in raw.get("NeuronInfo", {}).get("NeuronDevices", ()))
    network = raw["NetworkInfo"]
    efa = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    cards = network.get("NetworkCards", ())
    return SeenMachine(
        accelerators=gpus or neurons,
        architecture="arm64" if "arm64" in raw["ProcessorInfo"]["SupportedArchitectures"] else "amd64",
        # An account whose region does not say it of each card says it of all together, by the count.
        cards={
            card["NetworkCardIndex"]: "efa-only" in card["InterfaceTypes"] if card.get("InterfaceTypes") else bool(efa)
            for card in cards
        },
        efa_interfaces=efa,
    )


def _tag(raw: Mapping[str, Any], key: str) -> str:
    return next((tag["Value"] for tag in raw.get("Tags", ()) if tag["Key"] == key), "")
