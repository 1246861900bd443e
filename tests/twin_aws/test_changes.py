"""Changes of resources of the simulated AWS: versions of templates, prefixes, removed inputs, imports, what is gone."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from tests.twin_aws.test_resources import CLUSTER, GROUP, ROLE, RULE, SECURITY, SUBNET, TEMPLATE, VPC, Site, machines
from tests.twin_aws.worlds import Engine, Refused, engine
from twin.aws.kinds import RESERVATION
from twin.aws.wire import UNKNOWN


@pytest.fixture
def aws() -> Iterator[Engine]:
    with engine() as running:
        yield running


def test_name_prefix_gives_a_name(aws: Engine) -> None:
    site = Site(aws)
    _, role = aws.create(ROLE, assumeRolePolicy="{}", namePrefix="train-")
    assert role["name"].startswith("train-")
    inputs = site.group()
    del inputs["nodeGroupName"]
    id_, group = aws.create(GROUP, **inputs, nodeGroupNamePrefix="train-")
    assert group["nodeGroupName"].startswith("train-")
    assert id_ == f"train:{group['nodeGroupName']}"


def test_change_of_a_template_makes_its_version_unknown_in_a_preview(aws: Engine) -> None:
    id_, state = aws.create(TEMPLATE, name="t-1", instanceType="p5.48xlarge")
    old = {"name": "t-1", "instanceType": "p5.48xlarge"}
    assert aws.update(TEMPLATE, id_, state, {**old, "imageId": "ami-1"}, old, preview=True)["latestVersion"] == UNKNOWN
    default = {**old, "updateDefaultVersion": True}
    assert aws.update(TEMPLATE, id_, state, default, old, preview=True)["latestVersion"] == 1


def test_tags_of_a_template_make_no_version_and_its_data_does(aws: Engine) -> None:
    id_, state = aws.create(TEMPLATE, name="t-1", instanceType="p5.48xlarge")
    old = {"name": "t-1", "instanceType": "p5.48xlarge"}
    tagged = aws.update(TEMPLATE, id_, state, {**old, "tags": {"a": "b"}}, old)
    assert tagged["latestVersion"] == 1
    assert aws.update(TEMPLATE, id_, tagged, {**old, "imageId": "ami-1"}, old)["latestVersion"] == 2


def test_input_that_is_removed_is_gone(aws: Engine) -> None:
    site = Site(aws)
    id_, state = aws.create(TEMPLATE, **site.template_inputs)
    plain = {k: v for k, v in site.template_inputs.items() if k != "capacityReservationSpecification"}
    changed = aws.update(TEMPLATE, id_, state, plain, site.template_inputs)
    assert "capacityReservationSpecification" not in changed


def test_group_launches_the_version_that_it_names(aws: Engine) -> None:
    site = Site(aws)
    inputs = site.group()
    id_ = inputs["launchTemplate"]["id"]
    broken = {**site.template_inputs, "instanceType": "p9.huge"}
    aws.update(TEMPLATE, id_, {}, broken, site.template_inputs)
    aws.create(GROUP, **inputs)
    assert {machine["machine"] for machine in machines(aws)} == {"p5.48xlarge"}
    assert machines(aws)[0]["labels"]["eks.amazonaws.com/sourceLaunchTemplateVersion"] == "1"


def test_group_keeps_its_arn_over_an_update(aws: Engine) -> None:
    site = Site(aws)
    inputs = site.group()
    id_, outputs = aws.create(GROUP, **inputs)
    changed = aws.update(GROUP, id_, outputs, {**inputs, "tags": {"a": "b"}}, inputs)
    assert changed["arn"] == outputs["arn"]


def test_version_that_cannot_be_launched_leaves_the_old_machines(aws: Engine) -> None:
    site = Site(aws)
    inputs = site.group()
    id_, outputs = aws.create(GROUP, **inputs)
    before = {machine["id"] for machine in machines(aws)}
    template = inputs["launchTemplate"]["id"]
    aws.update(TEMPLATE, template, {}, {**site.template_inputs, "instanceType": "p9.huge"}, site.template_inputs)
    news = {**inputs, "launchTemplate": {"id": template, "version": "2"}}
    with pytest.raises(Refused, match="do not exist"):
        aws.update(GROUP, id_, outputs, news, inputs)
    assert {machine["id"] for machine in machines(aws)} == before


@pytest.mark.parametrize("strategy", ["MINIMAL", "DEFAULT"])
def test_new_version_replaces_every_machine_where_there_is_room(aws: Engine, strategy: str) -> None:
    site = Site(aws)
    inputs = site.group(nodes=16, updateConfig={"maxUnavailable": 3, "updateStrategy": strategy})
    id_, outputs = aws.create(GROUP, **inputs)
    before = {machine["id"] for machine in machines(aws)}
    template = inputs["launchTemplate"]["id"]
    aws.update(TEMPLATE, template, {}, {**site.template_inputs, "imageId": "ami-1"}, site.template_inputs)
    news = {**inputs, "launchTemplate": {"id": template, "version": "2"}}
    if strategy == "DEFAULT":
        with pytest.raises(Refused, match=r"'UPDATE_FAILED'.* 3 requested, 0 available"):
            aws.update(GROUP, id_, outputs, news, inputs)
        assert {machine["id"] for machine in machines(aws)} == before
        return
    aws.update(GROUP, id_, outputs, news, inputs)
    after = {machine["id"] for machine in machines(aws)}
    assert len(after) == 16
    assert not after & before


def test_what_is_gone_is_not_brought_back_by_an_update(aws: Engine) -> None:
    site = Site(aws)
    inputs = site.group()
    id_, outputs = aws.create(GROUP, **inputs)
    aws.delete(GROUP, id_)
    with pytest.raises(Refused, match=r"ResourceNotFoundException: No node group found for name: train-h100-1\."):
        aws.update(GROUP, id_, outputs, inputs, inputs)
    id_, outputs = aws.create(SECURITY, vpcId=site.vpc)
    aws.delete(SECURITY, id_)
    with pytest.raises(Refused, match=r"InvalidGroup\.NotFound"):
        aws.update(SECURITY, id_, outputs, {"vpcId": site.vpc, "tags": {"a": "b"}}, {"vpcId": site.vpc})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"amiType": "AL2023_ARM_64_NVIDIA"}, "[p5.48xlarge] is not a valid instance type for requested amiType"),
        ({"version": "1.35"}, "1.35"),
    ],
    ids=str,
)
def test_group_that_eks_refuses_leaves_nothing(aws: Engine, change: dict[str, Any], words: str) -> None:
    site = Site(aws)
    inputs = site.group(**change)
    with pytest.raises(Refused) as caught:
        aws.create(GROUP, **inputs)
    assert words in str(caught.value)
    assert caught.value.kept is None
    assert aws.read(GROUP, "train:train-h100-1") == ""


@pytest.mark.parametrize(
    ("token", "inputs", "path", "words"),
    [
        (GROUP, {"capacityType": "RESERVED"}, "capacityType", '"CAPACITY_BLOCK"], got RESERVED'),
        (GROUP, {"taints": [{"key": "a", "effect": "NoSchedule"}]}, "taints[0].effect", "got NoSchedule"),
        (TEMPLATE, {"instanceMarketOptions": {"marketType": "block"}}, "instanceMarketOptions.marketType", "got block"),
    ],
)
def test_word_that_aws_does_not_have_is_a_failure(
    aws: Engine, token: str, inputs: dict[str, Any], path: str, words: str
) -> None:
    _, failures = aws.check(token, inputs)
    assert words in failures[path]


def test_words_that_aws_has_and_unknown_ones_pass(aws: Engine) -> None:
    inputs = {"capacityType": UNKNOWN, "amiType": "AL2023_x86_64_NVIDIA", "taints": [{"effect": "NO_SCHEDULE"}]}
    _, failures = aws.check(GROUP, inputs)
    assert sorted(failures) == ["clusterName", "nodeRoleArn", "scalingConfig", "subnetIds"]


@pytest.mark.parametrize(
    ("text", "passes"),
    [("#!/bin/bash\necho", False), ('MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n', True)],
)
def test_user_data_of_one_part_fails_the_group(aws: Engine, text: str, passes: bool) -> None:
    site = Site(aws)
    inputs = site.group(template={"userData": base64.b64encode(text.encode()).decode()})
    if passes:
        aws.create(GROUP, **inputs)
    else:
        with pytest.raises(Refused, match="Ec2LaunchTemplateInvalidConfiguration: User data was not in the MIME") as e:
            aws.create(GROUP, **inputs)
        assert e.value.kept is not None


def test_reservation_that_the_program_makes_is_used(aws: Engine) -> None:
    site = Site(aws)
    wanted: dict[str, Any] = {"instancePlatform": "Linux/UNIX", "instanceType": "p5.48xlarge", "instanceCount": 1}
    id_, _ = aws.create(RESERVATION, **wanted, availabilityZone="us-west-2b")
    target = {"capacityReservationSpecification": {"capacityReservationTarget": {"capacityReservationId": id_}}}
    with pytest.raises(Refused, match="2 requested, 1 available"):
        aws.create(GROUP, **site.group(nodes=2, template=target))


def test_machines_without_the_driver_have_no_gpus_to_offer(aws: Engine) -> None:
    site = Site(aws)
    aws.create(GROUP, **{**site.group(), "amiType": "AL2023_x86_64_STANDARD"})
    assert {machine["gpus"] for machine in machines(aws)} == {0}


@pytest.mark.parametrize(
    ("ami", "devices", "cores"), [("AL2023_x86_64_NEURON", 16, 32), ("AL2023_x86_64_NVIDIA", 0, 0)]
)
def test_trainium_machines_offer_devices_and_cores_with_the_driver_for_them(
    aws: Engine, ami: str, devices: int, cores: int
) -> None:
    site = Site(aws)
    nics = site.template_inputs["networkInterfaces"][:9]
    on_demand = {"capacityReservationPreference": "none"}
    template = {
        "instanceType": "trn1.32xlarge",
        "networkInterfaces": nics,
        "capacityReservationSpecification": on_demand,
    }
    aws.create(GROUP, **site.group(1, template, amiType=ami))
    (machine,) = machines(aws)
    assert (machine["neuron_devices"], machine["neuron_cores"], machine["gpus"]) == (devices, cores, 0)
    assert machine["efa_interfaces"] == 8


def test_group_is_of_its_clusters_version(aws: Engine) -> None:
    site = Site(aws)
    aws.create(CLUSTER, name="older", version="1.33", roleArn=site.role, vpcConfig={"subnetIds": site.subnets})
    _, group = aws.create(GROUP, **{**site.group(), "clusterName": "older"})
    assert group["version"] == "1.33"
    assert all(machine["kubelet_version"].startswith("v1.33.") for machine in machines(aws))


def test_security_group_in_use_is_not_deleted(aws: Engine) -> None:
    site = Site(aws)
    group, _ = aws.create(SECURITY, vpcId=site.vpc)
    other, _ = aws.create(SECURITY, vpcId=site.vpc)
    rule, _ = aws.create(RULE, securityGroupId=other, referencedSecurityGroupId=group, ipProtocol="-1")
    with pytest.raises(Refused, match=f"DependencyViolation: resource {group} has a dependent object"):
        aws.delete(SECURITY, group)
    aws.delete(RULE, rule)
    aws.delete(SECURITY, group)


def test_two_of_one_name_at_once_are_one_too_many(aws: Engine) -> None:
    site = Site(aws)
    cidr = {"vpcId": site.vpc, "cidrBlock": "10.20.128.0/19", "availabilityZone": "us-west-2a"}
    aws.world.pace = 0.02
    refused = [error for error in aws.create_at_once(SUBNET, [cidr, cidr]) if error]
    assert len(refused) == 1
    assert "InvalidSubnet.Conflict" in str(refused[0])


def test_import_gives_inputs_that_differ_in_nothing(aws: Engine) -> None:
    site = Site(aws)
    inputs = aws.inputs_read(VPC, site.vpc)
    assert inputs == {"cidrBlock": "10.20.0.0/16"}


def test_refresh_shows_what_was_changed_elsewhere(aws: Engine) -> None:
    site = Site(aws)
    inputs = site.group()
    id_, outputs = aws.create(GROUP, **inputs)
    grown = {**inputs, "scalingConfig": {"desiredSize": 3, "minSize": 2, "maxSize": 4}}
    aws.update(GROUP, id_, outputs, grown, inputs)
    assert aws.inputs_read(GROUP, id_, inputs)["scalingConfig"]["desiredSize"] == 3


@pytest.mark.parametrize(("named", "first"), [({"nodeGroupName": "train"}, True), ({}, False)])
def test_replacement_of_what_has_a_fixed_name_deletes_first(aws: Engine, named: dict[str, Any], first: bool) -> None:
    old, _ = aws.check(GROUP, {**named, "instanceTypes": ["p4d.24xlarge"]})
    new = {**old, "instanceTypes": ["p5.48xlarge"]}
    assert aws.replaces(GROUP, old, new) == (["instanceTypes"], ["instanceTypes"])
    assert aws.deletes_first(GROUP, old, new) is first
    assert aws.deletes_first(GROUP, old, {**old, "tags": {"a": "b"}}) is False
