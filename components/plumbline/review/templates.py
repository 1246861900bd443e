"""Launch templates, and the node groups that are made from them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from plumbline.catalog import Machine, aws_catalogue
from plumbline.review.graph import Graph, Resource, at, enumerated
from plumbline.review.rule import Rule
from plumbline.review.types import LAUNCH_TEMPLATE, NODE_GROUP, PLACEMENT_GROUP
from plumbline.review.values import UNKNOWN, is_true, items, look, number, text
from plumbline.site.problems import Path, Problem, shown

_EFA_TYPES = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html"
_EFA = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html"
_EKS_TEMPLATES = "https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html"
_CAPACITY_BLOCKS = "https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html"
_RESERVATIONS = "https://www.pulumi.com/registry/packages/aws/api-docs/ec2/launchtemplate/"
_PLACEMENT = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html"

EFA_KINDS = ("efa", "efa-only")


@dataclass(frozen=True)
class _Nic:
    """One interface of a template, of which everything about its place is known."""

    index: int
    card: int
    device: int
    kind: str
    names_card: bool

    @property
    def path(self) -> Path:
        return ("networkInterfaces", self.index)


def _nics(template: Resource) -> list[_Nic] | None:
    """The interfaces of a template; None where the place of one of them is not known."""
    listed = at(template, "networkInterfaces")
    if listed is UNKNOWN:
        return None
    nics = []
    for i, each in enumerate(items(listed)):
        values = [look(each, key) for key in ("networkCardIndex", "deviceIndex", "interfaceType")]
        if UNKNOWN in values:
            return None
        card, device, kind = values
        nics.append(_Nic(i, number(card) or 0, number(device) or 0, text(kind) or "interface", card is not None))
    return nics


def _machine(template: Resource) -> tuple[str, Machine] | None:
    name = text(template.props, "instanceType")
    facts = aws_catalogue().machines.get(name or "")
    return (name, facts) if name and facts else None


def _one_primary(template: Resource, _: Graph) -> Iterator[Problem]:
    nics = _nics(template)
    if nics and not any((nic.card, nic.device) == (0, 0) for nic in nics):
        yield Problem(
            path=("networkInterfaces",),
            found=f"{len(nics)} interfaces, and none with network card 0 and device index 0",
            needed="the primary interface: network card 0, device index 0",
            next="give the first interface networkCardIndex 0 and deviceIndex 0",
        )


def _primary_carries_ip(template: Resource, _: Graph) -> Iterator[Problem]:
    for nic in _nics(template) or ():
        if (nic.card, nic.device, nic.kind) == (0, 0, "efa-only"):
            yield Problem(
                path=(*nic.path, "interfaceType"),
                found="efa-only on network card 0, device index 0, the primary interface",
                needed="a primary interface with an address: interface, or efa",
                next="make it interface, and add efa-only with device index 1 if card 0 takes EFA",
            )


def _places_differ(template: Resource, _: Graph) -> Iterator[Problem]:
    seen: dict[tuple[int, int], _Nic] = {}
    for nic in _nics(template) or ():
        first = seen.setdefault((nic.card, nic.device), nic)
        if first is not nic:
            yield Problem(
                path=(*nic.path, "deviceIndex"),
                found=f"network card {nic.card}, device index {nic.device}, as networkInterfaces[{first.index}]",
                needed="a place of its own for each interface: no pair of card and device index twice",
                next="count device indexes up on the same card, or give another card",
            )


def _device_fits_card(template: Resource, _: Graph) -> Iterator[Problem]:
    machine = _machine(template)
    if machine is None:
        return
    name, facts = machine
    for nic in _nics(template) or ():
        if nic.card >= facts.network_cards:
            yield Problem(
                path=(*nic.path, "networkCardIndex"),
                found=f"network card {nic.card}",
                needed=f"a card of {name}: 0 to {facts.network_cards - 1}",
                next="correct the card",
            )
        elif nic.device >= facts.interfaces_per_card:
            yield Problem(
                path=(*nic.path, "deviceIndex"),
                found=f"device index {nic.device} on network card {nic.card}",
                needed=f"device index 0 to {facts.interfaces_per_card - 1}: device indexes are counted on each card, "
                f"and a card of {name} has {facts.interfaces_per_card} interfaces",
                next="use device index 0 for efa-only on cards above 0, or 1 for efa; never the card's number",
            )


def _one_efa_per_card(template: Resource, _: Graph) -> Iterator[Problem]:
    seen: dict[int, _Nic] = {}
    for nic in _nics(template) or ():
        if nic.kind not in EFA_KINDS:
            continue
        first = seen.setdefault(nic.card, nic)
        if first is nic:
            continue
        missing = "" if nic.names_card else ", for no networkCardIndex is given"
        yield Problem(
            path=(*nic.path, "networkCardIndex"),
            found=f"a second EFA interface on network card {nic.card} (device index {nic.device}){missing}",
            needed="one EFA interface on a card at most",
            next="give each EFA interface a networkCardIndex of its own; the device index is counted on its card",
        )


def _card_takes_efa(template: Resource, _: Graph) -> Iterator[Problem]:
    machine = _machine(template)
    if machine is None:
        return
    name, facts = machine
    efa = [nic for nic in _nics(template) or () if nic.kind in EFA_KINDS]
    for nic in efa:
        if nic.card in facts.cards_without_efa:
            yield Problem(
                path=(*nic.path, "interfaceType"),
                found=f"{nic.kind} on card {nic.card}; {len(efa)} EFA interfaces in all",
                needed=f"interface: card {nic.card} has no EFA on {name}, whose EFA interfaces are "
                f"{facts.efa_interfaces}, not {facts.network_cards}",
                next=f"make it interface, and put efa-only, device index 0, on the other {facts.efa_interfaces} cards",
            )


def _public_address(template: Resource, _: Graph) -> Iterator[Problem]:
    count = len(items(template.props, "networkInterfaces"))
    if count < 2:
        return
    for i, nic in enumerated(template, "networkInterfaces"):
        if is_true(nic, "associatePublicIpAddress"):
            yield Problem(
                path=("networkInterfaces", i, "associatePublicIpAddress"),
                found=f"associatePublicIpAddress in a template of {count} interfaces",
                needed="no public address: an instance that starts with several interfaces cannot have one",
                next="remove associatePublicIpAddress; private subnets reach out through a NAT gateway",
            )


def _groups_in_one_place(template: Resource, _: Graph) -> Iterator[Problem]:
    if not items(template.props, "networkInterfaces"):
        return
    for key in ("vpcSecurityGroupIds", "securityGroupNames"):
        if items(template.props, key):
            yield Problem(
                path=(key,),
                found="security groups in two places: beside networkInterfaces, and in them or in none of them",
                needed="security groups in each interface only, once there are interfaces",
                next=f"move {key} to securityGroups of every interface",
            )


def _capacity_target(template: Resource, _: Graph) -> Iterator[Problem]:
    specification = at(template, "capacityReservationSpecification")
    target = look(specification, "capacityReservationTarget")
    market = text(template.props, "instanceMarketOptions", "marketType")
    if UNKNOWN in (specification, target):
        return
    names = [look(target, key) for key in ("capacityReservationId", "capacityReservationResourceGroupArn")]
    path: Path = ("capacityReservationSpecification", "capacityReservationTarget")
    if not any(names):  # UNKNOWN is something
        if target is not None:
            yield Problem(
                path=path,
                found="an empty CapacityReservationTarget",
                needed="the reservation's id, or the ARN of a resource group",
                next="set capacityReservationId, or remove the target",
            )
        elif market == "capacity-block":
            yield Problem(
                path=path,
                found="market type capacity-block and no target, which is as an empty CapacityReservationTarget",
                needed="the capacity block's id",
                next="set capacityReservationTarget.capacityReservationId",
            )
        return
    preference = text(specification, "capacityReservationPreference")
    if preference not in (None, "capacity-reservations-only"):
        yield Problem(
            path=("capacityReservationSpecification", "capacityReservationPreference"),
            found=f"{shown(preference)} beside a target",
            needed="capacity-reservations-only, or nothing: the others are for templates without a target",
            next="set capacity-reservations-only, so that no instance is launched on demand",
        )


def _capacity_block(template: Resource, _: Graph) -> Iterator[Problem]:
    if text(template.props, "instanceMarketOptions", "marketType") != "capacity-block":
        return
    if at(template, "instanceType") is None:
        yield Problem(
            path=("instanceType",),
            found="nothing",
            needed="the capacity block's instance type, which its template has to name",
            next="set instanceType here, and no instanceTypes on the node group",
        )
    if text(template.props, "placement", "groupName") or text(template.props, "placement", "groupId"):
        yield Problem(
            path=("placement",),
            found="a placement group beside market type capacity-block",
            needed="no placement group: a block is placed already, and gives no capacity to another group",
            next="remove placement",
        )


def templates_of(group: Resource, graph: Graph) -> tuple[Resource, ...]:
    """The launch template of a node group, if it is in the stack: by its id, or by its name."""
    by_name = text(group.props, "launchTemplate", "name")
    if by_name:
        return tuple(each for each in graph.of(LAUNCH_TEMPLATE) if text(each.props, "name") == by_name)
    return graph.pointers(group, ("launchTemplate", "id"), LAUNCH_TEMPLATE).resources


_NOT_IN_NODE_GROUPS = {
    ("iamInstanceProfile",): "set the node group's nodeRoleArn instead",
    ("instanceInitiatedShutdownBehavior",): "remove it: EKS ends instances itself",
    ("hibernationOptions",): "remove it",
}


def _node_group_template(group: Resource, graph: Graph) -> Iterator[Problem]:
    for template in templates_of(group, graph):
        where = f"launch template {template.name}"
        for i, nic in enumerated(template, "networkInterfaces"):
            if look(nic, "subnetId") is not None:
                yield Problem(
                    path=("launchTemplate",),
                    found=f"{where} has a subnetId in interface {i} (networkInterfaces[{i}].subnetId)",
                    needed="no subnet in the template: EKS gives instances the node group's subnets",
                    next="remove subnetId from the interfaces; subnetIds of the node group says where",
                )
        for path, advice in _NOT_IN_NODE_GROUPS.items():
            if at(template, *path) is not None:
                yield Problem(
                    path=("launchTemplate",),
                    found=f"{where} has {path[0]}",
                    needed=f"a template without {path[0]}: EKS refuses it for node groups",
                    next=advice,
                )
        if items(group.props, "instanceTypes") and at(template, "instanceType") is not None:
            yield Problem(
                path=("instanceTypes",),
                found=f"instance types here, and instanceType in {where}",
                needed="the instance type in one place",
                next="remove instanceTypes; the template's interfaces are made for its own type",
            )


def _capacity_type(group: Resource, graph: Graph) -> Iterator[Problem]:
    capacity = at(group, "capacityType")
    if capacity is UNKNOWN:
        return
    for template in templates_of(group, graph):
        market = at(template, "instanceMarketOptions", "marketType")
        if market is UNKNOWN:
            continue
        if (capacity == "CAPACITY_BLOCK") != (market == "capacity-block"):
            yield Problem(
                path=("capacityType",),
                found=f"{shown(capacity) if capacity else 'nothing'}, and market type "
                f"{shown(market) if market else 'nothing'} in launch template {template.name}",
                needed="CAPACITY_BLOCK and market type capacity-block together, or neither",
                next="correct the one that is wrong",
            )


def _template_version(group: Resource, _: Graph) -> Iterator[Problem]:
    version = text(group.props, "launchTemplate", "version")
    if version in ("$Latest", "$Default"):
        yield Problem(
            path=("launchTemplate", "version"),
            found=shown(version),
            needed="a number: EKS resolves the word once, so it differs from what is recorded ever after",
            next="use the template's latestVersion, as text",
        )


def _one_zone(group: Resource, graph: Graph) -> Iterator[Problem]:
    """Whether a group that is bound to one zone, by its placement group or by EFA, has its subnets in one."""
    zones = graph.zones(group, "subnetIds")
    if zones is None or len(zones) < 2:
        return
    for template in templates_of(group, graph):
        by = None
        placements = graph.pointers(template, ("placement", "groupName"), PLACEMENT_GROUP).resources
        if any(text(each.props, "strategy") == "cluster" for each in placements):
            by = f"the cluster placement group {placements[0].name}"
        elif any(nic.kind in EFA_KINDS for nic in _nics(template) or ()):
            by = "EFA"
        if by:
            yield Problem(
                path=("subnetIds",),
                found=f"subnets in {_count(len(zones))} zones, {', '.join(sorted(zones))}, with {by}",
                needed=f"one zone: {by} does not reach across zones, even if a first launch happens to work",
                next="give the node group the subnet of the zone that has the capacity",
            )


def _count(number_: int) -> str:
    words = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
    return words.get(number_, str(number_))


def efa_indexes(template: Resource) -> list[int]:
    """Places of a template's EFA interfaces, as far as their kind is known."""
    return [i for i, nic in enumerated(template, "networkInterfaces") if text(nic, "interfaceType") in EFA_KINDS]


def _same_groups(template: Resource, _: Graph) -> Iterator[Problem]:
    """EFA interfaces with different groups talk to some of each other only."""
    sets: Counter[tuple[str, ...]] = Counter()
    for i in efa_indexes(template):
        groups = at(template, "networkInterfaces", i, "securityGroups")
        if groups is UNKNOWN or UNKNOWN in items(groups):
            return
        sets[tuple(sorted(str(each) for each in items(groups)))] += 1
    if len(sets) > 1:
        named = "; ".join(", ".join(each) or "none" for each in sets)
        yield Problem(
            path=("networkInterfaces",),
            found=f"EFA interfaces with different security groups: {named}",
            needed="the same security groups on every EFA interface",
            next="give each interface all the groups",
        )


RULES = (
    Rule(id="one-primary-interface", types=(LAUNCH_TEMPLATE,), judge=_one_primary, source=_EFA_TYPES),
    Rule(id="primary-interface-carries-ip", types=(LAUNCH_TEMPLATE,), judge=_primary_carries_ip, source=_EFA),
    Rule(id="interface-places-differ", types=(LAUNCH_TEMPLATE,), judge=_places_differ, source=_EFA_TYPES),
    Rule(id="device-index-fits-card", types=(LAUNCH_TEMPLATE,), judge=_device_fits_card, source=_EFA_TYPES),
    Rule(id="one-efa-per-card", types=(LAUNCH_TEMPLATE,), judge=_one_efa_per_card, source=_EFA_TYPES),
    Rule(id="card-takes-efa", types=(LAUNCH_TEMPLATE,), judge=_card_takes_efa, source=_EFA_TYPES),
    Rule(
        id="efa-interfaces-share-groups",
        types=(LAUNCH_TEMPLATE,),
        judge=_same_groups,
        source=_EFA,
        # That a node's interfaces have to agree is inferred from the rule about one group.
        confirmed=False,
    ),
    Rule(
        id="public-address-needs-one-interface",
        types=(LAUNCH_TEMPLATE,),
        judge=_public_address,
        source="https://github.com/aws/karpenter-provider-aws/pull/5666",
    ),
    Rule(
        id="security-groups-in-one-place", types=(LAUNCH_TEMPLATE,), judge=_groups_in_one_place, source=_EKS_TEMPLATES
    ),
    Rule(id="reservation-target-named", types=(LAUNCH_TEMPLATE,), judge=_capacity_target, source=_RESERVATIONS),
    Rule(id="capacity-block-template", types=(LAUNCH_TEMPLATE,), judge=_capacity_block, source=_CAPACITY_BLOCKS),
    Rule(
        id="node-group-template", types=(NODE_GROUP,), judge=_node_group_template, source=_EKS_TEMPLATES, relates=True
    ),
    Rule(
        id="capacity-type-fits-template",
        types=(NODE_GROUP,),
        judge=_capacity_type,
        source=_CAPACITY_BLOCKS,
        relates=True,
    ),
    Rule(
        id="template-version-is-a-number",
        types=(NODE_GROUP,),
        judge=_template_version,
        source="https://github.com/pulumi/pulumi-eks/issues/633",
        confirmed=False,
    ),
    Rule(id="node-group-in-one-zone", types=(NODE_GROUP,), judge=_one_zone, source=_PLACEMENT, relates=True),
)
