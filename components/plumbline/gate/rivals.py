"""Two DaemonSets that give out the same hardware of a node: each pod gets what another has already."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plumbline.catalog.dra import DRIVERS
from plumbline.gate.expectation import PoolExpectation
from plumbline.gate.placement import why_excluded
from plumbline.gate.snapshot import DaemonSet, Node, Snapshot
from plumbline.gate.verdict import Certainty, Diagnosis
from plumbline.gate.wording import names, plural
from plumbline.kubernetes.adopted import FoundPlugin, found_plugins


@dataclass(frozen=True)
class _Giver:
    """A DaemonSet that gives out some hardware."""

    name: str
    """For people."""
    resource: str
    image: str
    daemon_set: DaemonSet
    key: str
    """Of a plugin of somebody else's; empty for one that is expected."""


def rivals(expected: PoolExpectation, snapshot: Snapshot) -> list[Diagnosis]:
    """A diagnosis for each set of DaemonSets that may run on the same node and give out the same hardware.

    The EKS manual forbids it: https://docs.aws.amazon.com/eks/latest/userguide/device-management-efa.html ; two device
    plugins of one resource replace each other at the kubelet in turn.
    """
    givers = _givers(expected, snapshot, found_plugins(snapshot.others, cluster_policies=False))
    return [
        _both(group, nodes) for _, among in sorted(givers.items()) for group, nodes in _meetings(among, snapshot.nodes)
    ]


def _givers(expected: PoolExpectation, snapshot: Snapshot, found: Sequence[FoundPlugin]) -> dict[str, list[_Giver]]:
    """By hardware, those that are expected first."""
    givers: dict[str, list[_Giver]] = defaultdict(list)
    for plugin in expected.plugins:
        daemon_set = snapshot.daemon_sets.get((plugin.namespace, plugin.name))
        if daemon_set is not None:
            known = DRIVERS.get(plugin.driver or "")
            hardware = known.hardware if known else plugin.resource
            name = f"{plugin.namespace}/{plugin.name}"
            givers[hardware].append(_Giver(name, plugin.driver or plugin.resource, plugin.image, daemon_set, ""))
    for other in found:
        if other.daemon_set is not None:
            giver = _Giver(str(other), other.resource, other.image, other.daemon_set, other.key)
            givers[other.hardware].append(giver)
    return givers


def _meetings(among: Sequence[_Giver], nodes: Sequence[Node]) -> Iterator[tuple[list[_Giver], list[Node]]]:
    """Groups of two or more that may run on the same nodes, with these nodes."""
    if len(among) < 2:
        return
    groups: dict[tuple[int, ...], list[Node]] = defaultdict(list)
    for node in nodes:
        here = tuple(i for i, giver in enumerate(among) if why_excluded(giver.daemon_set, node) is None)
        if len(here) > 1:
            groups[here].append(node)
    for here, where in groups.items():
        yield [among[i] for i in here], where


def _both(givers: Sequence[_Giver], nodes: Sequence[Node]) -> Diagnosis:
    resources = sorted({giver.resource for giver in givers})
    what = resources[0] if len(resources) == 1 else f"the same hardware, {' and '.join(resources)},"
    others = [giver for giver in givers if giver.key]
    fix = f"keep one: remove {' or '.join(giver.name for giver in others)}"
    if len(resources) == 1 and len(others) < len(givers):
        fix += f", or leave it to that one with plugins.{others[0].key}.install: false in the stack's file"
    return Diagnosis(
        cause=f"{len(givers)} DaemonSets advertise {what} on {plural(len(nodes), 'node')}: "
        f"{' and '.join(giver.name for giver in givers)}",
        certainty=Certainty.CERTAIN,
        evidence=(
            *(f"{giver.daemon_set}, image {giver.image}, {giver.resource}" for giver in givers),
            f"nothing keeps them off {names(node.name for node in nodes)}",
        ),
        fix=fix,
        nodes=tuple(node.name for node in nodes),
        # Neither goes by itself, and the longer both run, the more pods get what others have.
        heals=False,
    )
