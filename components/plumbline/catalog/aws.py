"""The AWS facts in `aws.toml`, typed and checked when they are loaded."""

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import Field, model_validator

from plumbline.catalog.facts import FactCatalogue, Facts

CapacityKind = Literal["on-demand", "reservation", "reservation-group", "capacity-block"]
Accelerator = Literal["nvidia", "neuron"]


class Machine(Facts):
    """What one EC2 instance type is, as far as a plan or a gate depends on it."""

    accelerator: Accelerator
    """Whose accelerators it has: the device plugin and the resource follow from it."""
    model: str
    """The accelerator's name, for people."""
    accelerators: int = Field(gt=0)
    """GPUs, or Neuron devices: what a node has to advertise."""
    architecture: str = Field(pattern="^(amd64|arm64)$")
    """The architecture of its images, in Kubernetes' spelling."""
    network_cards: int = Field(gt=0)
    """Network cards, with indexes from 0."""
    cards_without_efa: tuple[int, ...]
    """Indexes of the cards that get no EFA interface: they take none, or share their port with one that has it."""
    interfaces_per_card: int = Field(gt=0)
    efa_gbps: int = Field(gt=0)
    """Line rate of all EFA interfaces together, in 10^9 bit/s: what a floor of bandwidth is a share of."""
    topology_layers: int = Field(ge=0)
    """How many `topology.k8s.aws/network-node-layer-N` labels its nodes get; layer 1 is the top."""
    ami_type: str
    """EKS's name for the AMI that has its drivers."""
    capacity_kinds: tuple[CapacityKind, ...] = Field(min_length=1)
    """The kinds of capacity that AWS sells it by."""
    kubernetes_floor: str | None = None
    """The oldest Kubernetes version that it works with; None where every version that EKS offers does."""
    driver_floor: str | None = None
    """The oldest NVIDIA driver that it works with; None where every current one does."""
    efa_plugin_floor: str | None = None
    """The oldest EFA device plugin that counts its devices right; None where every one does."""
    network_proof: bool = True
    """Whether transport and bandwidth can be proven on it; if not, those phases of the gate do not apply."""

    @property
    def efa_interfaces(self) -> int:
        """EFA interfaces at most, one on each card that gets one: what a node has to advertise."""
        return self.network_cards - len(self.cards_without_efa)


class PluginFacts(Facts):
    """What makes devices known to Kubernetes: the resource or DRA driver, and the image that is the default."""

    resource: str
    """The extended resource that it advertises, or the DRA driver whose ResourceSlices it publishes."""
    image: str
    repository: str | None = None
    """Its name in EKS's own registries, for regions that pull from there; None for one that is published elsewhere."""


class RegistryFacts(Facts):
    """Accounts of the registries that hold EKS's own images."""

    default: str
    accounts: Mapping[str, str]

    def registry(self, region: str) -> str:
        """Host of the region's registry."""
        domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        return f"{self.accounts.get(region, self.default)}.dkr.ecr.{region}.{domain}"


class EksFacts(Facts):
    """Limits of EKS."""

    kubernetes_versions: tuple[str, ...]
    cluster_zones: int
    nodegroup_name_length: int
    role_name_length: int
    cluster_name_length: int
    dra_kubernetes_floor: str
    """From this version on EFA devices can be given out by DRA."""
    cni_efa_only_floor: str
    """The oldest VPC CNI that leaves `efa-only` interfaces alone."""
    lustre_efa_feature: str
    """The feature gate of nodeadm that makes a node an EFA client of FSx for Lustre."""
    private_endpoints: tuple[str, ...]
    """Services whose interface endpoints a node needs that has no way out; S3 comes by a gateway endpoint."""


class AddonFacts(Facts):
    """EKS add-ons of a cluster that is built here: the pinned version, by Kubernetes version."""

    vpc_cni: Mapping[str, str]
    coredns: Mapping[str, str]
    kube_proxy: Mapping[str, str]
    pod_identity_agent: Mapping[str, str]
    fsx_csi_driver: Mapping[str, str]


class AwsCatalogue(FactCatalogue):
    """Everything in `aws.toml`."""

    machine_sources: Mapping[str, str]
    """Sources of machines' facts, where a machine does not name its own."""
    machines: Mapping[str, Machine]
    plugins: Mapping[str, PluginFacts]
    registries: RegistryFacts
    eks: EksFacts
    addons: AddonFacts

    @model_validator(mode="before")
    @classmethod
    def _machines_have_the_common_sources(cls, raw: dict[str, Any]) -> dict[str, Any]:
        common = raw.get("machine_sources", {})
        machines = {
            name: {**facts, "sources": {**common, **facts.get("sources", {})}}
            for name, facts in raw["machines"].items()
        }
        return {**raw, "machines": machines}

    @property
    def tables(self) -> Sequence[Facts]:
        """Every table of facts."""
        return [*self.machines.values(), *self.plugins.values(), self.registries, self.eks, self.addons]


@cache
def aws_catalogue() -> AwsCatalogue:
    """The catalogue that is shipped with this version."""
    text = files("plumbline.catalog").joinpath("aws.toml").read_text("utf-8")
    raw: dict[str, Any] = tomllib.loads(text)
    return AwsCatalogue.model_validate(raw)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that look like `name`, the most alike first; for "did you mean"."""
    return difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
