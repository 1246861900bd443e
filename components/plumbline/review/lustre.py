"""File systems of FSx for Lustre, and their links to S3."""

from collections.abc import Iterator

from plumbline.catalog import fsx_catalogue, nearest
from plumbline.review.graph import Graph, Resource, at
from plumbline.review.rule import Rule
from plumbline.review.types import ASSOCIATION, LUSTRE
from plumbline.review.values import UNKNOWN, is_true, items, number, text
from plumbline.site.problems import Problem, shown

_FSX = fsx_catalogue()
_TIERING = "INTELLIGENT_TIERING"


def _kind(system: Resource) -> tuple[str, str] | None:
    """Deployment and storage type; None where one of them is unknown, or no type at all."""
    deployment, storage = at(system, "deploymentType"), at(system, "storageType")
    if UNKNOWN in (deployment, storage):
        return None
    kind = (deployment or "SCRATCH_1", storage or "SSD")
    return kind if kind[1] in _FSX.storages(kind[0]) else None


def _or(numbers: tuple[int, ...]) -> str:
    listed = [str(each) for each in numbers]
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def _type_known(system: Resource, _: Graph) -> Iterator[Problem]:
    deployment, storage = at(system, "deploymentType"), at(system, "storageType")
    if deployment is UNKNOWN:
        return
    deployment = deployment or "SCRATCH_1"
    if deployment not in _FSX.deployments:
        close = nearest(str(deployment), _FSX.deployments)
        yield Problem(
            path=("deploymentType",),
            found=shown(deployment),
            needed=f"one of {', '.join(_FSX.deployments)}",
            next=f"did you mean {close[0]}?" if close else "PERSISTENT_2 is for data that is kept",
        )
    elif storage is not UNKNOWN and storage is not None and storage not in _FSX.storages(deployment):
        yield Problem(
            path=("storageType",),
            found=shown(storage),
            needed=f"{deployment} takes {' or '.join(_FSX.storages(deployment))}",
            next="correct one of the two types",
        )


def _tier(system: Resource, _: Graph) -> Iterator[Problem]:
    kind, tier = _kind(system), at(system, "perUnitStorageThroughput")
    if kind is None or tier is UNKNOWN:
        return
    deployment, storage = kind
    tiers = _FSX.tiers(deployment, storage)
    path = ("perUnitStorageThroughput",)
    if not tiers:
        if tier is not None:
            yield Problem(
                path=path,
                found=shown(tier),
                needed=f"nothing: throughput per TiB is only for PERSISTENT_1 and PERSISTENT_2 on SSD or HDD, and this "
                f"is {deployment} on {storage}",
                next="remove perUnitStorageThroughput",
            )
    elif number(tier) not in tiers:
        takes = f"{deployment} on {storage} takes {_or(tiers)} MB/s per TiB"
        yield Problem(
            path=path,
            found=shown(tier) if tier is not None else "nothing",
            needed=takes if tier is not None else f"a throughput: {takes}",
            next="choose one; the file system's MB/s are GiB / 1000 x throughput",
        )


def _capacity(system: Resource, _: Graph) -> Iterator[Problem]:
    kind, gib = _kind(system), number(system.props, "storageCapacity")
    if kind is None or gib is None or at(system, "efaEnabled") is UNKNOWN:
        return
    tier, efa = number(system.props, "perUnitStorageThroughput"), is_true(system.props, "efaEnabled")
    tiers = _FSX.tiers(*kind)
    row = _FSX.capacity(*kind, tier if tiers else None, efa=efa)
    if row is None or row.takes(gib):
        return
    below, above = row.around(gib)
    also = "".join(f"{each}, " for each in row.below_step)
    yield Problem(
        path=("storageCapacity",),
        found=f"{gib} GiB",
        needed=f"{also}{'or ' if also else ''}a multiple of {row.step} GiB: {' on '.join(kind)}"
        f"{f' at {tier} MB/s per TiB' if tier and tiers else ''}{' with EFA' if efa else ''}",
        next=f"{below} or {above} GiB" if below else f"{above} GiB, the smallest",
    )


def _tiering(system: Resource, _: Graph) -> Iterator[Problem]:
    kind, mbps = _kind(system), at(system, "throughputCapacity")
    if kind is None or kind[1] != _TIERING or UNKNOWN in (mbps, at(system, "efaEnabled")):
        return
    facts, efa = _FSX.intelligent_tiering, is_true(system.props, "efaEnabled")
    if not facts.takes(number(mbps) or 0, efa=efa):
        small = "" if efa else f"{', '.join(str(each) for each in facts.small_throughputs)} or "
        yield Problem(
            path=("throughputCapacity",),
            found=shown(mbps) if mbps is not None else "nothing",
            needed=f"{small}a multiple of {facts.throughput_step} MB/s{', with EFA' if efa else ''}",
            next="choose one: it is the whole file system's",
        )


def _one_subnet(system: Resource, _: Graph) -> Iterator[Problem]:
    subnets = at(system, "subnetIds")
    if subnets is None or subnets is UNKNOWN:
        return
    given = [subnets] if isinstance(subnets, str) else list(items(subnets))
    names = [part for each in given for part in (each.split(",") if isinstance(each, str) else [each])]
    if len(names) != _FSX.network.subnets:
        written = " in one text, with commas" if len(given) == 1 and len(names) > 1 else ""
        yield Problem(
            path=("subnetIds",),
            found=f"{len(names)} subnets{written}",
            needed="one subnet: FSx for Lustre lives in one zone",
            next="give the subnet of the node pools that read most: from other zones traffic costs, and EFA ends there",
        )


def _efa(system: Resource, _: Graph) -> Iterator[Problem]:
    kind = _kind(system)
    if kind is None or not is_true(system.props, "efaEnabled"):
        return
    deployment, storage = kind
    if deployment not in _FSX.efa.deployments or storage not in _FSX.efa.storages:
        yield Problem(
            path=("efaEnabled",),
            found=f"EFA on {deployment} on {storage}",
            needed=f"{' or '.join(_FSX.efa.deployments)} on {' or '.join(_FSX.efa.storages)}",
            next="change the deployment type, or leave EFA off; it cannot be switched later",
        )
    elif _FSX.efa.needs_metadata_configuration and at(system, "metadataConfiguration") is None:
        yield Problem(
            path=("metadataConfiguration",),
            found="nothing",
            needed="a metadata configuration, without which no file system with EFA is created",
            next="set mode AUTOMATIC, or USER_PROVISIONED with iops",
        )


def _metadata(system: Resource, _: Graph) -> Iterator[Problem]:
    kind, given = _kind(system), at(system, "metadataConfiguration")
    if kind is None or given is None or given is UNKNOWN:
        return
    facts = _FSX.metadata
    if kind[0] not in facts.deployments:
        yield Problem(
            path=("metadataConfiguration",),
            found=f"a metadata configuration on {kind[0]}",
            needed=f"none, except on {' or '.join(facts.deployments)}",
            next="remove it, or change the deployment type",
        )
        return
    mode, iops = at(system, "metadataConfiguration", "mode"), at(system, "metadataConfiguration", "iops")
    if mode is UNKNOWN or iops is UNKNOWN:
        return
    path = ("metadataConfiguration", "iops")
    if mode == "AUTOMATIC" and iops is not None:
        yield Problem(
            path=path, found=shown(iops), needed="nothing: in mode AUTOMATIC the service sets it", next="remove iops"
        )
    elif iops is not None and not facts.takes(number(iops) or 0):
        yield Problem(
            path=path,
            found=shown(iops),
            needed=f"{', '.join(str(each) for each in facts.small_iops)} or a multiple of {facts.iops_step}, "
            f"{facts.iops_max} at most",
            next="choose one; it can be raised later, never lowered",
        )


def _version(system: Resource, _: Graph) -> Iterator[Problem]:
    kind, version = _kind(system), at(system, "fileSystemTypeVersion")
    if kind is None or version is UNKNOWN:
        return
    facts, metadata = _FSX.versions, at(system, "metadataConfiguration") is not None
    bad = (*facts.without_persistent_2,) if kind[0] == "PERSISTENT_2" else ()
    bad = (*bad, *facts.without_metadata_configuration) if metadata else bad
    path = ("fileSystemTypeVersion",)
    if version is not None and (str(version) not in facts.known or str(version) in bad):
        fit = [each for each in facts.known if each not in bad]
        yield Problem(
            path=path,
            found=shown(version),
            needed=f"{kind[0]}{' with a metadata configuration' if metadata else ''} takes {', '.join(fit)}",
            next=f"use {facts.recommended}; a lower version later replaces the file system",
        )


def _client_version(system: Resource, _: Graph) -> Iterator[Problem]:
    kind, version = _kind(system), at(system, "fileSystemTypeVersion")
    if kind is None or version is UNKNOWN:
        return
    facts, metadata = _FSX.versions, at(system, "metadataConfiguration") is not None
    gets = version or facts.default_for(kind[0], metadata=metadata)
    if gets in facts.not_mounted_by_al2023:
        yield Problem(
            path=("fileSystemTypeVersion",),
            found=shown(version) if version is not None else f"nothing, which is {gets} for {kind[0]}",
            needed=f"{facts.recommended}: the client of Amazon Linux 2023 does not mount {gets}",
            next=f"set {facts.recommended}",
        )


def _backups(system: Resource, graph: Graph) -> Iterator[Problem]:
    kind, days = _kind(system), number(system.props, "automaticBackupRetentionDays")
    if kind is None or days is None or days == 0:
        return
    path = ("automaticBackupRetentionDays",)
    linked = text(system.props, "importPath") or any(
        system in graph.pointers(each, ("fileSystemId",), LUSTRE).resources for each in graph.of(ASSOCIATION)
    )
    if kind[0] not in _FSX.backups.deployments:
        yield Problem(
            path=path,
            found=f"{days} days, on {kind[0]}",
            needed=f"nothing: only {' and '.join(_FSX.backups.deployments)} can be backed up",
            next="remove it, or change the deployment type",
        )
    elif not 0 <= days <= _FSX.backups.retention_days_max:
        yield Problem(
            path=path,
            found=f"{days} days",
            needed=f"0 to {_FSX.backups.retention_days_max} days",
            next="correct the days; 0 switches automatic backups off",
        )
    elif linked and not _FSX.backups.with_data_repository:
        yield Problem(
            path=path,
            found=f"{days} days, on a file system that is linked to S3",
            needed="no backups: a file system with a data repository cannot be backed up",
            next="remove automaticBackupRetentionDays, and export to S3 instead; or remove the link",
        )


def _old_paths(system: Resource, _: Graph) -> Iterator[Problem]:
    kind = _kind(system)
    if kind is None or kind[0] in _FSX.associations.import_path_deployments:
        return
    for key in ("importPath", "exportPath", "autoImportPolicy", "importedFileChunkSize"):
        if at(system, key) is not None:
            yield Problem(
                path=(key,),
                found=f"{key} on {kind[0]}",
                needed="a DataRepositoryAssociation, which is how this deployment type is linked to S3",
                next=f"remove {key}, and create an aws.fsx.DataRepositoryAssociation",
            )


def _associations(association: Resource, graph: Graph) -> Iterator[Problem]:
    systems = graph.pointers(association, ("fileSystemId",), LUSTRE).resources
    path = text(association.props, "fileSystemPath")
    facts = _FSX.associations
    for system in systems:
        siblings = [
            each
            for each in graph.of(ASSOCIATION)
            if system in graph.pointers(each, ("fileSystemId",), LUSTRE).resources
        ]
        mine = siblings.index(association)
        if mine >= facts.most:
            yield Problem(
                path=("fileSystemId",),
                found=f"association {mine + 1} of file system {system.name}",
                needed=f"{facts.most} on a file system at most",
                next="link a directory further up, or use a second file system",
            )
        for other in siblings[:mine]:
            theirs = text(other.props, "fileSystemPath")
            if path and theirs and _overlap(path, theirs):
                yield Problem(
                    path=("fileSystemPath",),
                    found=f"{shown(path)}, and {shown(theirs)} of {other.name}",
                    needed="directories that do not overlap",
                    next="move one of them beside the other",
                )
        kind = _kind(system)
        if kind and (kind[0] in facts.not_deployments or kind[1] in facts.not_storages):
            yield Problem(
                path=("fileSystemId",),
                found=f"a link to S3 on {' with '.join(kind)}",
                needed=f"a file system that is neither {' nor '.join((*facts.not_deployments, *facts.not_storages))}",
                next="change the file system's type, or remove the association",
            )


def _overlap(one: str, other: str) -> bool:
    first, second = sorted(("/" + each.strip("/")).rstrip("/") + "/" for each in (one, other))
    return second.startswith(first)


RULES = (
    Rule(
        id="lustre-type-known",
        types=(LUSTRE,),
        judge=_type_known,
        source=_FSX.address(_FSX.capacities[0], "deployment"),
    ),
    Rule(id="lustre-throughput", types=(LUSTRE,), judge=_tier, source=_FSX.address(_FSX.capacities[0], "tiers")),
    Rule(id="lustre-capacity", types=(LUSTRE,), judge=_capacity, source=_FSX.address(_FSX.capacities[0], "step")),
    Rule(
        id="lustre-tiering-throughput",
        types=(LUSTRE,),
        judge=_tiering,
        source=_FSX.address(_FSX.intelligent_tiering, "throughput_step"),
    ),
    Rule(id="lustre-one-subnet", types=(LUSTRE,), judge=_one_subnet, source=_FSX.address(_FSX.network, "subnets")),
    Rule(id="lustre-efa", types=(LUSTRE,), judge=_efa, source=_FSX.address(_FSX.efa, "deployments")),
    Rule(id="lustre-metadata", types=(LUSTRE,), judge=_metadata, source=_FSX.address(_FSX.metadata, "small_iops")),
    Rule(id="lustre-version", types=(LUSTRE,), judge=_version, source=_FSX.address(_FSX.versions, "known")),
    Rule(
        id="lustre-client-version",
        types=(LUSTRE,),
        judge=_client_version,
        source=_FSX.address(_FSX.versions, "not_mounted_by_al2023"),
        confirmed="not_mounted_by_al2023" not in _FSX.versions.unconfirmed,
    ),
    Rule(
        id="lustre-backups",
        types=(LUSTRE,),
        judge=_backups,
        source=_FSX.address(_FSX.backups, "deployments"),
        relates=True,
    ),
    Rule(
        id="lustre-old-s3-paths",
        types=(LUSTRE,),
        judge=_old_paths,
        source=_FSX.address(_FSX.associations, "import_path_deployments"),
        confirmed="import_path_deployments" not in _FSX.associations.unconfirmed,
    ),
    Rule(
        id="lustre-associations",
        types=(ASSOCIATION,),
        judge=_associations,
        source=_FSX.address(_FSX.associations, "most"),
        relates=True,
    ),
)
