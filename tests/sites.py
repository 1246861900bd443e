"""Declarations that tests start from."""

import copy
from typing import Any

GOOD: dict[str, Any] = {
    "name": "train",
    "cloud": "aws",
    "region": "us-west-2",
    "network": {"cidr": "10.20.0.0/16", "zones": ["us-west-2a"]},
    "cluster": {"version": "1.34"},
    "pools": [
        {
            "name": "h100",
            "machine": "p5.48xlarge",
            "nodes": 2,
            "capacity": {"kind": "reservation", "id": "cr-0a1b2c3d4e5f60718", "zone": "us-west-2b"},
            "fabric": "efa",
        }
    ],
    "proof": {"within": "60s", "stable": "4s"},
}


def declare(**changes: Any) -> dict[str, Any]:
    """The good declaration with top-level fields changed."""
    return {**copy.deepcopy(GOOD), **changes}


def declare_pool(**changes: Any) -> dict[str, Any]:
    """The good declaration with fields of its pool changed."""
    site = copy.deepcopy(GOOD)
    site["pools"][0].update(changes)
    return site
