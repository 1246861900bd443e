"""Every machine of the catalogue, as a pool of one stack: built, joined, and each proven to have what it should."""

import json
from typing import Any

import pytest

from plumbline.catalog import aws_catalogue
from tests.lifecycle.reviewed import findings
from tests.lifecycle.test_green_blocked_recovered import report
from tests.rehearsals import Rehearsal
from tests.sites import GOOD
from twin.aws.facts import account, machine

pytestmark = pytest.mark.engine
MACHINES = aws_catalogue().machines


def capacity(name: str) -> dict[str, Any]:
    """What the simulated account has for a machine: a reservation that fits, a block, or a zone on demand."""
    reserved = account().reservations
    for id_, each in sorted(reserved.items()):
        plain = (each.state, each.platform, each.tenancy, each.criteria) == (
            "active",
            "Linux/UNIX",
            "default",
            "targeted",
        )
        if each.machine == name and plain and each.placement_group_arn is None and each.zone.startswith("us-west-2"):
            kind = "capacity-block" if each.kind == "capacity-block" else "reservation"
            if kind == "reservation" or "reservation" not in MACHINES[name].capacity_kinds:
                return {"kind": kind, "id": id_, "zone": each.zone}
    return {"kind": "on-demand", "zone": "us-west-2d", "placement": "none"}


BY_DRA = {
    "name": "by-dra",
    "machine": "p5.48xlarge",
    "nodes": 1,
    "capacity": {"kind": "reservation", "id": "cr-0a1b2c3d4e5f60719", "zone": "us-west-2c"},
    "fabric": "efa",
    "devices": "dra",
}
SITE = {
    **GOOD,
    "pools": [
        BY_DRA,
        *(
            {"name": name.replace(".", "-"), "machine": name, "nodes": 1, "capacity": capacity(name), "fabric": "efa"}
            for name in sorted(MACHINES)
        ),
    ],
    "proof": {"within": "120s", "stable": "2s"},
}


def test_every_machine_is_proven_and_the_count_is_what_ec2_says(stage: Rehearsal) -> None:
    done = stage.up(config=stage.config(SITE))
    assert done.code == 0, done.text
    found = report(stage)
    assert found["proven"] is True
    gates = {gate["expected"]["machine"]: gate for gate in found["gates"] if gate["pool"] != "by-dra"}
    assert sorted(gates) == sorted(MACHINES)
    for name, gate in gates.items():
        theirs = machine(name)
        assert theirs
        [node] = gate["proof"]["nodes"].values()
        advertised = {resource: int(count) for resource, count in node["advertised"].items()}
        accelerator = "aws.amazon.com/neuron" if theirs.neuron_devices else "nvidia.com/gpu"
        assert advertised[accelerator] == (theirs.neuron_devices or theirs.gpus)
        # Two cards of p6e-gb200 share a port: its layout leaves one of them without.
        efa = 4 if name == "p6e-gb200.36xlarge" else theirs.efa_interfaces
        assert advertised["vpc.amazonaws.com/efa"] == efa, name


def test_devices_by_dra_are_proven_beside_those_by_the_plugin(stage: Rehearsal) -> None:
    [gate] = [gate for gate in report(stage)["gates"] if gate["pool"] == "by-dra"]
    assert gate["expected"]["slices"] == {"dra.net": 32}
    [node] = gate["proof"]["nodes"].values()
    assert node["advertised"]["dra.net"] == "32"
    assert "vpc.amazonaws.com/efa" not in node["advertised"]


def test_templates_have_what_eks_forbids_in_none(stage: Rehearsal) -> None:
    templates = [
        each["inputs"]
        for each in stage.resources("aws:ec2/launchTemplate:LaunchTemplate")
        if each["inputs"].get("networkInterfaces")
    ]
    assert len(templates) == len(SITE["pools"])
    for template in templates:
        assert not {"iamInstanceProfile", "vpcSecurityGroupIds", "instanceInitiatedShutdownBehavior"} & set(template)
        assert "subnetId" not in json.dumps(template)
        assert "associatePublicIpAddress" not in json.dumps(template)


def test_review_of_all_that_was_built_finds_nothing(stage: Rehearsal) -> None:
    assert [str(finding) for finding in findings(stage)] == []
