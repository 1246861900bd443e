"""The nodes of a new cluster for everything that is no training."""

import pulumi
import pulumi_aws as aws

from plumbline.aws.cluster import AwsCluster
from plumbline.aws.network import AwsNetwork
from plumbline.plan import SitePlan

_LABEL = {"plumbline.dev/system": "true"}


class AwsSystemPool(pulumi.ComponentResource):
    """A small node group over all zones, without taints: DNS and controllers run there.

    EKS updates it in place, draining one node after another: nothing on it holds a fabric.
    """

    node_group: aws.eks.NodeGroup

    def __init__(
        self,
        name: str,
        plan: SitePlan,
        *,
        network: AwsNetwork,
        cluster: AwsCluster,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("plumbline:index:AwsSystemPool", name, None, opts)
        tags = {"plumbline.dev/site": plan.name, "Name": name}
        template = aws.ec2.LaunchTemplate(
            name,
            name=name,
            instance_type=plan.cluster.system_machine,
            update_default_version=True,
            metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
                http_tokens="required",
                http_put_response_hop_limit=1,
            ),
            block_device_mappings=[
                aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
                    device_name="/dev/xvda",
                    ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                        volume_size=50, volume_type="gp3", encrypted="true", delete_on_termination="true"
                    ),
                )
            ],
            tag_specifications=[
                aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=tags)
                for kind in ("instance", "volume")
            ],
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        nodes = plan.cluster.system_nodes
        self.node_group = aws.eks.NodeGroup(
            name,
            cluster_name=cluster.name,
            node_group_name=plan.system_name,
            node_role_arn=cluster.node_role.arn,
            subnet_ids=[network.subnets[zone] for zone in plan.network.zones],
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(desired_size=nodes, min_size=nodes, max_size=nodes),
            ami_type="AL2023_x86_64_STANDARD",
            version=plan.cluster.version,
            capacity_type="ON_DEMAND",
            launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
                id=template.id, version=template.latest_version.apply(str)
            ),
            labels=_LABEL,
            update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            tags=tags,
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[*network.ready, *cluster.ready, *cluster.node_policies]
            ),
        )
        self.register_outputs({"nodeGroup": self.node_group.node_group_name})
