"""What a container does on a node: a pure function of its image, the machine, and the faults that are on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from twin.nodes.registry import PullFailure, pull
from twin.world import Instance

GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
NEURON, NEURON_CORE = "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"
EFA_DRIVER = "dra.net"
_NOW = "2026/01/05 09:12:44"
PLUGINS = "/var/lib/kubelet/device-plugins"
"""Where kubelet and device plugins meet, on every node."""
DRIVERS = ("/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins_registry", "/var/run/nri")
"""Where DRA drivers meet the kubelet and the container runtime."""
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a folder
"""Where a container finds its token for the API server; the API server mounts it, unless the pod wants none."""
RUN_SECONDS = "twin.plumbline.dev/run-seconds"
"""Annotation of a pod whose containers end by themselves, in success, after so many seconds."""


@dataclass(frozen=True, kw_only=True)
class Exits:
    """The container ends at once."""

    code: int
    log: str


@dataclass(frozen=True, kw_only=True)
class Runs:
    """The container keeps running."""

    log: str = ""
    advertises: Mapping[str, int] = field(default_factory=dict)
    """Devices that it registers with the kubelet."""
    publishes: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    """Devices that it publishes in ResourceSlices, by DRA driver."""
    flaps: bool = False
    """Whether they come and go."""
    seconds: float | None = None
    """After which it ends in success; None for never."""


Behaviour = PullFailure | Exits | Runs


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A node as its containers find it."""

    instance: Instance
    first: bool
    """Whether it is the one that faults of one node concern: the first of its group by name."""

    def efa_devices(self, faults: Collection[str]) -> int:
        """EFA devices that a program on it can open."""
        if "plugin-crashloop" in faults or (self.first and "one-node-without-efa" in faults):
            return 0
        return self.instance.efa_interfaces


def behave(
    reference: str,
    machine: Machine,
    faults: Collection[str],
    annotations: Mapping[str, str] | None = None,
    *,
    mounted: Collection[str] = (PLUGINS, *DRIVERS, TOKEN),
) -> Behaviour:
    """What happens when a container of this image is started.

    Plugins need folders of the kubelet's, and some a token; `mounted` holds those of the host's that are mounted, and
    `TOKEN` if that is.
    """
    image = pull(reference, faults)
    if isinstance(image, PullFailure):
        return image
    if not image.runs_on(machine.instance.architecture):
        return Exits(code=1, log=f"exec {image.executable}: exec format error\n")
    needed = {"": (), "dranet": (*DRIVERS[:2], TOKEN), "neuron": (PLUGINS, TOKEN)}.get(image.plugin, (PLUGINS,))
    if lacking := [folder for folder in needed if folder not in mounted]:
        within = {PLUGINS: "kubelet.sock", TOKEN: "token"}.get(lacking[0], "dra.net")
        return Exits(code=1, log=f"{_NOW} dial unix {lacking[0]}/{within}: connect: no such file or directory\n")
    match image.plugin:
        case "efa":
            return _efa_plugin(machine, faults, counts_nvlink=image.counts_nvlink)
        case "dranet":
            return _dranet(machine, faults, reaches_runtime=DRIVERS[2] in mounted)
        case "neuron":
            return _neuron_plugin(machine.instance)
        case "nvidia":
            return _nvidia_plugin(machine.instance)
        case _:
            seconds = (annotations or {}).get(RUN_SECONDS)
            return Runs(seconds=float(seconds) if seconds else None)


def _efa_plugin(machine: Machine, faults: Collection[str], *, counts_nvlink: bool) -> Behaviour:
    """https://github.com/aws/sagemaker-hyperpod-cli/issues/367 shows what it writes; the %v is its own."""
    head = f"{_NOW} Fetching EFA devices.\n"
    devices = machine.efa_devices(faults)
    if devices == 0:
        return Exits(code=1, log=head + f"{_NOW} Error to get IB device: %v. No valid EFA devices found\n")
    if machine.first and "one-node-advertises-fewer" in faults:
        devices -= 1
    if counts_nvlink and machine.instance.machine == "p6-b200.48xlarge":
        devices += 2
    log = head + f"{_NOW} Registered device plugin for {EFA} with Kubelet, {devices} devices\n"
    return Runs(log=log, advertises={EFA: devices}, flaps=machine.first and "advertised-then-lost" in faults)


def _nvidia_plugin(instance: Instance) -> Behaviour:
    """https://github.com/zalando-incubator/kubernetes-on-aws/pull/8468 shows what it writes without a device."""
    if instance.gpus == 0:
        return Runs(log="I0105 09:12:44.986562       1 main.go:346] No devices found. Waiting indefinitely.\n")
    return Runs(
        log=f"I0105 09:12:44.986562       1 server.go:117] Registered device plugin for '{GPU}' with Kubelet\n",
        advertises={GPU: instance.gpus},
    )


_KLOG = "0105 09:12:44.986562       1"


def _dranet(machine: Machine, faults: Collection[str], *, reaches_runtime: bool) -> Behaviour:
    """As its source says: without a device it runs, is ready, and publishes nothing; without NRI it gives up.

    https://github.com/kubernetes-sigs/dranet/blob/main/pkg/driver/driver.go and pkg/inventory/db.go
    """
    if "plugin-crashloop" in faults or not reaches_runtime:
        failed = f"I{_KLOG} driver.go:185] NRI plugin failed with error failed to connect to NRI service\n"
        return Exits(code=255, log=failed + f"F{_KLOG} driver.go:196] NRI plugin failed for 5 times to be restarted\n")
    count = machine.efa_devices(faults)
    if count and machine.first and "one-node-advertises-fewer" in faults:
        count -= 1
    log = f"I{_KLOG} db.go:261] Found {count} devices\n"
    if count == 0:
        return Runs(log=log)
    return Runs(
        log=log + f"I{_KLOG} dra_hooks.go:62] After filtering, publishing {count} devices in ResourceSlice(s)\n",
        publishes={EFA_DRIVER: tuple(_efa_device(index) for index in range(count))},
        flaps=machine.first and "advertised-then-lost" in faults,
    )


def _efa_device(index: int) -> Mapping[str, Any]:
    """A device, which the driver names after its address; four share a PCIe root, 16 a half of the machine."""
    address = f"0000:{0x40 + index:02x}:00.0"
    return {
        "name": f"pci-{address.replace(':', '-').replace('.', '-')}",
        "attributes": {
            "dra.net/pciAddress": {"string": address},
            "dra.net/pciDevice": {"string": "Elastic Fabric Adapter (EFA)"},
            "dra.net/pciVendor": {"string": "Amazon.com, Inc."},
            "dra.net/numaNode": {"int": index // 16},
            "dra.net/rdma": {"bool": True},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{0x40 + index // 4 * 4:02x}"},
        },
    }


def _neuron_plugin(instance: Instance) -> Behaviour:
    """What it writes is shown in https://github.com/aws/aws-cdk/issues/29262 and, where there are devices, in
    https://github.com/aws-neuron/aws-neuron-sdk/issues/794 .
    """
    head = f"neuron-device-plugin: {_NOW}"
    if instance.neuron_devices == 0:
        log = f"{head} Fetching devices.\n{head} No devices found.\n{head} Device list: []\n"
        return Exits(code=2, log=log + "panic: runtime error: invalid memory address or nil pointer dereference\n")
    return Runs(
        log=f"{head} Fetching Cores.\n{head} Core list: {list(range(instance.neuron_cores))}\n",
        advertises={NEURON: instance.neuron_devices, NEURON_CORE: instance.neuron_cores},
    )
