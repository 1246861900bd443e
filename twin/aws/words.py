"""Words that AWS's own service models allow: nobody here wrote them.

The provider checks them before AWS is asked, as the real one does, and says it in the same words.
"""

import gzip
import importlib.util
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from twin.aws.wire import UNKNOWN

_EKS, _EC2 = "eks/2017-11-01", "ec2/2016-11-15"
_ENUMERATED: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "aws:eks/nodeGroup:NodeGroup": {
        "amiType": (_EKS, "AMITypes"),
        "capacityType": (_EKS, "CapacityTypes"),
        "taints[].effect": (_EKS, "TaintEffect"),
    },
    "aws:eks/cluster:Cluster": {"accessConfig.authenticationMode": (_EKS, "AuthenticationMode")},
    "aws:ec2/launchTemplate:LaunchTemplate": {
        "capacityReservationSpecification.capacityReservationPreference": (_EC2, "CapacityReservationPreference"),
        "instanceMarketOptions.marketType": (_EC2, "MarketType"),
    },
    "aws:ec2/placementGroup:PlacementGroup": {"strategy": (_EC2, "PlacementStrategy")},
    "aws:ec2/capacityReservation:CapacityReservation": {
        "instancePlatform": (_EC2, "CapacityReservationInstancePlatform"),
        "instanceMatchCriteria": (_EC2, "InstanceMatchCriteria"),
    },
}
"""Service model and shape of an input, by its path, by kind. `[]` stands for each element of a list."""


def wrong_words(token: str, inputs: Mapping[str, Any]) -> dict[str, str]:
    """What a kind's inputs say that AWS has no such word for: the reason by property path."""
    found = {}
    for path, shape in _ENUMERATED.get(token, {}).items():
        for place, value in _values(inputs, path.split("."), ""):
            if value not in (None, "", UNKNOWN) and value not in _allowed(*shape):
                allowed = " ".join(f'"{each}"' for each in _allowed(*shape))
                found[place] = f"expected {place} to be one of [{allowed}], got {value}"
    return found


def _values(value: Any, path: list[str], place: str) -> Iterator[tuple[str, Any]]:
    """Every value at a path, with the place where it is."""
    if not path:
        yield place, value
    elif isinstance(value, Mapping):
        name, each = path[0].removesuffix("[]"), path[0].endswith("[]")
        inner, there = value.get(name), f"{place}.{name}" if place else name
        if not each:
            yield from _values(inner, path[1:], there)
        elif isinstance(inner, list):
            for index, element in enumerate(inner):
                yield from _values(element, path[1:], f"{there}[{index}]")


def _allowed(service: str, shape: str) -> tuple[str, ...]:
    return tuple(_shapes(service)[shape]["enum"])


@cache
def _shapes(service: str) -> Mapping[str, Any]:
    """Botocore's copy of a service model; botocore itself, which is slow to import, is not needed for it."""
    spec = importlib.util.find_spec("botocore")
    assert spec
    assert spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0]) / "data" / service / "service-2.json.gz"
    shapes: Mapping[str, Any] = json.loads(gzip.decompress(file.read_bytes()))["shapes"]
    return shapes
