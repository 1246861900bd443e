"""What a container does on a node: a pure function of its image, the machine, and the faults that are on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from twin.nodes.registry import PullFailure, pull
from twin.world import Instance

GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
_NOW = "2026/01/05 09:12:44"
PLUGINS = "/var/lib/kubelet/device-plugins"
"""Where kubelet and device plugins meet, on every node."""
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
    sees_kubelet: bool = True,
) -> Behaviour:
    """What happens when a container of this image is started.

    A device plugin needs the folder of the kubelet's socket; `sees_kubelet` says whether it is mounted.
    """
    image = pull(reference, faults)
    if isinstance(image, PullFailure):
        return image
    if not image.runs_on(machine.instance.architecture):
        return Exits(code=1, log=f"exec {image.executable}: exec format error\n")
    if image.plugin and not sees_kubelet:
        return Exits(code=1, log=f"{_NOW} dial unix {PLUGINS}/kubelet.sock: connect: no such file or directory\n")
    match image.plugin:
        case "efa":
            return _efa_plugin(machine, faults)
        case "nvidia":
            return _nvidia_plugin(machine.instance)
        case _:
            seconds = (annotations or {}).get(RUN_SECONDS)
            return Runs(seconds=float(seconds) if seconds else None)


def _efa_plugin(machine: Machine, faults: Collection[str]) -> Behaviour:
    """https://github.com/aws/sagemaker-hyperpod-cli/issues/367 shows what it writes; the %v is its own."""
    head = f"{_NOW} Fetching EFA devices.\n"
    devices = machine.efa_devices(faults)
    if devices == 0:
        return Exits(code=1, log=head + f"{_NOW} Error to get IB device: %v. No valid EFA devices found\n")
    if machine.first and "one-node-advertises-fewer" in faults:
        devices -= 1
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
