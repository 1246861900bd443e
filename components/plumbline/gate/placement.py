"""Whether a DaemonSet's pod may run on a node, and if not, why: node selector, affinity, taints.

As the DaemonSet controller decides:
https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#how-daemon-pods-are-scheduled
"""

from collections.abc import Mapping

from plumbline.gate.snapshot import DaemonSet, Json, Node, Taint
from plumbline.plan.tolerations import tolerates

_TOLERATED_BY_EVERY_DAEMON = frozenset(
    f"node.kubernetes.io/{name}"
    for name in (
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
        "network-unavailable",
    )
)


def why_excluded(daemon_set: DaemonSet, node: Node) -> str | None:
    """The term that keeps the DaemonSet off the node, in words; None if nothing does."""
    for key, value in sorted(daemon_set.node_selector.items()):
        if node.labels.get(key) != value:
            return f"its nodeSelector wants {key}={value}; {_has(node, key)}"
    if daemon_set.affinity_terms:
        unmet = [_unmet(term, node) for term in daemon_set.affinity_terms]
        if all(unmet):
            return f"its node affinity wants {unmet[0]}"
    for taint in node.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not _tolerates(daemon_set.tolerations, taint):
            return f"it does not tolerate the taint {taint}"
    return None


def _has(node: Node, key: str) -> str:
    return f"the node has {key}={node.labels[key]}" if key in node.labels else "the node has no such label"


def _unmet(term: Json, node: Node) -> str | None:
    """What of a nodeSelectorTerm the node does not meet; an empty term meets nothing."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return "nothing: a term without expressions matches no node"
    for expression in expressions:
        if not _meets(expression, node.labels):
            return f"{_words(expression)}; {_has(node, expression['key'])}"
    for expression in fields:
        if not _meets(expression, {"metadata.name": node.name}):
            return _words(expression)
    return None


def _words(expression: Json) -> str:
    values = ", ".join(expression.get("values") or ())
    return f"{expression['key']} {expression['operator']}" + (f" [{values}]" if values else "")


def _meets(expression: Json, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    values = [str(each) for each in expression.get("values") or ()]
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            if value is None or not value.lstrip("-").isdigit() or len(values) != 1:
                return False
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
        case _:
            return False


def _tolerates(tolerations: tuple[Json, ...], taint: Taint) -> bool:
    if taint.key in _TOLERATED_BY_EVERY_DAEMON:
        return True
    return tolerates(tolerations, taint.key, taint.value, taint.effect)
