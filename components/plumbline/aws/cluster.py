"""The EKS cluster, its roles, and the kubeconfig that finds it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from plumbline.aws.kubeconfig import kubeconfig
from plumbline.aws.network import AwsNetwork
from plumbline.aws.roles import partition, service_role
from plumbline.plan import SitePlan
from plumbline.site.rules import POD_ADDRESSES, WARM_ADDRESSES

_NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")
_CNI_POLICY = "AmazonEKS_CNI_Policy"


@dataclass(frozen=True)
class ClusterAccess:
    """What nodes and tools need of a cluster, whoever built it."""

    name: pulumi.Input[str]
    endpoint: pulumi.Output[str]
    certificate_authority: pulumi.Output[str]
    """Base64 of the PEM."""
    security_group: pulumi.Output[str]
    """The group that EKS made for it: nodes reach the API server by it."""
    service_cidr: pulumi.Output[str]
    """Range of its services' addresses."""


class AwsCluster(pulumi.ComponentResource):
    """An EKS cluster: built here, with its creator as its administrator, or adopted and left as it is."""

    name: pulumi.Output[str]
    access: ClusterAccess
    node_role: aws.iam.Role
    node_policies: list[pulumi.Resource]
    """A node group needs them for as long as it exists, to be deleted as well."""
    control_plane: list[pulumi.Resource]
    """What has to exist before its API answers; empty for a cluster that exists."""
    ready: list[pulumi.Resource]
    """What has to exist before a node joins: the cluster, and the add-ons that run on every node."""
    kubeconfig: pulumi.Output[str]
    """A secret."""

    def __init__(
        self,
        name: str,
        plan: SitePlan,
        network: AwsNetwork,
        *,
        given_kubeconfig: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it.

        Args:
            name: prefix of its resources' names.
            plan: the site's plan.
            network: where it is.
            given_kubeconfig: for a cluster that exists, used in place of the AWS CLI's credentials.
            opts: as for every component.
        """
        super().__init__("plumbline:index:AwsCluster", name, None, opts)
        self._tags = {"plumbline.dev/site": plan.name}
        self._cluster: aws.eks.Cluster | None = None
        # Somebody else's aws-node may have no role of its own, and would use the node's.
        policies = (*_NODE_POLICIES, _CNI_POLICY) if plan.cluster.exists else _NODE_POLICIES
        self.node_role, attached = service_role(f"{name}-node", "ec2", policies, plan.region, self._tags, self)
        self.node_policies = [*attached]
        self.access, self.ready = self._adopt(plan) if plan.cluster.exists else self._build(name, plan, network)
        self.control_plane = [self._cluster] if self._cluster else []
        self.name = pulumi.Output.from_input(self.access.name)
        made = pulumi.Output.all(self.access.endpoint, self.access.certificate_authority).apply(
            lambda parts: kubeconfig(plan.cluster.name, plan.region, parts[0], parts[1])
        )
        self.kubeconfig = pulumi.Output.secret(given_kubeconfig if given_kubeconfig is not None else made)
        self.register_outputs({"endpoint": self.access.endpoint})

    def _adopt(self, plan: SitePlan) -> tuple[ClusterAccess, list[pulumi.Resource]]:
        """Look a cluster up."""
        found = aws.eks.get_cluster_output(name=plan.cluster.name, opts=pulumi.InvokeOutputOptions(parent=self))
        access = ClusterAccess(
            name=plan.cluster.name,
            endpoint=found.endpoint,
            certificate_authority=found.certificate_authorities[0].data,
            security_group=found.vpc_config.cluster_security_group_id,
            service_cidr=found.kubernetes_network_configs[0].service_ipv4_cidr,
        )
        return access, []

    def _build(self, name: str, plan: SitePlan, network: AwsNetwork) -> tuple[ClusterAccess, list[pulumi.Resource]]:
        """Make a cluster, and the add-ons that have to be there before nodes."""
        wanted = plan.cluster
        role, policies = service_role(
            f"{name}-cluster", "eks", ("AmazonEKSClusterPolicy",), plan.region, self._tags, self
        )
        child = pulumi.ResourceOptions(parent=self)
        # EKS would make it by itself, and keep what it holds for ever.
        logs = aws.cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/aws/eks/{wanted.name}/cluster",
            retention_in_days=wanted.log_days,
            tags=self._tags,
            opts=child,
        )
        cluster = aws.eks.Cluster(
            f"{name}-cluster",
            name=wanted.name,
            version=wanted.version,
            role_arn=role.arn,
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=[network.subnets[zone] for zone in plan.network.zones],
                endpoint_private_access=True,
                endpoint_public_access=wanted.public,
                public_access_cidrs=list(wanted.public_cidrs) if wanted.public else None,
            ),
            access_config=aws.eks.ClusterAccessConfigArgs(
                authentication_mode="API", bootstrap_cluster_creator_admin_permissions=True
            ),
            enabled_cluster_log_types=list(wanted.logs),
            encryption_config=aws.eks.ClusterEncryptionConfigArgs(
                provider=aws.eks.ClusterEncryptionConfigProviderArgs(key_arn=wanted.secrets_key), resources=["secrets"]
            )
            if wanted.secrets_key
            else None,
            tags=self._tags,
            opts=pulumi.ResourceOptions.merge(
                child, pulumi.ResourceOptions(depends_on=[*policies, logs, *network.ready])
            ),
        )
        self._cluster = cluster
        self._administrators(name, plan, cluster)
        access = ClusterAccess(
            name=cluster.name,
            endpoint=cluster.endpoint,
            certificate_authority=cluster.certificate_authority.data,
            security_group=cluster.vpc_config.cluster_security_group_id,
            service_cidr=cluster.kubernetes_network_config.service_ipv4_cidr,
        )
        return access, [cluster, *self._node_addons(name, plan, cluster)]

    def _administrators(self, name: str, plan: SitePlan, cluster: aws.eks.Cluster) -> None:
        child = pulumi.ResourceOptions(parent=self)
        for arn in plan.cluster.administrators:
            key = arn.partition(":iam::")[2].replace(":", "-").replace("/", "-")
            entry = aws.eks.AccessEntry(
                f"{name}-admin-{key}", cluster_name=cluster.name, principal_arn=arn, tags=self._tags, opts=child
            )
            aws.eks.AccessPolicyAssociation(
                f"{name}-admin-{key}",
                cluster_name=cluster.name,
                principal_arn=entry.principal_arn,
                policy_arn=f"arn:{partition(plan.region)}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
                access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
                opts=child,
            )

    def _node_addons(self, name: str, plan: SitePlan, cluster: aws.eks.Cluster) -> Sequence[pulumi.Resource]:
        """The agent of pod identities, the CNI with a role of its own, and kube-proxy."""
        by_key = {addon.key: addon for addon in plan.cluster.addons}
        role, attached = service_role(f"{name}-cni", "pods.eks", (_CNI_POLICY,), plan.region, self._tags, self)
        # A node holds a fixed few addresses, so that a pool's size and its subnet's can be compared beforehand.
        held = {"MINIMUM_IP_TARGET": str(POD_ADDRESSES), "WARM_IP_TARGET": str(WARM_ADDRESSES)}
        agent = self._addon(name, by_key["pod_identity_agent"].name, by_key["pod_identity_agent"].version, cluster, [])
        cni = self._addon(
            name,
            by_key["vpc_cni"].name,
            by_key["vpc_cni"].version,
            cluster,
            [agent, *attached],
            settings={"env": held},
            roles={"aws-node": role},
        )
        proxy = self._addon(name, by_key["kube_proxy"].name, by_key["kube_proxy"].version, cluster, [])
        return [agent, cni, proxy]

    def add_after_nodes(self, name: str, plan: SitePlan, nodes: pulumi.Resource) -> Sequence[pulumi.Resource]:
        """The add-ons that need a node to run on: DNS and, with storage, the CSI driver of FSx."""
        cluster = self._cluster
        if cluster is None:
            return []  # somebody else's has its own
        made: list[pulumi.Resource] = []
        for addon in plan.cluster.addons:
            if addon.key == "coredns":
                made.append(self._addon(name, addon.name, addon.version, cluster, [nodes]))
            elif addon.key == "fsx_csi_driver":
                role, _ = service_role(f"{name}-fsx-csi", "pods.eks", (), plan.region, self._tags, self)
                # File systems are made by this stack and not by the driver, which only looks at them.
                reads = aws.iam.RolePolicy(
                    f"{name}-fsx-csi",
                    role=role.name,
                    policy=json.dumps(
                        {
                            "Version": "2012-10-17",
                            "Statement": [{"Effect": "Allow", "Action": ["fsx:DescribeFileSystems"], "Resource": "*"}],
                        }
                    ),
                    opts=pulumi.ResourceOptions(parent=self),
                )
                made.append(
                    self._addon(
                        name,
                        addon.name,
                        addon.version,
                        cluster,
                        [nodes, reads],
                        roles={"fsx-csi-controller-sa": role},
                    )
                )
        return made

    def _addon(
        self,
        name: str,
        addon: str,
        version: str | None,
        cluster: aws.eks.Cluster,
        after: Sequence[pulumi.Resource],
        *,
        settings: Mapping[str, object] | None = None,
        roles: Mapping[str, aws.iam.Role] | None = None,
    ) -> aws.eks.Addon:
        """An add-on of a pinned version. EKS puts some into every cluster by itself: those are taken over."""
        return aws.eks.Addon(
            f"{name}-{addon}",
            cluster_name=cluster.name,
            addon_name=addon,
            addon_version=version,
            configuration_values=json.dumps(settings) if settings else None,
            pod_identity_associations=[
                aws.eks.AddonPodIdentityAssociationArgs(role_arn=role.arn, service_account=account)
                for account, role in (roles or {}).items()
            ]
            or None,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            tags=self._tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*after]),
        )
