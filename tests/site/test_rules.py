"""Rules that join fields of a declaration: the path, and what the message says."""

from typing import Any

import pytest

from plumbline.site import Problem, SiteError, read_site
from tests.sites import GOOD, declare, declare_pool

POOL = GOOD["pools"][0]
SUBNETS = {"us-west-2b": "subnet-0a1b2c3d", "us-west-2a": "subnet-0a1b2c3e"}
THEIRS = {"existing": {"vpc": "vpc-0a1b2c3d", "subnets": SUBNETS}}
LUSTRE = {
    "name": "scratch",
    "kind": "fsx-lustre",
    "zone": "us-west-2b",
    "capacity_gib": 19200,
    "throughput_mbps_per_tib": 250,
}


def errors(raw: dict[str, Any]) -> dict[str, Problem]:
    with pytest.raises(SiteError) as caught:
        read_site(raw)
    return {problem.where.removeprefix("plumbline:site."): problem for problem in caught.value.problems}


def warnings(raw: dict[str, Any]) -> dict[str, Problem]:
    return {problem.where.removeprefix("plumbline:site."): problem for problem in read_site(raw)[1]}


def with_storage(storage: dict[str, Any], **pool: Any) -> dict[str, Any]:
    return {**declare_pool(storage=["scratch"], **pool), "storage": [{**LUSTRE, **storage}]}


def test_network_is_built_or_exists() -> None:
    assert errors(declare(network={"zones": ["us-west-2a"]}))["network"].found == "neither cidr nor existing"
    both = errors(declare(network={**THEIRS, "cidr": "10.0.0.0/16"}))
    assert both["network"].found == "both cidr and existing"
    assert read_site(declare(network=THEIRS))[0].network.existing


def test_existing_network_has_a_subnet_for_each_pool_and_nothing_of_a_new_one() -> None:
    network = {
        "existing": {
            "vpc": "vpc-0a1b2c3d",
            "subnets": {"us-west-2a": "subnet-0a1b2c3d", "us-west-2c": "subnet-0a1b2c3e"},
        }
    }
    found = errors(declare(network={**network, "egress": "nat", "zones": ["us-west-2d"]}))
    assert set(found) == {"network.egress", "network.zones", "pools[0].capacity.zone"}
    assert "network.existing.subnets: us-west-2a, us-west-2c" in found["pools[0].capacity.zone"].needed
    stored = errors({**declare(network=THEIRS), "storage": [{**LUSTRE, "zone": "us-west-2c"}]})
    assert "network.existing.subnets: us-west-2b, us-west-2a" in stored["storage[0].zone"].needed


def test_existing_cluster_is_left_as_it_is_and_is_in_an_existing_network() -> None:
    found = errors(declare(cluster={"existing": "shared", "version": "1.34", "endpoint": "private", "logs": ["api"]}))
    assert set(found) == {"cluster.endpoint", "cluster.logs", "network.existing"}
    assert read_site(declare(cluster={"existing": "shared", "version": "1.34"}, network=THEIRS))[1] == ()


@pytest.mark.parametrize(("nodes", "fits"), [(389, True), (390, False)])
def test_subnet_holds_the_addresses_of_nodes_and_their_pods(nodes: int, fits: bool) -> None:
    raw = declare_pool(nodes=nodes)
    if fits:
        assert read_site(raw)[1] == ()
    else:
        problem = errors(raw)["network.cidr"]
        assert problem.found == '"10.20.0.0/16", with 8187 addresses in the subnet of us-west-2b'
        assert problem.needed.startswith("8190 addresses there: 390 nodes with 21 each")


@pytest.mark.parametrize(
    ("machine", "kind", "sold_by"),
    [
        ("p6e-gb200.36xlarge", {"kind": "on-demand"}, "capacity-block"),
        ("g6e.48xlarge", {"kind": "capacity-block", "id": "cr-0a1b2c3d4e5f60718"}, "on-demand, reservation"),
    ],
)
def test_machine_is_bought_by_what_it_is_sold_by(machine: str, kind: dict[str, str], sold_by: str) -> None:
    problem = errors(declare_pool(machine=machine, capacity={**kind, "zone": "us-west-2b"}))["pools[0].capacity.kind"]
    assert sold_by in problem.needed


def test_machine_and_mechanism_need_their_kubernetes_version() -> None:
    gb200 = declare_pool(
        machine="p6e-gb200.36xlarge",
        capacity={"kind": "capacity-block", "id": "cr-0a1b2c3d4e5f60718", "zone": "us-west-2b"},
    )
    assert errors({**gb200, "cluster": {"version": "1.32"}})["cluster.version"].needed.startswith("1.33 or newer")
    dra = errors({**declare_pool(devices="dra"), "cluster": {"version": "1.33"}})
    assert dra["pools[0].devices"].needed == "Kubernetes 1.34 or newer"
    assert (
        errors(declare_pool(devices="dra", fabric="none"))["pools[0].devices"].next
        == "remove devices, or set fabric: efa"
    )


def test_legacy_layout_needs_efa_on_every_card() -> None:
    problem = errors(declare_pool(machine="p6-b300.48xlarge", layout="legacy"))["pools[0].layout"]
    assert "cards without EFA (0)" in problem.needed
    assert read_site(declare_pool(layout="legacy"))[1] == ()


@pytest.mark.parametrize(("tag", "warns"), [("v0.5.4", True), ("v0.5.20", False), ("latest", False)])
def test_old_plugin_that_counts_wrong_is_named(tag: str, warns: bool) -> None:
    """Sources disagree on the release that mended it: it warns, and stops nothing."""
    raw = {**declare_pool(machine="p6-b200.48xlarge"), "plugins": {"efa": {"image": f"registry.example.com/efa:{tag}"}}}
    assert ("plugins.efa.image" in warnings(raw)) is warns


def test_image_and_release_exclude_each_other() -> None:
    raw = declare_pool(image={"id": "ami-0a1b2c3d"}, ami_release="1.34.2-20260224")
    assert "image.id ami-0a1b2c3d" in errors(raw)["pools[0].ami_release"].found


def test_without_a_way_out_images_come_from_the_regions_registry() -> None:
    network = {**GOOD["network"], "egress": "endpoints"}
    problem = errors(declare(network=network))["plugins.nvidia.image"]
    assert "an image in ECR of us-west-2" in problem.needed
    mirrored = {"nvidia": {"image": "123456789012.dkr.ecr.us-west-2.amazonaws.com/nvidia/k8s-device-plugin:v0.20.0"}}
    assert read_site(declare(network=network, plugins=mirrored))[1] == ()


def test_storage_is_mounted_by_its_name() -> None:
    found = errors({**declare_pool(storage=["scrach"]), "storage": [LUSTRE, LUSTRE]})
    assert found["pools[0].storage[0]"].next == "did you mean scratch?"
    assert found["storage[1].name"].found == '"scratch", as an earlier file system'


def test_kind_of_storage_is_named() -> None:
    assert errors({**GOOD, "storage": [{"name": "scratch"}]})["storage[0].kind"].next == "add kind: fsx-lustre"
    assert errors({**GOOD, "storage": [{**LUSTRE, "kind": "fsx-lustr"}]})["storage[0].kind"].next == (
        "did you mean fsx-lustre?"
    )


@pytest.mark.parametrize(
    ("change", "where", "needed"),
    [
        ({"capacity_gib": 3600}, "capacity_gib", "a multiple of 2400, or 1200"),
        ({"capacity_gib": 9600, "efa": True}, "capacity_gib", "a multiple of 19200 (with efa at 250 MB/s per TiB)"),
        ({"throughput_mbps_per_tib": 200}, "throughput_mbps_per_tib", "one of 125, 250, 500, 1000"),
        ({"metadata_iops": 2000}, "metadata_iops", "1500, 3000, 6000, or a multiple of 12000 up to 192000"),
        ({"backup_days": 91}, "backup_days", "90 days at most"),
        (
            {"backup_days": 7, "repository": {"s3": "s3://datasets", "path": "/datasets"}},
            "backup_days",
            "one of them: a file system that is linked to S3 cannot be backed up",
        ),
    ],
)
def test_lustre_has_sizes_that_fsx_sells(change: dict[str, Any], where: str, needed: str) -> None:
    problem = errors(with_storage(change))[f"storage[0].{where}"]
    assert problem.needed == needed


def test_lustre_by_efa_is_in_the_pools_zone_and_reached_by_what_can() -> None:
    away = errors(with_storage({"efa": True, "zone": "us-west-2a"}))
    assert "EFA does not cross zones" in away["pools[0].storage[0]"].needed
    assert "is paid for" in warnings(with_storage({"zone": "us-west-2a"}))["pools[0].storage[0]"].needed
    assert (
        "would mount it over TCP"
        in errors(with_storage({"efa": True}, machine="trn2.48xlarge"))["pools[0].storage[0]"].needed
    )
    assert (
        "would mount it over TCP"
        in warnings(with_storage({"efa": True}, machine="p4d.24xlarge"))["pools[0].storage[0]"].needed
    )
    assert errors(with_storage({"efa": True}, fabric="none"))["pools[0].storage[0]"].next.startswith("set fabric: efa")


def test_version_without_pinned_addons_says_which_to_pin() -> None:
    problem = warnings(declare(cluster={"version": "1.99"}))["cluster.addons"]
    assert problem.found == (
        "no version of vpc_cni, coredns, kube_proxy, pod_identity_agent, fsx_csi_driver for Kubernetes 1.99"
    )


def test_cni_that_takes_efa_interfaces_for_its_own_is_refused() -> None:
    old = errors(declare(cluster={"version": "1.34", "addons": {"vpc_cni": "v1.18.3-eksbuild.1"}}))
    assert old["cluster.addons.vpc_cni"].needed.startswith("v1.18.5 or newer")
    assert read_site(declare(cluster={"version": "1.34", "addons": {"vpc_cni": "v1.18.5-eksbuild.1"}}))[1] == ()
