"""Words and numbers that inputs may have; most of the words are those of AWS's own service models.

The provider checks them before AWS is asked, as the real one does, and says it in the same words.
"""

import gzip
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from twin.aws.wire import UNKNOWN

_EKS, _EC2, _FSX = "eks/2017-11-01", "ec2/2016-11-15", "fsx/2018-03-01"
_KMS, _LOGS = "kms/2014-11-01", "logs/2014-03-28"
_ENUMERATED: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "aws:eks/nodeGroup:NodeGroup": {
        "amiType": (_EKS, "AMITypes"),
        "capacityType": (_EKS, "CapacityTypes"),
        "taints[].effect": (_EKS, "TaintEffect"),
    },
    "aws:eks/cluster:Cluster": {
        "accessConfig.authenticationMode": (_EKS, "AuthenticationMode"),
        "enabledClusterLogTypes[]": (_EKS, "LogType"),
        "kubernetesNetworkConfig.ipFamily": (_EKS, "IpFamily"),
        "upgradePolicy.supportType": (_EKS, "SupportType"),
    },
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": {"accessScope.type": (_EKS, "AccessScopeType")},
    "aws:eks/addon:Addon": {"resolveConflictsOnUpdate": (_EKS, "ResolveConflicts")},
    "aws:ec2/vpcEndpoint:VpcEndpoint": {"vpcEndpointType": (_EC2, "VpcEndpointType")},
    "aws:fsx/lustreFileSystem:LustreFileSystem": {
        "autoImportPolicy": (_FSX, "AutoImportPolicyType"),
        "dataCompressionType": (_FSX, "DataCompressionType"),
        "deploymentType": (_FSX, "LustreDeploymentType"),
        "driveCacheType": (_FSX, "DriveCacheType"),
        "logConfiguration.level": (_FSX, "LustreAccessAuditLogLevel"),
        "metadataConfiguration.mode": (_FSX, "MetadataConfigurationMode"),
        "storageType": (_FSX, "StorageType"),
    },
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": {
        "s3.autoExportPolicy.events[]": (_FSX, "EventType"),
        "s3.autoImportPolicy.events[]": (_FSX, "EventType"),
    },
    "aws:kms/key:Key": {
        "customerMasterKeySpec": (_KMS, "CustomerMasterKeySpec"),
        "keyUsage": (_KMS, "KeyUsageType"),
    },
    "aws:cloudwatch/logGroup:LogGroup": {"logGroupClass": (_LOGS, "LogGroupClass")},
    "aws:ec2/launchTemplate:LaunchTemplate": {
        "capacityReservationSpecification.capacityReservationPreference": (_EC2, "CapacityReservationPreference"),
        "instanceMarketOptions.marketType": (_EC2, "MarketType"),
    },
    "aws:ec2/placementGroup:PlacementGroup": {"strategy": (_EC2, "PlacementStrategy")},
    "aws:ec2/capacityReservation:CapacityReservation": {
        "instancePlatform": (_EC2, "CapacityReservationInstancePlatform"),
        "instanceMatchCriteria": (_EC2, "InstanceMatchCriteria"),
    },
}
"""Service model and shape of an input, by its path, by kind. `[]` stands for each element of a list."""


_LISTED: Mapping[str, Mapping[str, tuple[str | int, ...]]] = {
    "aws:eks/cluster:Cluster": {"encryptionConfig.resources[]": ("secrets",)},
    "aws:eks/addon:Addon": {"resolveConflictsOnCreate": ("NONE", "OVERWRITE")},
    "aws:fsx/lustreFileSystem:LustreFileSystem": {
        "perUnitStorageThroughput": (12, 40, 50, 100, 125, 200, 250, 500, 1000),
        "metadataConfiguration.iops": (1500, 3000, 6000, *range(12000, 192001, 12000)),
    },
    "aws:cloudwatch/logGroup:LogGroup": {
        "retentionInDays": (
            *(0, 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
            *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
        ),
    },
}
"""Values that the Terraform provider lists itself, by path, by kind; the numbers for FSx and for log groups are AWS's:

https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-metadata-performance.html
https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
"""
_RANGES: Mapping[str, Mapping[str, tuple[int, int | None]]] = {
    "aws:fsx/lustreFileSystem:LustreFileSystem": {
        "automaticBackupRetentionDays": (0, 90),
        "importedFileChunkSize": (1, 512000),
        "storageCapacity": (1200, None),
    },
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": {"importedFileChunkSize": (1, 512000)},
    "aws:kms/key:Key": {"deletionWindowInDays": (7, 30), "rotationPeriodInDays": (90, 2560)},
}
"""Least and most; the latter may be open. API_CreateFileSystem.html of FSx, API_ScheduleKeyDeletion.html and
API_EnableKeyRotation.html of KMS."""
_FORMS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "aws:fsx/lustreFileSystem:LustreFileSystem": {
        "dailyAutomaticBackupStartTime": (r"([01]\d|2[0-3]):?([0-5]\d)", "must be in the format HH:MM"),
        "weeklyMaintenanceStartTime": (r"[1-7]:([01]\d|2[0-3]):?([0-5]\d)", "must be in the format d:HH:MM"),
        "fileSystemTypeVersion": (r"\d\.\d+", "must be in format x.y"),
        "kmsKeyId": (r"arn:[\w-]+:kms:.+", "is an invalid ARN"),
    },
}
"""Patterns, and what the provider says of what they do not match."""


def wrong_words(token: str, inputs: Mapping[str, Any]) -> dict[str, str]:
    """What a kind's inputs say that AWS has no such word or number for: the reason by property path."""
    listed: dict[str, tuple[str | int, ...]] = dict(_LISTED.get(token, {}))
    listed |= {path: _allowed(*shape) for path, shape in _ENUMERATED.get(token, {}).items()}
    found = {}
    for path, allowed in listed.items():
        for place, value in _given(inputs, path):
            if value not in allowed:
                words = " ".join(f'"{each}"' if isinstance(each, str) else str(each) for each in allowed)
                found[place] = f"expected {place} to be one of [{words}], got {value}"
    for path, (least, most) in _RANGES.get(token, {}).items():
        for place, value in _given(inputs, path):
            if int(value) < least or (most is not None and int(value) > most):
                between = f"at least ({least})" if most is None else f"in the range ({least} - {most})"
                found[place] = f"expected {place} to be {between}, got {value}"
    for path, (pattern, text) in _FORMS.get(token, {}).items():
        for place, value in _given(inputs, path):
            if not re.fullmatch(pattern, str(value)):
                found[place] = f'"{place}" ({value}) {text}'
    return found


def _given(inputs: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """What is known at a path."""
    for place, value in _values(inputs, path.split("."), ""):
        if value not in (None, "", UNKNOWN):
            yield place, value


def _values(value: Any, path: list[str], place: str) -> Iterator[tuple[str, Any]]:
    """Every value at a path, with the place where it is."""
    if not path:
        yield place, value
    elif isinstance(value, Mapping):
        name, each = path[0].removesuffix("[]"), path[0].endswith("[]")
        inner, there = value.get(name), f"{place}.{name}" if place else name
        if not each:
            yield from _values(inner, path[1:], there)
        elif isinstance(inner, list):
            for index, element in enumerate(inner):
                yield from _values(element, path[1:], f"{there}[{index}]")


def _allowed(service: str, shape: str) -> tuple[str, ...]:
    return tuple(_shapes(service)[shape]["enum"])


@cache
def _shapes(service: str) -> Mapping[str, Any]:
    """Botocore's copy of a service model; botocore itself, which is slow to import, is not needed for it."""
    spec = importlib.util.find_spec("botocore")
    assert spec
    assert spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0]) / "data" / service / "service-2.json.gz"
    shapes: Mapping[str, Any] = json.loads(gzip.decompress(file.read_bytes()))["shapes"]
    return shapes
