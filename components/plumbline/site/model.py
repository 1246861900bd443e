"""What the user writes: the models of the one declaration. Docstrings under fields are what editors show."""

from collections.abc import Mapping
from datetime import timedelta
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from plumbline.site.duration import Duration

Name = Annotated[str, Field(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=40)]
ReservationId = Annotated[str, Field(pattern=r"^cr-[0-9a-f]{8,17}$", examples=["cr-0a1b2c3d4e5f60718"])]
SubnetId = Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$", examples=["subnet-0a1b2c3d4e5f60718"])]
Zone = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9][a-g]$", examples=["us-west-2b"])]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, strict=False)


class ExistingNetwork(_Model):
    """A VPC that somebody else owns: nothing in it is changed, apart from a security group that is added."""

    vpc: Annotated[str, Field(pattern=r"^vpc-[0-9a-f]{8,17}$", examples=["vpc-0a1b2c3d4e5f60718"])]
    """Its id."""
    subnets: Annotated[Mapping[Zone, SubnetId], Field(min_length=1, examples=[{"us-west-2b": "subnet-0a1b2c3d"}])]
    """One private subnet for each zone: a subnet that gives public addresses takes no node with several interfaces."""


class Network(_Model):
    """The VPC: built for the site (`cidr`), or one that exists (`existing`)."""

    cidr: Annotated[IPv4Network | None, Field(examples=["10.20.0.0/16"])] = None
    """IPv4 range of the new VPC. Each zone's subnet takes an eighth of it, by the zone's letter, so a new zone moves
    nobody."""
    existing: ExistingNetwork | None = None
    """A VPC to build in, instead of a new one."""
    zones: tuple[Zone, ...] = ()
    """Zones of a new VPC that get a subnet besides those of the pools. EKS wants two zones in all."""
    egress: Literal["nat", "endpoints"] = "nat"
    """The way out of a new VPC: a NAT gateway, or only endpoints of the AWS services that nodes need."""


AddonVersion = Annotated[
    str, Field(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+$", examples=["v1.21.1-eksbuild.1"])
]


class Addons(_Model):
    """Versions of a new cluster's EKS add-ons. Unset: the one that the catalogue pins for the Kubernetes version."""

    vpc_cni: AddonVersion | None = None
    """`vpc-cni`, which gives pods their addresses."""
    coredns: AddonVersion | None = None
    """`coredns`."""
    kube_proxy: AddonVersion | None = None
    """`kube-proxy`."""
    pod_identity_agent: AddonVersion | None = None
    """`eks-pod-identity-agent`, by which pods get AWS rights of their own."""
    fsx_csi_driver: AddonVersion | None = None
    """`aws-fsx-csi-driver`; installed where the site has storage."""


class SystemPool(_Model):
    """The nodes of a new cluster for everything that is no training: DNS and controllers."""

    machine: Annotated[str, Field(pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$")] = "m6i.xlarge"
    """An x86-64 machine type without GPUs."""
    nodes: Annotated[int, Field(ge=1, le=20)] = 2
    """How many, spread over the site's zones."""


LogType = Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]


class Cluster(_Model):
    """The EKS cluster: built for the site, or one that exists."""

    version: Annotated[str, Field(pattern=r"^1\.[0-9]{2}$", examples=["1.34"])]
    """Kubernetes minor version, in quotes. Part of a pool's generation: a new one builds new nodes."""
    existing: Annotated[str | None, Field(pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]*$", max_length=100)] = None
    """Name of a cluster to adopt. Its control plane, add-ons and other node groups are left as they are; it is reached
    by the AWS CLI's credentials or, where `plumbline:kubeconfig` is set as a secret, by that kubeconfig."""
    endpoint: Literal["public", "private"] = "public"
    """Whether the API server can also be reached from outside the VPC. Nodes always reach it inside."""
    public_cidrs: Annotated[tuple[IPv4Network, ...], Field(min_length=1)] = (IPv4Network("0.0.0.0/0"),)
    """Who reaches a public endpoint."""
    administrators: tuple[Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/.+$")], ...] = ()
    """Roles or users that administer the cluster, besides whoever builds it."""
    logs: tuple[LogType, ...] = ("audit", "authenticator")
    """What the control plane writes to CloudWatch Logs."""
    log_days: Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731] = 90
    """How long its logs are kept, in days."""
    secrets_key: Annotated[str | None, Field(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/.+$")] = None
    """A KMS key of yours for the cluster's secrets. Unset: EKS encrypts them with its own. It cannot change."""
    addons: Addons = Addons()
    system: SystemPool = SystemPool()


class Reservation(_Model):
    """Capacity that was reserved: a targeted on-demand capacity reservation. The pool never falls back to on-demand."""

    kind: Literal["reservation"]
    id: ReservationId
    """The reservation's id."""
    zone: Zone
    """The zone that the reservation is in. The hardware is there, and the pool's only subnet is, too."""
    placement_group: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9 ._-]{1,255}$")] = None
    """Name of the cluster placement group that the reservation was made in, if it was: it is used from nowhere else."""


class ReservationGroup(_Model):
    """A resource group of on-demand capacity reservations. The pool never falls back to on-demand."""

    kind: Literal["reservation-group"]
    arn: Annotated[
        str,
        Field(
            pattern=r"^arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:[0-9]{12}:group/[A-Za-z0-9_.-]+$",
            examples=["arn:aws:resource-groups:us-west-2:123456789012:group/h100"],
        ),
    ]
    """The group's ARN."""
    zone: Zone
    """The zone that the pool is in; reservations of the group in other zones are not used."""


class CapacityBlock(_Model):
    """Capacity that was bought for a time. Before it starts, the pool has no nodes and its proof is deferred."""

    kind: Literal["capacity-block"]
    id: ReservationId
    """The reservation's id. When it starts and ends is read from AWS."""
    zone: Zone
    """The zone that the block is in."""


class OnDemand(_Model):
    """Capacity as it comes: for machines that are not scarce. Nothing is reserved."""

    kind: Literal["on-demand"]
    zone: Zone
    """The zone of the pool's only subnet; EFA does not cross zones."""
    placement: Literal["cluster", "none"] = "cluster"
    """Whether nodes with a fabric are placed close together, in a cluster placement group of the pool's own."""


Capacity = Annotated[Reservation | ReservationGroup | CapacityBlock | OnDemand, Field(discriminator="kind")]


class Image(_Model):
    """An AMI of your own, instead of a release of EKS's. Whether it has the drivers is yours to see to."""

    id: Annotated[str, Field(pattern=r"^ami-[0-9a-f]{8,17}$", examples=["ami-0a1b2c3d4e5f60718"])]
    """Its id."""
    user_data: str | None = None
    """What makes its instances join. Unset, for an image with nodeadm (AL2023): a NodeConfig with the cluster, the
    labels, and the taints from birth. EKS adds nothing to it."""


class Pool(_Model):
    """Nodes of one machine type in one zone, bound to one capacity."""

    name: Name
    """Lower-case letters, digits and hyphens. It is part of the names of what is created."""
    machine: Annotated[str, Field(examples=["p5.48xlarge"])]
    """The machine type. Interfaces, labels, counts and plugins follow from it."""
    nodes: Annotated[int, Field(ge=1, le=5000)]
    """How many nodes, exactly: training jobs have a size."""
    capacity: Capacity
    """What pays for the nodes: `reservation`, `reservation-group`, `capacity-block` or `on-demand`."""
    fabric: Literal["efa", "none"]
    """The RDMA network that has to be proven: `efa`, or `none` for a pool that does not need one."""
    devices: Literal["plugin", "dra"] = "plugin"
    """How EFA devices are given to pods: by the device plugin, or by Dynamic Resource Allocation (dranet)."""
    layout: Literal["current", "legacy"] = "current"
    """Where interfaces sit: `current` has an ordinary interface and `efa-only` ones beside it, and works on every
    machine; `legacy` has `efa` on card 0 and device 1 on the others, as older tools made it."""
    ami_release: Annotated[str | None, Field(examples=["1.34.2-20260224"])] = None
    """Release of the EKS AMI. Unset: the newest at the time of creation, for that generation's whole life."""
    image: Image | None = None
    """An AMI of your own, instead of `ami_release`."""
    storage: tuple[Name, ...] = ()
    """Names of file systems that its nodes mount."""
    on_destroy: Literal["refuse", "wait", "evict"] = "refuse"
    """What deleting the pool does while training pods run there: refuse, wait for them to end, or evict them."""


class Repository(_Model):
    """An S3 bucket that a file system shows as a folder."""

    s3: Annotated[str, Field(pattern=r"^s3://[a-z0-9.-]{3,63}(/.*)?$", examples=["s3://datasets/imagenet"])]
    """The bucket, and a prefix in it."""
    path: Annotated[str, Field(pattern=r"^/.+$", examples=["/datasets"])]
    """The folder of the file system."""
    imports: tuple[Literal["NEW", "CHANGED", "DELETED"], ...] = ("NEW", "CHANGED", "DELETED")
    """What is taken over from the bucket by itself."""
    exports: tuple[Literal["NEW", "CHANGED", "DELETED"], ...] = ()
    """What is written back to the bucket by itself."""


class Lustre(_Model):
    """An FSx for Lustre file system (PERSISTENT_2 on SSD), made for the site."""

    name: Name
    kind: Literal["fsx-lustre"]
    zone: Zone
    """The zone of its only subnet: that of the pools that mount it."""
    capacity_gib: Annotated[int, Field(gt=0, examples=[19200])]
    """Its size in GiB, in the steps that FSx has. It can grow, and never shrink."""
    throughput_mbps_per_tib: Annotated[int, Field(gt=0, examples=[250])]
    """Throughput in MB/s for each TiB (of 1000 GiB) of its size. With `efa` it cannot change."""
    efa: bool = False
    """Whether clients reach it by EFA. It cannot be changed later, and asks for larger steps of size."""
    metadata_iops: Annotated[int | None, Field(gt=0, examples=[12000])] = None
    """Metadata operations per second, in the steps that FSx has. Unset: as many as the size brings."""
    compression: Literal["lz4", "none"] = "none"
    """Compression of what is written from then on."""
    backup_days: Annotated[int, Field(ge=0)] = 0
    """How many days a daily backup is kept; 0 for none. One that is linked to S3 cannot be backed up."""
    repository: Repository | None = None
    on_destroy: Literal["refuse", "keep", "delete"] = "refuse"
    """What `pulumi destroy`, or a change that needs another file system, does with the data: refuse, let go of it and
    leave it in the account, or delete it."""


class ExistingLustre(_Model):
    """An FSx for Lustre file system that somebody else owns: it is mounted, and never changed."""

    name: Name
    kind: Literal["fsx-lustre-existing"]
    id: Annotated[str, Field(pattern=r"^fs-[0-9a-f]{8,17}$", examples=["fs-0a1b2c3d4e5f60718"])]
    """Its id."""
    zone: Zone
    """The zone that it is in."""
    efa: bool = False
    """Whether it was made with EFA."""


Storage = Annotated[Lustre | ExistingLustre, Field(discriminator="kind")]


class Plugin(_Model):
    """A device plugin's DaemonSet."""

    image: Annotated[str | None, Field(min_length=3, pattern=r"^[^\s]+(:[^\s:/]+|@sha256:[0-9a-f]{64})$")] = None
    """Image with a tag or a digest. Unset: the pinned default of the catalogue."""
    install: bool = True
    """Whether it is installed. `false` where the cluster has one of its own already; the gate looks either way."""


class Plugins(_Model):
    """The device plugins. They follow from the pools; only their images can be chosen."""

    efa: Plugin = Plugin()
    """Advertises `vpc.amazonaws.com/efa`."""
    nvidia: Plugin = Plugin()
    """Advertises `nvidia.com/gpu`."""
    neuron: Plugin = Plugin()
    """Advertises `aws.amazon.com/neuron`, on Trainium."""
    dranet: Plugin = Plugin()
    """Publishes EFA devices as ResourceSlices, for pools whose `devices` is `dra`."""


class Proof(_Model):
    """How the gate proves a pool."""

    within: Duration = timedelta(minutes=30)
    """The gate's one deadline: how long a pool may take, from its nodes' start, to be proven."""
    stable: Duration = timedelta(seconds=60)
    """How long every node must advertise the right counts without a break. Under a minute a flap goes unseen."""
    valid: Duration = timedelta(days=7)
    """How old a proof may be before the next `pulumi up` makes a new one."""
    account: Literal["require", "warn"] = "require"
    """Whether the account's reservations and machines must be readable and agree before anything is built, or whether
    what cannot be read is only said. What is read and does not agree always stops."""
    accept_deferred: Annotated[str | None, Field(min_length=10)] = None
    """A reason, with which a pool whose capacity has not begun lets the stack complete unproven. Unset: the update
    stays blocked until the capacity begins and the pool is proven."""


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
    storage: tuple[Storage, ...] = ()
    """File systems, mounted by the pools that name them."""
    plugins: Plugins = Plugins()
    proof: Proof = Proof()
