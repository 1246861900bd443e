"""File systems: sizes that FSx sells, and who reaches them."""

from collections.abc import Iterator

from plumbline.catalog import AwsCatalogue, fsx_catalogue
from plumbline.site.model import Lustre
from plumbline.site.problems import Problem, shown
from plumbline.site.rules.draft import Draft, Rule


def _lustre_sizes(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    """Capacities, tiers, metadata and backups, as FSx sells them."""
    fsx = fsx_catalogue()
    for each in draft.storage:
        wanted, path = each.value, ("storage", each.index)
        if not isinstance(wanted, Lustre):
            continue
        tiers = fsx.tiers(LUSTRE_DEPLOYMENT, LUSTRE_STORAGE, efa=wanted.efa)
        if wanted.throughput_mbps_per_tib not in tiers:
            yield Problem(
                path=(*path, "throughput_mbps_per_tib"),
                found=str(wanted.throughput_mbps_per_tib),
                needed=f"one of {', '.join(map(str, tiers))}",
                next=f"see {fsx.addresses['lustre']}",
            )
        row = fsx.capacity(LUSTRE_DEPLOYMENT, LUSTRE_STORAGE, wanted.throughput_mbps_per_tib, efa=wanted.efa)
        if row and not row.takes(wanted.capacity_gib):
            below, above = row.around(wanted.capacity_gib)
            smaller = ", ".join(f"{gib}" for gib in row.below_step)
            yield Problem(
                path=(*path, "capacity_gib"),
                found=str(wanted.capacity_gib),
                needed=f"a multiple of {row.step}"
                + (f", or {smaller}" if smaller else "")
                + (f" (with efa at {wanted.throughput_mbps_per_tib} MB/s per TiB)" if wanted.efa else ""),
                next=f"take {above}" + (f" or {below}" if below else "") + f"; see {fsx.address(row, 'step')}",
            )
        if wanted.metadata_iops is not None and not fsx.metadata.takes(wanted.metadata_iops):
            small = ", ".join(map(str, fsx.metadata.small_iops))
            yield Problem(
                path=(*path, "metadata_iops"),
                found=str(wanted.metadata_iops),
                needed=f"{small}, or a multiple of {fsx.metadata.iops_step} up to {fsx.metadata.iops_max}",
                next=f"correct it, or remove it to get what the size brings; see {fsx.addresses['metadata']}",
            )
        if wanted.backup_days > fsx.backups.retention_days_max:
            yield Problem(
                path=(*path, "backup_days"),
                found=str(wanted.backup_days),
                needed=f"{fsx.backups.retention_days_max} days at most",
                next=f"see {fsx.address(fsx.backups, 'retention_days_max')}",
            )
        if wanted.backup_days and wanted.repository and not fsx.backups.with_data_repository:
            yield Problem(
                path=(*path, "backup_days"),
                found=f"{wanted.backup_days}, and a repository in S3",
                needed="one of them: a file system that is linked to S3 cannot be backed up",
                next="remove backup_days, or repository",
            )


LUSTRE_DEPLOYMENT, LUSTRE_STORAGE = "PERSISTENT_2", "SSD"
"""What is made for a site: replicated, and on flash."""


def _storage_near(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    """EFA reaches a file system in the pool's own zone, from machines that can be its clients."""
    by_name = {each.name: each.value for each in draft.storage if each.value}
    clients = fsx_catalogue().clients
    for pool in draft.pools:
        for index, name in enumerate(pool.storage or ()):
            found = by_name.get(name)
            if found is None:
                continue
            path = ("pools", pool.index, "storage", index)
            if pool.capacity and pool.capacity.zone != found.zone:
                yield Problem(
                    path=path,
                    found=f"{shown(name)} in {found.zone}, from nodes in {pool.capacity.zone}",
                    needed="a file system in the pool's zone"
                    + (
                        ": EFA does not cross zones"
                        if found.efa
                        else "; across zones it is slower, and the traffic is paid for"
                    ),
                    next="set the file system's zone to the pool's, or mount another",
                    warns=not found.efa,
                )
            facts = catalogue.machines.get(pool.machine or "")
            if facts and found.efa and not clients.interfaces(pool.machine or "", facts.network_cards):
                yield Problem(
                    path=path,
                    found=f"{shown(name)} with efa, from {pool.machine}",
                    needed="a machine that can be an EFA client of FSx for Lustre; this one would mount it over TCP",
                    next="make it without efa, or mount it from other machines; "
                    f"see {fsx_catalogue().addresses['nitro']}",
                    warns=pool.machine in clients.machines_without_efa
                    and "machines_without_efa" in clients.unconfirmed,
                )
            if found.efa and pool.fabric == "none":
                yield Problem(
                    path=path,
                    found=f"{shown(name)} with efa, from a pool with fabric none",
                    needed="fabric: efa, whose interfaces the client uses",
                    next="set fabric: efa, or make the file system without efa",
                )


RULES: tuple[Rule, ...] = (
    _lustre_sizes,
    _storage_near,
)
