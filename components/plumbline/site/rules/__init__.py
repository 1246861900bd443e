"""Rules that join several fields of a declaration, each a function from the parts that could be read to problems."""

from plumbline.catalog import AwsCatalogue
from plumbline.site.problems import Problem
from plumbline.site.rules import machines, names, network, storage
from plumbline.site.rules.draft import Draft, PoolDraft, Rule, StorageDraft
from plumbline.site.rules.names import GENERATION_LENGTH
from plumbline.site.rules.network import ADDRESSES_PER_NODE, POD_ADDRESSES, WARM_ADDRESSES
from plumbline.site.rules.storage import LUSTRE_DEPLOYMENT, LUSTRE_STORAGE

_RULES: tuple[Rule, ...] = (*network.RULES, *machines.RULES, *names.RULES, *storage.RULES)


def broken_rules(draft: Draft, catalogue: AwsCatalogue) -> list[Problem]:
    """All that breaks a rule."""
    return [problem for rule in _RULES for problem in rule(draft, catalogue)]


__all__ = [
    "ADDRESSES_PER_NODE",
    "GENERATION_LENGTH",
    "LUSTRE_DEPLOYMENT",
    "LUSTRE_STORAGE",
    "POD_ADDRESSES",
    "WARM_ADDRESSES",
    "Draft",
    "PoolDraft",
    "StorageDraft",
    "broken_rules",
]
