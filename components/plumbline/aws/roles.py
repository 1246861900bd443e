"""IAM roles that AWS's services take."""

import json
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws


def partition(region: str) -> str:
    """The partition of AWS that a region is in: the second part of every ARN there."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def service_role(
    name: str,
    service: str,
    policies: Sequence[str],
    region: str,
    tags: Mapping[str, str],
    parent: pulumi.Resource,
) -> tuple[aws.iam.Role, list[aws.iam.RolePolicyAttachment]]:
    """A role for a service, with AWS's managed policies for it.

    Args:
        name: of the role and, with the policy's name, of each attachment.
        service: `ec2`, `eks`, or `pods.eks` for pods by pod identity, whose agent also tags the session.
        policies: names of managed policies.
        region: whose partition the policies are in.
        tags: of the role.
        parent: of all of them.
    """
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": f"{service}.amazonaws.com"},
                "Action": ["sts:AssumeRole", "sts:TagSession"] if service == "pods.eks" else ["sts:AssumeRole"],
            }
        ],
    }
    child = pulumi.ResourceOptions(parent=parent)
    role = aws.iam.Role(name, assume_role_policy=json.dumps(trust), tags=dict(tags), opts=child)
    attached = [
        aws.iam.RolePolicyAttachment(
            f"{name}-{policy}",
            role=role.name,
            policy_arn=f"arn:{partition(region)}:iam::aws:policy/{policy}",
            opts=child,
        )
        for policy in policies
    ]
    return role, attached
