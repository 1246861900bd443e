"""Facts of clouds and machines, as data: counts, limits and defaults, each with the address it comes from."""

from plumbline.catalog.aws import (
    Accelerator,
    AddonFacts,
    AwsCatalogue,
    CapacityKind,
    EksFacts,
    Machine,
    PluginFacts,
    RegistryFacts,
    aws_catalogue,
    nearest,
)
from plumbline.catalog.fsx import FsxCatalogue, fsx_catalogue

__all__ = [
    "Accelerator",
    "AddonFacts",
    "AwsCatalogue",
    "CapacityKind",
    "EksFacts",
    "FsxCatalogue",
    "Machine",
    "PluginFacts",
    "RegistryFacts",
    "aws_catalogue",
    "fsx_catalogue",
    "nearest",
]
