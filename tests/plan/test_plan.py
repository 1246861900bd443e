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


@pytest.mark.parametrize(
    ("machine", "efa"),
    [
        ("p4d.24xlarge", 4),
        ("p5.48xlarge", 32),
        ("p5en.48xlarge", 16),
        ("p6-b200.48xlarge", 8),
        ("p6-b300.48xlarge", 16),
    ],
)
def test_number_of_efa_interfaces_is_that_of_the_machine(machine: str, efa: int) -> None:
    layout = interfaces(MACHINES[machine], "efa")
    assert sum(nic.kind == "efa-only" for nic in layout) == efa == MACHINES[machine].efa_interfaces


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
