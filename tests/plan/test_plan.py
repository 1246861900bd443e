"""Plans: what is created follows from the declaration and the catalogue, and from nothing else."""

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.catalog import aws_catalogue
from plumbline.plan import SitePlan, interfaces, plan_site, plan_subnets
from plumbline.site import read_site
from tests.sites import GOOD, declare, declare_pool

MACHINES = aws_catalogue().machines


def planned(raw: dict[str, object]) -> SitePlan:
    return plan_site(read_site(raw)[0])


TABLE: dict[str, tuple[int, list[int]]] = {
    # machine: EFA devices on a node, and the cards that carry them
    "p4d.24xlarge": (4, [*range(4)]),
    "p4de.24xlarge": (4, [*range(4)]),
    "p5.4xlarge": (1, [0]),
    "p5.48xlarge": (32, [*range(32)]),
    "p5e.48xlarge": (32, [*range(32)]),
    "p5en.48xlarge": (16, [*range(16)]),
    "p6-b200.48xlarge": (8, [*range(8)]),
    "p6-b300.48xlarge": (16, [*range(1, 17)]),
    "p6e-gb200.36xlarge": (4, [1, 5, 9, 13]),
    "g6e.8xlarge": (1, [0]),
    "g6e.12xlarge": (1, [0]),
    "g6e.16xlarge": (1, [0]),
    "g6e.24xlarge": (2, [0, 1]),
    "g6e.48xlarge": (4, [*range(4)]),
    "g7e.8xlarge": (1, [0]),
    "g7e.12xlarge": (1, [0]),
    "g7e.24xlarge": (2, [0, 1]),
    "g7e.48xlarge": (4, [*range(4)]),
    "trn1.32xlarge": (8, [*range(8)]),
    "trn1n.32xlarge": (16, [*range(16)]),
    "trn2.48xlarge": (16, [*range(16)]),
}
"""https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html and, for p6e-gb200,
https://docs.aws.amazon.com/eks/latest/userguide/ml-eks-nvidia-ultraserver.html ."""


def test_table_knows_every_machine_of_the_catalogue() -> None:
    assert sorted(TABLE) == sorted(MACHINES)


@pytest.mark.parametrize("machine", sorted(TABLE))
def test_interfaces_are_those_of_the_table(machine: str) -> None:
    efa, cards = TABLE[machine]
    layout = interfaces(MACHINES[machine], "efa")
    assert [nic.card for nic in layout if nic.carries_efa] == cards
    assert len(cards) == efa


@pytest.mark.parametrize("machine", sorted(TABLE))
def test_gate_expects_the_interfaces_that_are_attached_and_the_accelerators(machine: str) -> None:
    kind = MACHINES[machine].capacity_kinds[0]
    capacity = {"kind": kind, "zone": "us-west-2b"} | ({"id": "cr-0a1b2c3d"} if kind == "capacity-block" else {})
    pool = planned(declare_pool(machine=machine, capacity=capacity)).pools[0]
    assert pool.resources["vpc.amazonaws.com/efa"] == TABLE[machine][0]
    accelerator = "aws.amazon.com/neuron" if machine.startswith("trn") else "nvidia.com/gpu"
    assert pool.resources[accelerator] == MACHINES[machine].accelerators
    assert pool.taint[0] == accelerator


def test_legacy_layout_has_efa_on_the_primary_and_device_1_elsewhere() -> None:
    layout = interfaces(MACHINES["p5.48xlarge"], "efa", "legacy")
    assert [(nic.card, nic.device, nic.kind) for nic in layout[:2]] == [(0, 0, "efa"), (1, 1, "efa-only")]
    assert planned(declare_pool(layout="legacy")).pools[0].resources["vpc.amazonaws.com/efa"] == 32


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_layout_obeys_the_rules_of_ec2(machine: str) -> None:
    facts = MACHINES[machine]
    layout = interfaces(facts, "efa")
    places = [(nic.card, nic.device) for nic in layout]
    assert layout[0].kind == "interface"
    assert places[0] == (0, 0)
    assert places == sorted(set(places)), "sorted, and no place twice"
    for card in range(facts.network_cards):
        on_card = [nic for nic in layout if nic.card == card]
        assert len(on_card) <= facts.interfaces_per_card
        assert sum(nic.kind == "efa-only" for nic in on_card) == (0 if card in facts.cards_without_efa else 1)


def test_card_0_of_p6_b300_carries_no_efa() -> None:
    assert [nic.kind for nic in interfaces(MACHINES["p6-b300.48xlarge"], "efa") if nic.card == 0] == ["interface"]


def test_pool_without_fabric_has_one_interface_and_expects_gpus_only() -> None:
    pool = planned(declare_pool(fabric="none")).pools[0]
    assert len(pool.interfaces) == 1
    assert pool.resources == {"nvidia.com/gpu": 8}
    assert [plugin.key for plugin in planned(declare_pool(fabric="none")).plugins] == ["nvidia"]


def test_pool_expects_what_its_machine_has() -> None:
    pool = planned(GOOD).pools[0]
    assert pool.resources == {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}
    assert pool.full_name == f"train-h100-{pool.generation}"
    assert pool.topology_labels[-1] == "topology.k8s.aws/network-node-layer-3"


GENERATION_OF_THE_GOOD_SITE = "bc392f"


def test_generation_of_a_declaration_never_changes_with_a_version_of_plumbline() -> None:
    """It is part of the names of what exists: another digest would replace everybody's pools."""
    assert planned(GOOD).pools[0].generation == GENERATION_OF_THE_GOOD_SITE


@pytest.mark.parametrize(
    "change",
    [
        {"machine": "p5e.48xlarge"},
        {"fabric": "none"},
        {"ami_release": "1.34.2-20260224"},
        {"capacity": {"kind": "reservation", "id": "cr-0a1b2c3d4e5f60719", "zone": "us-west-2b"}},
        {"capacity": {"kind": "on-demand", "zone": "us-west-2b"}},
        {"capacity": {"kind": "capacity-block", "id": "cr-0a1b2c3d4e5f60718", "zone": "us-west-2b"}},
        {"layout": "legacy"},
        {"devices": "dra"},
        {"image": {"id": "ami-0a1b2c3d"}},
    ],
    ids=str,
)
def test_what_cannot_change_in_place_makes_a_new_generation(change: dict[str, object]) -> None:
    assert planned(declare_pool(**change)).pools[0].generation != GENERATION_OF_THE_GOOD_SITE


def test_another_kubernetes_version_makes_a_new_generation() -> None:
    assert planned(declare(cluster={"version": "1.33"})).pools[0].generation != GENERATION_OF_THE_GOOD_SITE


@pytest.mark.parametrize("change", [{"nodes": 3}, {"on_destroy": "wait"}], ids=str)
def test_what_can_change_in_place_does_not(change: dict[str, object]) -> None:
    assert planned(declare_pool(**change)).pools[0].generation == GENERATION_OF_THE_GOOD_SITE


@given(
    zones=st.sets(st.sampled_from([f"us-east-1{letter}" for letter in "abcdefg"]), min_size=1),
    more=st.sets(st.sampled_from([f"us-east-1{letter}" for letter in "abcdefg"])),
    prefix=st.integers(16, 20),
)
def test_subnets_lie_in_the_range_apart_and_stay_where_they_are(zones: set[str], more: set[str], prefix: int) -> None:
    cidr = IPv4Network(f"10.32.0.0/{prefix}")
    before, after = plan_subnets(cidr, zones), plan_subnets(cidr, zones | more)
    every = [net for subnet in after for net in (subnet.private, subnet.public)]
    assert all(net.subnet_of(cidr) for net in every)
    assert not any(a.overlaps(b) for a in every for b in every if a is not b)
    assert set(before) <= set(after)


def test_image_of_a_plugin_can_be_chosen_and_its_setting_is_named() -> None:
    plan = planned(declare(plugins={"efa": {"image": "registry.example.com/efa:v9"}}))
    efa = next(plugin for plugin in plan.plugins if plugin.key == "efa")
    assert efa.image == "registry.example.com/efa:v9"
    assert efa.setting == "plumbline:site.plugins.efa.image"
    assert plan.pools[0].generation == GENERATION_OF_THE_GOOD_SITE


STORAGE = {
    "name": "scratch",
    "kind": "fsx-lustre",
    "zone": "us-west-2b",
    "capacity_gib": 19200,
    "throughput_mbps_per_tib": 250,
}


def test_mounting_by_tcp_changes_no_node_and_by_efa_starts_new_ones() -> None:
    by_tcp = planned({**declare_pool(storage=["scratch"]), "storage": [STORAGE]}).pools[0]
    by_efa = planned({**declare_pool(storage=["scratch"]), "storage": [{**STORAGE, "efa": True}]}).pools[0]
    assert (by_tcp.generation, by_tcp.node_features) == (GENERATION_OF_THE_GOOD_SITE, {})
    assert by_efa.generation != GENERATION_OF_THE_GOOD_SITE
    assert by_efa.node_features == {"FSxLustreEFAClient": True}
    grown = planned({**declare_pool(storage=["scratch"]), "storage": [{**STORAGE, "efa": True, "capacity_gib": 38400}]})
    assert grown.pools[0].generation == by_efa.generation


def test_devices_by_dra_are_counted_in_slices_and_have_their_own_driver() -> None:
    plan = planned(declare(pools=[{**GOOD["pools"][0], "devices": "dra"}, {**GOOD["pools"][0], "name": "other"}]))
    by_dra, by_plugin = plan.pools
    assert (by_dra.resources, by_dra.slices) == ({"nvidia.com/gpu": 8}, {"dra.net": 32})
    assert by_plugin.slices == {}
    assert by_dra.node_labels["plumbline.dev/devices"] == "dra"
    assert "plumbline.dev/devices" not in by_plugin.node_labels
    assert {plugin.key: plugin.resource for plugin in plan.plugins} == {
        "dranet": "dra.net",
        "efa": "vpc.amazonaws.com/efa",
        "nvidia": "nvidia.com/gpu",
    }


def test_plugin_that_the_cluster_has_already_is_not_installed() -> None:
    plan = planned(declare(plugins={"nvidia": {"install": False}}))
    assert [plugin.key for plugin in plan.plugins] == ["efa"]
    assert plan.pools[0].resources["nvidia.com/gpu"] == 8, "and is looked for all the same"


def test_trainium_brings_its_own_plugin() -> None:
    plan = planned(declare_pool(machine="trn1.32xlarge"))
    assert [plugin.key for plugin in plan.plugins] == ["efa", "neuron"]


@pytest.mark.parametrize(
    ("region", "image"),
    [
        ("us-west-2", "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20"),
        ("eu-north-1", "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20"),
        ("cn-north-1", "918309763551.dkr.ecr.cn-north-1.amazonaws.com.cn/eks/aws-efa-k8s-device-plugin:v0.5.20"),
    ],
)
def test_image_comes_from_where_nodes_of_the_region_can_pull(region: str, image: str) -> None:
    pool = {**GOOD["pools"][0], "capacity": {"kind": "on-demand", "zone": f"{region}b"}}
    raw = declare(region=region, network={"cidr": "10.20.0.0/16", "zones": [f"{region}a"]}, pools=[pool])
    assert next(plugin.image for plugin in planned(raw).plugins if plugin.key == "efa") == image


def test_without_a_way_out_the_regions_own_registry_is_used() -> None:
    mirrored = {"nvidia": {"image": "123456789012.dkr.ecr.eu-north-1.amazonaws.com/nvidia:v1"}}
    pool = {**GOOD["pools"][0], "capacity": {"kind": "on-demand", "zone": "eu-north-1b"}}
    network = {"cidr": "10.20.0.0/16", "zones": ["eu-north-1a"], "egress": "endpoints"}
    plan = planned(declare(region="eu-north-1", network=network, pools=[pool], plugins=mirrored))
    assert plan.plugins[0].image.startswith("602401143452.dkr.ecr.eu-north-1.amazonaws.com/eks/")
    assert "ecr.dkr" in plan.network.endpoints


def test_subnet_of_an_existing_network_is_part_of_the_generation() -> None:
    def generation(subnet: str) -> str:
        subnets = {"us-west-2b": subnet, "us-west-2a": "subnet-0a1b2c3f"}
        plan = planned(declare(network={"existing": {"vpc": "vpc-0a1b2c3d", "subnets": subnets}}))
        return plan.pools[0].generation

    assert generation("subnet-0a1b2c3d") != generation("subnet-0a1b2c3e")
