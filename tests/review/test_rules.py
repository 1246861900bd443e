"""Each rule, with inputs that break it and inputs that do not; and our own components, which break none."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import yaml

from plumbline.review import (
    ALL_RULES,
    RULES,
    UNKNOWN,
    Finding,
    Graph,
    Resource,
    Step,
    review,
    review_resource,
    review_steps,
    rules_for,
)
from plumbline.review.names import KINDS
from plumbline.review.types import (
    ASSOCIATION,
    CLUSTER,
    DAEMON_SET,
    EGRESS_RULE,
    INGRESS_RULE,
    JOB,
    LAUNCH_TEMPLATE,
    LUSTRE,
    NODE_GROUP,
    OLD_RULE,
    PLACEMENT_GROUP,
    POD,
    SECURITY_GROUP,
    SUBNET,
)
from tests.review.reported import CASES, findings, masked, paths

Props = Mapping[str, Any]


def template(**props: Any) -> Resource:
    return Resource(type=LAUNCH_TEMPLATE, name="lt", id="lt-0a", props=props)


def nic(card: int, device: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind, **more}


def group(**props: Any) -> Resource:
    return Resource(type=NODE_GROUP, name="group", props={"launchTemplate": {"id": "lt-0a", "version": "1"}, **props})


def system(**props: Any) -> Resource:
    return Resource(
        type=LUSTRE,
        name="system",
        id="fs-0a",
        props={
            "deploymentType": "PERSISTENT_2",
            "perUnitStorageThroughput": 250,
            "storageCapacity": 19200,
            "fileSystemTypeVersion": "2.15",
            "subnetIds": "subnet-0a",
            **props,
        },
    )


def link(name: str, path: str, system_id: str = "fs-0a") -> Resource:
    return Resource(type=ASSOCIATION, name=name, props={"fileSystemId": system_id, "fileSystemPath": path})


def daemon_set(image: str, **spec: Any) -> Resource:
    pod = {"containers": [{"name": "main", "image": image}], "tolerations": [{"operator": "Exists"}], **spec}
    return Resource(type=DAEMON_SET, name="set", props={"spec": {"template": {"spec": pod}}})


BLOCK = {"instanceMarketOptions": {"marketType": "capacity-block"}}
TARGET = {"capacityReservationSpecification": {"capacityReservationTarget": {"capacityReservationId": "cr-0a"}}}
METADATA = {"metadataConfiguration": {"mode": "AUTOMATIC"}}
TIERING = {"storageType": "INTELLIGENT_TIERING", "perUnitStorageThroughput": None, "storageCapacity": None}
B200 = group(instanceTypes=["p6-b200.48xlarge"], launchTemplate=None)
EFA_IMAGE = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin"

BAD: Sequence[tuple[str, str, Sequence[Resource], str]] = [
    # rule, where, resources, words of what was found or is needed
    ("one-primary-interface", "networkInterfaces", [template(networkInterfaces=[nic(1, 0, "efa")])], "device index 0"),
    (
        "primary-interface-carries-ip",
        "networkInterfaces[0].interfaceType",
        [template(networkInterfaces=[nic(0, 0, "efa-only")])],
        "efa-only",
    ),
    (
        "device-index-fits-card",
        "networkInterfaces[1].networkCardIndex",
        [template(instanceType="p5en.48xlarge", networkInterfaces=[nic(0, 0, "interface"), nic(16, 0, "efa-only")])],
        "0 to 15",
    ),
    (
        "efa-interfaces-share-groups",
        "networkInterfaces",
        [
            template(
                networkInterfaces=[
                    nic(0, 0, "efa", securityGroups=["sg-1"]),
                    nic(1, 1, "efa", securityGroups=["sg-1", "sg-2"]),
                ]
            )
        ],
        "sg-1; sg-1, sg-2",
    ),
    (
        "security-groups-in-one-place",
        "securityGroupNames",
        [template(securityGroupNames=["a"], networkInterfaces=[nic(0, 0, "efa")])],
        "two places",
    ),
    (
        "reservation-target-named",
        "capacityReservationSpecification.capacityReservationTarget",
        [template(instanceType="p5.48xlarge", **BLOCK)],
        "no target",
    ),
    (
        "reservation-target-named",
        "capacityReservationSpecification.capacityReservationPreference",
        [
            template(
                capacityReservationSpecification={
                    "capacityReservationPreference": "open",
                    "capacityReservationTarget": {"capacityReservationId": "cr-0a"},
                }
            )
        ],
        "capacity-reservations-only",
    ),
    ("capacity-block-template", "instanceType", [template(**BLOCK, **TARGET)], "instance type"),
    (
        "capacity-block-template",
        "placement",
        [template(instanceType="p5.48xlarge", placement={"groupName": "pg"}, **BLOCK, **TARGET)],
        "placement group",
    ),
    (
        "node-group-template",
        "instanceTypes",
        [group(instanceTypes=["p5.48xlarge"]), template(instanceType="p5.48xlarge")],
        "in one place",
    ),
    (
        "node-group-template",
        "launchTemplate",
        [group(), template(iamInstanceProfile={"name": "x"})],
        "iamInstanceProfile",
    ),
    (
        "capacity-type-fits-template",
        "capacityType",
        [group(capacityType="ON_DEMAND"), template(instanceType="p5.48xlarge", **BLOCK, **TARGET)],
        "ON_DEMAND",
    ),
    (
        "capacity-type-fits-template",
        "capacityType",
        [group(capacityType="CAPACITY_BLOCK"), template()],
        "nothing in launch template lt",
    ),
    (
        "template-version-is-a-number",
        "launchTemplate.version",
        [group(launchTemplate={"id": "lt-0a", "version": "$Latest"})],
        "$Latest",
    ),
    (
        "node-group-in-one-zone",
        "subnetIds",
        [
            group(subnetIds=["subnet-0a", "subnet-0b"]),
            template(networkInterfaces=[nic(0, 0, "interface"), nic(0, 1, "efa-only")]),
            Resource(type=SUBNET, name="a", id="subnet-0a", props={"availabilityZone": "eu-west-1a"}),
            Resource(type=SUBNET, name="b", id="subnet-0b", props={"availabilityZone": "eu-west-1b"}),
        ],
        "two zones, eu-west-1a, eu-west-1b, with EFA",
    ),
    ("lustre-type-known", "deploymentType", [system(deploymentType="PERSISTENT_3")], "PERSISTENT_2"),
    ("lustre-type-known", "storageType", [system(storageType="HDD")], "SSD or INTELLIGENT_TIERING"),
    (
        "lustre-throughput",
        "perUnitStorageThroughput",
        [system(**{**TIERING, "perUnitStorageThroughput": 250, "throughputCapacity": 4000})],
        "only for PERSISTENT_1",
    ),
    (
        "lustre-capacity",
        "storageCapacity",
        [system(efaEnabled=True, storageCapacity=24000, **METADATA)],
        "19200 or 38400 GiB",
    ),
    (
        "lustre-tiering-throughput",
        "throughputCapacity",
        [system(throughputCapacity=3000, **TIERING)],
        "1000, 2000 or a multiple of 4000",
    ),
    (
        "lustre-tiering-throughput",
        "throughputCapacity",
        [system(throughputCapacity=2000, efaEnabled=True, **TIERING, **METADATA)],
        "with EFA",
    ),
    ("lustre-one-subnet", "subnetIds", [system(subnetIds=[])], "0 subnets"),
    (
        "lustre-efa",
        "efaEnabled",
        [system(deploymentType="SCRATCH_2", perUnitStorageThroughput=None, storageCapacity=2400, efaEnabled=True)],
        "PERSISTENT_2 on SSD",
    ),
    ("lustre-efa", "metadataConfiguration", [system(efaEnabled=True)], "a metadata configuration"),
    (
        "lustre-metadata",
        "metadataConfiguration",
        [system(deploymentType="PERSISTENT_1", perUnitStorageThroughput=200, **METADATA)],
        "PERSISTENT_1",
    ),
    (
        "lustre-metadata",
        "metadataConfiguration.iops",
        [system(metadataConfiguration={"mode": "AUTOMATIC", "iops": 1500})],
        "AUTOMATIC",
    ),
    (
        "lustre-metadata",
        "metadataConfiguration.iops",
        [system(metadataConfiguration={"mode": "USER_PROVISIONED", "iops": 7000})],
        "1500, 3000, 6000 or a multiple of 12000",
    ),
    ("lustre-version", "fileSystemTypeVersion", [system(fileSystemTypeVersion="2.10")], "takes 2.12, 2.15"),
    ("lustre-version", "fileSystemTypeVersion", [system(fileSystemTypeVersion="2.12", **METADATA)], "takes 2.15"),
    (
        "lustre-client-version",
        "fileSystemTypeVersion",
        [
            system(
                deploymentType="SCRATCH_2",
                perUnitStorageThroughput=None,
                storageCapacity=2400,
                fileSystemTypeVersion=None,
            )
        ],
        "which is 2.10 for SCRATCH_2",
    ),
    ("lustre-backups", "automaticBackupRetentionDays", [system(automaticBackupRetentionDays=91)], "0 to 90"),
    (
        "lustre-backups",
        "automaticBackupRetentionDays",
        [
            system(
                deploymentType="SCRATCH_2",
                perUnitStorageThroughput=None,
                storageCapacity=2400,
                automaticBackupRetentionDays=7,
            )
        ],
        "SCRATCH_2",
    ),
    (
        "lustre-backups",
        "automaticBackupRetentionDays",
        [system(automaticBackupRetentionDays=7), link("data", "/data")],
        "linked to S3",
    ),
    ("lustre-old-s3-paths", "importPath", [system(importPath="s3://x")], "DataRepositoryAssociation"),
    (
        "lustre-associations",
        "fileSystemId",
        [system(), *(link(f"l{i}", f"/{i}") for i in range(9))],
        "8 on a file system",
    ),
    (
        "lustre-associations",
        "fileSystemPath",
        [system(), link("a", "/data/"), link("b", "/data/more")],
        "do not overlap",
    ),
    (
        "lustre-associations",
        "fileSystemId",
        [system(throughputCapacity=4000, **TIERING), link("a", "/data")],
        "INTELLIGENT_TIERING",
    ),
    (
        "eks-node-group-name-fits",
        "nodeGroupName",
        [group(nodeGroupName="x" * 57 + "-0a1b2c3")],
        "63 characters at most",
    ),
    (
        "eks-cluster-name-fits",
        "name",
        [Resource(type=CLUSTER, name="c", props={"name": "-train"})],
        "letter or digit first",
    ),
    (
        "iam-role-name-fits",
        "name",
        [Resource(type="aws:iam/role:Role", name="r", props={"name": "a b"})],
        "letters, digits",
    ),
    (
        "device-plugin-version",
        "spec.template.spec.containers[0].image",
        [daemon_set(f"{EFA_IMAGE}:v0.5.4"), B200],
        "10 instead of 8",
    ),
    (
        "device-plugin-version",
        "spec.template.spec.containers[0].image",
        [daemon_set("nvcr.io/nvidia/k8s-device-plugin:v0.19.1"), B200],
        "0.19.3",
    ),
    (
        "daemon-set-tolerates-pool",
        "spec.template.spec.tolerations",
        [
            daemon_set("nvcr.io/nvidia/k8s-device-plugin:v0.20.0", tolerations=[]),
            group(taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]),
        ],
        "no toleration for nvidia.com/gpu",
    ),
    (
        "efa-requested",
        "spec.template.spec.containers[0].resources.limits",
        [
            Resource(
                type=JOB,
                name="job",
                props={
                    "spec": {
                        "parallelism": 4,
                        "template": {
                            "spec": {
                                "nodeSelector": {"node.kubernetes.io/instance-type": "p5en.48xlarge"},
                                "containers": [{"resources": {"limits": {"nvidia.com/gpu": 8}}}],
                            }
                        },
                    }
                },
            )
        ],
        '"16" to limits',
    ),
    (
        "ipc-lock-is-effective",
        "spec.containers[0].securityContext.capabilities.add",
        [
            Resource(
                type=POD,
                name="pod",
                props={
                    "spec": {
                        "securityContext": {"runAsNonRoot": True},
                        "containers": [{"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}],
                    }
                },
            )
        ],
        "other than root",
    ),
]

GOOD: Sequence[Sequence[Resource]] = [
    [group(capacityType="CAPACITY_BLOCK"), template(instanceType="p5.48xlarge", **BLOCK, **TARGET)],
    [
        group(subnetIds=["subnet-0a", "subnet-0b"]),
        template(networkInterfaces=[nic(0, 0, "interface")]),
        Resource(type=SUBNET, name="a", id="subnet-0a", props={"availabilityZone": "eu-west-1a"}),
        Resource(type=SUBNET, name="b", id="subnet-0b", props={"availabilityZone": "eu-west-1b"}),
    ],
    [system(efaEnabled=True, metadataConfiguration={"mode": "USER_PROVISIONED", "iops": 12000})],
    [system(throughputCapacity=4000, efaEnabled=True, **TIERING, **METADATA)],
    [system(throughputCapacity=1000, **TIERING)],
    [system(automaticBackupRetentionDays=90), link("data", "/data", "fs-of-another")],
    [system(), *(link(f"l{i}", f"/{i}") for i in range(8))],
    [system(deploymentType="PERSISTENT_1", storageType="HDD", perUnitStorageThroughput=40.0, storageCapacity=1800.0)],
    [daemon_set(f"{EFA_IMAGE}:v0.5.20"), B200],
    [daemon_set(f"{EFA_IMAGE}:v0.5.4"), group(instanceTypes=["p5.48xlarge"], launchTemplate=None)],
    [
        daemon_set("registry.example.com/logs:1", tolerations=[]),
        group(taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]),
    ],
    [
        daemon_set("registry.example.com/rdma:1", tolerations=[], nodeSelector={"pool": "b"}),
        group(labels={"pool": "a"}, taints=[{"key": "k", "value": "v", "effect": "NO_SCHEDULE"}]),
    ],
    [
        daemon_set("registry.example.com/rdma:1", tolerations=[]),
        group(taints=[{"key": "k", "value": "v", "effect": "PREFER_NO_SCHEDULE"}]),
    ],
    [
        Resource(
            type=POD,
            name="pod",
            props={
                "spec": {
                    "containers": [
                        {
                            "securityContext": {"runAsUser": 0, "capabilities": {"add": ["IPC_LOCK"]}},
                            "env": [{"name": "FI_PROVIDER", "value": "efa"}],
                            "resources": {"limits": {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}},
                        }
                    ]
                }
            },
        )
    ],
]


@pytest.mark.parametrize(
    ("rule", "where", "resources", "words"), BAD, ids=[f"{each[0]}-{i}" for i, each in enumerate(BAD)]
)
def test_rule_names_the_property_and_what_is_needed(
    rule: str, where: str, resources: Sequence[Resource], words: str
) -> None:
    found = [each for each in review(Graph(resources)) if each.rule == rule]
    assert [each.where for each in found] == [where]
    assert words in str(found[0])
    confirmed = next(each.confirmed for each in ALL_RULES if each.id == rule)
    assert found[0].level == ("error" if confirmed else "warning")


@pytest.mark.parametrize("resources", GOOD)
def test_inputs_that_are_right_give_no_finding(resources: Sequence[Resource]) -> None:
    assert [str(each) for each in review(Graph(resources))] == []


def test_every_rule_is_broken_by_something_here() -> None:
    expected = yaml.safe_load((CASES / "EXPECT.yaml").read_text("utf-8"))
    broken = {each.rule for entry in expected for each in findings(entry["file"], entry["part"])}
    broken |= {each[0] for each in BAD}
    assert {rule.id for rule in ALL_RULES} - broken == set()


def test_rules_are_found_by_type() -> None:
    assert {rule.id for rule in rules_for(LUSTRE)} == {rule.id for rule in RULES[LUSTRE]}
    assert "deleted-with-cluster" in {rule.id for rule in rules_for("kubernetes:core/v1:Namespace")}
    assert rules_for("aws:s3/bucket:Bucket") == ()


def test_one_resource_alone_is_judged_by_the_rules_that_need_no_other() -> None:
    alone = review_resource(system(storageCapacity=100, automaticBackupRetentionDays=91))
    assert [(each.rule, each.where, each.resource) for each in alone] == [
        ("lustre-capacity", "storageCapacity", f"{LUSTRE}::system")
    ]


def rule_resource(type_: str, name: str, owner: Any, peer: Any, **more: Any) -> Resource:
    owner_deps = {"securityGroupId": ("nodes",)} if owner is UNKNOWN else {}
    return Resource(
        type=type_, name=name, props={"securityGroupId": owner, **more, **peer}, property_dependencies=owner_deps
    )


def efa(groups: Sequence[Any], *rules: Resource, dependencies: tuple[str, ...] = ()) -> list[Finding]:
    carries = Resource(
        type=LAUNCH_TEMPLATE,
        name="lt",
        props={"networkInterfaces": [nic(0, 0, "interface"), nic(0, 1, "efa-only", securityGroups=list(groups))]},
        property_dependencies={"networkInterfaces": dependencies},
    )
    nodes = Resource(type=SECURITY_GROUP, name="nodes", id="sg-nodes", props={})
    return review(Graph([carries, nodes, *rules]))


def test_group_of_an_efa_interface_has_to_allow_itself() -> None:
    itself = {"referencedSecurityGroupId": "sg-nodes"}
    into = rule_resource(INGRESS_RULE, "in", "sg-nodes", itself, ipProtocol="-1")
    out = rule_resource(EGRESS_RULE, "out", "sg-nodes", itself, ipProtocol="-1")
    everywhere = rule_resource(EGRESS_RULE, "any", "sg-nodes", {"cidrIpv4": "0.0.0.0/0"}, ipProtocol="-1")
    old = rule_resource(OLD_RULE, "old", "sg-nodes", {"self": True}, protocol="-1", type="egress")
    assert efa(["sg-nodes"], into, out) == []
    assert efa(["sg-nodes"], into, old) == []
    (missing,) = efa(["sg-nodes"], into, everywhere)
    assert missing.where == "networkInterfaces[1].securityGroups"
    assert "no self egress" in missing.found
    assert "addresses" in missing.found
    # A group that is not in the stack may allow it: the cluster's own does.
    assert efa(["sg-nodes", "sg-cluster"], into, everywhere) == []
    assert efa(["sg-nodes", UNKNOWN], into, everywhere) == []
    # A rule of which nobody knows yet whose it is may be the one that is missing.
    stray = Resource(type=EGRESS_RULE, name="stray", props={"securityGroupId": UNKNOWN, "ipProtocol": "-1"})
    assert efa(["sg-nodes"], into, everywhere, stray) == []


def test_file_system_over_efa_wants_all_traffic_by_reference() -> None:
    everywhere = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}
    itself = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
    props = {"securityGroupIds": ["sg-fsx"], "efaEnabled": True, "storageCapacity": 19200, **METADATA}

    def found(ingress: list[Props], egress: list[Props]) -> list[str]:
        servers = Resource(type=SECURITY_GROUP, name="fsx", id="sg-fsx", props={"ingress": ingress, "egress": egress})
        return [each.found for each in review(Graph([system(**props), servers]))]

    assert found([itself], [itself]) == []
    (missing,) = found([itself], [everywhere])
    assert "does not allow Lustre to itself (self)" in missing
    assert len(found([everywhere], [everywhere])) == 2


def test_cluster_placement_group_of_the_stack_is_found_by_its_unknown_name() -> None:
    placement = Resource(type=PLACEMENT_GROUP, name="pg", props={"strategy": "cluster"})
    carries = Resource(
        type=LAUNCH_TEMPLATE,
        name="lt",
        id="lt-0a",
        props={"placement": {"groupName": UNKNOWN}},
        property_dependencies={"placement": ("pg",)},
    )
    zones = {"subnet-0a": "eu-west-1a", "subnet-0b": "eu-west-1b"}
    both = group(subnetIds=["subnet-0a", "subnet-0b"])
    (found,) = review(Graph([placement, carries, both], subnet_zones=zones))
    assert (found.rule, found.where) == ("node-group-in-one-zone", "subnetIds")
    assert review(Graph([placement, carries, both], subnet_zones={"subnet-0a": "eu-west-1a"})) == []


@cache
def recorded() -> list[dict[str, Any]]:
    """What the engine recorded of our own components."""
    state = json.loads((Path(__file__).parent.parent / "recorded/0.1.0/state.json").read_text("utf-8"))
    resources: list[dict[str, Any]] = state["deployment"]["resources"]
    return resources


def ours(*, created: bool) -> Graph:
    """Our own components' resources: as they are, or in their first preview, when no id is known."""
    resources = recorded()
    ids = {each["id"] for each in resources if each.get("id")}
    ids |= {group_id for each in resources if (group_id := cluster_group(each))}

    def seen(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: seen(each) for key, each in value.items()}
        if isinstance(value, list):
            return [seen(each) for each in value]
        return UNKNOWN if not created and isinstance(value, str) and value in ids else value

    return Graph(
        [
            Resource(
                type=each["type"],
                name=each["urn"].rpartition("::")[2],
                urn=each["urn"],
                id=each.get("id", UNKNOWN) if created else UNKNOWN,
                props=seen(each.get("inputs", {})),
                dependencies=tuple(each.get("dependencies", ())),
                property_dependencies={
                    key: tuple(urns or ()) for key, urns in each.get("propertyDependencies", {}).items()
                },
            )
            for each in resources
        ]
    )


def cluster_group(raw: Mapping[str, Any]) -> str | None:
    config = raw.get("outputs", {}).get("vpcConfig") if raw["type"] == CLUSTER else None
    return config["clusterSecurityGroupId"] if isinstance(config, dict) else None


@pytest.mark.parametrize("created", [True, False], ids=["created", "first preview"])
def test_our_own_components_break_no_rule(created: bool) -> None:
    graph = ours(created=created)
    (pool,) = graph.of(LAUNCH_TEMPLATE)
    pointers = graph.pointers(pool, ("networkInterfaces", 1, "securityGroups"), SECURITY_GROUP)
    assert [each.name for each in pointers.resources] == ["train-fabric"]
    (nodes,) = graph.of(NODE_GROUP)
    assert graph.pointers(nodes, ("launchTemplate", "id"), LAUNCH_TEMPLATE).resources == (pool,)
    assert graph.zones(nodes, "subnetIds") == {"us-west-2b"}
    assert [str(each) for each in review(graph)] == []


def test_file_system_that_keeps_data_is_not_replaced() -> None:
    step = Step(op="replace", type=LUSTRE, name="data", old=system().props, replace_keys=("securityGroupIds",))
    (found,) = review_steps([step])
    assert (found.rule, found.where, found.level) == ("file-system-not-replaced", "securityGroupIds", "error")
    assert "because securityGroupIds changed" in found.found
    assert review_steps([dataclasses.replace(step, op="update")]) == []
    assert review_steps([dataclasses.replace(step, old={"deploymentType": "SCRATCH_2"})]) == []


def test_template_that_a_node_group_calls_by_name_is_found() -> None:
    named = group(launchTemplate={"name": "lt-by-name"}, instanceTypes=["p5.48xlarge"])
    (found,) = review(Graph([named, template(name="lt-by-name", instanceType="p5.48xlarge")]))
    assert found.rule == "node-group-template"
    assert review(Graph([named, template(name="another", instanceType="p5.48xlarge")])) == []


JUNK: tuple[Any, ...] = (None, "", "x", 0, -1, 1.5, True, [], [None], {}, {"x": 1}, UNKNOWN, [UNKNOWN], {"x": UNKNOWN})


@pytest.mark.parametrize("resources", [*(each[2] for each in BAD), *GOOD])
def test_no_value_in_any_place_breaks_a_review(resources: Sequence[Resource]) -> None:
    for target in resources:
        for path in paths(target.props):
            for junk in JUNK:
                changed = dataclasses.replace(target, props=masked(target.props, path, junk))
                found = review(Graph([changed if each is target else each for each in resources]))
                assert all(str(each) for each in found)


def test_review_needs_no_engine() -> None:
    code = "import sys, plumbline.review; assert not [each for each in sys.modules if each.startswith('pulumi')]"
    subprocess.run([sys.executable, "-c", code], check=True)


@cache
def shape(service: str, name: str) -> Any:
    return botocore.session.get_session().get_service_model(service).shape_for(name)


def test_limits_of_names_are_those_of_the_apis() -> None:
    limits = {rule.kind: rule for rule in KINDS}
    role, cluster = shape("iam", "roleNameType").metadata, shape("eks", "ClusterName").metadata
    assert (limits["iam-role"].longest, limits["iam-role"].pattern) == (role["max"], role["pattern"])
    assert limits["eks-cluster"].longest == cluster["max"]
    assert cluster["pattern"] == r"^[0-9A-Za-z][A-Za-z0-9\-_]*"
