"""What the components hand to the engine, seen with Pulumi's mocks: no engine, no cloud."""

import asyncio
import json
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from plumbline.aws.cluster import kubeconfig
from plumbline.plan import plan_site
from plumbline.site import read_site
from tests.sites import GOOD, declare_pool

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
        return f"{args.name}-id", outputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        raise AssertionError(f"no data source is needed: {args.token}")


def build(raw: dict[str, Any], *, preview: bool = False) -> Registered:
    """Register a whole site, and return what the engine was given."""
    mocks = Mocks()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(mocks, project="plumbline", stack="test", preview=preview)
    from plumbline.aws import AwsSite

    def program() -> None:
        plan = plan_site(read_site(raw)[0])
        AwsSite(plan.name, plan)

    test: Callable[..., Callable[..., Any]] = pulumi.runtime.test
    test(program)()
    return mocks.seen


@pytest.fixture(scope="module")
def site() -> Registered:
    return build(GOOD)


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
    group = site["aws:eks/nodeGroup:NodeGroup"][POOL]
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
    templates = build(raw)["aws:ec2/launchTemplate:LaunchTemplate"]
    [template] = templates.values()
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
