"""A site on AWS: VPC, EKS, and one managed node group for each generation of a pool."""

from plumbline.aws.site import AwsSite

__all__ = ["AwsSite"]
