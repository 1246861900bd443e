"""How each fabric shows in NCCL's log."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FabricName = Literal["efa", "tcpx", "tcpxo", "rdma"]


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """What proves one fabric."""

    title: str
    """For people."""
    networks: re.Pattern[str]
    """Names of NCCL's networks that use it."""
    provider: str | None
    """Libfabric's provider that has to be named, since the network's name alone proves nothing; None without one."""
    lists_devices: bool
    """Whether NCCL lists the network's devices, so that they can be counted."""
    sources: tuple[str, ...]

    def is_network(self, name: str) -> bool:
        """Whether a network of this name uses the fabric."""
        return self.networks.fullmatch(name) is not None


FABRICS: Mapping[FabricName, Fabric] = {
    # The name was "AWS Libfabric" until 1.12 of aws-ofi-nccl; OFI where NCCL_NET asks for that.
    "efa": Fabric(
        title="EFA",
        networks=re.compile(r"AWS Libfabric|Libfabric|OFI"),
        provider="efa",
        lists_devices=False,
        sources=(
            "https://github.com/aws/aws-ofi-nccl/blob/master/src/net.cpp",
            "https://github.com/aws/aws-ofi-nccl/issues/803",
        ),
    ),
    # The number is that of NCCL's plugin interface.
    "tcpx": Fabric(
        title="GPUDirect-TCPX",
        networks=re.compile(r"GPUDirectTCPX(?:_v[0-9]+)?"),
        provider=None,
        lists_devices=False,
        sources=("https://github.com/google/nccl-plugin-gpudirecttcpx",),
    ),
    "tcpxo": Fabric(
        title="GPUDirect-TCPXO",
        networks=re.compile(r"FasTrak"),
        provider=None,
        lists_devices=False,
        sources=("https://github.com/GoogleCloudPlatform/container-engine-accelerators/tree/master/gpudirect-tcpxo",),
    ),
    # IBext is HPC-X's plugin, gIB is Google's.
    "rdma": Fabric(
        title="RDMA",
        networks=re.compile(r"IB|IBext(?:_v[0-9]+)?|gIB"),
        provider=None,
        lists_devices=True,
        sources=(
            "https://github.com/NVIDIA/nccl/blob/master/src/transport/net_ib.cc",
            "https://docs.cloud.google.com/ai-hypercomputer/docs/nccl/overview",
        ),
    ),
}
