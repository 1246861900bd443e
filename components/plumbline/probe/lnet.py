"""What Lustre's client says of its network: `lnetctl net show`, and `lctl get_param osc.*.import` and its like.

https://doc.lustre.org/lustre_manual.xhtml, "LNet Configuration" and "Managing LNet". Both print YAML.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from plumbline.probe.documents import LARGEST
from plumbline.probe.lines import Fact, Line

_HEAD = re.compile(r"((?:osc|mdc|mgc)\.[^\s=]{1,200}\.import)=\s*")


@dataclass(frozen=True, kw_only=True)
class Interface:
    """A network identifier of this client."""

    line: Line
    network: str
    """Such as `efa`, `tcp` or `tcp1`."""
    nid: str
    status: str
    devices: tuple[str, ...]
    """Devices that carry it."""


@dataclass(frozen=True, kw_only=True)
class Import:
    """A target (an OST or MDT) as this client reaches it."""

    line: Line
    name: str
    """The parameter, such as `osc.train-OST0000-osc-ffff8881.import`."""
    target: str
    state: str
    """`FULL` where it is connected."""
    connection: str
    """The server's network identifier in use, such as `10.0.0.5@efa`."""

    @property
    def network(self) -> str:
        """The LNet network that reaches it."""
        return self.connection.rpartition("@")[2]


def parse_lnet(text: str) -> tuple[Interface, ...]:
    """The interfaces in what `lnetctl net show` prints; nothing where it is cut so that it is no YAML."""
    document = _compose(text)
    found: list[Interface] = []
    for net in _items(_value(document, "net")):
        kind = _text(_value(net, "net type"))
        for each in _items(_value(net, "local NI(s)")):
            nid, status = (_text(_value(each, key)) for key in ("nid", "status"))
            if kind and nid and status:
                found.append(
                    Interface(
                        line=_line(text, each),
                        network=kind.value,
                        nid=nid.value,
                        status=status.value,
                        devices=tuple(device.value for device in _texts(_value(each, "interfaces"))),
                    )
                )
    return tuple(found)


def parse_imports(text: str) -> tuple[Import, ...]:
    """The targets in what `lctl get_param` prints, one block of YAML for each."""
    found: list[Import] = []
    for start, name, body in _blocks(text):
        block = _value(_compose(body), "import")
        target, state = (_text(_value(block, key)) for key in ("target", "state"))
        connection = _text(_value(_value(block, "connection"), "current_connection"))
        if target and state and connection:
            found.append(
                Import(
                    line=Line(start, name),
                    name=name,
                    target=target.value,
                    state=state.value,
                    connection=connection.value,
                )
            )
    return tuple(found)


def _blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """Each parameter of the form `name=`: the number of its line, its name, and the lines up to the next one."""
    rows = text.splitlines(keepends=True)
    heads = [(number, m[1]) for number, row in enumerate(rows) if (m := _HEAD.fullmatch(row))]
    for (start, name), end in zip(heads, [number for number, _ in [*heads[1:], (len(rows), "")]], strict=False):
        yield start + 1, name, "".join(rows[start + 1 : end])


def _compose(text: str) -> yaml.Node | None:
    # Nodes, not objects: nothing is built, aliases stay references, and a node knows its line.
    complete = text[: text.rfind("\n") + 1]  # the rest may be cut
    if len(complete) > LARGEST:
        return None
    try:
        node: yaml.Node | None = yaml.compose(complete, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return node


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if isinstance(name, yaml.ScalarNode) and name.value == key), None)


def _items(node: yaml.Node | None) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value


def _text(node: yaml.Node | None) -> Fact[str] | None:
    if isinstance(node, yaml.ScalarNode) and node.value:
        return Fact(node.value, Line(node.start_mark.line + 1, node.value))
    return None


def _texts(node: yaml.Node | None) -> Iterator[Fact[str]]:
    if isinstance(node, yaml.MappingNode):
        for _, value in node.value:
            if found := _text(value):
                yield found


def _line(text: str, node: yaml.Node) -> Line:
    number = node.start_mark.line + 1
    return Line(number, text.splitlines()[number - 1])
