"""The one declaration: a typed site, and every error in it at once."""

from plumbline.site.model import (
    Capacity,
    Cluster,
    Network,
    OnDemand,
    Plugin,
    Plugins,
    Pool,
    Proof,
    Reservation,
    Site,
)
from plumbline.site.problems import Problem, SiteError
from plumbline.site.read import read_site

__all__ = [
    "Capacity",
    "Cluster",
    "Network",
    "OnDemand",
    "Plugin",
    "Plugins",
    "Pool",
    "Problem",
    "Proof",
    "Reservation",
    "Site",
    "SiteError",
    "read_site",
]
