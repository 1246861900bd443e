"""What in the logs of a probe shows that the fabric is not used, and what it means: a table, the likeliest cause
first, each row from a public report, a manual or the source of the tool that says it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from plumbline.gate.verdict import Certainty
from plumbline.probe.fabrics import Fabric, FabricName
from plumbline.probe.lines import Fact, Line
from plumbline.probe.nccl import Channel, NcclProcess
from plumbline.probe.ofi import OfiPlugin


@dataclass(frozen=True, kw_only=True)
class Process:
    """What one process said, and the node it ran on."""

    node: str
    nccl: NcclProcess
    ofi: OfiPlugin

    @property
    def networks(self) -> frozenset[str]:
        """Networks that it chose or has connections over."""
        channels = (each.network for each in self.nccl.channels if each.transport == "NET")
        return frozenset((*(fact.value for fact in self.nccl.networks), *channels))

    def nics(self, fabric: Fabric) -> list[Fact[int]]:
        """How many network devices of the fabric it found, as often as it says so."""
        if fabric.provider is not None:
            named = [fact for fact in self.ofi.providers if fact.value.name == fabric.provider]
            return [Fact(fact.value.nics, fact.line) for fact in named if fact.value.nics is not None]
        if fabric.lists_devices and self.nccl.devices:
            return [Fact(len(set(self.nccl.devices.value)), self.nccl.devices.line)]
        return []


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What there is to find signs in."""

    fabric: Fabric
    gpu_direct: bool
    nics: int | None
    processes: tuple[Process, ...]
    other: tuple[tuple[str, Line], ...]
    """Lines of no process of NCCL, with the node they come from; empty where nobody knows."""


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """One place where a sign shows."""

    node: str
    line: Line
    values: tuple[str, ...] = ()
    """What fills the cause's places."""

    @property
    def words(self) -> str:
        """The line, with the node it comes from."""
        text = self.line.text.strip()
        return f"{self.node}: {text}" if self.node not in text else text


@dataclass(frozen=True, kw_only=True)
class Sign:
    """One thing that shows, and what follows from it."""

    find: Callable[[Looked], Iterable[Sighting]]
    cause: str
    """With places for what the sightings found."""
    fix: str
    certainty: Certainty
    source: str
    fabrics: tuple[FabricName, ...] = ()
    """Where it means something; empty for everywhere."""
    heals: bool = False
    """Whether another run may go well without anybody doing something."""


def _says(pattern: str, *, unless_used: bool = False) -> Callable[[Looked], Iterator[Sighting]]:
    """Lines that hold a text. With `unless_used`, only of processes that do not use the fabric: they say it in health,
    too.
    """
    text = re.compile(pattern, re.IGNORECASE)

    def find(looked: Looked) -> Iterator[Sighting]:
        for process in looked.processes:
            if unless_used and any(map(looked.fabric.is_network, process.networks)):
                continue
            for said in process.nccl.said:
                if match := text.search(said.message):
                    yield Sighting(node=process.node, line=said.line, values=match.groups())
        if not unless_used:
            for node, line in looked.other:
                if match := text.search(line.text):
                    yield Sighting(node=node, line=line, values=match.groups())

    return find


def _wrong_provider(looked: Looked) -> Iterator[Sighting]:
    for process in looked.processes:
        for fact in process.ofi.providers:
            if fact.value.name != looked.fabric.provider:
                yield Sighting(node=process.node, line=fact.line, values=(fact.value.name,))


def _few_nics(looked: Looked) -> Iterator[Sighting]:
    for process in looked.processes:
        for fact in process.nics(looked.fabric):
            if looked.nics is not None and fact.value < looked.nics:
                yield Sighting(node=process.node, line=fact.line, values=(str(fact.value), str(looked.nics)))


def _sockets(looked: Looked) -> Iterator[Sighting]:
    for process in looked.processes:
        nccl = process.nccl
        used = [fact.line for fact in nccl.networks if fact.value in _SOCKETS]
        used += [each.line for each in nccl.channels if each.transport == "NET" and each.network in _SOCKETS]
        if not process.networks:
            used += [fact.line for fact in nccl.initialized if fact.value in _SOCKETS]
        for line in used:
            yield Sighting(node=process.node, line=line, values=(_socket(line),))


_SOCKETS = frozenset({"Socket", "FastSocket"})


def _socket(line: Line) -> str:
    return "FastSocket" if "FastSocket" in line.text else "Socket"


def _another_network(looked: Looked) -> Iterator[Sighting]:
    for process in looked.processes:
        facts = [*process.nccl.networks]
        facts += [Fact(each.network, each.line) for each in process.nccl.channels if each.transport == "NET"]
        for fact in facts:
            if fact.value not in _SOCKETS and not looked.fabric.is_network(fact.value):
                yield Sighting(node=process.node, line=fact.line, values=(fact.value, looked.fabric.title))


def _mixed_networks(looked: Looked) -> Iterator[Sighting]:
    """Names of the fabric's network that are not everybody's: another plugin, or another version of it."""
    lines: dict[str, list[tuple[str, Line]]] = {}
    for process in looked.processes:
        facts = [*process.nccl.networks]
        facts += [Fact(each.network, each.line) for each in process.nccl.channels if each.transport == "NET"]
        for fact in facts:
            if looked.fabric.is_network(fact.value):
                lines.setdefault(fact.value, []).append((process.node, fact.line))
    if len(lines) > 1:
        nodes = {name: len({node for node, _ in found}) for name, found in lines.items()}
        usual = max(nodes.values())
        rare = [name for name in lines if nodes[name] < usual] or list(lines)
        for name in rare:
            for node, line in lines[name]:
                yield Sighting(node=node, line=line, values=(" and ".join(sorted(lines)),))


def _without_gpu_direct(looked: Looked) -> Iterator[Sighting]:
    """Sides of connections that have no GPU-direct, with whether the other side has it."""
    if not looked.gpu_direct:
        return
    found: list[tuple[str, Channel]] = [
        (process.node, channel)
        for process in looked.processes
        for channel in process.nccl.channels
        if channel.transport == "NET" and looked.fabric.is_network(channel.network)
    ]
    has = {(channel.key, channel.direction) for _, channel in found if channel.gpu_direct}
    for node, channel in found:
        if not channel.gpu_direct:
            other = "send" if channel.direction == "receive" else "receive"
            where = f"the {channel.direction} side"
            if (channel.key, other) in has:
                where += f", while the {other} side has it"
            yield Sighting(node=node, line=channel.line, values=(where,))


def _gpu_direct_disabled(looked: Looked) -> Iterator[Sighting]:
    """Why connections have none; a device that carries no connection, such as one for storage, needs none."""
    lack = {sighting.node for sighting in _without_gpu_direct(looked)}
    for process in looked.processes:
        if process.node in lack:
            for fact in process.nccl.direct:
                if not fact.value.enabled:
                    yield Sighting(node=process.node, line=fact.line)


def _nvlink_between_nodes(looked: Looked) -> Iterator[Sighting]:
    for process in looked.processes:
        for channel in process.nccl.channels:
            if channel.transport == "P2P" and "MNNVL" in channel.network.split("/"):
                yield Sighting(node=process.node, line=channel.line)


_DEVICES_IN_POD = (
    "the pod got no EFA device: request vpc.amazonaws.com/efa under limits in the number that the nodes have; where it "
    "does, an operator may have replaced the resources: look at the pod itself"
)
_TCPXO_NETWORKS = (
    "the node pool's additional networks have to be its GPU networks, in order, and nothing else: one that is too many "
    "or out of order takes a GPU's place; this needs a new node pool"
)

SIGNS: tuple[Sign, ...] = (
    Sign(
        find=_says(r"GPUs detected in the PCI tree (0) is not equal to .* reported by CUDA (\d+)"),
        cause="RxDM sees {0} of {1} GPUs: it has no /sys mount of the host to find them in",
        fix="mount the host's /sys at /hostsysfs in the daemon's container",
        certainty=Certainty.LIKELY,
        source="https://github.com/NVIDIA/aicr/pull/1662",
        fabrics=("tcpx", "tcpxo"),
    ),
    Sign(
        find=_says(r"GPUs detected in the PCI tree ([1-9]\d*) is not equal to .* reported by CUDA (\d+)"),
        cause="RxDM sees {0} of {1} GPUs: another network interface is in the place of a GPU network's",
        fix=_TCPXO_NETWORKS,
        certainty=Certainty.LIKELY,
        source="https://github.com/NVIDIA/aicr/pull/1662",
        fabrics=("tcpx", "tcpxo"),
    ),
    Sign(
        find=_says(r"NET/FasTrak connect\(\) error: \d+: Connection refused"),
        cause="RxDM's socket answers connection refused: the daemon beside the job does not run",
        fix="read the log of the RxDM container: it stops when it cannot find every GPU, and may exit with 0",
        certainty=Certainty.CERTAIN,
        source="https://github.com/GoogleCloudPlatform/container-engine-accelerators/issues/580",
        fabrics=("tcpxo",),
        heals=True,  # the job may have been there before the daemon
    ),
    Sign(
        find=_says(r"version `(GLIBC_[0-9.]+)' not found.*libnccl-net", unless_used=True),
        cause="NCCL cannot load the network plugin: the image's C library has no {0}",
        fix="use an image with a newer C library; the plugin comes from the node, and needs it",
        certainty=Certainty.CERTAIN,
        source="https://github.com/AI-Hypercomputer/gpu-recipes/issues/5",
    ),
    Sign(
        find=_says(r"NET/gIB : No device found"),
        cause="gIB was loaded and finds no RDMA device in the pod",
        fix="the pod has to ask for its networks, and for all GPUs of the node: look at its interfaces, and at the "
        "Network objects of the cluster",
        certainty=Certainty.CERTAIN,
        source="https://github.com/NVIDIA-NeMo/Automodel/issues/3843",
        fabrics=("rdma",),
    ),
    Sign(
        find=_says(r"No NCCL_TUNER_CONFIG_PATH provided"),
        cause="gIB's tuner has no configuration",
        fix="source /usr/local/gib/scripts/set_nccl_env.sh before the job starts",
        certainty=Certainty.CERTAIN,
        source="https://llm-d.ai/docs/dev/guides/recipes/modelserver/components/disable-gke-nccl-tuner-patch",
        fabrics=("rdma",),
    ),
    Sign(
        find=_says(r"No eligible providers were found|Could not find any optimal provider", unless_used=True),
        cause="aws-ofi-nccl has no eligible providers: no EFA device is there",
        fix=_DEVICES_IN_POD,
        certainty=Certainty.CERTAIN,
        source="https://github.com/aws-samples/aws-do-eks/pull/54",
        fabrics=("efa",),
    ),
    Sign(
        find=_says(r"fi_getinfo: -61\b|fi_getinfo: provider efa output empty list"),
        cause="libfabric finds no EFA device in the pod",
        fix=_DEVICES_IN_POD,
        certainty=Certainty.CERTAIN,
        source="https://github.com/aws-samples/aws-do-eks/pull/56",
        fabrics=("efa",),
    ),
    Sign(
        find=_wrong_provider,
        cause="aws-ofi-nccl uses libfabric's provider {0}, not efa",
        fix=f"unset FI_PROVIDER; {_DEVICES_IN_POD}",
        certainty=Certainty.CERTAIN,
        source="https://github.com/aws/aws-ofi-nccl/issues/803",
        fabrics=("efa",),
    ),
    Sign(
        find=_says(r"NET/OFI Only EFA provider is supported"),
        cause="aws-ofi-nccl found another provider than efa, and refused it",
        fix=_DEVICES_IN_POD,
        certainty=Certainty.CERTAIN,
        source="https://github.com/aws/deep-learning-containers/issues/2675",
        fabrics=("efa",),
    ),
    Sign(
        find=_says(r"GDR disabled on GDR-supported instance type"),
        cause="aws-ofi-nccl has no GPU-direct on a machine that can do it",
        fix="the driver of EFA or of the GPU is too old, or dma-buf and peer memory are both missing: use an AMI "
        "release that has them",
        certainty=Certainty.CERTAIN,
        source="https://github.com/aws/aws-ofi-nccl/blob/master/src/platform-aws.cpp",
        fabrics=("efa",),
    ),
    Sign(
        find=_says(r"Error: 4126\b"),
        cause="EFA's handshake failed (error 4126): the security group does not let the nodes reach each other",
        fix="the nodes' security group has to allow all traffic (protocol -1) to itself and from itself, by its id",
        certainty=Certainty.LIKELY,
        source="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html",
        fabrics=("efa",),
    ),
    Sign(
        find=_says(r"Call to (ibv_\w+) failed.*Cannot allocate memory"),
        cause="the memlock limit is too low: {0} cannot pin memory",
        fix="raise memlock to unlimited in the nodes' container runtime, or run as root with IPC_LOCK: for another "
        "user the capability is not effective",
        certainty=Certainty.LIKELY,
        source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/2037",
    ),
    Sign(
        find=_few_nics,
        cause="{0} of {1} network devices are there",
        fix="compare the pod's devices with the node's, and the node's with its launch template or node pool; replace "
        "a node that lacks some",
        certainty=Certainty.CERTAIN,
        source="https://github.com/aws/aws-ofi-nccl/blob/master/src/net.cpp",
    ),
    Sign(
        find=_gpu_direct_disabled,
        cause="NCCL cannot use GPU-direct with a network device: peer memory and dma-buf are both missing",
        fix="load nvidia-peermem on the node, or use a kernel and driver with dma-buf",
        certainty=Certainty.LIKELY,
        source="https://github.com/NVIDIA/nccl/issues/897",
        fabrics=("rdma",),
    ),
    Sign(
        find=_without_gpu_direct,
        cause="connections between nodes have no GPU-direct on {0}",
        fix="compare drivers, kernel modules and NCCL_NET_GDR_LEVEL of these nodes with those of nodes that have it",
        certainty=Certainty.CERTAIN,
        source="https://github.com/NVIDIA/nccl/issues/897",
    ),
    Sign(
        find=_says(r"NET/GPUDirectTCPX : GPUDirectTCPX enable: (0)"),
        cause="GPU-direct is switched off in the TCPX plugin (enable: {0})",
        fix="take the plugin's environment from its installer, and set nothing of it by hand",
        certainty=Certainty.CERTAIN,
        source="https://github.com/google/nccl-plugin-gpudirecttcpx/blob/main/src/net_tcpx.cc",
        fabrics=("tcpx",),
    ),
    Sign(
        find=_nvlink_between_nodes,
        cause="data go between nodes over NVLink (MNNVL), which says nothing of the network",
        fix="set NCCL_MNNVL_ENABLE=0 in the probe",
        certainty=Certainty.CERTAIN,
        source="https://github.com/NVIDIA/aicr/pull/640",
    ),
    Sign(
        find=_another_network,
        cause="NCCL uses the network {0}, which is not {1}",
        fix="set NCCL_NET to the fabric's network, so that another one is an error",
        certainty=Certainty.CERTAIN,
        source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-net",
    ),
    Sign(
        find=_mixed_networks,
        cause="the ranks use networks of different names, {0}: some nodes have another plugin, or another version",
        fix="give all nodes and images the same plugin; ranks that do not agree hang when they connect",
        certainty=Certainty.CERTAIN,
        source="https://github.com/NVIDIA/nccl/issues/234",
    ),
    Sign(
        find=_says(r"Error: network (\S+) not found"),
        cause="NCCL has no network {0}, which NCCL_NET asks for: its plugin is not there or did not load",
        fix="put the plugin's folder first in LD_LIBRARY_PATH, and use an image that can load it",
        certainty=Certainty.LIKELY,
        source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-net",
    ),
    Sign(
        find=_says(r"NET/Plugin ?: ?(?:No plugin found|Could not find)", unless_used=True),
        cause="NCCL found no network plugin in the image",
        fix="put libnccl-net.so into the image or mount it, and its folder into LD_LIBRARY_PATH; a framework that "
        "brings its own NCCL looks there as well",
        certainty=Certainty.LIKELY,
        source="https://github.com/awslabs/awsome-distributed-ai/issues/540",
        fabrics=("efa", "tcpx", "tcpxo"),
    ),
    Sign(
        find=_says(r"NET/IB : No device found", unless_used=True),
        cause="NCCL finds no RDMA device in the pod",
        fix="the pod has to request the RDMA resource, and needs /dev/infiniband",
        certainty=Certainty.LIKELY,
        source="https://github.com/areal-project/AReaL/issues/639",
        fabrics=("rdma",),
    ),
    Sign(
        find=_says(
            r"aws-ofi-nccl initialization failed|Unable to find a protocol that worked|"
            r"Failed to initialize any NET plugin|Failed to initialize NET plugin (?:AWS )?(?:Libfabric|OFI|gIB|"
            r"FasTrak|GPUDirectTCPX)",
            unless_used=True,
        ),
        cause="the fabric's network plugin was loaded and could not start",
        fix="look at the lines before it on that rank, with NCCL_DEBUG=INFO",
        certainty=Certainty.NOT_KNOWN,
        source="https://github.com/NVIDIA/nccl/blob/master/src/plugin/net.cc",
    ),
    Sign(
        find=_sockets,
        cause="NCCL fell back to TCP (NET plugin {0}): the fabric is not used",
        fix="mend what is named above; if nothing is, set NCCL_NET to the fabric's network and read why it fails",
        certainty=Certainty.NOT_KNOWN,
        source="https://github.com/NVIDIA/nccl/blob/master/src/plugin/net.cc",
    ),
)
