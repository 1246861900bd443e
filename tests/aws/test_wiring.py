"""What the components hand to the engine, seen with Pulumi's mocks: no engine, no cloud."""

import asyncio
import base64
import json
import re
import threading
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from typing import Any

import pulumi
import pytest
import yaml

from plumbline.aws.kubeconfig import kubeconfig
from plumbline.plan import SeenAccount, SeenReservation, plan_site
from plumbline.site import read_site
from tests.sites import GOOD, declare, declare_pool

Registered = dict[str, dict[str, dict[str, Any]]]
"""Inputs by type token and name."""


class Mocks(pulumi.runtime.Mocks):
    """Records what is registered, and gives the outputs that others need."""

    def __init__(self) -> None:
        self.seen: Registered = defaultdict(dict)
        self._lock = threading.Lock()

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        with self._lock:
            self.seen[args.typ][args.name] = dict(args.inputs)
        outputs = {"arn": f"arn:{args.name}", "endpoint": "https://api", "latestVersion": 3, **args.inputs}
        outputs["certificateAuthority"] = {"data": "Y2E="}
        if args.typ == "aws:eks/cluster:Cluster":
            outputs["vpcConfig"] = {**args.inputs["vpcConfig"], "clusterSecurityGroupId": "sg-cluster"}
            outputs["kubernetesNetworkConfig"] = {"serviceIpv4Cidr": "172.20.0.0/16"}
        if args.typ == "aws:fsx/lustreFileSystem:LustreFileSystem":
            outputs |= {"dnsName": "fs.example.com", "mountName": "abcdef", "storageCapacity": 19200, **args.inputs}
        return f"{args.name}-id", outputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        assert args.token == "aws:eks/getCluster:getCluster", "no other data source is needed"
        found = {
            "name": args.args["name"],
            "endpoint": "https://theirs",
            "certificateAuthorities": [{"data": "Y2E="}],
            "vpcConfig": {"clusterSecurityGroupId": "sg-theirs"},
            "kubernetesNetworkConfigs": [{"serviceIpv4Cidr": "172.20.0.0/16"}],
        }
        return found, []


def build(
    raw: dict[str, Any], *, preview: bool = False, seen: SeenAccount | None = None, claims: bool = False
) -> Registered:
    """Register a whole site, and return what the engine was given."""
    mocks = Mocks()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(mocks, project="plumbline", stack="test", preview=preview)
    from plumbline.aws import AwsSite

    def program() -> None:
        plan = plan_site(read_site(raw)[0], seen=seen)
        site = AwsSite(plan.name, plan)
        if claims:
            for storage in site.storage.values():
                storage.claim("training")

    test: Callable[..., Callable[..., Any]] = pulumi.runtime.test
    test(program)()
    return mocks.seen


@pytest.fixture(scope="module")
def site() -> Registered:
    return build(GOOD)


TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"


def template_of(raw: dict[str, Any], seen: SeenAccount | None = None) -> dict[str, Any]:
    """The launch template of the declaration's one pool."""
    return build(raw, seen=seen)[TEMPLATE][plan_site(read_site(raw)[0]).pools[0].full_name]


GENERATION = plan_site(read_site(GOOD)[0]).pools[0].generation
POOL = f"train-h100-{GENERATION}"


def test_launch_template_has_every_interface_and_the_reservation_alone(site: Registered) -> None:
    template = site["aws:ec2/launchTemplate:LaunchTemplate"][POOL]
    nics = template["networkInterfaces"]
    assert len(nics) == 33
    assert [nic["interfaceType"] for nic in nics].count("efa-only") == 32
    assert all(nic["securityGroups"] == ["sg-cluster", "train-fabric-id"] for nic in nics)
    assert not any("subnetId" in nic or "associatePublicIpAddress" in nic for nic in nics)
    assert template["capacityReservationSpecification"] == {
        "capacityReservationPreference": "capacity-reservations-only",
        "capacityReservationTarget": {"capacityReservationId": "cr-0a1b2c3d4e5f60718"},
    }
    assert "vpcSecurityGroupIds" not in template


def test_node_group_is_in_the_pools_only_subnet_and_names_its_generation(site: Registered) -> None:
    group = site[NODE_GROUP][POOL]
    assert group["subnetIds"] == ["train-private-us-west-2b-id"]
    assert group["nodeGroupName"] == POOL
    assert group["scalingConfig"] == {"desiredSize": 2, "minSize": 2, "maxSize": 2}
    assert group["labels"]["plumbline.dev/generation"] == GENERATION
    assert group["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    assert group["launchTemplate"]["version"] == "3"
    assert "instanceTypes" not in group


def test_fabric_group_references_itself_both_ways(site: Registered) -> None:
    ingress = site["aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"]["train-fabric-in"]
    egress = site["aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"]["train-fabric-out"]
    for rule in (ingress, egress):
        assert rule["securityGroupId"] == rule["referencedSecurityGroupId"] == "train-fabric-id"
        assert rule["ipProtocol"] == "-1"
        assert not {"fromPort", "toPort"} & set(rule)


def test_gate_expects_what_the_plan_says_and_guard_knows_its_nodes(site: Registered) -> None:
    gate = site["plumbline:index:FabricGate"][POOL]
    assert gate["resources"] == {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}
    assert gate["nodeSelector"] == {"eks.amazonaws.com/nodegroup": POOL}
    assert gate["withinSeconds"] == 60
    guard = site["plumbline:index:RetireGuard"][f"{POOL}-guard"]
    assert guard["onDestroy"] == "refuse"
    assert guard["resources"] == ["nvidia.com/gpu", "vpc.amazonaws.com/efa"]


def test_provider_is_told_the_declared_generations(site: Registered) -> None:
    assert site["plumbline:index:Declaration"]["train"] == {"site": "train", "generations": {"h100": GENERATION}}
    assert "generations" not in site["pulumi:providers:plumbline"]["train-prover"]


def test_plugins_skip_the_await_and_keep_their_last_words(site: Registered) -> None:
    sets = site["kubernetes:apps/v1:DaemonSet"]
    assert sorted(sets) == ["train-plugins-efa", "train-plugins-nvidia"]
    for each in sets.values():
        assert each["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
        pod = each["spec"]["template"]["spec"]
        assert pod["tolerations"] == [{"operator": "Exists"}]
        assert pod["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"
        assert all(key.startswith("plumbline.dev/") for key in pod["nodeSelector"])
    assert (
        "privileged" not in sets["train-plugins-nvidia"]["spec"]["template"]["spec"]["containers"][0]["securityContext"]
    )


def test_pool_on_demand_has_no_reservation_and_one_interface_without_fabric() -> None:
    raw = declare_pool(capacity={"kind": "on-demand", "zone": "us-west-2b"}, fabric="none")
    template = template_of(raw)
    assert "capacityReservationSpecification" not in template
    assert len(template["networkInterfaces"]) == 1


def test_preview_with_unknown_outputs_registers_the_same(site: Registered) -> None:
    preview = build(GOOD, preview=True)
    assert {typ: sorted(names) for typ, names in preview.items()} == {t: sorted(n) for t, n in site.items()}


def test_kubeconfig_finds_credentials_by_name_and_holds_none() -> None:
    config = json.loads(kubeconfig("train", "us-west-2", "https://api", "Y2E="))
    user = config["users"][0]["user"]
    assert user == {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "aws",
            "args": ["eks", "get-token", "--cluster-name", "train", "--region", "us-west-2", "--output", "json"],
            "interactiveMode": "Never",
        }
    }
    assert config["clusters"][0]["cluster"] == {"server": "https://api", "certificate-authority-data": "Y2E="}


def test_capacity_block_has_its_market_its_target_and_no_instance_types_in_the_group() -> None:
    id_ = "cr-0a1b2c3d4e5f60718"
    raw = declare_pool(capacity={"kind": "capacity-block", "id": id_, "zone": "us-west-2b"})
    built = build(raw)
    name = plan_site(read_site(raw)[0]).pools[0].full_name
    template, group = built[TEMPLATE][name], built[NODE_GROUP][name]
    assert template["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert template["capacityReservationSpecification"]["capacityReservationTarget"] == {"capacityReservationId": id_}
    assert template["instanceType"] == "p5.48xlarge"
    assert "placement" not in template
    assert group["capacityType"] == "CAPACITY_BLOCK"
    assert "instanceTypes" not in group


def test_group_of_reservations_is_targeted_and_never_falls_back() -> None:
    arn = "arn:aws:resource-groups:us-west-2:123456789012:group/h100"
    template = template_of(declare_pool(capacity={"kind": "reservation-group", "arn": arn, "zone": "us-west-2b"}))
    assert template["capacityReservationSpecification"] == {
        "capacityReservationPreference": "capacity-reservations-only",
        "capacityReservationTarget": {"capacityReservationResourceGroupArn": arn},
    }


def test_placement_is_the_pools_own_on_demand_and_the_reservations_where_it_has_one() -> None:
    on_demand = declare_pool(capacity={"kind": "on-demand", "zone": "us-west-2b"})
    name = plan_site(read_site(on_demand)[0]).pools[0].full_name
    built = build(on_demand)
    assert built["aws:ec2/placementGroup:PlacementGroup"][name]["strategy"] == "cluster"
    assert built[TEMPLATE][name]["placement"] == {"groupName": name}
    assert built[NODE_GROUP][name]["updateConfig"]["updateStrategy"] == "DEFAULT"
    apart = declare_pool(capacity={"kind": "on-demand", "zone": "us-west-2b", "placement": "none"})
    assert "aws:ec2/placementGroup:PlacementGroup" not in build(apart)
    made_in = declare_pool(capacity={**GOOD["pools"][0]["capacity"], "placement_group": "tight"})
    assert template_of(made_in)["placement"] == {"groupName": "tight"}


def test_pool_whose_block_has_not_begun_has_no_nodes_and_room_for_all() -> None:
    id_ = "cr-0a1b2c3d4e5f60718"
    raw = declare_pool(capacity={"kind": "capacity-block", "id": id_, "zone": "us-west-2b"})
    now = datetime(2026, 12, 1, tzinfo=UTC)
    block = SeenReservation(
        id=id_,
        type="capacity-block",
        state="scheduled",
        machine="p5.48xlarge",
        zone="us-west-2b",
        platform="Linux/UNIX",
        tenancy="default",
        match="targeted",
        total=2,
        free=0,
        starts=now + timedelta(hours=5),
    )
    built = build(raw, seen=SeenAccount(now=now, reservations={id_: block}))
    name = plan_site(read_site(raw)[0]).pools[0].full_name
    assert built[NODE_GROUP][name]["scalingConfig"] == {"desiredSize": 0, "minSize": 0, "maxSize": 2}
    assert built["plumbline:index:FabricGate"][name]["starts"] == "2026-12-01T05:00:00Z"


def test_adopted_cluster_is_looked_up_and_gets_pools_and_plugins_only() -> None:
    raw = declare(
        cluster={"existing": "shared", "version": "1.34"},
        network={"existing": {"vpc": "vpc-0a1b2c3d", "subnets": {"us-west-2b": "subnet-0a1b2c3d"}}},
    )
    built = build(raw)
    [name] = built[NODE_GROUP]
    assert built[NODE_GROUP][name]["clusterName"] == "shared"
    assert built[NODE_GROUP][name]["subnetIds"] == ["subnet-0a1b2c3d"]
    assert built[TEMPLATE][name]["networkInterfaces"][0]["securityGroups"] == ["sg-theirs", "train-fabric-id"]
    untouched = ("aws:eks/cluster:Cluster", "aws:eks/addon:Addon", "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet")
    assert not set(untouched) & set(built)
    attached = built["aws:iam/rolePolicyAttachment:RolePolicyAttachment"]
    assert "train-node-AmazonEKS_CNI_Policy" in attached, "their aws-node may have no role of its own"


def test_new_cluster_has_pinned_addons_a_system_pool_and_least_rights(site: Registered) -> None:
    addons = site["aws:eks/addon:Addon"]
    assert {addon["addonName"]: addon["addonVersion"] for addon in addons.values()} == {
        "vpc-cni": "v1.21.1-eksbuild.1",
        "coredns": "v1.12.4-eksbuild.1",
        "kube-proxy": "v1.34.1-eksbuild.2",
        "eks-pod-identity-agent": "v1.3.10-eksbuild.2",
    }
    cni = addons["train-vpc-cni"]
    assert cni["podIdentityAssociations"] == [{"roleArn": "arn:train-cni", "serviceAccount": "aws-node"}]
    assert json.loads(cni["configurationValues"]) == {"env": {"MINIMUM_IP_TARGET": "16", "WARM_IP_TARGET": "4"}}
    attached = site["aws:iam/rolePolicyAttachment:RolePolicyAttachment"]
    assert sorted(name for name in attached if name.startswith("train-node-")) == [
        "train-node-AmazonEC2ContainerRegistryPullOnly",
        "train-node-AmazonEKSWorkerNodePolicy",
    ]
    system = site[NODE_GROUP]["train-system"]
    assert "taints" not in system
    assert re.fullmatch("train-system-[0-9a-f]{6}", system["nodeGroupName"]), "a replacement has another name"
    assert system["subnetIds"] == ["train-private-us-west-2a-id", "train-private-us-west-2b-id"]
    cluster = site["aws:eks/cluster:Cluster"]["train-cluster"]
    assert cluster["enabledClusterLogTypes"] == ["audit", "authenticator"]
    assert site["aws:cloudwatch/logGroup:LogGroup"]["train-logs"] == {
        "name": "/aws/eks/train/cluster",
        "retentionInDays": 90,
        "tags": {"plumbline.dev/site": "train"},
    }


def test_settings_of_a_new_cluster_reach_it() -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/0a1b"
    admin = "arn:aws:iam::123456789012:role/platform"
    raw = declare(
        cluster={"version": "1.34", "endpoint": "private", "secrets_key": key, "administrators": [admin], "logs": []}
    )
    built = build(raw)
    cluster = built["aws:eks/cluster:Cluster"]["train-cluster"]
    assert cluster["encryptionConfig"] == {"provider": {"keyArn": key}, "resources": ["secrets"]}
    assert cluster["vpcConfig"]["endpointPublicAccess"] is False
    assert "publicAccessCidrs" not in cluster["vpcConfig"]
    [entry] = built["aws:eks/accessEntry:AccessEntry"].values()
    [rights] = built["aws:eks/accessPolicyAssociation:AccessPolicyAssociation"].values()
    assert entry["principalArn"] == rights["principalArn"] == admin
    assert rights["policyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


def test_network_without_a_way_out_has_endpoints_and_no_gateway() -> None:
    mirrored = "123456789012.dkr.ecr.us-west-2.amazonaws.com/nvidia/k8s-device-plugin:v0.20.0"
    raw = declare(network={**GOOD["network"], "egress": "endpoints"}, plugins={"nvidia": {"image": mirrored}})
    built = build(raw)
    services = {each["serviceName"] for each in built["aws:ec2/vpcEndpoint:VpcEndpoint"].values()}
    assert "com.amazonaws.us-west-2.ecr.dkr" in services
    assert "com.amazonaws.us-west-2.s3" in services
    assert "aws:ec2/natGateway:NatGateway" not in built
    assert "aws:ec2/internetGateway:InternetGateway" not in built


def node_spec(template: dict[str, Any]) -> Any:
    """The one NodeConfig in a template's user data."""
    parts = list(message_from_bytes(base64.b64decode(template["userData"])).walk())
    assert [part.get_content_type() for part in parts] == ["multipart/mixed", "application/node.eks.aws"]
    return yaml.safe_load(str(parts[1].get_payload()))["spec"]


SCRATCH = {
    "name": "scratch",
    "kind": "fsx-lustre",
    "zone": "us-west-2b",
    "capacity_gib": 19200,
    "throughput_mbps_per_tib": 250,
}


def test_lustre_by_efa_is_in_the_pools_subnet_and_lets_everything_through_by_reference() -> None:
    built = build({**declare_pool(storage=["scratch"]), "storage": [{**SCRATCH, "efa": True}]}, claims=True)
    system = built[LUSTRE]["train-scratch"]
    assert system["subnetIds"] == "train-private-us-west-2b-id"
    assert (system["deploymentType"], system["fileSystemTypeVersion"]) == ("PERSISTENT_2", "2.15")
    assert (system["efaEnabled"], system["metadataConfiguration"]) == (True, {"mode": "AUTOMATIC"})
    assert system["securityGroupIds"] == ["train-scratch-id"]
    for rules in (built[INGRESS], built[EGRESS]):
        between = {
            (rule["securityGroupId"], rule["referencedSecurityGroupId"])
            for rule in rules.values()
            if rule["ipProtocol"] == "-1" and "referencedSecurityGroupId" in rule
        }
        assert {
            ("train-scratch-id", "train-scratch-id"),
            ("train-scratch-id", "train-fabric-id"),
            ("train-fabric-id", "train-scratch-id"),
        } <= between
    volume = built["kubernetes:core/v1:PersistentVolume"]["train-scratch-training"]["spec"]
    assert volume["csi"] == {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": "train-scratch-id",
        "volumeAttributes": {"dnsname": "fs.example.com", "mountname": "abcdef"},
    }
    assert volume["persistentVolumeReclaimPolicy"] == "Retain"
    claim = built["kubernetes:core/v1:PersistentVolumeClaim"]["train-scratch-training"]
    assert claim["spec"]["volumeName"] == "train-scratch-training"
    assert "aws-fsx-csi-driver" in {addon["addonName"] for addon in built["aws:eks/addon:Addon"].values()}


def test_lustre_without_efa_opens_its_ports_and_no_others() -> None:
    built = build({**declare_pool(storage=["scratch"]), "storage": [SCRATCH]})
    ports = {
        (rule["fromPort"], rule["toPort"])
        for rules in (built[INGRESS], built[EGRESS])
        for rule in rules.values()
        if rule["securityGroupId"] == "train-scratch-id"
    }
    assert ports == {(988, 988), (1018, 1023)}


def test_nodes_that_mount_lustre_by_efa_are_told_to_be_its_clients() -> None:
    plain = declare_pool(storage=["scratch"])
    by_tcp = template_of({**plain, "storage": [SCRATCH]})
    by_efa = template_of({**plain, "storage": [{**SCRATCH, "efa": True}]})
    assert "userData" not in by_tcp
    assert node_spec(by_efa) == {"featureGates": {"FSxLustreEFAClient": True}}


def test_own_image_joins_with_its_taint_from_birth_and_names_no_release() -> None:
    raw = declare_pool(image={"id": "ami-0a1b2c3d"})
    built = build(raw)
    name = plan_site(read_site(raw)[0]).pools[0].full_name
    group, template = built[NODE_GROUP][name], built[TEMPLATE][name]
    assert group["amiType"] == "CUSTOM"
    assert not {"version", "releaseVersion"} & set(group)
    assert template["imageId"] == "ami-0a1b2c3d"
    spec = node_spec(template)
    assert spec["cluster"] == {
        "name": "train",
        "apiServerEndpoint": "https://api",
        "certificateAuthority": "Y2E=",
        "cidr": "172.20.0.0/16",
    }
    assert "--register-with-taints=nvidia.com/gpu=present:NoSchedule" in spec["kubelet"]["flags"]
    given = template_of(declare_pool(image={"id": "ami-0a1b2c3d", "user_data": "#!/bin/sh\n"}))
    assert base64.b64decode(given["userData"]) == b"#!/bin/sh\n"
