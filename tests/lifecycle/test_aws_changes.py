"""What a change does on AWS: in place, a new generation, or refused with the reason. Previews of one stack."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from plumbline.plan import plan_site
from plumbline.site import read_site
from tests.lifecycle.reviewed import findings
from tests.lifecycle.test_green_blocked_recovered import report
from tests.rehearsals import Rehearsal
from tools.toolbox import CHECKOUT

pytestmark = pytest.mark.engine

LOCAL: dict[str, Any] = yaml.safe_load((CHECKOUT / "stacks" / "Pulumi.local.yaml").read_text("utf-8"))["config"][
    "plumbline:site"
]
PLAIN = {
    "name": "plain",
    "kind": "fsx-lustre",
    "zone": "us-west-2b",
    "capacity_gib": 1200,
    "throughput_mbps_per_tib": 125,
    "on_destroy": "delete",
}
SITE = {**LOCAL, "storage": [{**LOCAL["storage"][0], "on_destroy": "refuse"}, PLAIN]}
H100, H200 = (pool.full_name for pool in plan_site(read_site(SITE)[0]).pools)


def changed(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    site = copy.deepcopy(SITE)
    change(site)
    return site


def name_of(site: dict[str, Any], pool: int = 0) -> str:
    return plan_site(read_site(site)[0]).pools[pool].full_name


def test_local_stack_with_storage_and_two_zones_goes_green(stage: Rehearsal) -> None:
    done = stage.up(config=stage.config(SITE))
    assert done.code == 0, done.text
    gates = {gate["pool"]: gate["verdict"] for gate in report(stage)["gates"]}
    assert gates == {"h100": "pass", "h200": "pass"}
    assert "Bound" in [
        c["outputs"]["status"]["phase"] for c in stage.resources("kubernetes:core/v1:PersistentVolumeClaim")
    ]
    again = stage.preview(stage.config(SITE))
    assert again.operations() == {}, "and nothing is left to do"


def test_review_of_storage_and_pools_finds_nothing(stage: Rehearsal) -> None:
    assert [str(finding) for finding in findings(stage)] == []


def test_count_changes_the_node_group_in_place(stage: Rehearsal) -> None:
    site = changed(lambda s: s["pools"][0].update(nodes=3))
    assert stage.preview(stage.config(site)).operations() == {
        f"NodeGroup {H100}": "update",
        f"FabricGate {H100}": "update",
    }


def new_generation(site: dict[str, Any], old: str) -> dict[str, str]:
    new = name_of(site)
    kinds = ("AwsPool", "LaunchTemplate", "NodeGroup", "FabricGate")
    made = {f"{kind} {new}": "create" for kind in kinds} | {f"RetireGuard {new}-guard": "create"}
    gone = {f"{kind} {old}": "delete" for kind in kinds} | {f"RetireGuard {old}-guard": "delete"}
    return {**made, **gone, "Declaration train": "update"}


@pytest.mark.parametrize(
    "change",
    [
        {"ami_release": "1.34.3-20260310"},
        {
            "machine": "p4d.24xlarge",
            "capacity": {"kind": "reservation", "id": "cr-0a1b2c3d4e5f60720", "zone": "us-west-2b"},
        },
    ],
    ids=["AMI", "machine"],
)
def test_ami_and_machine_make_a_new_generation_beside_the_old(stage: Rehearsal, change: dict[str, Any]) -> None:
    site = changed(lambda s: s["pools"][0].update(change))
    assert stage.preview(stage.config(site)).operations() == new_generation(site, H100)


def test_plugin_image_changes_its_daemon_set_and_proves_every_pool_again(stage: Rehearsal) -> None:
    site = changed(lambda s: s.update(plugins={"efa": {"image": "registry.example.com/efa:v9"}}))
    assert stage.preview(stage.config(site)).operations() == {
        "DaemonSet train-plugins-efa": "update",
        f"FabricGate {H100}": "update",
        f"FabricGate {H200}": "update",
    }


def test_throughput_changes_in_place_without_efa(stage: Rehearsal) -> None:
    site = changed(lambda s: s["storage"][1].update(throughput_mbps_per_tib=250))
    assert stage.preview(stage.config(site)).operations() == {"LustreFileSystem train-plain": "update"}


def test_throughput_with_efa_is_refused_in_preview(stage: Rehearsal) -> None:
    site = changed(lambda s: s["storage"][0].update(throughput_mbps_per_tib=500))
    preview = stage.preview(stage.config(site))
    assert preview.code != 0
    assert "LustreFileSystem::train-scratch" in preview.text
    assert "marked for protection" in preview.text


def test_size_grows_in_place_and_never_shrinks(stage: Rehearsal) -> None:
    larger = changed(lambda s: s["storage"][0].update(capacity_gib=38400))
    operations = stage.preview(stage.config(larger)).operations()
    assert operations["LustreFileSystem train-scratch"] == "update"
    assert not {"create", "delete", "replace", "create-replacement", "delete-replaced"} & set(operations.values())
    larger_plain = changed(lambda s: s["storage"][1].update(capacity_gib=2400))
    assert stage.preview(stage.config(larger_plain)).operations()["LustreFileSystem train-plain"] == "update"


def test_version_upgrades_the_control_plane_in_place_and_builds_new_pools(stage: Rehearsal) -> None:
    site = changed(lambda s: s["cluster"].update(version="1.33"))
    operations = stage.preview(stage.config(site)).operations()
    assert operations["Cluster train-cluster"] == "update"
    assert operations[f"NodeGroup {name_of(site)}"] == "create"


def test_reservation_in_another_zone_stops_the_preview_before_anything(stage: Rehearsal) -> None:
    site = changed(lambda s: s["pools"][0]["capacity"].update(id="cr-0a1b2c3d4e5f60719"))
    preview = stage.preview(stage.config(site))
    assert preview.code != 0
    assert "plumbline:site.pools[0].capacity.zone" in preview.text
    assert "needed: us-west-2c: the hardware of cr-0a1b2c3d4e5f60719 is there" in preview.text
    assert preview.operations() == {}


def test_missing_right_is_named_and_can_be_waived(stage: Rehearsal) -> None:
    stage.client.set_faults(["no-right-to-read-reservations"])
    try:
        preview = stage.preview(stage.config(SITE))
        assert preview.code != 0
        assert "give who runs `pulumi up` ec2:DescribeCapacityReservations" in preview.text
        waived = changed(lambda s: s["proof"].update(account="warn"))
        lenient = stage.preview(stage.config(waived))
        assert (lenient.code, lenient.operations()) == (0, {})
        assert "could not be read (no right)" in lenient.text
    finally:
        stage.client.set_faults([])


UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""How the engine writes a value that is not known in preview."""
MADE_BY_AWS = {
    # Ids, ARNs and what a cluster says of itself: nobody can know them before.
    *("id", "arn", "vpcId", "subnetId", "subnetIds", "gatewayId", "natGatewayId", "allocationId", "routeTableId"),
    *("securityGroupId", "referencedSecurityGroupId", "securityGroups", "securityGroupIds", "nodeRoleArn", "roleArn"),
    *("version", "kubeconfig", "clusterName", "role", "volumeHandle", "dnsname", "mountname", "storage"),
}


def unknown_fields(value: Any, field: str = "") -> set[str]:
    """Names of the fields in which something is unknown."""
    if isinstance(value, dict):
        return {name for key, inner in value.items() for name in unknown_fields(inner, key)}
    if isinstance(value, list):
        return {name for inner in value for name in unknown_fields(inner, field)}
    return {field} if value == UNKNOWN else set()


def test_first_preview_knows_all_that_the_plan_knows_and_registers_nothing_twice(stage: Rehearsal) -> None:
    stage.new_stack("fresh")
    preview = stage.preview(stage.config(SITE, name="fresh"), stack="fresh")
    assert preview.code == 0, preview.text
    urns = [step["urn"] for step in preview.steps]
    assert len(urns) == len(set(urns))
    states = [step["newState"] for step in preview.steps if step["newState"].get("custom")]
    unknown = {
        f"{state['type'].split(':')[-1]}.{name}"
        for state in states
        for name in unknown_fields(state.get("inputs") or {})
    }
    assert {each for each in unknown if each.partition(".")[2] not in MADE_BY_AWS} == set()
    gates = [state["inputs"] for state in states if state["type"] == "plumbline:index:FabricGate"]
    assert all(unknown_fields(gate) <= {"kubeconfig"} for gate in gates)
