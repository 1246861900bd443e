"""FSx for Lustre in the simulated AWS: what it refuses and in which words, what changes in place, what replaces."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.twin_aws.test_resources import SECURITY, SUBNET, VPC, Site
from tests.twin_aws.worlds import Engine, Refused, engine
from twin.aws.wire import UNKNOWN

LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
IN = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
OUT = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"


@pytest.fixture
def aws() -> Iterator[Engine]:
    with engine() as running:
        yield running


class Storage:
    """A site with a security group that lets EFA and Lustre through."""

    def __init__(self, aws: Engine) -> None:
        self.aws = aws
        self.site = Site(aws)
        self.group, _ = aws.create(SECURITY, vpcId=self.site.vpc)
        self.rules = [
            aws.create(token, securityGroupId=self.group, referencedSecurityGroupId=self.group, ipProtocol="-1")[0]
            for token in (IN, OUT)
        ]
        self.plain: dict[str, Any] = {
            "subnetIds": self.site.subnets[1],
            "securityGroupIds": [self.group],
            "deploymentType": "PERSISTENT_2",
            "storageCapacity": 4800,
            "perUnitStorageThroughput": 1000,
        }
        self.efa: dict[str, Any] = {
            **self.plain,
            "efaEnabled": True,
            "metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": 6000},
            "fileSystemTypeVersion": "2.15",
        }


def test_file_system_has_a_name_to_mount_and_interfaces_in_its_subnet(aws: Engine) -> None:
    storage = Storage(aws)
    id_, outputs = aws.create(LUSTRE, **storage.efa)
    assert id_.startswith("fs-0")
    assert outputs["dnsName"] == f"{id_}.fsx.us-west-2.amazonaws.com"
    assert len(outputs["mountName"]) == 8
    assert outputs["vpcId"] == storage.site.vpc
    assert outputs["arn"] == f"arn:aws:fsx:us-west-2:{outputs['ownerId']}:file-system/{id_}"
    assert len(outputs["networkInterfaceIds"]) == 4
    with pytest.raises(Refused, match="DependencyViolation"):
        aws.delete(SUBNET, storage.site.subnets[1])
    with pytest.raises(Refused, match="DependencyViolation"):
        aws.delete(SECURITY, storage.group)
    aws.delete(LUSTRE, id_)
    assert aws.read(LUSTRE, id_) == ""
    aws.delete(SECURITY, storage.group)


def test_preview_leaves_what_aws_decides_unknown(aws: Engine) -> None:
    inputs = {"subnetIds": UNKNOWN, "securityGroupIds": [UNKNOWN], "deploymentType": "PERSISTENT_2"}
    _, outputs = aws.create(LUSTRE, preview=True, **inputs, storageCapacity=1200)
    decided = ("arn", "dnsName", "mountName", "networkInterfaceIds", "vpcId", "fileSystemTypeVersion")
    assert {outputs[name] for name in decided} == {UNKNOWN}
    assert outputs["storageType"] == "SSD"


@pytest.mark.parametrize(
    ("inputs", "version", "mount"),
    [
        ({"deploymentType": "SCRATCH_1", "storageCapacity": 3600}, "2.10", "fsx"),
        ({"deploymentType": "SCRATCH_2", "storageCapacity": 2400}, "2.10", None),
        ({"deploymentType": "PERSISTENT_1", "storageCapacity": 1200, "perUnitStorageThroughput": 50}, "2.10", None),
        (
            {
                "deploymentType": "PERSISTENT_1",
                "storageType": "HDD",
                "driveCacheType": "NONE",
                "storageCapacity": 6000,
                "perUnitStorageThroughput": 12,
            },
            "2.10",
            None,
        ),
        ({"deploymentType": "PERSISTENT_2", "storageCapacity": 1200, "perUnitStorageThroughput": 125}, "2.12", None),
        (
            {
                "deploymentType": "PERSISTENT_2",
                "storageCapacity": 2400,
                "perUnitStorageThroughput": 125,
                "metadataConfiguration": {"mode": "AUTOMATIC"},
            },
            "2.15",
            None,
        ),
        (
            {
                "deploymentType": "PERSISTENT_2",
                "storageType": "INTELLIGENT_TIERING",
                "throughputCapacity": 4000,
                "dataReadCacheConfiguration": {"sizingMode": "NO_CACHE"},
                "metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": 6000},
            },
            "2.15",
            None,
        ),
    ],
    ids=str,
)
def test_every_deployment_that_there_is(aws: Engine, inputs: dict[str, Any], version: str, mount: str | None) -> None:
    storage = Storage(aws)
    place = {name: storage.plain[name] for name in ("subnetIds", "securityGroupIds")}
    _, outputs = aws.create(LUSTRE, **place, **inputs)
    assert outputs["fileSystemTypeVersion"] == version
    assert outputs["mountName"] == (mount or outputs["mountName"])


@pytest.mark.parametrize(("tier", "least"), [(1000, 4800), (500, 9600), (250, 19200), (125, 38400)])
def test_capacity_of_an_efa_file_system_goes_in_steps_of_its_tier(aws: Engine, tier: int, least: int) -> None:
    storage = Storage(aws)
    inputs = {**storage.efa, "perUnitStorageThroughput": tier}
    for wrong in (least - 2400, least + 2400):
        words = f"BadRequest: Invalid Lustre FS storage capacity: {wrong}. Must be a multiple of {least}."
        with pytest.raises(Refused, match=words):
            aws.create(LUSTRE, **{**inputs, "storageCapacity": wrong})
    for right in (least, 2 * least):
        aws.create(LUSTRE, **{**inputs, "storageCapacity": right})


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "capacity between steps": (
        {"storageCapacity": 3600},
        "BadRequest: Invalid Lustre FS storage capacity: 3600. Must be 1200 or a multiple of 2400.",
    ),
    "scratch 1 has other steps": (
        {"deploymentType": "SCRATCH_1", "storageCapacity": 4800, "perUnitStorageThroughput": None},
        "Must be 1200 or 2400 or a multiple of 3600.",
    ),
    "tier of another deployment": ({"perUnitStorageThroughput": 200}, "the provided throughput is invalid"),
    "no tier": ({"perUnitStorageThroughput": None}, "the provided throughput is invalid"),
    "tier of a scratch one": (
        {"deploymentType": "SCRATCH_2", "perUnitStorageThroughput": 200},
        "the provided throughput is invalid",
    ),
    "no capacity": ({"storageCapacity": None}, "StorageCapacity is required"),
    "disks of another deployment": (
        {"storageType": "HDD", "driveCacheType": "NONE"},
        "HDD storage is supported for PERSISTENT_1 only",
    ),
    "disks without a choice of cache": (
        {"deploymentType": "PERSISTENT_1", "storageType": "HDD", "perUnitStorageThroughput": 12},
        "DriveCacheType is required when StorageType is HDD",
    ),
    "intelligent tiering without its cache": (
        {"storageType": "INTELLIGENT_TIERING", "storageCapacity": None, "perUnitStorageThroughput": None},
        "dataReadCacheConfiguration is required",
    ),
    "import from S3 of the old kind": ({"importPath": "s3://b"}, "importPath is not supported for PERSISTENT_2"),
    "Lustre too old": ({"fileSystemTypeVersion": "2.10"}, "FileSystemTypeVersion 2.10 is not supported"),
    "Lustre that is not": ({"fileSystemTypeVersion": "2.14"}, "is not one of 2.10, 2.12 and 2.15"),
    "Lustre too old for metadata": (
        {"fileSystemTypeVersion": "2.12", "metadataConfiguration": {"mode": "AUTOMATIC"}},
        "FileSystemTypeVersion 2.12 is not supported with a metadata configuration",
    ),
    "metadata without IOPS": (
        {"metadataConfiguration": {"mode": "USER_PROVISIONED"}},
        "Iops is required when the metadata configuration mode is USER_PROVISIONED",
    ),
    "metadata with IOPS of its own accord": (
        {"metadataConfiguration": {"mode": "AUTOMATIC", "iops": 6000}},
        "Iops is not supported when the metadata configuration mode is AUTOMATIC",
    ),
    "EFA without metadata": ({"efaEnabled": True}, "EFA requires a metadata configuration"),
    "EFA on another deployment": (
        {"deploymentType": "PERSISTENT_1", "efaEnabled": True, "perUnitStorageThroughput": 200},
        "EFA is supported for PERSISTENT_2 file systems only",
    ),
    "backups of a scratch one": (
        {"deploymentType": "SCRATCH_2", "perUnitStorageThroughput": None, "automaticBackupRetentionDays": 7},
        "Automatic backups are not supported for scratch file systems",
    ),
    "time of backups that are not made": (
        {"dailyAutomaticBackupStartTime": "05:00"},
        "DailyAutomaticBackupStartTime requires AutomaticBackupRetentionDays",
    ),
    "log group of another name": (
        {"logConfiguration": {"level": "WARN_ERROR", "destination": "arn:aws:logs:us-west-2:1:log-group:/mine"}},
        "the name of a log group begins with /aws/fsx",
    ),
    "no such subnet": ({"subnetIds": "subnet-none"}, "The subnet ID 'subnet-none' does not exist"),
    "no such group": ({"securityGroupIds": ["sg-none"]}, "The security group 'sg-none' does not exist"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_when_it_is_made(aws: Engine, case: str) -> None:
    storage = Storage(aws)
    change, words = CASES[case]
    inputs = {name: value for name, value in {**storage.plain, **change}.items() if value is not None}
    with pytest.raises(Refused, match=r"operation error FSx: CreateFileSystem, .*StatusCode: 400") as caught:
        aws.create(LUSTRE, **inputs)
    assert words in str(caught.value)
    assert aws.world.store.list("aws-fsx-lustreFileSystem-LustreFileSystem") == {}


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"deploymentType": "PERSISTENT_3"}, "deploymentType", 'one of ["SCRATCH_1" "SCRATCH_2"'),
        ({"perUnitStorageThroughput": 60}, "perUnitStorageThroughput", "one of [12 40 50 100"),
        ({"automaticBackupRetentionDays": 91}, "automaticBackupRetentionDays", "in the range (0 - 90), got 91"),
        ({"storageCapacity": 600}, "storageCapacity", "to be at least (1200), got 600"),
        ({"dataCompressionType": "ZIP"}, "dataCompressionType", 'one of ["NONE" "LZ4"], got ZIP'),
        ({"weeklyMaintenanceStartTime": "8:00:00"}, "weeklyMaintenanceStartTime", "must be in the format d:HH:MM"),
        ({"throughputCapacity": 1000}, "throughputCapacity", "to be divisible by 4000, got 1000"),
        ({"subnetIds": ["subnet-1"]}, "subnetIds", "one subnet as a string"),
        (
            {"deploymentType": "PERSISTENT_2", "metadataConfiguration": {"iops": 5000}},
            "metadataConfiguration.iops",
            "got 5000",
        ),
        (
            {"deploymentType": "SCRATCH_2", "metadataConfiguration": {"mode": "AUTOMATIC"}},
            "metadataConfiguration",
            "can only be set when deployment type is PERSISTENT_2",
        ),
    ],
    ids=str,
)
def test_wrong_inputs_fail_before_aws_is_asked(aws: Engine, change: dict[str, Any], path: str, words: str) -> None:
    _, failures = aws.check(LUSTRE, {"subnetIds": "subnet-1", **change})
    assert list(failures) == [path]
    assert words in failures[path]


def rule(aws: Engine, token: str, group: str, **peer: Any) -> str:
    return aws.create(token, securityGroupId=group, **peer)[0]


def test_group_needs_the_ports_of_lustre_in_both_directions(aws: Engine) -> None:
    storage = Storage(aws)
    group, _ = aws.create(SECURITY, vpcId=storage.site.vpc)
    inputs = {**storage.plain, "securityGroupIds": [group]}
    words = r"InvalidNetworkSettings: .* do not permit Lustre LNET network traffic on port"
    with pytest.raises(Refused, match=f"{words} 988"):
        aws.create(LUSTRE, **inputs)
    tcp = {"ipProtocol": "tcp"}
    rule(aws, IN, group, **tcp, fromPort=988, toPort=988, referencedSecurityGroupId=group)
    with pytest.raises(Refused, match=f"{words} 988"):
        aws.create(LUSTRE, **inputs)
    rule(aws, OUT, group, ipProtocol="-1", cidrIpv4="0.0.0.0/0")
    with pytest.raises(Refused, match=f"{words}s 1018-1023"):
        aws.create(LUSTRE, **inputs)
    rule(aws, IN, group, **tcp, fromPort=1018, toPort=1023, cidrIpv4="10.20.0.0/16")
    aws.create(LUSTRE, **inputs)


def test_addresses_of_others_do_not_open_the_ports(aws: Engine) -> None:
    storage = Storage(aws)
    group, _ = aws.create(SECURITY, vpcId=storage.site.vpc)
    rule(aws, IN, group, ipProtocol="-1", cidrIpv4="10.20.0.0/19")
    rule(aws, OUT, group, ipProtocol="-1", cidrIpv4="0.0.0.0/0")
    with pytest.raises(Refused, match="on port 988"):
        aws.create(LUSTRE, **{**storage.plain, "securityGroupIds": [group]})


@pytest.mark.parametrize("direction", [IN, OUT])
def test_efa_is_not_matched_by_addresses(aws: Engine, direction: str) -> None:
    storage = Storage(aws)
    which = (IN, OUT).index(direction)
    aws.delete(direction, storage.rules[which])
    rule(aws, direction, storage.group, ipProtocol="-1", cidrIpv4="0.0.0.0/0")
    words = "Insufficient security group permissions to create an EFA-enabled file system"
    with pytest.raises(Refused, match=words):
        aws.create(LUSTRE, **storage.efa)
    aws.create(LUSTRE, **storage.plain)


def test_groups_that_aws_makes_pass_as_they_are(aws: Engine) -> None:
    storage = Storage(aws)
    plain = {name: value for name, value in storage.plain.items() if name != "securityGroupIds"}
    aws.create(LUSTRE, **plain)
    words = "Insufficient security group permissions"
    with pytest.raises(Refused, match=words):
        aws.create(LUSTRE, **{k: v for k, v in storage.efa.items() if k != "securityGroupIds"})
    of_cluster = storage.site.outputs["vpcConfig"]["clusterSecurityGroupId"]
    aws.create(LUSTRE, **{**storage.efa, "securityGroupIds": [of_cluster]})


def test_rules_inside_of_a_group_count(aws: Engine) -> None:
    storage = Storage(aws)
    everything = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
    group, _ = aws.create(SECURITY, vpcId=storage.site.vpc, ingress=[everything], egress=[everything])
    aws.create(LUSTRE, **{**storage.efa, "securityGroupIds": [group]})


def test_full_subnet_has_no_place_for_it(aws: Engine) -> None:
    storage = Storage(aws)
    small, _ = aws.create(
        SUBNET, vpcId=storage.site.vpc, cidrBlock="10.20.128.0/28", availabilityZone="us-west-2b", tags={}
    )
    inputs = {**storage.efa, "subnetIds": small, "storageCapacity": 24000}
    with pytest.raises(Refused, match="does not have enough free addresses"):
        aws.create(LUSTRE, **inputs)


@pytest.mark.parametrize(
    "name",
    [
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
    ],
)
def test_replaced_by_a_change_of(aws: Engine, name: str) -> None:
    assert aws.replaces(LUSTRE, {name: "a"}, {name: "b"}) == ([name], [name])


P2 = {"deploymentType": "PERSISTENT_2"}


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        ({**P2, "storageCapacity": 4800}, {**P2, "storageCapacity": 9600}, []),
        ({**P2, "storageCapacity": 9600}, {**P2, "storageCapacity": 4800}, ["storageCapacity"]),
        ({**P2, "storageCapacity": 9600}, {**P2, "storageCapacity": UNKNOWN}, []),
        ({"storageCapacity": 3600}, {"storageCapacity": 7200}, ["storageCapacity"]),
        ({**P2, "perUnitStorageThroughput": 125}, {**P2, "perUnitStorageThroughput": 250}, []),
        ({**P2, "dataCompressionType": "NONE"}, {**P2, "dataCompressionType": "LZ4"}, []),
        ({**P2, "automaticBackupRetentionDays": 0}, {**P2, "automaticBackupRetentionDays": 7}, []),
        ({**P2, "fileSystemTypeVersion": "2.12"}, {**P2, "fileSystemTypeVersion": "2.15"}, []),
        (
            {**P2, "fileSystemTypeVersion": "2.15"},
            {**P2, "fileSystemTypeVersion": "2.12"},
            ["fileSystemTypeVersion"],
        ),
        (
            {**P2, "metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": 12000}},
            {**P2, "metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": 6000}},
            ["metadataConfiguration"],
        ),
        (
            {**P2, "metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": 6000}},
            {**P2, "metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": 12000}},
            [],
        ),
    ],
    ids=str,
)
def test_what_changes_in_place_and_what_replaces(
    aws: Engine, old: dict[str, Any], new: dict[str, Any], replaces: list[str]
) -> None:
    changed, replaced = aws.replaces(LUSTRE, old, new)
    assert len(changed) == 1
    assert replaced == replaces


def test_what_the_provider_fills_in_is_no_change(aws: Engine) -> None:
    full = {"copyTagsToBackups": False, "skipFinalBackup": True, "dataCompressionType": "NONE", "storageType": "SSD"}
    assert aws.replaces(LUSTRE, {"deploymentType": "SCRATCH_1"}, full) == ([], [])


def test_grows_in_place_and_keeps_what_is_no_longer_asked_for(aws: Engine) -> None:
    storage = Storage(aws)
    inputs = {**storage.efa, "metadataConfiguration": {"mode": "AUTOMATIC"}}
    id_, state = aws.create(LUSTRE, **inputs)
    assert state["metadataConfiguration"] == {"mode": "AUTOMATIC", "iops": 6000}
    dropped = ("metadataConfiguration", "fileSystemTypeVersion")
    grown = {**{k: v for k, v in inputs.items() if k not in dropped}, "storageCapacity": 14400}
    grown["dataCompressionType"] = "LZ4"
    changed = aws.update(LUSTRE, id_, state, grown, inputs)
    assert changed["metadataConfiguration"] == {"mode": "AUTOMATIC", "iops": 12000}
    assert (changed["fileSystemTypeVersion"], changed["dataCompressionType"]) == ("2.15", "LZ4")
    assert (changed["dnsName"], changed["mountName"]) == (state["dnsName"], state["mountName"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"perUnitStorageThroughput": 500, "storageCapacity": 9600}, "cannot be updated on an EFA-enabled file system"),
        ({"storageCapacity": 7200}, "Must be a multiple of 4800."),
        ({"metadataConfiguration": {"mode": "AUTOMATIC"}}, "cannot be changed from USER_PROVISIONED to AUTOMATIC"),
    ],
    ids=str,
)
def test_change_that_aws_refuses_changes_nothing(aws: Engine, change: dict[str, Any], words: str) -> None:
    storage = Storage(aws)
    id_, state = aws.create(LUSTRE, **storage.efa)
    with pytest.raises(Refused, match=r"updating FSx for Lustre File System \(fs-.*UpdateFileSystem") as caught:
        aws.update(LUSTRE, id_, state, {**storage.efa, **change}, storage.efa)
    assert words in str(caught.value)
    assert aws.outputs_read(LUSTRE, id_) == state


def test_metadata_configuration_cannot_be_added(aws: Engine) -> None:
    storage = Storage(aws)
    id_, state = aws.create(LUSTRE, **storage.plain, fileSystemTypeVersion="2.15")
    news = {**storage.plain, "fileSystemTypeVersion": "2.15", "metadataConfiguration": {"mode": "AUTOMATIC"}}
    with pytest.raises(Refused, match="without a metadata configuration, which cannot be added"):
        aws.update(LUSTRE, id_, state, news, storage.plain)


def test_file_system_is_found_by_its_id(aws: Engine) -> None:
    storage = Storage(aws)
    id_, outputs = aws.create(LUSTRE, **storage.efa)
    assert aws.outputs_read(LUSTRE, id_) == outputs
    imported = aws.inputs_read(LUSTRE, id_)
    assert aws.replaces(LUSTRE, imported, storage.efa)[1] == []
    assert {name: imported[name] for name in storage.efa} == storage.efa


# --- links to S3 ----------------------------------------------------------------------------------------------------


def link(system: str, path: str) -> dict[str, Any]:
    return {"fileSystemId": system, "fileSystemPath": path, "dataRepositoryPath": "s3://bucket/prefix"}


def test_link_to_s3_is_made_and_goes_with_its_file_system(aws: Engine) -> None:
    storage = Storage(aws)
    system, _ = aws.create(LUSTRE, **storage.plain)
    id_, outputs = aws.create(LINK, **link(system, "/data"))
    assert outputs["associationId"] == id_
    assert outputs["arn"].endswith(f":association/{system}/{id_}")
    for name in ("dataRepositoryPath", "fileSystemId", "fileSystemPath"):
        assert aws.replaces(LINK, {name: "a"}, {name: "b"}) == ([name], [name])
    chunks = {**link(system, "/data"), "importedFileChunkSize": 2048}
    assert aws.replaces(LINK, link(system, "/data"), chunks) == (["importedFileChunkSize"], [])
    aws.delete(LUSTRE, system)
    assert aws.read(LINK, id_) == ""


@pytest.mark.parametrize("path", ["/data", "/data/", "/data/deeper", "/"])
def test_links_do_not_overlap(aws: Engine, path: str) -> None:
    storage = Storage(aws)
    system, _ = aws.create(LUSTRE, **storage.plain)
    aws.create(LINK, **link(system, "/data"))
    with pytest.raises(Refused, match=f"The file system path {path} overlaps with /data of dra-"):
        aws.create(LINK, **link(system, path))
    aws.create(LINK, **link(system, "/database"))


def test_there_are_eight_links_at_most(aws: Engine) -> None:
    storage = Storage(aws)
    system, _ = aws.create(LUSTRE, **storage.plain)
    for number in range(8):
        aws.create(LINK, **link(system, f"/{number}"))
    with pytest.raises(Refused, match=r"ServiceLimitExceeded: .* has 8 data repository associations"):
        aws.create(LINK, **link(system, "/8"))


def test_backups_and_links_exclude_each_other(aws: Engine) -> None:
    storage = Storage(aws)
    kept = {**storage.plain, "automaticBackupRetentionDays": 7}
    system, _ = aws.create(LUSTRE, **kept)
    with pytest.raises(Refused, match="keeps automatic backups, which a linked file system cannot have"):
        aws.create(LINK, **link(system, "/data"))
    linked, state = aws.create(LUSTRE, **storage.plain)
    aws.create(LINK, **link(linked, "/data"))
    with pytest.raises(Refused, match="not supported for a file system that is linked"):
        aws.update(LUSTRE, linked, state, kept, storage.plain)


def test_links_need_a_file_system_that_can_have_them(aws: Engine) -> None:
    storage = Storage(aws)
    with pytest.raises(Refused, match="FileSystemNotFound: File system 'fs-none' does not exist"):
        aws.create(LINK, **link("fs-none", "/data"))
    place = {name: storage.plain[name] for name in ("subnetIds", "securityGroupIds")}
    scratch, _ = aws.create(LUSTRE, **place, deploymentType="SCRATCH_1", storageCapacity=1200)
    with pytest.raises(Refused, match=r"UnsupportedOperation: .* not supported for SCRATCH_1"):
        aws.create(LINK, **link(scratch, "/data"))
    _, failures = aws.check(LINK, {**link("fs-0", "data"), "dataRepositoryPath": "gs://b"})
    assert failures == {"fileSystemPath": "path must begin with /", "dataRepositoryPath": "must begin with s3://"}


def test_network_of_a_file_system_is_held(aws: Engine) -> None:
    storage = Storage(aws)
    aws.create(LUSTRE, **storage.plain)
    with pytest.raises(Refused, match=f"The vpc '{storage.site.vpc}' has dependencies and cannot be deleted"):
        aws.delete(VPC, storage.site.vpc)
