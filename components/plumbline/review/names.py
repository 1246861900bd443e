"""Names: whether the cloud takes them, also the longest one that a resource will ever get."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plumbline.catalog import aws_catalogue
from plumbline.review.finding import Finding
from plumbline.review.graph import Graph, Resource
from plumbline.review.rule import Rule
from plumbline.review.types import CLUSTER, GKE_NODE_POOL, NODE_GROUP, ROLE
from plumbline.review.values import text
from plumbline.site.problems import Path, Problem, shown

RANDOM_SUFFIX = 8
"""Characters that Pulumi adds to the name of a resource that is given none: a hyphen and seven hexadecimal digits.

https://www.pulumi.com/docs/iac/concepts/resources/names/
"""

_EKS = aws_catalogue().eks


@dataclass(frozen=True, kw_only=True)
class NameRule:
    """What names of one kind have to be."""

    kind: str
    type: str
    property: str
    """The input that holds the name."""
    longest: int
    pattern: str
    in_words: str
    source: str


KINDS = (
    NameRule(
        kind="gke-node-pool",
        type=GKE_NODE_POOL,
        property="name",
        longest=40,
        pattern=r"[a-z]([-a-z0-9]*[a-z0-9])?",
        in_words="lower-case letters, digits and hyphens; a letter first, no hyphen last",
        source="https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools",
    ),
    NameRule(
        kind="iam-role",
        type=ROLE,
        property="name",
        longest=_EKS.role_name_length,
        pattern=r"[\w+=,.@-]+",
        in_words="letters, digits and any of _+=,.@-",
        source=aws_catalogue().address(_EKS, "role_name_length"),
    ),
    NameRule(
        kind="eks-node-group",
        type=NODE_GROUP,
        property="nodeGroupName",
        longest=_EKS.nodegroup_name_length,
        pattern=r"[0-9A-Za-z][0-9A-Za-z_-]*",
        in_words="letters, digits, hyphens and underscores; a letter or digit first",
        source=aws_catalogue().address(_EKS, "nodegroup_name_length"),
    ),
    NameRule(
        kind="eks-cluster",
        type=CLUSTER,
        property="name",
        longest=100,
        pattern=r"[0-9A-Za-z][0-9A-Za-z_-]*",
        in_words="letters, digits, hyphens and underscores; a letter or digit first",
        source="https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html",
    ),
)
_BY_KIND = {rule.kind: rule for rule in KINDS}


def longest_name(logical: str) -> str:
    """The name that Pulumi makes for a resource of this logical name that is given none; the digits are made up."""
    return logical + "-" + "0" * (RANDOM_SUFFIX - 1)


def review_names(kind: str, names: Iterable[str]) -> list[Finding]:
    """What is wrong with any of the names that one resource gets in its life; KeyError for no such kind."""
    rule = _BY_KIND[kind]
    problems = [problem for name in names for problem in _name_problems(rule, name, (rule.property,))]
    return [_as_rule(rule).finding(problem) for problem in problems]


def _name_problems(rule: NameRule, name: str, path: Path) -> Iterator[Problem]:
    if len(name) > rule.longest:
        yield Problem(
            path=path,
            found=f"{shown(name)}, {len(name)} characters",
            needed=f"{rule.longest} characters at most",
            next=f"shorten it by {len(name) - rule.longest}; if it is cut, keep a digest of it, so that two differ",
        )
    if not re.fullmatch(rule.pattern, name):
        yield Problem(path=path, found=shown(name), needed=rule.in_words, next="correct the name")


def _as_rule(rule: NameRule) -> Rule:
    def judge(resource: Resource, _: Graph) -> Iterator[Problem]:
        name = text(resource.props, rule.property)
        if name:
            yield from _name_problems(rule, name, (rule.property,))

    return Rule(id=f"{rule.kind}-name-fits", types=(rule.type,), judge=judge, source=rule.source)


RULES = tuple(_as_rule(rule) for rule in KINDS)
