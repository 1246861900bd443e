"""Devices that the EFA device plugin found, from its log.

https://github.com/aws/sagemaker-hyperpod-cli/pull/282
"""

import re

from plumbline.gate.verdict import Certainty, Diagnosis
from plumbline.probe.lines import Fact, lines

_DEVICE = re.compile(r".*\bdevice: ([A-Za-z0-9_.-]{1,64}),uverbs[0-9]{1,4},\S+")
_FOREIGN = "ibp"
"""Verbs devices with such a name are controllers of NVLink switches; EFA's are called `rdmap` and a PCI place."""


def parse_efa_plugin(text: str) -> tuple[Fact[str], ...]:
    """The devices that it lists, once each."""
    found: dict[str, Fact[str]] = {}
    for line in lines(text):
        if line.whole and (match := _DEVICE.fullmatch(line.text)):
            found.setdefault(match[1], Fact(match[1], line))
    return tuple(found.values())


def miscount(text: str, expected: int, node: str = "") -> Diagnosis | None:
    """What is wrong with the devices that it lists; None where they are as many as expected."""
    devices = parse_efa_plugin(text)
    if not devices or len(devices) == expected:
        return None
    foreign = [each for each in devices if each.value.startswith(_FOREIGN)]
    named = f", {len(foreign)} of them {_FOREIGN}*, which are no EFA devices" if foreign else ""
    explained = len(devices) - len(foreign) == expected
    return Diagnosis(
        cause=f"the EFA device plugin counts {len(devices)} devices where there are {expected}{named}",
        certainty=Certainty.CERTAIN if explained else Certainty.NOT_KNOWN,
        evidence=tuple(each.line.text.strip() for each in (foreign or devices)[:8]),
        fix="use a newer EFA device plugin: older ones count controllers of NVLink switches"
        if explained
        else "compare the interfaces of the instance with its launch template",
        nodes=(node,) if node else (),
        heals=False,
    )
