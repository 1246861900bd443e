"""Steps that an update is about to take: what they would do to pools that run."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from plumbline.review.finding import Finding, finding
from plumbline.review.graph import Graph, Resource
from plumbline.review.rule import Rule
from plumbline.review.types import GKE_NODE_POOL, LUSTRE, NODE_GROUP
from plumbline.review.values import Json, items, number, text
from plumbline.site.problems import Problem, shown

_POOLS = (NODE_GROUP, GKE_NODE_POOL)
_REPLACES = ("replace", "create-replacement", "delete-replaced")
_ACCELERATED = re.compile(r"(p|g|gr|trn|inf)\d|a[2-9][a-z]*-|g\d-|ct\d")
_NAMES = {NODE_GROUP: "nodeGroupName", GKE_NODE_POOL: "name"}
_REPLACEMENT = "https://www.pulumi.com/docs/iac/concepts/resources/options/deletebeforereplace/"
_STAMPED = re.compile(r"-[0-9a-f]{6,8}$")
"""How a name ends that a replacement does not have: a generation's digest, or Pulumi's random digits."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of an update, as preview shows it."""

    op: str
    """`create`, `update`, `replace`, `delete`, ..."""
    type: str
    name: str
    old: Json = field(default_factory=dict)
    new: Json = field(default_factory=dict)
    replace_keys: tuple[str, ...] = ()
    """Properties that make it a replacement."""
    delete_before_replace: bool = False

    @property
    def replaces(self) -> bool:
        """Whether a resource that exists is replaced."""
        return self.op in _REPLACES


def _nodes(pool: Json) -> int | None:
    """How many nodes a pool has; None where it is not said."""
    return number(pool, "scalingConfig", "desiredSize") or number(pool, "nodeCount") or number(pool, "initialNodeCount")


def _accelerated(pool: Json) -> bool:
    """Whether a pool's nodes have accelerators, from the names of machines and images."""
    names = [*items(pool, "instanceTypes"), text(pool, "nodeConfig", "machineType") or ""]
    ami = text(pool, "amiType") or ""
    return (
        any(isinstance(each, str) and _ACCELERATED.match(each) for each in names)
        or bool(items(pool, "nodeConfig", "guestAccelerators"))
        or ami.endswith(("NVIDIA", "NEURON", "GPU"))
    )


def _keys(step: Step) -> str:
    return ", ".join(step.replace_keys) or "an input"


def _replaces_pool(step: Step) -> Iterator[Problem]:
    if step.type in _POOLS and step.replaces and _accelerated(step.old or step.new):
        nodes = _nodes(step.old)
        keys = _keys(step)
        yield Problem(
            path=(step.replace_keys[0],) if step.replace_keys else (),
            found=f"replace of {nodes if nodes is not None else 'all'} GPU nodes, because {keys} changed",
            needed="a second pool beside this one, which goes when its successor is proven and nothing runs on it",
            next=f"undo the change of {keys}, or give it to a new pool",
        )


def _same_name(step: Step) -> Iterator[Problem]:
    key = _NAMES.get(step.type)
    if key is None or not step.replaces or step.delete_before_replace:
        return
    old, new = text(step.old, key), text(step.new, key)
    if old and old == new:
        yield Problem(
            path=(key,),
            found=f"fixed name {shown(new)}, and a replacement because {_keys(step)} changed",
            needed="a name of its own for the replacement: it is created before the old one is deleted, and until then "
            "the name exists",
            next="put what cannot change in place into the name, or give none",
        )


def _deletes_first(step: Step) -> Iterator[Problem]:
    if step.type in _POOLS and step.replaces and step.delete_before_replace and _accelerated(step.old or step.new):
        yield Problem(
            path=(_NAMES[step.type],),
            found="deleteBeforeReplace on a GPU pool that is replaced",
            needed="the successor first: the running pool would be deleted before there is another",
            next="remove deleteBeforeReplace, and give the replacement a name of its own",
        )


@dataclass(frozen=True, kw_only=True)
class ChangeRule:
    """One thing that has to hold for the steps of an update."""

    id: str
    """In kebab case."""
    judge: Callable[[Step], Iterator[Problem]]
    source: str
    """Address of the fact that it rests on."""


def _replaces_data(step: Step) -> Iterator[Problem]:
    if step.type == LUSTRE and step.replaces and not str(step.old.get("deploymentType")).startswith("SCRATCH"):
        yield Problem(
            path=(step.replace_keys[0],) if step.replace_keys else (),
            found=f"replace of a file system, because {_keys(step)} changed",
            needed="the file system as it is: its replacement is empty, and the old one's data is deleted with it",
            next=f"undo the change of {_keys(step)}; or make a second file system, and copy what is to stay",
        )


CHANGE_RULES = (
    ChangeRule(
        id="gpu-pool-not-replaced", judge=_replaces_pool, source="https://github.com/pulumi/pulumi-gcp/issues/1139"
    ),
    ChangeRule(id="replacement-has-its-own-name", judge=_same_name, source=_REPLACEMENT),
    ChangeRule(id="gpu-pool-not-deleted-first", judge=_deletes_first, source=_REPLACEMENT),
    ChangeRule(
        id="file-system-not-replaced",
        judge=_replaces_data,
        source="https://github.com/aws/aws-parallelcluster/issues/4651",
    ),
)


def review_steps(steps: Sequence[Step]) -> list[Finding]:
    """What is wrong with the steps of an update."""
    return [
        finding(problem, rule=rule.id, source=rule.source, resource=f"{step.type}::{step.name}")
        for step in steps
        for rule in CHANGE_RULES
        for problem in rule.judge(step)
    ]


def _fixed_name(group: Resource, _: Graph) -> Iterator[Problem]:
    name = text(group.props, "nodeGroupName")
    if name and not _STAMPED.search(name):
        yield Problem(
            path=("nodeGroupName",),
            found=f"fixed name {shown(name)}",
            needed="a name that a replacement does not have: most changes of a node group are a replacement, which is "
            "created before the old one is deleted",
            next="use nodeGroupNamePrefix, or put a digest of what cannot change in place into the name",
        )


RULES = (
    Rule(
        id="node-group-name-not-fixed",
        types=(NODE_GROUP,),
        judge=_fixed_name,
        source="https://github.com/pulumi/pulumi-eks/issues/294",
        # It goes wrong only when something changes that cannot change in place.
        confirmed=False,
    ),
)
