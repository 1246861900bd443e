"""The EKS cluster, its roles, and the kubeconfig that finds it."""

import json

import pulumi
import pulumi_aws as aws

from plumbline.aws.network import AwsNetwork
from plumbline.plan import SitePlan

_CLUSTER_POLICIES = ("AmazonEKSClusterPolicy",)
_NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonEKS_CNI_Policy")


def kubeconfig(name: str, region: str, endpoint: str, certificate_authority: str) -> str:
    """A kubeconfig (JSON) with exec credentials by name: a gate may outlive a token, which lasts 15 minutes.

    Args:
        name: the cluster's name.
        region: its region.
        endpoint: address of its API server.
        certificate_authority: base64 of the PEM, as EKS gives it.
    """
    arguments = ["eks", "get-token", "--cluster-name", name, "--region", region, "--output", "json"]
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "aws",
            "args": arguments,
            "interactiveMode": "Never",
        }
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": name, "cluster": {"server": endpoint, "certificate-authority-data": certificate_authority}}
            ],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
    )


class AwsCluster(pulumi.ComponentResource):
    """An EKS cluster whose creator is its administrator."""

    cluster: aws.eks.Cluster
    node_role: aws.iam.Role
    node_policies: list[aws.iam.RolePolicyAttachment]
    """A node group needs them for as long as it exists, to be deleted as well."""
    kubeconfig: pulumi.Output[str]
    """A secret."""

    def __init__(
        self, name: str, plan: SitePlan, network: AwsNetwork, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("plumbline:index:AwsCluster", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        tags = {"plumbline.dev/site": plan.name}
        role, policies = self._role(f"{name}-cluster", "eks.amazonaws.com", _CLUSTER_POLICIES, tags)
        self.node_role, self.node_policies = self._role(f"{name}-node", "ec2.amazonaws.com", _NODE_POLICIES, tags)
        self.cluster = aws.eks.Cluster(
            f"{name}-cluster",
            name=plan.name,
            version=plan.kubernetes_version,
            role_arn=role.arn,
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=[network.private[subnet.zone].id for subnet in plan.subnets],
                endpoint_private_access=True,
                endpoint_public_access=True,
            ),
            access_config=aws.eks.ClusterAccessConfigArgs(
                authentication_mode="API", bootstrap_cluster_creator_admin_permissions=True
            ),
            tags=tags,
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[*policies, *network.ready])),
        )
        text = pulumi.Output.all(self.cluster.endpoint, self.cluster.certificate_authority.data).apply(
            lambda parts: kubeconfig(plan.name, plan.region, parts[0], parts[1])
        )
        self.kubeconfig = pulumi.Output.secret(text)
        self.register_outputs({"endpoint": self.cluster.endpoint})

    def _role(
        self, name: str, service: str, policies: tuple[str, ...], tags: dict[str, str]
    ) -> tuple[aws.iam.Role, list[aws.iam.RolePolicyAttachment]]:
        """A role that a service takes, with AWS's managed policies for it."""
        child = pulumi.ResourceOptions(parent=self)
        trust = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": service},
                    "Action": ["sts:AssumeRole"],
                }
            ],
        }
        role = aws.iam.Role(name, assume_role_policy=json.dumps(trust), tags=tags, opts=child)
        attachments = [
            aws.iam.RolePolicyAttachment(
                f"{name}-{policy}", role=role.name, policy_arn=f"arn:aws:iam::aws:policy/{policy}", opts=child
            )
            for policy in policies
        ]
        return role, attachments
