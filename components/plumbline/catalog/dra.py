"""Known drivers of Dynamic Resource Allocation (DRA): what they offer, and what else would offer the same."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DraDriver:
    """A DRA driver, as far as a gate depends on it."""

    hardware: str
    """Extended resource by which a device plugin advertises the same hardware."""
    device_class: str
    """DeviceClass by which pods ask for its devices."""
    attribute: str
    """Qualified name of the device attribute that tells the devices meant from others that it publishes."""
    value: str
    """What the attribute is for the devices meant."""
    sources: tuple[str, ...]


EFA_DRIVER = "dra.net"

DRIVERS: Mapping[str, DraDriver] = {
    EFA_DRIVER: DraDriver(
        hardware="vpc.amazonaws.com/efa",
        device_class="efa.networking.k8s.aws",
        # It publishes other network devices too; the DeviceClass of its chart takes these.
        attribute="dra.net/pciDevice",
        value="Elastic Fabric Adapter (EFA)",
        sources=(
            "https://docs.aws.amazon.com/eks/latest/userguide/device-management-efa.html",
            "https://github.com/aws/eks-charts/blob/master/stable/aws-dranet/templates/deviceclass.yaml",
            "https://github.com/kubernetes-sigs/dranet/blob/main/pkg/apis/attributes.go",
        ),
    ),
}
"""By the driver's name in `spec.driver` of a ResourceSlice."""
