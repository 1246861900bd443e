"""Resources of the simulated AWS on the engine's protocol: made, refused, changed, held, and gone."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.twin_aws.worlds import Engine, Refused, engine
from twin.aws.wire import UNKNOWN

VPC, SUBNET = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"
ROLE, CLUSTER = "aws:iam/role:Role", "aws:eks/cluster:Cluster"
TEMPLATE, GROUP = "aws:ec2/launchTemplate:LaunchTemplate", "aws:eks/nodeGroup:NodeGroup"
SECURITY, RULE = "aws:ec2/securityGroup:SecurityGroup", "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


@pytest.fixture
def aws() -> Iterator[Engine]:
    with engine() as running:
        yield running


class Site:
    """A cluster in two zones, with a launch template for a p5 from the reservation."""

    def __init__(self, aws: Engine) -> None:
        self.aws = aws
        self.vpc, _ = aws.create(VPC, cidrBlock="10.20.0.0/16")
        self.subnets = [
            aws.create(SUBNET, vpcId=self.vpc, cidrBlock=f"10.20.{i * 32}.0/19", availabilityZone=f"us-west-2{zone}")[0]
            for i, zone in enumerate("ab")
        ]
        _, role = aws.create(ROLE, assumeRolePolicy="{}", name="role")
        self.role = role["arn"]
        self.cluster, self.outputs = aws.create(
            CLUSTER, name="train", version="1.34", roleArn=self.role, vpcConfig={"subnetIds": self.subnets}
        )
        nics = [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}]
        nics += [{"networkCardIndex": c, "deviceIndex": int(c == 0), "interfaceType": "efa-only"} for c in range(32)]
        self.template_inputs: dict[str, Any] = {
            "name": "train-h100",
            "instanceType": "p5.48xlarge",
            "networkInterfaces": nics,
            "capacityReservationSpecification": {
                "capacityReservationTarget": {"capacityReservationId": "cr-0a1b2c3d4e5f60718"}
            },
        }

    def group(self, nodes: int = 2, template: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        id_, outputs = self.aws.create(TEMPLATE, **{**self.template_inputs, **(template or {})})
        return {
            "clusterName": "train",
            "nodeGroupName": "train-h100-1",
            "nodeRoleArn": self.role,
            "subnetIds": [self.subnets[1]],
            "scalingConfig": {"desiredSize": nodes, "minSize": nodes, "maxSize": nodes},
            "amiType": "AL2023_x86_64_NVIDIA",
            "launchTemplate": {"id": id_, "version": str(outputs["latestVersion"])},
            "labels": {"plumbline.dev/pool": "h100"},
            **more,
        }


def machines(aws: Engine) -> list[dict[str, Any]]:
    return list(aws.world.store.list("machine").values())


def test_preview_knows_inputs_and_leaves_what_aws_decides_unknown(aws: Engine) -> None:
    id_, outputs = aws.create(VPC, preview=True, cidrBlock="10.20.0.0/16")
    assert id_ == ""
    assert outputs["cidrBlock"] == "10.20.0.0/16"
    assert outputs["arn"] == UNKNOWN
    _, cluster = aws.create(
        CLUSTER,
        preview=True,
        name="c",
        roleArn=UNKNOWN,
        vpcConfig={"subnetIds": [UNKNOWN], "endpointPublicAccess": True},
    )
    assert cluster["endpoint"] == cluster["certificateAuthority"] == UNKNOWN


def test_missing_inputs_are_failures_with_their_property(aws: Engine) -> None:
    _, failures = aws.check(GROUP, {"nodeGroupName": "g"})
    assert sorted(failures) == ["clusterName", "nodeRoleArn", "scalingConfig", "subnetIds"]


def test_name_is_made_up_once_and_kept(aws: Engine) -> None:
    inputs, _ = aws.check(ROLE, {"assumeRolePolicy": "{}"}, "train-node")
    assert inputs["name"].startswith("train-node-")
    assert len(inputs["name"]) == len("train-node-") + 7


REFUSALS: dict[str, tuple[str, dict[str, Any], str]] = {
    "vpc too large": (VPC, {"cidrBlock": "10.0.0.0/8"}, "InvalidVpc.Range"),
    "subnet outside": (SUBNET, {"cidrBlock": "10.21.0.0/24"}, "InvalidSubnet.Range"),
    "subnet over another": (SUBNET, {"cidrBlock": "10.20.1.0/24"}, "InvalidSubnet.Conflict"),
    "zone unknown": (
        SUBNET,
        {"cidrBlock": "10.20.200.0/24", "availabilityZone": "us-west-2z"},
        "InvalidParameterValue",
    ),
    "role name too long": (ROLE, {"assumeRolePolicy": "{}", "name": "r" * 65}, "ValidationError"),
    "role name taken": (ROLE, {"assumeRolePolicy": "{}", "name": "role"}, "EntityAlreadyExists"),
    "cluster name taken": (CLUSTER, {"name": "train"}, "ResourceInUseException"),
    "cluster version": (CLUSTER, {"name": "other", "version": "1.99"}, "unsupported Kubernetes version 1.99"),
    "rule with ports for all": (
        RULE,
        {"ipProtocol": "-1", "fromPort": 1, "securityGroupId": "sg-1", "cidrIpv4": "10.0.0.0/8"},
        "specify ports",
    ),
    "rule of no group": (
        RULE,
        {"ipProtocol": "-1", "securityGroupId": "sg-1", "cidrIpv4": "10.0.0.0/8"},
        "InvalidGroup.NotFound",
    ),
    "groups in two places": (
        TEMPLATE,
        {"name": "two-places", "vpcSecurityGroupIds": ["sg-1"], "networkInterfaces": [{"securityGroups": ["sg-1"]}]},
        "InvalidParameterCombination",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused_in_the_words_of_aws(aws: Engine, case: str) -> None:
    site = Site(aws)
    token, inputs, words = REFUSALS[case]
    if token == SUBNET:
        inputs = {"vpcId": site.vpc, "availabilityZone": "us-west-2c", **inputs}
    if token == CLUSTER:
        inputs = {"roleArn": site.role, "vpcConfig": {"subnetIds": site.subnets}, **inputs}
    with pytest.raises(Refused, match=r"operation error .*StatusCode: 4\d\d") as caught:
        aws.create(token, **inputs)
    assert words in str(caught.value)
    assert caught.value.kept is None, "nothing exists"


def test_cluster_wants_two_zones(aws: Engine) -> None:
    site = Site(aws)
    with pytest.raises(Refused, match="at least two different AZs"):
        aws.create(CLUSTER, name="other", roleArn=site.role, vpcConfig={"subnetIds": site.subnets[:1]})


def test_node_group_launches_what_its_template_says(aws: Engine) -> None:
    site = Site(aws)
    id_, outputs = aws.create(GROUP, **site.group())
    assert id_ == "train:train-h100-1"
    assert outputs["status"] == "ACTIVE"
    first, second = machines(aws)
    assert {first["zone"], second["zone"]} == {"us-west-2b"}
    assert (first["gpus"], first["efa_interfaces"], first["hugepages_2mi_mib"]) == (8, 32, 10256)
    assert first["private_ip"] != second["private_ip"]
    assert first["labels"]["eks.amazonaws.com/nodegroup"] == "train-h100-1"
    assert first["labels"]["plumbline.dev/pool"] == "h100"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clusterName": "none"}, "No cluster found for name: none"),
        ({"nodeGroupName": "g" * 64}, "63 characters at most"),
        ({"subnetIds": ["subnet-none"]}, "is not in the cluster's VPC"),
        ({"instanceTypes": ["p5.48xlarge"]}, "instance types in launch template and API request"),
        ({"scalingConfig": {"desiredSize": 3, "minSize": 0, "maxSize": 2}}, "desiredSize must lie between"),
        ({"launchTemplate": {"id": "lt-none", "version": "1"}}, "Launch template not found"),
    ],
    ids=str,
)
def test_node_group_that_is_asked_for_wrongly_is_not_made(aws: Engine, change: dict[str, Any], words: str) -> None:
    site = Site(aws)
    with pytest.raises(Refused) as caught:
        aws.create(GROUP, **{**site.group(), **change})
    assert words in str(caught.value)
    assert caught.value.kept is None
    assert machines(aws) == []


def test_template_with_a_subnet_is_accepted_by_ec2_and_refused_by_eks(aws: Engine) -> None:
    site = Site(aws)
    nic = {"deviceIndex": 0, "interfaceType": "interface", "subnetId": site.subnets[1]}
    with pytest.raises(Refused, match="must not specify a subnet"):
        aws.create(GROUP, **site.group(template={"networkInterfaces": [nic]}))


def test_failed_launch_keeps_the_group_and_an_update_recovers_it_when_the_cause_is_gone(aws: Engine) -> None:
    site = Site(aws)
    inputs = site.group()
    aws.world.on = {"reservation-in-other-zone"}
    with pytest.raises(Refused, match="unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'") as caught:
        aws.create(GROUP, **inputs)
    kept = caught.value.kept
    assert kept is not None
    assert kept.id == "train:train-h100-1"
    aws.world.on = set()
    outputs = aws.update(GROUP, kept.id, inputs, inputs)
    assert outputs["status"] == "ACTIVE"
    assert len(machines(aws)) == 2


def test_instances_that_never_join_fail_the_group_by_name(aws: Engine) -> None:
    site = Site(aws)
    aws.world.on = {"node-never-joins"}
    with pytest.raises(Refused, match="NodeCreationFailure: Instances failed to join") as caught:
        aws.create(GROUP, **site.group())
    assert all(machine["id"] in str(caught.value) for machine in machines(aws))


def test_group_grows_and_shrinks_and_ends_its_machines(aws: Engine) -> None:
    site = Site(aws)
    inputs = site.group()
    id_, outputs = aws.create(GROUP, **inputs)
    grown = {**inputs, "scalingConfig": {"desiredSize": 4, "minSize": 4, "maxSize": 4}}
    outputs = aws.update(GROUP, id_, outputs, grown)
    assert len(machines(aws)) == 4
    outputs = aws.update(
        GROUP, id_, outputs, {**inputs, "scalingConfig": {"desiredSize": 1, "minSize": 1, "maxSize": 1}}
    )
    assert len(machines(aws)) == 1
    aws.delete(GROUP, id_)
    assert machines(aws) == []
    assert aws.read(GROUP, id_) == ""


def test_reservation_is_used_up_by_what_runs(aws: Engine) -> None:
    site = Site(aws)
    aws.create(GROUP, **site.group(nodes=15))
    more = {**site.group(nodes=2, template={"name": "second"}), "nodeGroupName": "second"}
    with pytest.raises(Refused, match="2 requested, 1 available"):
        aws.create(GROUP, **more)


def test_what_is_held_is_not_deleted(aws: Engine) -> None:
    site = Site(aws)
    group, _ = aws.create(GROUP, **site.group())
    for token, id_, words in (
        (VPC, site.vpc, "DependencyViolation"),
        (SUBNET, site.subnets[0], "DependencyViolation"),
        (CLUSTER, "train", "Cluster has nodegroups attached"),
    ):
        with pytest.raises(Refused, match=words):
            aws.delete(token, id_)
    aws.delete(GROUP, group)
    aws.delete(CLUSTER, "train")
    for subnet in site.subnets:
        aws.delete(SUBNET, subnet)
    aws.delete(VPC, site.vpc)
    assert aws.world.clusters == set()


@pytest.mark.parametrize(
    ("token", "old", "new", "replaces"),
    [
        (VPC, {"cidrBlock": "10.0.0.0/16"}, {"cidrBlock": "10.1.0.0/16"}, ["cidrBlock"]),
        (VPC, {"tags": {"a": "1"}}, {"tags": {"a": "2"}}, []),
        (GROUP, {"amiType": "A"}, {"amiType": "B"}, ["amiType"]),
        (GROUP, {"scalingConfig": {"desiredSize": 1}}, {"scalingConfig": {"desiredSize": 2}}, []),
        (TEMPLATE, {"name": "a"}, {"name": "b"}, ["name"]),
        (SECURITY, {"description": "a"}, {"description": "b"}, ["description"]),
    ],
    ids=str,
)
def test_diff_says_what_replaces(
    aws: Engine, token: str, old: dict[str, Any], new: dict[str, Any], replaces: list[str]
) -> None:
    diffs, replaced = aws.replaces(token, old, new)
    assert diffs == sorted(new)
    assert replaced == replaces


def test_absent_and_empty_are_the_same_to_a_diff(aws: Engine) -> None:
    assert aws.replaces(VPC, {"cidrBlock": "10.0.0.0/16", "tags": {}}, {"cidrBlock": "10.0.0.0/16"}) == ([], [])


def test_what_is_not_simulated_is_refused_by_name(aws: Engine) -> None:
    with pytest.raises(Refused, match="does not simulate aws:s3/bucket:Bucket; it simulates aws:autoscaling/"):
        aws.check("aws:s3/bucket:Bucket", {})
