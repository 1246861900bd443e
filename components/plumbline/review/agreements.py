"""Two sides that have to agree: a pool and its reservation, a server's port and its clients', a pod and a limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.review.finding import Finding, finding
from plumbline.site.problems import Problem, shown

_MATCHING = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-using.html"
_IPC_LOCK_BIT = 14
"""https://github.com/torvalds/linux/blob/master/include/uapi/linux/capability.h"""
_SMALL_MEMLOCK_KIB = 1024 * 1024
"""Locked memory below this is too small for RDMA, whose queues and buffers take hundreds of MiB: a round number."""


@dataclass(frozen=True, kw_only=True)
class SubnetPlace:
    """Where a subnet is."""

    id: str
    zone: str
    zone_id: str | None = None
    """The zone's id, which is the same in every account; None where nobody looked it up."""


def review_reservation(
    reservation: Mapping[str, Any], *, machine: str, nodes: int, subnets: Sequence[SubnetPlace]
) -> list[Finding]:
    """Whether a reservation, as DescribeCapacityReservations answers, is for these nodes in these subnets."""
    problems: list[Problem] = []

    def differs(field: str, found: str, needed: str, next_: str) -> None:
        problems.append(Problem(path=(field,), found=found, needed=needed, next=next_))

    zone, zone_id = reservation["AvailabilityZone"], reservation.get("AvailabilityZoneId")
    for subnet in subnets:
        if zone_id and subnet.zone_id and zone_id != subnet.zone_id:
            names = (
                "" if zone != subnet.zone else ": the zone has the same name in another account, and is another zone"
            )
            differs(
                "AvailabilityZoneId",
                f"reservation in {zone} ({zone_id}), subnet in {subnet.zone} ({subnet.zone_id}), {subnet.id}{names}",
                "the subnet in the reservation's zone",
                f"use the subnet of zone {zone_id}",
            )
        elif zone != subnet.zone and not (zone_id and zone_id == subnet.zone_id):
            differs(
                "AvailabilityZone",
                f"reservation in {zone}, subnet in {subnet.zone}, {subnet.id}",
                "the subnet in the reservation's zone",
                f"use the subnet of {zone}",
            )
    if reservation["InstanceType"] != machine:
        differs(
            "InstanceType",
            shown(reservation["InstanceType"]),
            machine,
            "correct the pool's machine, or its reservation",
        )
    free = reservation.get("AvailableInstanceCount")
    if free is not None and free < nodes:
        differs("AvailableInstanceCount", f"{free} free", f"{nodes} nodes", "free instances, or ask for fewer nodes")
    if reservation["State"] != "active":
        differs("State", shown(reservation["State"]), "an active reservation", "choose one that is active")
    if reservation.get("InstancePlatform", "Linux/UNIX") != "Linux/UNIX":
        differs("InstancePlatform", shown(reservation["InstancePlatform"]), "Linux/UNIX", "choose another reservation")
    if reservation.get("Tenancy", "default") != "default":
        differs("Tenancy", shown(reservation["Tenancy"]), "tenancy default", "choose another reservation")
    id_ = str(reservation.get("CapacityReservationId", ""))
    return [finding(each, rule="reservation-fits-pool", source=_MATCHING, resource=id_) for each in problems]


def review_lustre_port(*, gke_support_enabled: bool, client_port: int) -> list[Finding]:
    """Whether the nodes of a GKE cluster dial the port that a Managed Lustre instance listens at."""
    port = 6988 if gke_support_enabled else 988
    if client_port == port:
        return []
    return [
        finding(
            Problem(
                path=("gkeSupportEnabled",),
                found=f"gkeSupportEnabled {str(gke_support_enabled).lower()}, so the instance is at port {port}; "
                f"nodes dial {client_port}",
                needed="the same port on both sides: 6988 with gkeSupportEnabled, 988 without",
                next="change the nodes' port; the instance's cannot be changed",
                # That there are two ports is Google's word; that the second is 6988 is in reports only.
                warns=True,
            ),
            rule="lustre-port-agrees",
            source="https://cloud.google.com/managed-lustre/docs/create-instance",
        )
    ]


def review_memlock(*, uid: int, memlock_kib: int | None, effective_mask: int) -> list[Finding]:
    """Whether a process may lock the memory that RDMA needs.

    `memlock_kib` is its limit in KiB, None for unlimited; `effective_mask` is CapEff of /proc/self/status.
    """
    if memlock_kib is None or memlock_kib >= _SMALL_MEMLOCK_KIB or effective_mask >> _IPC_LOCK_BIT & 1:
        return []
    why = "IPC_LOCK not effective for non-root" if uid else "IPC_LOCK not effective"
    return [
        finding(
            Problem(
                path=("securityContext", "capabilities"),
                found=f"user {uid}, locked memory limited to {memlock_kib} KiB; {why}",
                needed="an effective IPC_LOCK, or an unlimited memlock",
                next="run as user 0 with IPC_LOCK, or raise the limit on the node (containerd's LimitMEMLOCK=infinity)",
            ),
            rule="memory-can-be-locked",
            source="https://man7.org/linux/man-pages/man2/getrlimit.2.html",
        )
    ]
