"""The guides: what they promise is what the code does."""

import json
import re
from pathlib import Path

import botocore.session
import pytest

from plumbline.aws.account import READS
from plumbline.catalog import aws_catalogue, fsx_catalogue
from plumbline.plan.account import LAST_MINUTES
from plumbline.site.rules import ADDRESSES_PER_NODE

GUIDE = Path("docs/aws.md").read_text("utf-8")
POLICY = json.loads(Path("docs/aws-policy.json").read_text("utf-8"))
ACTIONS = sorted(action for statement in POLICY["Statement"] for action in statement["Action"])


def test_policy_has_every_right_that_reading_takes() -> None:
    assert set(READS) <= set(ACTIONS)
    assert all(right in GUIDE for right in READS)


@pytest.mark.parametrize("service", ["ec2", "eks", "fsx", "iam", "logs", "resource-groups", "sts", "autoscaling"])
def test_every_right_is_an_operation_of_its_service(service: str) -> None:
    known = set(botocore.session.get_session().get_service_model(service).operation_names)
    named = {action.partition(":")[2] for action in ACTIONS if action.startswith(f"{service}:")}
    without_operation = {"PassRole"}  # a right of IAM that no call has
    assert named - without_operation <= known
    assert named


def test_policy_is_narrow_where_it_can_be() -> None:
    assert not [action for action in ACTIONS if "*" in action]
    for statement in POLICY["Statement"]:
        if any(re.match(r"iam:(?!List|Get)", action) for action in statement["Action"]):
            assert statement["Resource"] != "*", statement["Sid"]


def test_numbers_of_the_guide_are_those_of_the_catalogue() -> None:
    fsx = fsx_catalogue()
    for tier in fsx.tiers("PERSISTENT_2", "SSD", efa=True):
        row = fsx.capacity("PERSISTENT_2", "SSD", tier, efa=True)
        assert row
        assert re.search(rf"\b{row.step}( GiB)? at {tier}\b", GUIDE)
    assert f"{aws_catalogue().eks.cni_efa_only_floor} or newer" in GUIDE
    assert aws_catalogue().eks.lustre_efa_feature in GUIDE
    assert f"last {LAST_MINUTES.seconds // 60} minutes" in GUIDE
    assert f"{ADDRESSES_PER_NODE} addresses for each node" in GUIDE
    assert len(aws_catalogue().eks.private_endpoints) == 7
    assert "makes seven" in GUIDE
