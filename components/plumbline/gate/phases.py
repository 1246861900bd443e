"""Phases 1 to 3: nodes, plugins, advertised. Pure functions of an expectation and a snapshot, cheap ones first.

Each phase asks for positive evidence of every node by name. What is missing is `UNKNOWN` while it may still come, and
`FAIL` where something says that it is wrong.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from plumbline.catalog.dra import DRIVERS
from plumbline.gate.expectation import PluginExpectation, PoolExpectation
from plumbline.gate.floors import old_cni, old_driver, unknown_cni
from plumbline.gate.placement import why_excluded
from plumbline.gate.rivals import rivals
from plumbline.gate.signs import Sign, quote, read_signs
from plumbline.gate.slices import Offer
from plumbline.gate.snapshot import DaemonSet, Node, Pod, Snapshot, count
from plumbline.gate.verdict import Certainty, Diagnosis, PhaseResult, Verdict
from plumbline.gate.wording import names, plural
from plumbline.plan.labels import ARCHITECTURE, MACHINE, ZONE

Phase = Callable[[PoolExpectation, Snapshot], PhaseResult]


def look(expected: PoolExpectation, snapshot: Snapshot) -> list[PhaseResult]:
    """The phases in order, up to and including the first that does not pass."""
    results: list[PhaseResult] = []
    for phase in PHASES.values():
        results.append(phase(expected, snapshot))
        if results[-1].verdict is not Verdict.PASS:
            break
    return results


def _result(
    phase: str,
    found: Sequence[Diagnosis],
    *,
    summary: str,
    pending: frozenset[str],
    unseen: Sequence[Diagnosis] = (),
    warnings: tuple[str, ...] = (),
) -> PhaseResult:
    """`FAIL` where something was found, `UNKNOWN` where something is not there yet or not to be seen, else `PASS`."""
    failing = frozenset(node for each in (*found, *unseen) for node in each.nodes) | pending
    verdict = Verdict.FAIL if found else Verdict.UNKNOWN if pending or unseen else Verdict.PASS
    return PhaseResult(
        phase=phase,
        verdict=verdict,
        summary=summary,
        diagnoses=(*found, *unseen),
        failing=failing,
        warnings=warnings,
    )


# --- 1. nodes --------------------------------------------------------------------------------------------------------


def nodes_phase(expected: PoolExpectation, snapshot: Snapshot) -> PhaseResult:
    """Joined, Ready, the right number, zone, machine, architecture, labels, CNI and driver; topology labels warn."""
    nodes = snapshot.nodes
    found = [
        *_wrong_hardware(expected, nodes),
        *_labels_missing(expected, nodes),
        *_too_many(expected, nodes),
        *old_cni(expected, snapshot),
        *old_driver(expected, snapshot),
    ]
    not_ready = [node for node in nodes if not node.ready]
    missing = expected.nodes - len(nodes)
    if missing > 0:
        found.append(_missing_nodes(expected, nodes))
    if not_ready:
        found.append(
            Diagnosis(
                cause=f"{plural(len(not_ready), 'node')} joined and not Ready",
                certainty=Certainty.CERTAIN,
                evidence=tuple(f"{node.name}: {node.not_ready_because}" for node in not_ready[:8]),
                fix="look at the kubelet and the CNI on these nodes (kubectl describe node); a node that stays so has "
                "to be replaced",
                nodes=tuple(node.name for node in not_ready),
            )
        )
    ready = len(nodes) - len(not_ready)
    return _result(
        "nodes",
        found,
        summary=f"{ready} of {expected.nodes} nodes Ready",
        pending=frozenset(),
        warnings=(*_topology_missing(expected, nodes), *unknown_cni(expected, snapshot)),
    )


def _missing_nodes(expected: PoolExpectation, nodes: Sequence[Node]) -> Diagnosis:
    selector = ", ".join(f"{key}={value}" for key, value in sorted(expected.node_selector.items()))
    return Diagnosis(
        cause=f"{plural(expected.nodes - len(nodes), 'node')} of {expected.nodes} did not join the cluster",
        certainty=Certainty.CERTAIN,
        evidence=(f"nodes with {selector}: {names(node.name for node in nodes) or 'none'}",),
        fix="look at the node group's health issues and activity in the cloud; an instance that runs and does not join "
        "cannot reach the API server or lacks an access entry",
    )


def _wrong_hardware(expected: PoolExpectation, nodes: Sequence[Node]) -> Iterator[Diagnosis]:
    wanted = {ZONE: expected.zone, MACHINE: expected.machine, ARCHITECTURE: expected.architecture}
    for key, value in wanted.items():
        wrong = [node for node in nodes if key in node.labels and node.labels[key] != value]
        if wrong:
            yield Diagnosis(
                cause=f"{plural(len(wrong), 'node')} of another {key.rsplit('/', 1)[1]} than declared",
                certainty=Certainty.CERTAIN,
                evidence=tuple(f"{node.name}: {key}={node.labels[key]}, expected {value}" for node in wrong[:8]),
                fix="the node group does not match the declaration; run `pulumi refresh`, then `pulumi up`, and let it "
                "build a new generation",
                nodes=tuple(node.name for node in wrong),
                heals=False,
            )


def _labels_missing(expected: PoolExpectation, nodes: Sequence[Node]) -> Iterator[Diagnosis]:
    wanted = {**expected.node_labels}
    lacking = {
        node.name: [f"{key}={value}" for key, value in sorted(wanted.items()) if node.labels.get(key) != value]
        for node in nodes
    }
    bad = {name: labels for name, labels in lacking.items() if labels}
    if bad:
        yield Diagnosis(
            cause=f"{plural(len(bad), 'node')} without the labels of the pool",
            certainty=Certainty.CERTAIN,
            evidence=tuple(f"{name}: lacks {', '.join(labels)}" for name, labels in sorted(bad.items())[:8]),
            fix="the node group puts them there when a node joins; something removed them: find it, then put them "
            "back or replace the node",
            nodes=tuple(sorted(bad)),
        )


def _too_many(expected: PoolExpectation, nodes: Sequence[Node]) -> Iterator[Diagnosis]:
    if len(nodes) > expected.nodes:
        yield Diagnosis(
            cause=f"{len(nodes)} nodes where {expected.nodes} are declared",
            certainty=Certainty.CERTAIN,
            evidence=(names(node.name for node in nodes),),
            fix="somebody scaled the node group, or old nodes have not left yet; set nodes in the stack's file, or "
            "wait and run `pulumi up` again",
            nodes=tuple(node.name for node in nodes),
        )


def _topology_missing(expected: PoolExpectation, nodes: Sequence[Node]) -> tuple[str, ...]:
    """The cloud leaves these labels out silently, for a day, after one refused call; jobs then place badly."""
    lacking = [node.name for node in nodes if any(label not in node.labels for label in expected.topology_labels)]
    if not lacking:
        return ()
    return (f"no topology labels on {names(lacking)}: expected {', '.join(expected.topology_labels)}",)


# --- 2. plugins ------------------------------------------------------------------------------------------------------


def plugins_phase(expected: PoolExpectation, snapshot: Snapshot) -> PhaseResult:
    """Every plugin has a ready pod, of the declared image, on every node, and no rival; 0 desired is a failure."""
    found: list[Diagnosis] = rivals(expected, snapshot)
    pending: set[str] = set()
    summaries: list[str] = []
    for plugin in expected.plugins:
        daemon_set = snapshot.daemon_sets.get((plugin.namespace, plugin.name))
        if daemon_set is None:
            found.append(_no_daemon_set(plugin, snapshot))
            continue
        pods = snapshot.plugin_pods(daemon_set)
        bad = [node for node in snapshot.nodes if not _serves(pods.get(node.name), plugin)]
        summaries.append(f"{plugin.name} ready on {len(snapshot.nodes) - len(bad)} of {expected.nodes} nodes")
        found += _plugin_troubles(expected, plugin, daemon_set, bad, snapshot)
        known = {name for each in found for name in each.nodes}
        pending |= {node.name for node in bad} - known
        if daemon_set.observed_generation < daemon_set.generation:
            pending |= {node.name for node in snapshot.nodes}
    return _result("plugins", found, summary="; ".join(summaries), pending=frozenset(pending))


def _serves(pod: Pod | None, plugin: PluginExpectation) -> bool:
    return pod is not None and pod.ready and plugin.image in pod.images


def _no_daemon_set(plugin: PluginExpectation, snapshot: Snapshot) -> Diagnosis:
    return Diagnosis(
        cause=f"the {plugin.title} is not installed",
        certainty=Certainty.CERTAIN,
        evidence=(f"DaemonSet {plugin.namespace}/{plugin.name} does not exist",),
        fix="somebody deleted it: run `pulumi refresh`, then `pulumi up`",
        nodes=tuple(node.name for node in snapshot.nodes),
    )


def _plugin_troubles(
    expected: PoolExpectation,
    plugin: PluginExpectation,
    daemon_set: DaemonSet,
    nodes: Sequence[Node],
    snapshot: Snapshot,
) -> Iterator[Diagnosis]:
    """Diagnoses of the nodes where the plugin does not serve, those with the same cause together."""
    pods = snapshot.plugin_pods(daemon_set)
    without = [node for node in nodes if node.name not in pods]
    excluded: dict[str, list[Node]] = defaultdict(list)
    for node in without:
        if reason := why_excluded(daemon_set, node):
            excluded[reason].append(node)
    for reason, group in sorted(excluded.items()):
        yield _not_placed(expected, plugin, daemon_set, reason, group, snapshot)

    crashing: dict[Sign | None, list[tuple[Node, Pod]]] = defaultdict(list)
    outdated: list[tuple[Node, Pod]] = []
    for node in nodes:
        pod = pods.get(node.name)
        if pod is None:
            continue
        if plugin.image not in pod.images:
            outdated.append((node, pod))
        elif _in_trouble(pod):
            crashing[read_signs(pod, snapshot.logs.get(pod.full_name, ""))].append((node, pod))
    for sign, troubled in crashing.items():
        yield _not_starting(expected, plugin, daemon_set, sign, troubled, snapshot)
    if outdated:
        yield _other_image(plugin, daemon_set, outdated)


HARMLESS = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Waiting reasons of a container that is on its way."""


def _in_trouble(pod: Pod) -> bool:
    """Whether it says that something is wrong, rather than that it is not there yet."""
    return bool(
        pod.reason
        or pod.scheduled_message
        or any(c.waiting_reason not in HARMLESS or (c.exit_code is not None and not c.ready) for c in pod.containers)
    )


def _not_placed(
    expected: PoolExpectation,
    plugin: PluginExpectation,
    daemon_set: DaemonSet,
    reason: str,
    nodes: Sequence[Node],
    snapshot: Snapshot,
) -> Diagnosis:
    return Diagnosis(
        cause=f"the {plugin.title} is kept off {plural(len(nodes), 'node')} that need it: {reason}",
        certainty=Certainty.CERTAIN,
        evidence=(
            f"{daemon_set}: desired {daemon_set.desired}, ready {daemon_set.ready}; "
            f"the pool has {plural(expected.nodes, 'node')}",
            f"no pod of it on {names(node.name for node in nodes)}",
            _advertised_line(expected, plugin, nodes, snapshot),
        ),
        fix=f"undo what changed {daemon_set}, with `pulumi refresh` and `pulumi up`, and keep other tools off it; "
        "or correct the nodes' labels and taints",
        nodes=tuple(node.name for node in nodes),
    )


def _not_starting(
    expected: PoolExpectation,
    plugin: PluginExpectation,
    daemon_set: DaemonSet,
    sign: Sign | None,
    troubled: Sequence[tuple[Node, Pod]],
    snapshot: Snapshot,
) -> Diagnosis:
    architectures = names({node.architecture for node, _ in troubled})
    words: dict[str, list[str]] = defaultdict(list)
    for node, pod in troubled:
        words[quote(pod, snapshot.logs.get(pod.full_name, ""))].append(node.name)
    nodes = [node for node, _ in troubled]
    says = tuple(
        f"{names(members)}: {text}; {'the nodes are' if len(members) > 1 else 'the node is'} {architectures}"
        for text, members in sorted(words.items())
    )
    return Diagnosis(
        cause=f"the {plugin.title} {sign.cause if sign else 'does not start'}",
        certainty=sign.certainty if sign else Certainty.NOT_KNOWN,
        evidence=(
            f"{daemon_set}, image {plugin.image}",
            *says,
            _advertised_line(expected, plugin, nodes, snapshot),
        ),
        fix=sign.fix.format(setting=plugin.setting, image=plugin.image, architecture=architectures)
        if sign
        else f"read its log (kubectl -n {plugin.namespace} logs ds/{plugin.name} --previous) and what changed last",
        nodes=tuple(node.name for node in nodes),
        heals=sign.heals if sign else True,
    )


def _other_image(plugin: PluginExpectation, daemon_set: DaemonSet, pods: Sequence[tuple[Node, Pod]]) -> Diagnosis:
    return Diagnosis(
        cause=f"{plural(len(pods), 'pod')} of the {plugin.title} of another image than declared",
        certainty=Certainty.CERTAIN,
        evidence=(
            f"{daemon_set}, declared image {plugin.image}",
            *(f"{node.name}: pod {pod.full_name}, image {', '.join(pod.images)}" for node, pod in pods[:8]),
        ),
        fix="a rollout has not finished, or another tool changed the DaemonSet: wait, or run `pulumi refresh` and "
        "`pulumi up`",
        nodes=tuple(node.name for node, _ in pods),
    )


# --- 3. advertised ---------------------------------------------------------------------------------------------------


def advertised_phase(expected: PoolExpectation, snapshot: Snapshot) -> PhaseResult:
    """On every node allocatable == capacity == expected, by equality, and the same of devices in ResourceSlices.

    Whether it lasts is seen over several looks.
    """
    found: list[Diagnosis] = []
    unseen: list[Diagnosis] = []
    good: list[str] = []
    for resource, wanted in sorted(expected.resources.items()):
        wrong = [node for node in snapshot.nodes if not _advertises(node, resource, wanted)]
        if not wrong:
            good.append(f"{resource} {wanted} on {expected.nodes} of {expected.nodes} nodes")
            continue
        good.append(f"{resource} {wanted} on {len(snapshot.nodes) - len(wrong)} of {expected.nodes} nodes")
        for over in (True, False):
            group = [node for node in wrong if _is_over(node, resource, wanted) is over]
            if group:
                found.append(_miscounted(expected, snapshot, resource, wanted, group, over))
    for driver, wanted in sorted(expected.slices.items()):
        offered = snapshot.offers.get(driver, Offer())
        right = sum(offered.on(node.name) == wanted for node in snapshot.nodes)
        good.append(f"{driver} {wanted} on {right} of {expected.nodes} nodes")
        unseen += _not_seen(driver, offered, snapshot.nodes)
        found += _offered_otherwise(expected, snapshot, driver, wanted, offered)
        found += _by_both_mechanisms(driver, offered, snapshot.nodes)
    warnings = _no_huge_pages(snapshot.nodes) if expected.huge_pages else ()
    result = _result(
        "advertised", found, summary="; ".join(good), pending=frozenset(), unseen=unseen, warnings=warnings
    )
    seen = {node.name: dict(_amounts_seen(expected, snapshot, node)) for node in snapshot.nodes}
    return PhaseResult(**{**vars(result), "seen": seen})


def _no_huge_pages(nodes: Sequence[Node]) -> tuple[str, ...]:
    """EFA's provider in libfabric allocates from huge pages, and takes ordinary memory where there are none.

    https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html
    """
    without = [node.name for node in nodes if node.allocatable.get("hugepages-2Mi", "0") in ("", "0", "0Mi")]
    if not without:
        return ()
    return (f"no huge pages of 2 MiB on {names(without)}: the image does not set them aside, and EFA is slower",)


def _amounts_seen(expected: PoolExpectation, snapshot: Snapshot, node: Node) -> Iterator[tuple[str, str]]:
    for resource in sorted(expected.resources):
        yield resource, node.allocatable.get(resource, "0")
    for driver in sorted(expected.slices):
        offered = snapshot.offers.get(driver, Offer()).on(node.name)
        yield driver, "unknown" if offered is None else str(offered)


def _advertises(node: Node, resource: str, wanted: int) -> bool:
    return _amounts(node, resource) == (wanted, wanted)


def _amounts(node: Node, resource: str) -> tuple[int, int] | None:
    """Allocatable and capacity; None where one of them is not a count."""
    try:
        return count(node.allocatable.get(resource)), count(node.capacity.get(resource))
    except ValueError:
        return None


def _is_over(node: Node, resource: str, wanted: int) -> bool:
    amounts = _amounts(node, resource)
    return amounts is not None and amounts[0] > wanted


def _advertised_line(
    expected: PoolExpectation, plugin: PluginExpectation, nodes: Sequence[Node], snapshot: Snapshot
) -> str:
    """What the plugin's nodes have of what it gives them."""
    if plugin.driver:
        offered = snapshot.offers.get(plugin.driver, Offer())
        counts = {offered.on(node.name) for node in nodes}
        amounts = names("unknown" if each is None else str(each) for each in counts)
        wanted = expected.slices.get(plugin.driver, 0)
        return f"{plugin.driver}: expected {wanted} on each node, in ResourceSlices {amounts}"
    resource = plugin.resource
    amounts = names({node.allocatable.get(resource, "0") for node in nodes})
    return f"{resource}: expected {expected.resources.get(resource, 0)} on each node, allocatable {amounts}"


def _miscounted(
    expected: PoolExpectation, snapshot: Snapshot, resource: str, wanted: int, nodes: Sequence[Node], over: bool
) -> Diagnosis:
    lines = [
        f"{node.name}: allocatable {node.allocatable.get(resource, '0')}, "
        f"capacity {node.capacity.get(resource, '0')}, expected {wanted}"
        for node in nodes
    ]
    plugin = _plugin_of(expected, resource)
    title = plugin.title if plugin else f"{resource} device plugin"
    return _wrong_count(expected, snapshot, resource, title, plugin, nodes, lines, over)


def _plugin_of(expected: PoolExpectation, resource: str) -> PluginExpectation | None:
    """The plugin that advertises a resource: its own, or another of its domain, as of one device and its cores."""
    plugins = [plugin for plugin in expected.plugins if not plugin.driver]
    domain = resource.partition("/")[0]
    own = (plugin for plugin in plugins if plugin.resource == resource)
    kin = (plugin for plugin in plugins if plugin.resource.partition("/")[0] == domain)
    return next(own, None) or next(kin, None)


def _offered_otherwise(
    expected: PoolExpectation, snapshot: Snapshot, driver: str, wanted: int, offered: Offer
) -> Iterator[Diagnosis]:
    """Nodes of which a driver offers another number of devices."""
    counts = {node.name: offered.on(node.name) for node in snapshot.nodes}
    plugin = next((p for p in expected.plugins if p.driver == driver), None)
    for over in (True, False):
        wrong = [
            n for n in snapshot.nodes if (c := counts[n.name]) is not None and c != wanted and (c > wanted) is over
        ]
        if wrong:
            lines = [
                f"{node.name}: devices in ResourceSlices {counts[node.name]}, expected {wanted}"
                + (f"; {offered.tainted[node.name]} more carry a taint" if node.name in offered.tainted else "")
                for node in wrong
            ]
            title = f"{driver} DRA driver"
            yield _wrong_count(expected, snapshot, f"{driver} devices", title, plugin, wrong, lines, over)


_REFUSALS = {
    403: (
        "the credentials may not list ResourceSlices",
        "give the identity that runs `pulumi up` the right to list and watch resourceslices (resource.k8s.io), or "
        "cluster administration, by an access entry",
        True,
    ),
    404: (
        "the cluster does not serve resource.k8s.io/v1",
        "it takes Kubernetes 1.34 or newer: raise plumbline:site.cluster.version, or let the pool have its devices "
        "from the device plugin (without devices: dra)",
        False,
    ),
}
"""Cause, fix, and whether waiting can cure it, by HTTP status. https://kubernetes.io/docs/reference/using-api/"""


def _not_seen(driver: str, offered: Offer, nodes: Sequence[Node]) -> Iterator[Diagnosis]:
    """Why it is not known what a driver offers of some nodes."""
    if offered.refused:
        cause, fix, heals = _REFUSALS[offered.refused]
        yield Diagnosis(
            cause=f"{cause}, so it is not known which devices the {driver} DRA driver offers",
            certainty=Certainty.CERTAIN,
            evidence=(f"HTTP {offered.refused} for /apis/resource.k8s.io/v1/resourceslices",),
            fix=fix,
            nodes=tuple(node.name for node in nodes),
            heals=heals,
        )
    partly = [node.name for node in nodes if node.name in offered.incomplete]
    if partly:
        yield Diagnosis(
            cause=f"the {driver} DRA driver has published only a part of its devices on {plural(len(partly), 'node')}",
            certainty=Certainty.CERTAIN,
            evidence=tuple(f"{name}: {offered.incomplete[name]}" for name in partly[:8]),
            fix="wait: a driver writes the slices of a pool one by one; if it stays so, read the driver's log on "
            "these nodes",
            nodes=tuple(partly),
        )


def _by_both_mechanisms(driver: str, offered: Offer, nodes: Sequence[Node]) -> Iterator[Diagnosis]:
    """https://docs.aws.amazon.com/eks/latest/userguide/device-management-efa.html : silent oversubscription."""
    known = DRIVERS.get(driver)
    if known is None:
        return
    twice = [node for node in nodes if offered.on(node.name) and (_amounts(node, known.hardware) or (1, 1))[0] > 0]
    if twice:
        yield Diagnosis(
            cause=f"{plural(len(twice), 'node')} of which the same hardware is offered by both mechanisms, "
            f"{known.hardware} and {driver}: two pods get the same device, and nothing says so",
            certainty=Certainty.CERTAIN,
            evidence=tuple(
                f"{node.name}: allocatable {known.hardware} {node.allocatable.get(known.hardware)}, "
                f"devices in ResourceSlices {offered.on(node.name)}"
                for node in twice[:8]
            ),
            fix=f"find the DaemonSet of the {known.hardware} device plugin on these nodes (kubectl get daemonsets -A) "
            "and remove it or keep it off them; ours keeps off nodes with plumbline.dev/devices=dra by itself",
            nodes=tuple(node.name for node in twice),
        )


def _wrong_count(
    expected: PoolExpectation,
    snapshot: Snapshot,
    what: str,
    title: str,
    plugin: PluginExpectation | None,
    nodes: Sequence[Node],
    lines: Sequence[str],
    over: bool,
) -> Diagnosis:
    """Nodes that have more, or less, of `what` than their machine, with a line of evidence for each."""
    evidence = list(lines[:8])
    if len(nodes) > len(evidence):
        evidence.append(f"and {len(nodes) - len(evidence)} more nodes")
    sign, said = _plugin_says(plugin, nodes, snapshot) if plugin else (None, [])
    head = f"{plural(len(nodes), 'node')} of {expected.nodes}"
    if over:
        cause = f"{head} advertise more {what} than the machine has: the plugin counts devices that are not it"
        fix = f"use a newer image of the plugin ({plugin.setting})" if plugin else "use a newer plugin"
        certainty = Certainty.LIKELY
    elif sign and plugin:
        cause = f"{head} lack {what}: the {title} {sign.cause}"
        fix = sign.fix.format(setting=plugin.setting, image=plugin.image, architecture=expected.architecture)
        certainty = sign.certainty
    else:
        cause = f"{head} advertise less {what} than the machine has, though the plugin's pod is ready"
        fix = (
            "compare the node's devices with its launch template, and read the plugin's log on it; a node with dead "
            "devices has to be replaced"
        )
        certainty = Certainty.NOT_KNOWN
    return Diagnosis(
        cause=cause,
        certainty=certainty,
        evidence=(*evidence, *said),
        fix=fix,
        nodes=tuple(node.name for node in nodes),
        heals=not over,
    )


def _plugin_says(plugin: PluginExpectation, nodes: Sequence[Node], snapshot: Snapshot) -> tuple[Sign | None, list[str]]:
    """The sign in the logs of the plugin's pods on these nodes, and the line it was read in."""
    daemon_set = snapshot.daemon_sets.get((plugin.namespace, plugin.name))
    pods = snapshot.plugin_pods(daemon_set) if daemon_set else {}
    for node in nodes:
        pod = pods.get(node.name)
        log = snapshot.logs.get(pod.full_name, "") if pod else ""
        if pod and (sign := read_signs(pod, log)):
            line = next((text.strip() for text in log.splitlines() if sign.pattern.search(text)), "")
            return sign, [f'{pod.full_name} on {node.name} says "{line}"'] if line else []
    return None, []


PHASES: Mapping[str, Phase] = {"nodes": nodes_phase, "plugins": plugins_phase, "advertised": advertised_phase}
"""The phases in their order. Devices, transport, bandwidth and storage follow; their names are kept free."""


def pods_to_read(expected: PoolExpectation, snapshot: Snapshot, results: Sequence[PhaseResult]) -> list[Pod]:
    """Plugin pods whose logs may say why: those that ended without a message, and those that serve and do not help."""
    last = results[-1]
    short: dict[str, set[str]] = defaultdict(set)
    if last.phase == "advertised":
        for resource, wanted in expected.resources.items():
            if plugin := _plugin_of(expected, resource):
                lacking = {node.name for node in snapshot.nodes if not _advertises(node, resource, wanted)}
                short[plugin.name] |= lacking
        for plugin in expected.plugins:
            if plugin.driver and plugin.driver in expected.slices:
                offered, wanted = snapshot.offers.get(plugin.driver, Offer()), expected.slices[plugin.driver]
                short[plugin.name] |= {node.name for node in snapshot.nodes if offered.on(node.name) != wanted}
    pods: list[Pod] = []
    for plugin in expected.plugins:
        daemon_set = snapshot.daemon_sets.get((plugin.namespace, plugin.name))
        for node, pod in (snapshot.plugin_pods(daemon_set) if daemon_set else {}).items():
            ended = any(c.restarts and not c.ready and not c.exit_message for c in pod.containers)
            if node in short[plugin.name] or (node in last.failing and ended):
                pods.append(pod)
    return pods
