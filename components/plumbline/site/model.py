"""What the user writes: the models of the one declaration. Docstrings under fields are what editors show."""

from datetime import timedelta
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from plumbline.site.duration import Duration

Name = Annotated[str, Field(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=40)]
Zone = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9][a-g]$", examples=["us-west-2b"])]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, strict=False)


class Network(_Model):
    """The VPC that is built for the site."""

    cidr: IPv4Network = Field(examples=["10.20.0.0/16"])
    """Its IPv4 range. Each zone's subnet takes an eighth of it, by the zone's letter, so a new zone moves nobody."""
    zones: tuple[Zone, ...] = ()
    """Zones that get a subnet besides those of the pools. EKS wants two zones in all."""


class Cluster(_Model):
    """The Kubernetes cluster."""

    version: Annotated[str, Field(pattern=r"^1\.[0-9]{2}$", examples=["1.34"])]
    """Kubernetes minor version, in quotes. Part of a pool's generation: a new one builds new nodes."""


class Reservation(_Model):
    """Capacity that was reserved: a targeted on-demand capacity reservation. The pool never falls back to on-demand."""

    kind: Literal["reservation"]
    id: Annotated[str, Field(pattern=r"^cr-[0-9a-f]{8,17}$", examples=["cr-0a1b2c3d4e5f60718"])]
    """The reservation's id."""
    zone: Zone
    """The zone that the reservation is in. The hardware is there, and the pool's only subnet is, too."""


class OnDemand(_Model):
    """Capacity as it comes: for machines that are not scarce. Nothing is reserved."""

    kind: Literal["on-demand"]
    zone: Zone
    """The zone of the pool's only subnet; EFA does not cross zones."""


Capacity = Annotated[Reservation | OnDemand, Field(discriminator="kind")]


class Pool(_Model):
    """Nodes of one machine type in one zone, bound to one capacity."""

    name: Name
    """Lower-case letters, digits and hyphens. It is part of the names of what is created."""
    machine: Annotated[str, Field(examples=["p5.48xlarge"])]
    """The machine type. Interfaces, labels, counts and plugins follow from it."""
    nodes: Annotated[int, Field(ge=1, le=5000)]
    """How many nodes, exactly: training jobs have a size."""
    capacity: Capacity
    """What pays for the nodes: `reservation` or `on-demand`."""
    fabric: Literal["efa", "none"]
    """The RDMA network that has to be proven: `efa`, or `none` for a pool that does not need one."""
    ami_release: Annotated[str | None, Field(examples=["1.34.2-20260224"])] = None
    """Release of the EKS AMI. Unset: the newest at the time of creation, for that generation's whole life."""
    on_destroy: Literal["refuse", "wait", "evict"] = "refuse"
    """What deleting the pool does while training pods run there: refuse, wait for them to end, or evict them."""


class Plugin(_Model):
    """A device plugin's DaemonSet."""

    image: Annotated[str | None, Field(min_length=3, pattern=r"^[^\s]+(:[^\s:/]+|@sha256:[0-9a-f]{64})$")] = None
    """Image with a tag or a digest. Unset: the pinned default of the catalogue."""


class Plugins(_Model):
    """The device plugins. They follow from the pools; only their images can be chosen."""

    efa: Plugin = Plugin()
    """Advertises `vpc.amazonaws.com/efa`."""
    nvidia: Plugin = Plugin()
    """Advertises `nvidia.com/gpu`."""


class Proof(_Model):
    """How the gate proves a pool."""

    within: Duration = timedelta(minutes=30)
    """The gate's one deadline: how long a pool may take, from its nodes' start, to be proven."""
    stable: Duration = timedelta(seconds=60)
    """How long every node must advertise the right counts without a break. Under a minute a flap goes unseen."""
    valid: Duration = timedelta(days=7)
    """How old a proof may be before the next `pulumi up` makes a new one."""


class Site(_Model):
    """One cluster for training, in one region of one cloud."""

    name: Name
    """The site's name: part of the names of what is created."""
    cloud: Literal["aws"]
    """The cloud."""
    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$", examples=["us-west-2"])]
    """The region of everything."""
    network: Network
    cluster: Cluster
    pools: Annotated[tuple[Pool, ...], Field(min_length=1)]
    """The GPU pools: one at least."""
    plugins: Plugins = Plugins()
    proof: Proof = Proof()
