"""KMS keys and their aliases, CloudWatch log groups, and scheduled actions of Auto Scaling."""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from twin.aws.kinds.base import Call, Kind, Values, arn, folder
from twin.aws.wire import UNKNOWN

KEY, ALIAS = "aws:kms/key:Key", "aws:kms/alias:Alias"
LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"
SCHEDULE = "aws:autoscaling/schedule:Schedule"


def _key_policy(call: Call) -> None:
    """https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-default.html ."""
    document = call.inputs.get("policy")
    if document is None:
        return
    try:
        document = json.loads(document) if isinstance(document, str) else document
        right = isinstance(document, Mapping) and bool(document.get("Statement"))
    except ValueError:
        right = False
    if not right:
        raise call.refuse("MalformedPolicyDocumentException", "The new key policy is not valid.")


def _key_rotation(inputs: Values) -> Iterator[tuple[str, str]]:
    if inputs.get("rotationPeriodInDays") and inputs.get("enableKeyRotation") in (None, False):
        text = '"rotationPeriodInDays": all of `enableKeyRotation,rotationPeriodInDays` must be specified'
        yield "rotationPeriodInDays", text


@dataclass(frozen=True, kw_only=True)
class KeyKind(Kind):
    """A key: it is not deleted, but scheduled to be, and of no use from then on.

    https://docs.aws.amazon.com/kms/latest/developerguide/deleting-keys.html
    """

    def id(self, inputs: Values) -> str:
        """Its id."""
        return str(uuid.uuid4())

    async def delete(self, call: Call, id_: str) -> None:
        """Schedule its deletion, which its aliases do not outlive."""
        await Kind.delete(self, call, id_)
        for name, alias in call.all(ALIAS).items():
            if alias["targetKeyId"] in (id_, f"arn:aws:kms:{call.region}:{call.account.id}:key/{id_}"):
                call.world.store.delete(folder(ALIAS), name)


def _key_made(call: Call, id_: str) -> Values:
    """A key that is given no policy gets the one by which the account's policies decide."""
    root = {
        "Sid": "Enable IAM User Permissions",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{call.account.id}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    return {
        **arn("kms", "key/{id}")(call, id_),
        "keyId": id_,
        "multiRegion": call.inputs.get("multiRegion", False),
        "policy": call.inputs.get("policy") or json.dumps({"Version": "2012-10-17", "Statement": [root]}),
    }


def _alias_target(call: Call) -> None:
    """https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateAlias.html ."""
    target = str(call.inputs["targetKeyId"])
    if call.find(KEY, target.rsplit("/", 1)[-1]) is None:
        known = target if target.startswith("arn:") else f"arn:aws:kms:{call.region}:{call.account.id}:key/{target}"
        raise call.refuse("NotFoundException", f"Key '{known}' does not exist")


def _alias_name(call: Call) -> None:
    """https://docs.aws.amazon.com/kms/latest/developerguide/alias-about.html ."""
    name = call.inputs["name"]
    if name in call.all(ALIAS):
        full = f"arn:aws:kms:{call.region}:{call.account.id}:{name}"
        raise call.refuse("AlreadyExistsException", f"An alias with the name {full} already exists")


def _alias_form(inputs: Values) -> Iterator[tuple[str, str]]:
    name = str(inputs.get("name") or "")
    if name and name != UNKNOWN and (not name.startswith("alias/") or name.startswith("alias/aws/")):
        yield "name", 'name must begin with "alias/" and not with "alias/aws/", and be comprised of [0-9A-Za-z_/-]'


def _alias_made(call: Call, id_: str) -> Values:
    key = call.find(KEY, str(call.inputs["targetKeyId"]).rsplit("/", 1)[-1])
    assert key, "checked before"
    return {"arn": f"arn:aws:kms:{call.region}:{call.account.id}:{id_}", "targetKeyArn": key["arn"]}


def _log_group_name(call: Call) -> None:
    """https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html ."""
    if call.inputs["name"] in call.all(LOG_GROUP):
        raise call.refuse("ResourceAlreadyExistsException", "The specified log group already exists")


@dataclass(frozen=True, kw_only=True)
class LogGroupKind(Kind):
    """A log group, which may outlive its resource."""

    async def delete(self, call: Call, id_: str) -> None:
        """Take it away, unless it is to stay (`skipDestroy`). Raises: Refusal."""
        group = call.find(LOG_GROUP, id_) or {}
        if not group.get("skipDestroy"):
            await Kind.delete(self, call, id_)


def _schedule_rules(call: Call) -> None:
    """https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutScheduledUpdateGroupAction.html ."""
    inputs = call.inputs
    name = inputs["autoscalingGroupName"]
    groups = [g for each in call.all("aws:eks/nodeGroup:NodeGroup").values() for g in each["resources"]]
    if all(group["name"] != name for each in groups for group in each["autoscalingGroups"]):
        raise call.refuse("ValidationError", f"AutoScalingGroup name not found - {name}")
    sizes = [inputs.get(size, -1) for size in ("minSize", "desiredCapacity", "maxSize")]
    asked = [size for size in sizes if size != -1]
    if not asked:
        text = "At least one of MinSize, MaxSize and DesiredCapacity must be specified."
        raise call.refuse("ValidationError", text)
    if asked != sorted(asked):
        raise call.refuse("ValidationError", "Min bound, desired capacity and max bound must be in this order")
    start = inputs.get("startTime")
    if start and datetime.fromisoformat(start) < datetime.now(UTC):
        raise call.refuse("ValidationError", "Given start time is in the past")


@dataclass(frozen=True, kw_only=True)
class ScheduleKind(Kind):
    """A scheduled action. That it acts when its time comes is not simulated."""

    def id(self, inputs: Values) -> str:
        """Its id is its name."""
        return str(inputs["scheduledActionName"])


def _schedule_made(call: Call, _id: str) -> Values:
    path = f"autoScalingGroupName/{call.inputs['autoscalingGroupName']}"
    name = f"scheduledActionName/{call.inputs['scheduledActionName']}"
    action = f"scheduledUpdateGroupAction:{uuid.uuid4()}:{path}:{name}"
    return {"arn": f"arn:aws:autoscaling:{call.region}:{call.account.id}:{action}"}


def kinds() -> tuple[Kind, ...]:
    """All of them."""
    return (
        KeyKind(
            token=KEY,
            prefix="",
            operation="CreateKey",
            changed_by="PutKeyPolicy",
            gone="NotFoundException",
            doing="creating KMS Key",
            replaces=frozenset(
                {"customKeyStoreId", "customerMasterKeySpec", "keyUsage", "multiRegion", "xksKeyId"},
            ),
            checks=(_key_rotation,),
            rules=(_key_policy,),
            update_rules=(_key_policy,),
            make=_key_made,
            computed=("arn", "keyId"),
            defaulted=("policy", "multiRegion"),
            defaults={
                "customerMasterKeySpec": "SYMMETRIC_DEFAULT",
                "enableKeyRotation": False,
                "isEnabled": True,
                "keyUsage": "ENCRYPT_DECRYPT",
            },
        ),
        Kind(
            token=ALIAS,
            prefix="",
            operation="CreateAlias",
            gone="NotFoundException",
            doing="creating KMS Alias",
            required=("targetKeyId",),
            replaces=frozenset({"name", "namePrefix"}),
            named="name",
            made_up="alias/{name}",
            checks=(_alias_form,),
            rules=(_alias_name, _alias_target),
            update_rules=(_alias_target,),
            make=_alias_made,
            computed=("arn", "targetKeyArn"),
            seconds=1.0,
        ),
        LogGroupKind(
            token=LOG_GROUP,
            prefix="",
            operation="CreateLogGroup",
            changed_by="PutRetentionPolicy",
            gone="ResourceNotFoundException",
            doing="creating CloudWatch Logs Log Group",
            replaces=frozenset({"name", "namePrefix", "logGroupClass"}),
            named="name",
            rules=(_log_group_name,),
            make=arn("logs", "log-group:{name}"),
            defaulted=("logGroupClass",),
            defaults={"retentionInDays": 0, "skipDestroy": False},
            seconds=1.0,
        ),
        ScheduleKind(
            token=SCHEDULE,
            prefix="",
            operation="PutScheduledUpdateGroupAction",
            gone="ValidationError",
            doing="creating Auto Scaling Scheduled Action",
            required=("autoscalingGroupName", "scheduledActionName"),
            replaces=frozenset({"autoscalingGroupName", "scheduledActionName"}),
            rules=(_schedule_rules,),
            update_rules=(_schedule_rules,),
            make=_schedule_made,
            seconds=1.0,
        ),
    )
