"""Security groups: what EFA needs among nodes, and what Lustre needs between nodes and servers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from plumbline.catalog import aws_catalogue, fsx_catalogue
from plumbline.review.finding import Finding
from plumbline.review.graph import Graph, Pointers, Resource, at
from plumbline.review.rule import Rule
from plumbline.review.templates import efa_indexes
from plumbline.review.types import EGRESS_RULE, INGRESS_RULE, LAUNCH_TEMPLATE, LUSTRE, OLD_RULE, SECURITY_GROUP
from plumbline.review.values import UNKNOWN, is_true, items, look, number, text
from plumbline.site.problems import Path, Problem

_EFA = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html#efa-start-security"
_FSX = fsx_catalogue()
_FSX_SOURCE = _FSX.address(_FSX.network, "ports")

_SELF = "itself"
Direction = Literal["ingress", "egress"]


@dataclass(frozen=True, kw_only=True)
class Permission:
    """What one rule of a group allows."""

    direction: Direction
    protocol: str
    """`-1` for all traffic."""
    first: int | None = None
    last: int | None = None
    """Ports; None for all."""
    peers: frozenset[str] = frozenset()
    """Groups it is for: ids, labels of resources, or `itself`."""
    addresses: bool = False
    """Whether it is for ranges of addresses as well, of which nobody asks here who has one."""

    def allows(self, peer: str, protocol: str, first: int, last: int) -> bool:
        """Whether it lets the ports through to or from the peer, as a reference or by address."""
        if not (self.addresses or peer in self.peers):
            return False
        if self.protocol == "-1":
            return True
        if self.protocol not in (protocol, {"tcp": "6"}.get(protocol)):
            return False
        return self.first is None or self.last is None or (self.first <= first and last <= self.last)

    def allows_all(self, peer: str) -> bool:
        """Whether it lets all traffic through to or from the peer, named as a reference: addresses do not count."""
        return self.protocol == "-1" and peer in self.peers


@dataclass(frozen=True, kw_only=True)
class Permissions:
    """All that a group's rules allow."""

    rules: tuple[Permission, ...]
    open: bool = False
    """Whether there may be more, which nobody can tell yet."""

    def words(self, direction: Direction) -> str:
        """The rules of one direction, for people."""
        said = [
            " ".join(
                [
                    f"protocol {rule.protocol}",
                    *([f"ports {rule.first}-{rule.last}"] if rule.protocol != "-1" and rule.first is not None else []),
                    "for",
                    " and ".join([*sorted(rule.peers), *(["addresses"] if rule.addresses else [])]) or "nobody",
                ]
            )
            for rule in self.rules
            if rule.direction == direction
        ]
        return "; ".join(said) or "none"


def permissions(group: Resource, graph: Graph) -> Permissions:
    """What the group's inline rules and its rule resources allow, as far as it is known."""
    rules: list[Permission] = []
    unsure = False
    directions: tuple[Direction, ...] = ("ingress", "egress")
    for direction in directions:
        inline = at(group, direction)
        unsure |= inline is UNKNOWN
        for i, each in enumerate(items(inline)):
            pointers = graph.pointers(group, (direction, i, "securityGroups"), SECURITY_GROUP)
            peers = _peers(pointers, group) | ({_SELF} if is_true(each, "self") else set())
            unsure |= each is UNKNOWN or UNKNOWN in (look(each, "protocol"), look(each, "self")) or pointers.open
            rules.append(_permission(direction, each, "protocol", peers))
    for resource in graph.of(INGRESS_RULE, EGRESS_RULE, OLD_RULE):
        owner = graph.pointers(resource, ("securityGroupId",), SECURITY_GROUP)
        if group not in owner.resources:
            unsure |= owner.open
            continue
        old = resource.type == OLD_RULE
        found = at(resource, "type") if old else ("ingress" if resource.type == INGRESS_RULE else "egress")
        if found not in directions:
            unsure = True
            continue
        peer_key = "sourceSecurityGroupId" if old else "referencedSecurityGroupId"
        protocol_key = "protocol" if old else "ipProtocol"
        pointers = graph.pointers(resource, (peer_key,), SECURITY_GROUP)
        peers = _peers(pointers, group) | ({_SELF} if is_true(resource.props, "self") else set())
        unsure |= pointers.open or at(resource, protocol_key) is UNKNOWN
        rules.append(_permission(found, resource.props, protocol_key, peers))
    return Permissions(rules=tuple(rules), open=unsure)


def _peers(pointers: Pointers, group: Resource) -> set[str]:
    return {_SELF if key in (group.label, group.id) else key for key in pointers.keys}


_ADDRESSES = ("cidrBlocks", "ipv6CidrBlocks", "prefixListIds", "cidrIpv4", "cidrIpv6", "prefixListId")


def _permission(direction: Direction, rule: Any, protocol_key: str, peers: set[str]) -> Permission:
    protocol = text(rule, protocol_key) or "unknown"
    return Permission(
        direction=direction,
        protocol="-1" if protocol in ("-1", "all") else protocol,
        first=number(rule, "fromPort"),
        last=number(rule, "toPort"),
        peers=frozenset(peers),
        addresses=any(look(rule, key) not in (None, [], "") for key in _ADDRESSES),
    )


def described(group: Mapping[str, Any]) -> Permissions:
    """What a group allows, from EC2's DescribeSecurityGroups."""
    listed: tuple[tuple[Direction, str], ...] = (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress"))
    return Permissions(
        rules=tuple(
            Permission(
                direction=direction,
                protocol=str(rule["IpProtocol"]),
                first=rule.get("FromPort"),
                last=rule.get("ToPort"),
                peers=frozenset(
                    _SELF if pair.get("GroupId") == group["GroupId"] else str(pair.get("GroupId"))
                    for pair in rule.get("UserIdGroupPairs", ())
                ),
                addresses=any(rule.get(key) for key in ("IpRanges", "Ipv6Ranges", "PrefixListIds")),
            )
            for direction, key in listed
            for rule in group.get(key, ())
        )
    )


def _self_traffic(path: Path, name: str, allowed: Permissions) -> Iterator[Problem]:
    """What a group lacks of all traffic from and to itself."""
    directions: tuple[Direction, ...] = ("ingress", "egress")
    for direction in directions:
        if any(rule.direction == direction and rule.allows_all(_SELF) for rule in allowed.rules):
            continue
        yield Problem(
            path=path,
            found=f"security group {name} has no self {direction} of all traffic; its {direction} rules: "
            f"{allowed.words(direction)}",
            needed="self ingress and self egress: rules of protocol -1 whose peer is the group itself; EFA traffic is "
            "no IP traffic, and rules by address, 0.0.0.0/0 too, do not match it",
            next=f"add an {direction} rule of protocol -1 that references the group itself",
        )


def _efa_groups(template: Resource, graph: Graph) -> Iterator[Problem]:
    """Whether one group on the EFA interfaces lets all traffic in from itself, and one lets it out to itself."""
    for i in efa_indexes(template)[:1]:  # that all have the same groups is another rule's
        path = ("networkInterfaces", i, "securityGroups")
        pointers = graph.pointers(template, path, SECURITY_GROUP)
        each_allowed = {group: permissions(group, graph) for group in pointers.resources}
        if pointers.open or pointers.foreign or any(allowed.open for allowed in each_allowed.values()):
            # A group that cannot be seen may allow it; what can be seen is enough only to say that it holds.
            return
        if not each_allowed:
            return
        everything = Permissions(rules=tuple(rule for allowed in each_allowed.values() for rule in allowed.rules))
        yield from _self_traffic(path, " and ".join(group.name for group in each_allowed), everything)


def _lustre_groups(file_system: Resource, graph: Graph) -> Iterator[Problem]:
    """Whether the file system's groups let Lustre through among its servers, and from nodes' groups and to them."""
    servers = graph.pointers(file_system, ("securityGroupIds",), SECURITY_GROUP)
    each_allowed = [permissions(group, graph) for group in servers.resources]
    if servers.open or servers.foreign or not each_allowed or any(allowed.open for allowed in each_allowed):
        return
    rules = [rule for allowed in each_allowed for rule in allowed.rules]
    name = " and ".join(group.name for group in servers.resources)
    # A node has all the groups of its interface, so it is enough that one of them is let in.
    peers: dict[frozenset[str], str] = {frozenset({_SELF}): "itself (self), its servers among themselves"}
    for template in graph.of(LAUNCH_TEMPLATE):
        if not efa_indexes(template) and text(template.props, "instanceType") not in aws_catalogue().machines:
            continue
        nodes = graph.pointers(template, ("networkInterfaces", 0, "securityGroups"), SECURITY_GROUP)
        if nodes.keys and not nodes.keys & servers.keys:
            peers[frozenset(nodes.keys)] = f"{' or '.join(sorted(nodes.keys))}, the nodes of {template.name}"
    over_efa = is_true(file_system.props, "efaEnabled")
    protocol = _FSX.network.protocol
    ports = " and ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in _FSX.network.ports)
    directions: tuple[tuple[Direction, str], ...] = (("ingress", "from"), ("egress", "to"))
    for direction, word in directions:
        ours = [rule for rule in rules if rule.direction == direction]
        for groups, words in peers.items():
            if over_efa:
                fine = any(rule.allows_all(peer) for rule in ours for peer in groups)
            else:
                fine = all(
                    any(rule.allows(peer, protocol, first, last) for rule in ours for peer in groups)
                    for first, last in _FSX.network.ports
                )
            if not fine:
                yield Problem(
                    path=("securityGroupIds",),
                    found=f"security group {name} does not allow Lustre {word} {words}; its {direction} rules: "
                    f"{Permissions(rules=tuple(ours)).words(direction)}",
                    needed=(
                        f"all traffic {word} it, protocol -1, by a reference: EFA is not matched by address"
                        if over_efa
                        else f"{protocol} {ports} {word} it, in both directions"
                    ),
                    next=f"add {direction} rules for {words}",
                )


_EFA_RULE = Rule(id="efa-group-allows-itself", types=(LAUNCH_TEMPLATE,), judge=_efa_groups, source=_EFA, relates=True)


def review_described_group(group: Mapping[str, Any]) -> Sequence[Finding]:
    """What a group that exists lacks for EFA, from EC2's DescribeSecurityGroups."""
    return [_EFA_RULE.finding(problem) for problem in _self_traffic((), str(group["GroupId"]), described(group))]


RULES = (
    _EFA_RULE,
    Rule(id="lustre-ports-open", types=(LUSTRE,), judge=_lustre_groups, source=_FSX_SOURCE, relates=True),
)
