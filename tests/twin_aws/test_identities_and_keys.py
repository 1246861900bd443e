"""IAM, KMS, log groups and scheduled actions in the simulated AWS."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.twin_aws.test_resources import GROUP, ROLE, Site
from tests.twin_aws.worlds import Engine, Refused, engine
from twin.aws.wire import UNKNOWN

POLICY, ATTACHMENT = "aws:iam/policy:Policy", "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
INLINE, PROFILE = "aws:iam/rolePolicy:RolePolicy", "aws:iam/instanceProfile:InstanceProfile"
KEY, ALIAS = "aws:kms/key:Key", "aws:kms/alias:Alias"
LOGS, SCHEDULE = "aws:cloudwatch/logGroup:LogGroup", "aws:autoscaling/schedule:Schedule"


@pytest.fixture
def aws() -> Iterator[Engine]:
    with engine() as running:
        yield running


def document(**change: Any) -> str:
    statement = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": "*", **change}
    return json.dumps({"Version": "2012-10-17", "Statement": {k: v for k, v in statement.items() if v is not None}})


def role(aws: Engine, name: str = "node", **more: Any) -> str:
    return aws.create(ROLE, name=name, assumeRolePolicy="{}", **more)[0]


# --- IAM ------------------------------------------------------------------------------------------------------------


def test_policy_is_its_arn_and_is_held_by_what_has_it(aws: Engine) -> None:
    id_, policy = aws.create(POLICY, name="read", policy=document(), path="/train/")
    assert id_ == policy["arn"] == f"arn:aws:iam::{id_.split(':')[4]}:policy/train/read"
    attachment, _ = aws.create(ATTACHMENT, role=role(aws), policyArn=id_)
    with pytest.raises(Refused, match=r"DeletePolicy.*409.*DeleteConflict: Cannot delete a policy attached to entit"):
        aws.delete(POLICY, id_)
    with pytest.raises(Refused, match="EntityAlreadyExists: A policy called read already exists"):
        aws.create(POLICY, name="read", policy=document())
    for name in ("name", "path", "description"):
        assert aws.replaces(POLICY, {name: "a"}, {name: "b"})[1] == [name]
    changed = aws.update(POLICY, id_, policy, {"name": "read", "path": "/train/", "policy": document(Effect="Deny")})
    assert json.loads(changed["policy"])["Statement"]["Effect"] == "Deny"
    aws.delete(ATTACHMENT, attachment)
    aws.delete(POLICY, id_)
    assert aws.read(POLICY, id_) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"Effect": "Permit"}, "Syntax errors in policy"),
        ({"Action": None}, "Policy statement must contain actions"),
        ({"Resource": None}, "Policy statement must contain resources"),
        ({"Principal": "*"}, "Policy document should not specify a principal"),
    ],
    ids=str,
)
def test_policy_that_iam_cannot_read(aws: Engine, change: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=f"CreatePolicy.*MalformedPolicyDocument: {words}"):
        aws.create(POLICY, name="p", policy=document(**change))
    with pytest.raises(Refused, match=f"PutRolePolicy.*MalformedPolicyDocument: {words}"):
        aws.create(INLINE, name="p", role=role(aws), policy=document(**change))
    id_, state = aws.create(POLICY, name="p", policy=document())
    with pytest.raises(Refused, match=f"updating IAM Policy .*CreatePolicyVersion.*{words}"):
        aws.update(POLICY, id_, state, {"name": "p", "policy": document(**change)})


@pytest.mark.parametrize("text", ["{", "[]", '"x"'])
def test_document_that_is_no_object_fails_before_aws_is_asked(aws: Engine, text: str) -> None:
    for token, name, more in (
        (POLICY, "policy", {}),
        (INLINE, "policy", {"role": "r"}),
        (ROLE, "assumeRolePolicy", {}),
    ):
        assert list(aws.check(token, {name: text, **more})[1]) == [name]
        assert aws.check(token, {name: UNKNOWN, **more})[1] == {}


@pytest.mark.parametrize(
    "policy",
    [
        "AmazonEKSClusterPolicy",
        "AmazonEC2ContainerRegistryPullOnly",
        "AmazonFSxFullAccess",
        "service-role/AmazonEBSCSIDriverPolicy",
    ],
)
def test_policies_of_aws_are_there_at_their_paths(aws: Engine, policy: str) -> None:
    aws.create(ATTACHMENT, role=role(aws), policyArn=f"arn:aws:iam::aws:policy/{policy}")


@pytest.mark.parametrize(
    "policy",
    [
        "arn:aws:iam::aws:policy/AmazonEKSClusterPolice",
        "arn:aws:iam::aws:policy/AmazonEBSCSIDriverPolicy",
        "arn:aws:iam::1:policy/p",
    ],
)
def test_policy_that_does_not_exist_is_not_attached(aws: Engine, policy: str) -> None:
    with pytest.raises(Refused, match=r"AttachRolePolicy.*404.*NoSuchEntity: Policy .* is not attachable") as caught:
        aws.create(ATTACHMENT, role=role(aws), policyArn=policy)
    assert policy in str(caught.value)


def test_parts_of_a_role_need_the_role(aws: Engine) -> None:
    words = "NoSuchEntity: The role with name none cannot be found"
    with pytest.raises(Refused, match=words):
        aws.create(ATTACHMENT, role="none", policyArn="arn:aws:iam::aws:policy/AmazonEKSClusterPolicy")
    with pytest.raises(Refused, match=words):
        aws.create(INLINE, name="p", role="none", policy=document())
    with pytest.raises(Refused, match=words):
        aws.create(PROFILE, name="p", role="none")


def test_role_with_policies_is_not_deleted_unless_they_are_detached(aws: Engine) -> None:
    name = role(aws)
    inline, _ = aws.create(INLINE, name="p", role=name, policy=document())
    assert inline == "node:p"
    words = "DeleteRole.*409.*DeleteConflict: Cannot delete entity, must detach all policies first"
    with pytest.raises(Refused, match=words):
        aws.delete(ROLE, name)
    aws.delete(INLINE, inline)
    aws.delete(ROLE, name)
    forced = role(aws, "forced", forceDetachPolicies=True)
    kept, _ = aws.create(INLINE, name="p", role=forced, policy=document())
    aws.delete(ROLE, forced)
    assert aws.read(INLINE, kept) == ""
    for token, fields in ((INLINE, ("role", "name")), (PROFILE, ("name", "path")), (ROLE, ("name", "path"))):
        for field in fields:
            assert aws.replaces(token, {field: "a"}, {field: "b"})[1] == [field]
    assert aws.replaces(PROFILE, {"role": "a"}, {"role": "b"}) == (["role"], [])


def test_instance_profile_has_a_role_and_does_not_hold_it(aws: Engine) -> None:
    name = role(aws)
    id_, profile = aws.create(PROFILE, name="node", role=name)
    assert (id_, profile["role"]) == ("node", name)
    assert profile["arn"].endswith(":instance-profile/node")
    with pytest.raises(Refused, match="EntityAlreadyExists: Instance Profile node already exists"):
        aws.create(PROFILE, name="node", role=name)
    aws.delete(ROLE, name)
    assert aws.outputs_read(PROFILE, "node")["role"] == ""


# --- KMS ------------------------------------------------------------------------------------------------------------


def test_key_has_a_policy_and_aliases_that_go_with_it(aws: Engine) -> None:
    id_, key = aws.create(KEY, description="d", enableKeyRotation=True, deletionWindowInDays=7)
    assert key["keyId"] == id_
    assert key["arn"].endswith(f":key/{id_}")
    assert json.loads(key["policy"])["Statement"][0]["Action"] == "kms:*"
    for target in (id_, key["arn"]):
        alias, outputs = aws.create(ALIAS, name=f"alias/{target[-4:]}{len(target)}", targetKeyId=target)
        assert outputs["targetKeyArn"] == key["arn"]
        assert outputs["arn"].endswith(f":{alias}")
        with pytest.raises(Refused, match=f"AlreadyExistsException: An alias with the name arn:aws:kms:.*:{alias}"):
            aws.create(ALIAS, name=alias, targetKeyId=id_)
    aws.delete(KEY, id_)
    assert aws.read(ALIAS, alias) == ""
    with pytest.raises(Refused, match=f"NotFoundException: Key 'arn:aws:kms:us-west-2:.*:key/{id_}' does not exist"):
        aws.create(ALIAS, name="alias/late", targetKeyId=id_)


@pytest.mark.parametrize("policy", ["{}", "[]", "no policy"])
def test_policy_of_a_key_has_to_be_one(aws: Engine, policy: str) -> None:
    with pytest.raises(Refused, match="MalformedPolicyDocumentException: The new key policy is not valid"):
        aws.create(KEY, policy=policy)


@pytest.mark.parametrize(
    ("token", "inputs", "path", "words"),
    [
        (KEY, {"deletionWindowInDays": 5}, "deletionWindowInDays", "in the range (7 - 30), got 5"),
        (KEY, {"rotationPeriodInDays": 100}, "rotationPeriodInDays", "must be specified"),
        (KEY, {"keyUsage": "SIGN"}, "keyUsage", '"ENCRYPT_DECRYPT"'),
        (ALIAS, {"name": "mine", "targetKeyId": "k"}, "name", 'must begin with "alias/"'),
        (ALIAS, {"name": "alias/aws/mine", "targetKeyId": "k"}, "name", 'must begin with "alias/"'),
        (LOGS, {"retentionInDays": 10}, "retentionInDays", "one of [0 1 3 5 7 14"),
        (LOGS, {"logGroupClass": "CHEAP"}, "logGroupClass", '"INFREQUENT_ACCESS"'),
    ],
    ids=str,
)
def test_wrong_inputs_fail_before_aws_is_asked(
    aws: Engine, token: str, inputs: dict[str, Any], path: str, words: str
) -> None:
    _, failures = aws.check(token, inputs)
    assert list(failures) == [path]
    assert words in failures[path]


def test_name_that_is_made_up_for_an_alias_begins_as_one(aws: Engine) -> None:
    inputs, failures = aws.check(ALIAS, {"targetKeyId": "k"}, "train")
    assert failures == {}
    assert inputs["name"].startswith("alias/train-")


@pytest.mark.parametrize(
    ("token", "names"),
    [
        (KEY, ("customerMasterKeySpec", "keyUsage", "multiRegion")),
        (ALIAS, ("name",)),
        (LOGS, ("name", "logGroupClass")),
        (SCHEDULE, ("autoscalingGroupName", "scheduledActionName")),
    ],
)
def test_what_replaces(aws: Engine, token: str, names: tuple[str, ...]) -> None:
    for name in names:
        assert aws.replaces(token, {name: "a"}, {name: "b"}) == ([name], [name])
    for name in ("targetKeyId", "retentionInDays", "description", "desiredCapacity", "tags"):
        assert aws.replaces(token, {name: "a"}, {name: "b"}) == ([name], [])


# --- log groups and scheduled actions -------------------------------------------------------------------------------


def test_log_group_has_a_name_of_its_own_and_may_stay(aws: Engine) -> None:
    id_, group = aws.create(LOGS, name="/aws/eks/train/cluster", retentionInDays=30)
    assert id_ == "/aws/eks/train/cluster"
    assert group["arn"].endswith(f":log-group:{id_}")
    words = "CloudWatch Logs: CreateLogGroup.*ResourceAlreadyExistsException: The specified log group already exists"
    with pytest.raises(Refused, match=words):
        aws.create(LOGS, name=id_)
    aws.delete(LOGS, id_)
    assert aws.read(LOGS, id_) == ""
    aws.create(LOGS, name=id_, skipDestroy=True)
    aws.delete(LOGS, id_)
    assert aws.read(LOGS, id_) == id_


def action(**change: Any) -> dict[str, Any]:
    asked = {"scheduledActionName": "up", "desiredCapacity": 2, "startTime": "2999-01-01T00:00:00Z", **change}
    return {"autoscalingGroupName": "eks-train-h100-1", **asked}


def test_scheduled_action_is_of_a_node_group(aws: Engine) -> None:
    site = Site(aws)
    _, group = aws.create(GROUP, **site.group())
    name = group["resources"][0]["autoscalingGroups"][0]["name"]
    id_, outputs = aws.create(SCHEDULE, **action(autoscalingGroupName=name))
    assert id_ == "up"
    assert outputs["arn"].endswith(f":autoScalingGroupName/{name}:scheduledActionName/up")
    assert sorted(aws.check(SCHEDULE, {"desiredCapacity": 1})[1]) == ["autoscalingGroupName", "scheduledActionName"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"autoscalingGroupName": "eks-none"}, "AutoScalingGroup name not found - eks-none"),
        ({"desiredCapacity": -1}, "At least one of MinSize, MaxSize and DesiredCapacity"),
        ({"minSize": 3}, "Min bound, desired capacity and max bound must be in this order"),
        ({"startTime": "2020-01-01T00:00:00Z"}, "Given start time is in the past"),
    ],
    ids=str,
)
def test_scheduled_action_that_is_refused(aws: Engine, change: dict[str, Any], words: str) -> None:
    site = Site(aws)
    aws.create(GROUP, **site.group())
    with pytest.raises(Refused, match=f"Auto Scaling: PutScheduled.*api error ValidationError: {words}"):
        aws.create(SCHEDULE, **action(**change))
