"""The catalogue against data that AWS published: moto's copy of DescribeInstanceTypes, which nobody here wrote."""

import pytest
from pydantic import ValidationError

from plumbline.catalog import AwsCatalogue, aws_catalogue, nearest
from twin.aws.facts import machine

CATALOGUE = aws_catalogue()
LEFT_UNUSED = {"p6e-gb200.36xlarge"}
"""Two of its cards share a port: the layout leaves one of them, and more, without EFA."""


@pytest.mark.parametrize("name", sorted(CATALOGUE.machines))
def test_machine_is_as_aws_describes_it(name: str) -> None:
    ours, theirs = CATALOGUE.machines[name], machine(name)
    assert theirs is not None
    assert ours.accelerators == (theirs.neuron_devices if ours.accelerator == "neuron" else theirs.gpus)
    assert ours.architecture == theirs.architecture
    assert ours.network_cards == len(theirs.cards)
    takes_none = {card for card, kinds in theirs.cards.items() if "efa-only" not in kinds}
    if name in LEFT_UNUSED:
        assert ours.efa_interfaces < theirs.efa_interfaces
        assert takes_none < set(ours.cards_without_efa)
        assert ours.interfaces_per_card == min(theirs.interfaces_per_card.values())
    else:
        assert {ours.interfaces_per_card} == set(theirs.interfaces_per_card.values())
        assert ours.efa_interfaces == theirs.efa_interfaces
        assert takes_none == set(ours.cards_without_efa)
    assert ("capacity-block" in ours.capacity_kinds) is ("capacity-block" in theirs.usage)
    assert ("on-demand" in ours.capacity_kinds) is ("on-demand" in theirs.usage)


def test_fact_without_a_source_is_no_fact() -> None:
    raw = CATALOGUE.model_dump()
    del raw["plugins"]["efa"]["sources"]["image"]
    with pytest.raises(ValidationError, match="no source for image"):
        AwsCatalogue.model_validate(raw)


def test_source_has_an_address() -> None:
    raw = CATALOGUE.model_dump()
    raw["machines"]["p5.48xlarge"]["sources"]["accelerators"] = "hearsay"
    with pytest.raises(ValidationError, match="sources without an address: hearsay"):
        AwsCatalogue.model_validate(raw)
    assert CATALOGUE.address(CATALOGUE.machines["p5.48xlarge"], "accelerators").startswith("https://")


def test_nearest_names_come_first() -> None:
    assert nearest("p5.48xlarg", CATALOGUE.machines)[0] == "p5.48xlarge"
    assert nearest("zzz", CATALOGUE.machines) == []
