"""A plain pulumi-aws program on the real engine: the SDK's names of types and inputs are those that the twin knows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rehearsals import Rehearsal, rehearsal

pytestmark = pytest.mark.engine

PROGRAM = '''
"""A network, a cluster, a file system and what they need; no line of Plumbline."""
import json

import pulumi
import pulumi_aws as aws

vpc = aws.ec2.Vpc("net", cidr_block="10.60.0.0/16", enable_dns_hostnames=True, enable_dns_support=True)
subnets = [
    aws.ec2.Subnet(f"net-{z}", vpc_id=vpc.id, cidr_block=f"10.60.{i}.0/24", availability_zone=f"us-west-2{z}")
    for i, z in enumerate("ab")
]
internet = aws.ec2.InternetGateway("internet", vpc_id=vpc.id)
table = aws.ec2.RouteTable("table", vpc_id=vpc.id)
aws.ec2.Route("out", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", gateway_id=internet.id)
aws.ec2.RouteTableAssociation("table-a", route_table_id=table.id, subnet_id=subnets[0].id)
group = aws.ec2.SecurityGroup("fabric", vpc_id=vpc.id, description="everything among itself")
rules = [
    kind("fabric-" + name, security_group_id=group.id, referenced_security_group_id=group.id, ip_protocol="-1")
    for name, kind in (("in", aws.vpc.SecurityGroupIngressRule), ("out", aws.vpc.SecurityGroupEgressRule))
]
aws.ec2.VpcEndpoint("s3", vpc_id=vpc.id, service_name="com.amazonaws.us-west-2.s3", route_table_ids=[table.id])
aws.ec2.VpcEndpoint(
    "ecr",
    vpc_id=vpc.id,
    service_name="com.amazonaws.us-west-2.ecr.api",
    vpc_endpoint_type="Interface",
    private_dns_enabled=True,
    subnet_ids=[subnet.id for subnet in subnets],
    security_group_ids=[group.id],
)


def trusted(service: str, *actions: str) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": list(actions)}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


allowed = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}
)
role = aws.iam.Role("cluster", assume_role_policy=trusted("eks.amazonaws.com", "sts:AssumeRole"))
pods = aws.iam.Role("pods", assume_role_policy=trusted("pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession"))
aws.iam.RolePolicyAttachment("fsx", role=pods.name, policy_arn="arn:aws:iam::aws:policy/AmazonFSxFullAccess")
policy = aws.iam.Policy("read", policy=allowed)
aws.iam.RolePolicyAttachment("read", role=pods.name, policy_arn=policy.arn)
aws.iam.RolePolicy("inline", role=pods.name, policy=allowed)
aws.iam.InstanceProfile("profile", role=role.name)
key = aws.kms.Key("key", enable_key_rotation=True, deletion_window_in_days=7)
aws.kms.Alias("key", target_key_id=key.key_id)
logs = aws.cloudwatch.LogGroup("logs", name="/aws/fsx/train", retention_in_days=30)
aws.ec2.PlacementGroup("place", strategy="cluster")

cluster = aws.eks.Cluster(
    "cluster",
    role_arn=role.arn,
    vpc_config={"subnet_ids": [subnet.id for subnet in subnets], "public_access_cidrs": ["198.51.100.0/24"]},
    access_config={"authentication_mode": "API"},
    encryption_config={"provider": {"key_arn": key.arn}, "resources": ["secrets"]},
    enabled_cluster_log_types=["api", "audit"],
    upgrade_policy={"support_type": "STANDARD"},
)
entry = aws.eks.AccessEntry("pods", cluster_name=cluster.name, principal_arn=pods.arn)
aws.eks.AccessPolicyAssociation(
    "pods",
    cluster_name=cluster.name,
    principal_arn=entry.principal_arn,
    policy_arn="arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy",
    access_scope={"type": "namespace", "namespaces": ["training"]},
)
aws.eks.Addon(
    "fsx",
    cluster_name=cluster.name,
    addon_name="aws-fsx-csi-driver",
    addon_version="v1.9.0-eksbuild.1",
    configuration_values=json.dumps({"node": {}}),
    pod_identity_associations=[{"role_arn": pods.arn, "service_account": "fsx-csi-controller-sa"}],
    resolve_conflicts_on_create="OVERWRITE",
)
aws.eks.PodIdentityAssociation(
    "job", cluster_name=cluster.name, namespace="training", service_account="job", role_arn=pods.arn
)
system = aws.fsx.LustreFileSystem(
    "scratch",
    subnet_ids=subnets[1].id,
    security_group_ids=[group.id],
    deployment_type="PERSISTENT_2",
    storage_capacity=pulumi.Config().get_int("capacity") or 4800,
    per_unit_storage_throughput=1000,
    efa_enabled=True,
    metadata_configuration={"mode": "AUTOMATIC"},
    file_system_type_version="2.15",
    data_compression_type="LZ4",
    log_configuration={"level": "WARN_ERROR", "destination": logs.arn},
    opts=pulumi.ResourceOptions(depends_on=rules),
)
aws.fsx.DataRepositoryAssociation(
    "data",
    file_system_id=system.id,
    file_system_path="/data",
    data_repository_path="s3://bucket/data",
    s3={"auto_import_policy": {"events": ["NEW", "CHANGED"]}},
)

found = aws.fsx.LustreFileSystem.get("found", system.id)
there = aws.ec2.Subnet.get("there", subnets[1].id)
running = aws.eks.Cluster.get("running", cluster.id)
looked = aws.ec2.get_subnet_output(id=subnets[1].id)
network = aws.ec2.get_vpc_output(id=vpc.id)
known = aws.eks.get_cluster_output(name=cluster.id)
machine = aws.ec2.get_instance_type_output(instance_type="p5.48xlarge")
pulumi.export("mount", pulumi.Output.format("{0}/{1}", found.dns_name, found.mount_name))
pulumi.export("zones", pulumi.Output.all(there.availability_zone, looked.availability_zone))
pulumi.export("networks", pulumi.Output.all(running.vpc_config.vpc_id, network.id, known.vpc_config.vpc_id, vpc.id))
pulumi.export("cards", machine.maximum_network_cards)
'''


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    with rehearsal(tmp_path_factory.mktemp("plain")) as running:
        yield running


def test_plain_program_is_made_found_again_changed_and_taken_away(stage: Rehearsal, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: plain\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(PROGRAM)
    stage.new_stack("dev", cwd=tmp_path)
    before = {file.name for file in stage.state.documents.glob("aws-*/*.json")}
    first = stage.pulumi("up", "--yes", stack="dev", cwd=tmp_path)
    assert first.code == 0, first.text
    outputs = stage.exported(stack="dev", cwd=tmp_path)["deployment"]["resources"][0]["outputs"]
    assert ".fsx.us-west-2.amazonaws.com/" in outputs["mount"]
    assert outputs["zones"] == ["us-west-2b", "us-west-2b"]
    assert len(set(outputs["networks"])) == 1
    assert outputs["cards"] == 32
    again = stage.up("--refresh", "--expect-no-changes", stack="dev", cwd=tmp_path)
    assert again.code == 0, again.text
    grown = stage.up("--config", "capacity=9600", stack="dev", cwd=tmp_path)
    assert grown.code == 0, grown.text
    assert "replaced" not in grown.text
    [system] = [
        r
        for r in stage.resources("aws:fsx/lustreFileSystem:LustreFileSystem", stack="dev", cwd=tmp_path)
        if not r.get("external")
    ]
    assert system["outputs"]["storageCapacity"] == 9600
    gone = stage.pulumi("destroy", "--yes", "--skip-preview", stack="dev", cwd=tmp_path)
    assert gone.code == 0, gone.text
    assert {file.name for file in stage.state.documents.glob("aws-*/*.json")} == before, "what was there is left alone"
