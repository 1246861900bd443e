"""Rules over the inputs of resources: what is wrong with them, before anything is created.

Pure: a review depends on what it is given and on the catalogue, asks nobody, and gives the same findings in the same
order each time. A value that is not known yet gives no finding.
"""

from collections.abc import Mapping

from plumbline.review import changes, groups, lustre, names, templates, workloads
from plumbline.review.changes import Step, review_steps
from plumbline.review.finding import Finding
from plumbline.review.graph import Graph, Resource
from plumbline.review.rule import Rule
from plumbline.review.values import UNKNOWN, from_engine

ALL_RULES: tuple[Rule, ...] = (
    *templates.RULES,
    *groups.RULES,
    *lustre.RULES,
    *names.RULES,
    *workloads.RULES,
    *changes.RULES,
)

RULES: Mapping[str, tuple[Rule, ...]] = {
    type_: tuple(rule for rule in ALL_RULES if type_ in rule.types)
    for type_ in sorted({each for rule in ALL_RULES for each in rule.types})
}
"""The rules by type token; a token that ends with `*` stands for all that begin like it."""


def rules_for(type_: str) -> tuple[Rule, ...]:
    """The rules that concern resources of a type."""
    return tuple(rule for rule in ALL_RULES if rule.concerns(type_))


def review_resource(resource: Resource) -> list[Finding]:
    """What is wrong with one resource, as far as it can be said without looking at others."""
    graph = Graph([resource])
    return [
        finding for rule in rules_for(resource.type) if not rule.relates for finding in rule.findings(resource, graph)
    ]


def review(graph: Graph) -> list[Finding]:
    """What is wrong with the resources of a stack, in the order of their labels."""
    return [
        finding
        for resource in sorted(graph.resources, key=lambda each: each.label)
        for rule in rules_for(resource.type)
        for finding in rule.findings(resource, graph)
    ]


__all__ = [
    "ALL_RULES",
    "RULES",
    "UNKNOWN",
    "Finding",
    "Graph",
    "Resource",
    "Rule",
    "Step",
    "from_engine",
    "review",
    "review_resource",
    "review_steps",
    "rules_for",
]
