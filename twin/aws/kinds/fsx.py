"""FSx for Lustre: file systems, and what links them to S3.

Where AWS's words for a refusal are published, they are used, with their address; the others are worded here.
"""

import asyncio
import re
import secrets
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, ip_network
from typing import Any

from twin.aws.kinds.base import Call, Kind, Values, arn, flat, folder
from twin.aws.kinds.ec2 import SUBNET, VPC, Permission, addresses_free, group_exists, permissions
from twin.aws.wire import UNKNOWN

LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
REPOSITORY = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"

_TIERS: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("PERSISTENT_1", "SSD"): (50, 100, 200),
    ("PERSISTENT_1", "HDD"): (12, 40),
    ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000),
}
"""MB/s per TiB that may be asked for.
https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystemLustreConfiguration.html"""
_HDD_STEPS = {12: 6000, 40: 1800}
"""GiB, by MB/s per TiB: https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html"""
_EFA_STEPS = {1000: 4800, 500: 9600, 250: 19200, 125: 38400}
"""GiB, by MB/s per TiB: step and minimum. https://docs.aws.amazon.com/fsx/latest/LustreGuide/getting-started.html"""
_INTELLIGENT_STEP = 4000
"""MB/s: https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/fsx_lustre_file_system"""
_PORTS = ((988, 988), (1018, 1023))
"""https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html"""
_LINKS = 8
"""Of one file system: https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html"""
_GROWING_SECONDS = 300.0
"""How long a change of capacity or throughput takes, at the least."""
_NOT_ON = {"PERSISTENT_2": ("importPath", "exportPath", "importedFileChunkSize", "autoImportPolicy")}


def _kind_of(inputs: Values) -> tuple[str, str]:
    return inputs.get("deploymentType") or "SCRATCH_1", inputs.get("storageType") or "SSD"


def _efa(inputs: Values) -> bool:
    return bool(inputs.get("efaEnabled"))


def _version(inputs: Values) -> str:
    """https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html ."""
    default = "2.10"
    if _kind_of(inputs)[0] == "PERSISTENT_2":
        default = "2.15" if inputs.get("metadataConfiguration") else "2.12"
    return str(inputs.get("fileSystemTypeVersion") or default)


# --- what a file system may be --------------------------------------------------------------------------------------


def _storage(call: Call) -> None:
    """Which storage goes with which deployment: API_CreateFileSystemLustreConfiguration.html ."""
    inputs = call.inputs
    deployment, storage = _kind_of(inputs)
    if storage == "HDD":
        if deployment != "PERSISTENT_1":
            text = f"HDD storage is supported for PERSISTENT_1 only, and not for {deployment}"
            raise call.refuse("BadRequest", text)
        if not inputs.get("driveCacheType"):
            raise call.refuse("BadRequest", "DriveCacheType is required when StorageType is HDD")
    if storage == "INTELLIGENT_TIERING":
        if deployment != "PERSISTENT_2":
            raise call.refuse("BadRequest", f"INTELLIGENT_TIERING is not supported for {deployment}")
        for name in ("dataReadCacheConfiguration", "metadataConfiguration", "throughputCapacity"):
            if not inputs.get(name):
                raise call.refuse("BadRequest", f"{name} is required when StorageType is INTELLIGENT_TIERING")
    for name in _NOT_ON.get(deployment, ()):
        if inputs.get(name):
            text = f"{name} is not supported for {deployment}: create a data repository association instead"
            raise call.refuse("BadRequest", text)


def _throughput(call: Call) -> None:
    """https://github.com/hashicorp/terraform-provider-aws/issues/24341 quotes AWS."""
    kind, asked = _kind_of(call.inputs), call.inputs.get("perUnitStorageThroughput")
    if asked not in _TIERS.get(kind, (None,)):
        text = (
            "Invalid Lustre deployment configuration: the provided throughput is invalid or does not meet the storage "
            "capacity requirement"
        )
        raise call.refuse("BadRequest", text)


def _capacity(call: Call) -> None:
    """https://github.com/aws-samples/amazon-eks-autonomous-driving-data-service/issues/12 quotes AWS."""
    inputs = call.inputs
    deployment, storage = _kind_of(inputs)
    asked = inputs.get("storageCapacity")
    if storage == "INTELLIGENT_TIERING":
        if asked:
            raise call.refuse("BadRequest", "StorageCapacity is not supported when StorageType is INTELLIGENT_TIERING")
        return
    if inputs.get("backupId") and not asked:
        return
    if not asked:
        raise call.refuse("BadRequest", "StorageCapacity is required")
    throughput = int(inputs.get("perUnitStorageThroughput") or 0)
    first: tuple[int, ...] = (1200,)
    step = 2400
    if _efa(inputs):
        first, step = (), _EFA_STEPS[throughput]
    elif storage == "HDD":
        first, step = (), _HDD_STEPS[throughput]
    elif deployment == "SCRATCH_1":
        first, step = (1200, 2400), 3600
    if asked not in first and asked % step:
        allowed = "".join(f"{each} or " for each in first)
        text = f"Invalid Lustre FS storage capacity: {asked}. Must be {allowed}a multiple of {step}."
        raise call.refuse("BadRequest", text)


def _metadata(call: Call) -> None:
    """https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-metadata-performance.html ."""
    wanted = call.inputs.get("metadataConfiguration") or {}
    if wanted.get("mode") == "USER_PROVISIONED" and not wanted.get("iops"):
        raise call.refuse("BadRequest", "Iops is required when the metadata configuration mode is USER_PROVISIONED")
    if wanted.get("mode") == "AUTOMATIC" and wanted.get("iops") and not call.id:
        raise call.refuse("BadRequest", "Iops is not supported when the metadata configuration mode is AUTOMATIC")


def _lustre_version(call: Call) -> None:
    """https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html ."""
    deployment, version = _kind_of(call.inputs)[0], _version(call.inputs)
    if version not in ("2.10", "2.12", "2.15"):
        raise call.refuse("BadRequest", f"FileSystemTypeVersion {version} is not one of 2.10, 2.12 and 2.15")
    if deployment == "PERSISTENT_2" and version == "2.10":
        raise call.refuse("BadRequest", f"FileSystemTypeVersion 2.10 is not supported for {deployment}")
    if call.inputs.get("metadataConfiguration") and version != "2.15":
        text = f"FileSystemTypeVersion {version} is not supported with a metadata configuration"
        raise call.refuse("BadRequest", text)


def _backups(call: Call) -> None:
    """https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-backups-fsx.html : for persistent ones without S3."""
    inputs = call.inputs
    if not inputs.get("automaticBackupRetentionDays"):
        if inputs.get("dailyAutomaticBackupStartTime"):
            text = "DailyAutomaticBackupStartTime requires AutomaticBackupRetentionDays to be set"
            raise call.refuse("BadRequest", text)
        return
    if _kind_of(inputs)[0].startswith("SCRATCH"):
        raise call.refuse("BadRequest", "Automatic backups are not supported for scratch file systems")
    linked = any(link["fileSystemId"] == call.id for link in call.all(REPOSITORY).values())
    if linked or inputs.get("importPath"):
        text = "Automatic backups are not supported for a file system that is linked to a data repository"
        raise call.refuse("BadRequest", text)


def _logging(call: Call) -> None:
    """https://docs.aws.amazon.com/fsx/latest/LustreGuide/cw-event-logging.html ."""
    wanted = call.inputs.get("logConfiguration") or {}
    destination = str(wanted.get("destination") or "")
    if destination and ":log-group:/aws/fsx" not in destination and ":deliverystream/aws-fsx" not in destination:
        text = f"The log destination {destination} is invalid: the name of a log group begins with /aws/fsx"
        raise call.refuse("BadRequest", text)


def _elastic_fabric(call: Call) -> None:
    """https://docs.aws.amazon.com/fsx/latest/LustreGuide/efa-file-systems.html ."""
    inputs = call.inputs
    if not _efa(inputs):
        return
    if _kind_of(inputs)[0] != "PERSISTENT_2":
        raise call.refuse("BadRequest", "EFA is supported for PERSISTENT_2 file systems only")
    if not inputs.get("metadataConfiguration"):
        raise call.refuse("BadRequest", "EFA requires a metadata configuration")


def _place(call: Call) -> None:
    """https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html .

    AWS is quoted (https://github.com/kubernetes-sigs/aws-fsx-csi-driver/issues/32) for port 988. For the other ports,
    which clients need as well, it is not known to look when it makes a file system; a mount that hangs is not
    simulated, so they are refused here, in the same words.
    """
    (subnet_id,) = flat(call.inputs["subnetIds"])
    subnet = call.find(SUBNET, subnet_id)
    if subnet is None:
        raise call.refuse("InvalidNetworkSettings", f"The subnet ID '{subnet_id}' does not exist")
    vpc = call.find(VPC, subnet["vpcId"]) or {}
    groups = call.inputs.get("securityGroupIds") or [vpc["defaultSecurityGroupId"]]
    for group in groups:
        if not group_exists(call, group):
            raise call.refuse("InvalidNetworkSettings", f"The security group '{group}' does not exist")
    allowed = [permission for group in groups for permission in permissions(call, group)]
    if _efa(call.inputs) and not any(_lets_efa(call, group) for group in groups):
        text = "Insufficient security group permissions to create an EFA-enabled file system"
        raise call.refuse("InvalidNetworkSettings", text)
    for first, last in _PORTS:
        if not all(_lets_lustre(allowed, out, groups, subnet, first, last) for out in (False, True)):
            ports = f"port {first}" if first == last else f"ports {first}-{last}"
            text = (
                "The file system cannot be created because the default security group in the subnet provided or the "
                f"provided security groups do not permit Lustre LNET network traffic on {ports}"
            )
            raise call.refuse("InvalidNetworkSettings", text)
    if addresses_free(call, subnet) < _interfaces(call.inputs):
        text = f"The subnet '{subnet_id}' does not have enough free addresses"
        raise call.refuse("InvalidNetworkSettings", text)


def _lets_efa(call: Call, group: str) -> bool:
    """Whether a group lets everything in from and out to itself: EFA is not matched by addresses."""
    open_ = [p for p in permissions(call, group) if p.protocol == "-1" and p.peer == group]
    return {p.outward for p in open_} == {True, False}


def _lets_lustre(
    allowed: list[Permission], out: bool, groups: list[str], subnet: Values, first: int, last: int
) -> bool:
    """Whether the file system's servers reach each other: by the groups themselves, or by the subnet's addresses."""
    there = IPv4Network(subnet["cidrBlock"])
    for permission in allowed:
        if permission.outward is not out or not permission.covers("tcp", first, last):
            continue
        if permission.peer in groups:
            return True
        if "/" in permission.peer:
            addresses = ip_network(permission.peer, strict=False)
            if isinstance(addresses, IPv4Network) and there.subnet_of(addresses):
                return True
    return False


def _interfaces(inputs: Values) -> int:
    """How many interfaces a file system has: made up, apart from that there are several and more with its size."""
    return 2 + int(inputs.get("storageCapacity") or 0) // 2400


# --- how it changes -------------------------------------------------------------------------------------------------


def _changes(call: Call) -> None:
    """https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-storage-and-throughput-capacity.html ."""
    state, inputs = call.find(LUSTRE, call.id) or {}, call.inputs
    if _efa(state) and inputs.get("perUnitStorageThroughput") != state.get("perUnitStorageThroughput"):
        text = "PerUnitStorageThroughput cannot be updated on an EFA-enabled file system"
        raise call.refuse("BadRequest", text)
    if _kind_of(state)[1] == "HDD" and inputs.get("perUnitStorageThroughput") != state.get("perUnitStorageThroughput"):
        raise call.refuse("BadRequest", "PerUnitStorageThroughput cannot be updated on an HDD file system")
    old, new = state.get("metadataConfiguration") or {}, inputs.get("metadataConfiguration") or {}
    if new and not old:
        text = "The file system was created without a metadata configuration, which cannot be added"
        raise call.refuse("BadRequest", text)
    if (old.get("mode"), new.get("mode")) == ("USER_PROVISIONED", "AUTOMATIC"):
        text = "The metadata configuration mode cannot be changed from USER_PROVISIONED to AUTOMATIC"
        raise call.refuse("BadRequest", text)


def _number(value: Any) -> int | None:
    return None if value in (None, UNKNOWN) else int(value)


def _less(old: Any, new: Any) -> bool:
    """Whether a number goes down; an unknown one does not."""
    before, after = _number(old), _number(new)
    return before is not None and after is not None and after < before


def _mapping(value: Any) -> Mapping[str, Any]:
    """A block of inputs; an empty one where it is absent or unknown."""
    return value if isinstance(value, Mapping) else {}


def _before_aws(inputs: Values) -> Iterator[tuple[str, str]]:
    """What Terraform's schema and `CustomizeDiff` say."""
    capacity = _number(inputs.get("throughputCapacity"))
    if capacity is not None and (capacity <= 0 or capacity % _INTELLIGENT_STEP):
        yield (
            "throughputCapacity",
            f"expected throughputCapacity to be divisible by {_INTELLIGENT_STEP}, got {capacity}",
        )
    deployment = inputs.get("deploymentType") or "SCRATCH_1"
    if inputs.get("metadataConfiguration") and deployment not in ("PERSISTENT_2", UNKNOWN):
        yield "metadataConfiguration", "metadata_configuration can only be set when deployment type is PERSISTENT_2"
    if isinstance(inputs.get("subnetIds"), list):
        yield "subnetIds", "expected one subnet as a string, got a list"


def _automatic_iops(capacity: int) -> int:
    """https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-metadata-performance.html ."""
    for most, iops in ((1200, 1500), (2400, 3000), (9600, 6000), (45600, 12000)):
        if capacity <= most:
            return iops
    return min(192000, 12000 * -(-capacity // 24000))


@dataclass(frozen=True, kw_only=True)
class LustreKind(Kind):
    """A file system."""

    def replaced(self, old: Values, new: Values, changed: list[str]) -> list[str]:
        """What forces another file system: `ForceNew` and `CustomizeDiff` of Terraform's `aws_fsx_lustre_file_system`.

        Capacity and provisioned metadata IOPS that go down, any change of a SCRATCH_1 file system's capacity, and an
        older version of Lustre.
        """
        found = Kind.replaced(self, old, new, changed)
        scratch = _kind_of(new)[0] == "SCRATCH_1"
        if "storageCapacity" in changed and (scratch or _less(old.get("storageCapacity"), new.get("storageCapacity"))):
            found.append("storageCapacity")
        before, after = _mapping(old.get("metadataConfiguration")), _mapping(new.get("metadataConfiguration"))
        if after.get("mode") == "USER_PROVISIONED" and _less(before.get("iops"), after.get("iops")):
            found.append("metadataConfiguration")
        versions = [old.get("fileSystemTypeVersion"), new.get("fileSystemTypeVersion")]
        if None not in versions and UNKNOWN not in versions:
            numbers = [tuple(map(int, str(version).split("."))) for version in versions]
            if numbers[1] < numbers[0]:
                found.append("fileSystemTypeVersion")
        return found

    async def update(self, call: Call, id_: str, state: Values) -> Values:
        """Change it in place. Raises: Refusal."""
        # What the program no longer asks for stays as it was.
        kept = {name: state[name] for name in self.defaulted if name in state}
        outputs = await Kind.update(self, replace(call, inputs={**kept, **call.inputs}), id_, state)
        growing = ("storageCapacity", "perUnitStorageThroughput", "throughputCapacity", "metadataConfiguration")
        if any(call.inputs.get(name) != call.old_inputs.get(name) for name in growing):
            await asyncio.sleep(call.world.scaled(_GROWING_SECONDS))
        wanted = outputs.get("metadataConfiguration") or {}
        if wanted.get("mode") == "AUTOMATIC":
            iops = _automatic_iops(int(outputs.get("storageCapacity") or 0))
            outputs["metadataConfiguration"] = {**wanted, "iops": max(iops, int(wanted.get("iops") or 0))}
            call.world.store.put(folder(LUSTRE), id_, outputs)
        return outputs

    async def delete(self, call: Call, id_: str) -> None:
        """Take it away, with its links to S3. A final backup is not simulated. Raises: Refusal."""
        await Kind.delete(self, call, id_)
        for other, link in call.all(REPOSITORY).items():
            if link["fileSystemId"] == id_:
                call.world.store.delete(folder(REPOSITORY), other)


def _lustre_made(call: Call, id_: str) -> Values:
    inputs = call.inputs
    deployment = _kind_of(inputs)[0]
    letters = string.ascii_lowercase[:22] + "234567"
    subnet = call.find(SUBNET, flat(inputs["subnetIds"])[0])
    assert subnet, "checked before"
    made = {
        **arn("fsx", "file-system/{id}")(call, id_),
        "automaticBackupRetentionDays": inputs.get("automaticBackupRetentionDays", 0),
        "dnsName": f"{id_}.fsx.{call.region}.amazonaws.com",
        "fileSystemTypeVersion": _version(inputs),
        # https://docs.aws.amazon.com/fsx/latest/APIReference/API_LustreFileSystemConfiguration.html : fsx for SCRATCH_1
        "mountName": "fsx" if deployment == "SCRATCH_1" else "".join(secrets.choice(letters) for _ in range(8)),
        "networkInterfaceIds": [f"eni-0{secrets.token_hex(8)}" for _ in range(_interfaces(inputs))],
        "ownerId": call.account.id,
        "vpcId": subnet["vpcId"],
        "weeklyMaintenanceStartTime": inputs.get("weeklyMaintenanceStartTime") or "7:03:30",
    }
    wanted = inputs.get("metadataConfiguration")
    if wanted:
        iops = wanted.get("iops") or _automatic_iops(int(inputs.get("storageCapacity") or 0))
        made["metadataConfiguration"] = {"mode": wanted.get("mode") or "AUTOMATIC", "iops": iops}
    return made


# --- links to S3 ----------------------------------------------------------------------------------------------------


def _link_rules(call: Call) -> None:
    """https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateDataRepositoryAssociation.html ."""
    id_, path = call.inputs["fileSystemId"], call.inputs["fileSystemPath"]
    system = call.find(LUSTRE, id_)
    if system is None:
        raise call.refuse("FileSystemNotFound", f"File system '{id_}' does not exist.")
    deployment, storage = _kind_of(system)
    if deployment == "SCRATCH_1" or system["fileSystemTypeVersion"] == "2.10" or storage == "INTELLIGENT_TIERING":
        text = (
            f"Data repository associations are not supported for {deployment} {storage} file systems with Lustre "
            f"version {system['fileSystemTypeVersion']}"
        )
        raise call.refuse("UnsupportedOperation", text)
    if system.get("automaticBackupRetentionDays"):
        text = f"File system '{id_}' keeps automatic backups, which a linked file system cannot have"
        raise call.refuse("BadRequest", text)
    links = [link for link in call.all(REPOSITORY).values() if link["fileSystemId"] == id_]
    for link in links:
        other = link["fileSystemPath"]
        if _within(path, other) or _within(other, path):
            text = f"The file system path {path} overlaps with {other} of {link['associationId']}"
            raise call.refuse("BadRequest", text)
    if len(links) >= _LINKS:
        text = f"File system '{id_}' has {_LINKS} data repository associations, which is as many as there can be"
        raise call.refuse("ServiceLimitExceeded", text)


def _link_made(call: Call, id_: str) -> Values:
    path = f"association/{call.inputs['fileSystemId']}/{id_}"
    return {
        "arn": f"arn:aws:fsx:{call.region}:{call.account.id}:{path}",
        "associationId": id_,
        "importedFileChunkSize": call.inputs.get("importedFileChunkSize", 1024),
    }


def _within(path: str, other: str) -> bool:
    """Whether a path lies in another one, or is it."""
    return f"{path.rstrip('/')}/".startswith(f"{other.rstrip('/')}/")


def _link_events(inputs: Values) -> Iterator[tuple[str, str]]:
    path = inputs.get("fileSystemPath")
    if path not in (None, "", UNKNOWN) and not re.match(r"/", str(path)):
        yield "fileSystemPath", "path must begin with /"
    target = inputs.get("dataRepositoryPath")
    if target not in (None, "", UNKNOWN) and not str(target).startswith("s3://"):
        yield "dataRepositoryPath", "must begin with s3://"


def kinds() -> tuple[Kind, ...]:
    """All kinds of FSx for Lustre."""
    rules = (_storage, _elastic_fabric, _throughput, _capacity, _metadata, _lustre_version, _backups, _logging)
    return (
        LustreKind(
            token=LUSTRE,
            prefix="fs",
            operation="CreateFileSystem",
            doing="creating FSx for Lustre File System",
            required=("subnetIds",),
            replaces=frozenset(
                {
                    "backupId",
                    "copyTagsToBackups",
                    "deploymentType",
                    "driveCacheType",
                    "efaEnabled",
                    "exportPath",
                    "importPath",
                    "importedFileChunkSize",
                    "kmsKeyId",
                    "securityGroupIds",
                    "storageType",
                    "subnetIds",
                }
            ),
            checks=(_before_aws,),
            rules=(*rules, _place),
            update_rules=(*rules, _changes),
            make=_lustre_made,
            computed=("arn", "dnsName", "mountName", "networkInterfaceIds", "ownerId", "vpcId"),
            defaulted=(
                "automaticBackupRetentionDays",
                "dailyAutomaticBackupStartTime",
                "fileSystemTypeVersion",
                "kmsKeyId",
                "logConfiguration",
                "metadataConfiguration",
                "weeklyMaintenanceStartTime",
            ),
            defaults={
                "copyTagsToBackups": False,
                "dataCompressionType": "NONE",
                "deploymentType": "SCRATCH_1",
                "skipFinalBackup": True,
                "storageType": "SSD",
            },
            gone="FileSystemNotFound",
            # https://github.com/hashicorp/terraform-provider-aws/pull/42839 shows 15 minutes for the whole life of one.
            seconds=390.0,
        ),
        Kind(
            token=REPOSITORY,
            prefix="dra",
            operation="CreateDataRepositoryAssociation",
            doing="creating FSx for Lustre Data Repository Association",
            required=("dataRepositoryPath", "fileSystemId", "fileSystemPath"),
            replaces=frozenset({"dataRepositoryPath", "fileSystemId", "fileSystemPath"}),
            checks=(_link_events,),
            rules=(_link_rules,),
            make=_link_made,
            computed=("arn", "associationId"),
            defaulted=("importedFileChunkSize", "s3"),
            defaults={"batchImportMetaDataOnCreate": False, "deleteDataInFilesystem": False},
            gone="DataRepositoryAssociationNotFound",
            seconds=60.0,
        ),
    )
