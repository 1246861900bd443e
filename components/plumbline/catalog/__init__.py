"""Facts of clouds and machines, as data: counts, limits and defaults, each with the address it comes from."""

from plumbline.catalog.aws import AwsCatalogue, EksFacts, Machine, PluginFacts, aws_catalogue, nearest

__all__ = ["AwsCatalogue", "EksFacts", "Machine", "PluginFacts", "aws_catalogue", "nearest"]
