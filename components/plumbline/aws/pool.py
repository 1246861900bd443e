"""One generation of a pool: launch template, node group, guard and gate."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from plumbline.aws.cluster import AwsCluster, ClusterAccess
from plumbline.aws.diagnosis import explain_node_group
from plumbline.aws.network import AwsNetwork
from plumbline.aws.userdata import encoded, joining, node_config
from plumbline.plan import PoolPlan, SitePlan
from plumbline.resources import FabricGate, Provider, RetireGuard, expectation, guard_inputs

_ROOT_GIB = 200
"""For the images of a training job: a framework's image and its layers are tens of GiB."""


class AwsPool(pulumi.ComponentResource):
    """One generation of a GPU pool, followed by its gate.

    Its name holds the generation, so a successor is built beside it and not over it.
    """

    node_group: aws.eks.NodeGroup
    guard: RetireGuard
    gate: FabricGate

    def __init__(
        self,
        name: str,
        plan: PoolPlan,
        *,
        site: SitePlan,
        network: AwsNetwork,
        cluster: AwsCluster,
        plugins: Sequence[pulumi.Resource],
        serving: Sequence[pulumi.Resource] = (),
        prover: Provider,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it.

        Args:
            name: prefix of its resources' names: the plan's full name.
            plan: the generation.
            site: the site's plan.
            network: where its nodes are.
            cluster: which they join.
            plugins: the DaemonSets that it needs.
            serving: what else jobs on it need: add-ons, the nodes that these run on, file systems.
            prover: our provider.
            opts: as for every component.
        """
        super().__init__("plumbline:index:AwsPool", name, None, opts)
        template = self._template(name, plan, network, cluster)
        self.node_group = self._node_group(name, plan, template, network, cluster)
        ours = pulumi.ResourceOptions(parent=self, provider=prover)
        self.guard = RetireGuard(
            f"{name}-guard",
            guard_inputs(site, plan),
            cluster.kubeconfig,
            # The engine deletes it before all of these: a refusal leaves the jobs everything that they run with.
            pulumi.ResourceOptions.merge(
                ours, pulumi.ResourceOptions(depends_on=[self.node_group, *plugins, *serving])
            ),
        )
        self.gate = FabricGate(
            name,
            expectation(site, plan),
            cluster.kubeconfig,
            pulumi.ResourceOptions.merge(
                ours, pulumi.ResourceOptions(depends_on=[self.node_group, self.guard, *plugins])
            ),
        )
        self.register_outputs({"nodeGroup": self.node_group.node_group_name})

    def _template(self, name: str, plan: PoolPlan, network: AwsNetwork, cluster: AwsCluster) -> aws.ec2.LaunchTemplate:
        # A node group with security groups in its template is not given the cluster's own: both are named here.
        # https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html
        groups = [cluster.access.security_group, network.fabric_group.id]
        tags = {**plan.node_labels, "Name": plan.full_name}
        return aws.ec2.LaunchTemplate(
            name,
            name=plan.full_name,
            image_id=plan.image.id if plan.image else None,
            instance_type=plan.machine,
            user_data=_user_data(plan, cluster.access),
            update_default_version=True,
            network_interfaces=[
                aws.ec2.LaunchTemplateNetworkInterfaceArgs(
                    network_card_index=nic.card,
                    device_index=nic.device,
                    interface_type=nic.kind,
                    security_groups=groups,
                    delete_on_termination="true",
                    description=f"{plan.full_name} card {nic.card}",
                )
                for nic in plan.interfaces
            ],
            capacity_reservation_specification=_reservation(plan),
            instance_market_options=aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type="capacity-block")
            if plan.capacity == "capacity-block"
            else None,
            placement=self._placement(name, plan),
            metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
                http_tokens="required",
                # One hop: pods, which are one hop further, cannot take the node's role.
                http_put_response_hop_limit=1,
            ),
            block_device_mappings=[
                aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
                    device_name="/dev/xvda",
                    ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                        volume_size=_ROOT_GIB, volume_type="gp3", encrypted="true", delete_on_termination="true"
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

    def _placement(self, name: str, plan: PoolPlan) -> aws.ec2.LaunchTemplatePlacementArgs | None:
        """On demand, a group of its own; from a reservation, the one that it was made in, or none.

        Instances in a group that a reservation was not made in cannot use it, and a capacity block places its own.
        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-cpg.html
        """
        if plan.own_placement_group:
            group = aws.ec2.PlacementGroup(
                name,
                name=plan.full_name,
                strategy="cluster",
                tags=dict(plan.node_labels),
                opts=pulumi.ResourceOptions(parent=self),
            )
            return aws.ec2.LaunchTemplatePlacementArgs(group_name=group.name)
        return aws.ec2.LaunchTemplatePlacementArgs(group_name=plan.placement_group) if plan.placement_group else None

    def _node_group(
        self,
        name: str,
        plan: PoolPlan,
        template: aws.ec2.LaunchTemplate,
        network: AwsNetwork,
        cluster: AwsCluster,
    ) -> aws.eks.NodeGroup:
        key, value, effect = plan.taint
        return aws.eks.NodeGroup(
            name,
            cluster_name=cluster.name,
            node_group_name=plan.full_name,
            node_role_arn=cluster.node_role.arn,
            # The hardware is in one zone, and so is the only subnet.
            subnet_ids=[network.subnets[plan.zone]],
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                desired_size=plan.desired, min_size=plan.desired, max_size=plan.nodes
            ),
            # With an image of one's own, EKS takes neither a release nor a version.
            ami_type="CUSTOM" if plan.image else plan.facts.ami_type,
            release_version=None if plan.image else plan.ami_release,
            version=None if plan.image else plan.kubernetes_version,
            capacity_type="CAPACITY_BLOCK" if plan.capacity == "capacity-block" else "ON_DEMAND",
            launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
                id=template.id, version=template.latest_version.apply(str)
            ),
            labels=dict(plan.node_labels),
            taints=[aws.eks.NodeGroupTaintArgs(key=key, value=value, effect=_EFFECTS[effect])],
            # With the reservation full there is no room to start new nodes first.
            update_config=aws.eks.NodeGroupUpdateConfigArgs(
                max_unavailable=1, update_strategy="DEFAULT" if plan.capacity == "on-demand" else "MINIMAL"
            ),
            tags=dict(plan.node_labels),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[*network.ready, *cluster.ready, *cluster.node_policies],
                hooks=pulumi.ResourceHookBinding(on_error=[explain_node_group(plan)]),
            ),
        )


_EFFECTS = {"NoSchedule": "NO_SCHEDULE", "NoExecute": "NO_EXECUTE", "PreferNoSchedule": "PREFER_NO_SCHEDULE"}


def _reservation(plan: PoolPlan) -> aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs | None:
    """The reservation and nothing else: with any other preference an instance may be launched on demand."""
    if plan.reservation is None and plan.reservation_group is None:
        return None
    return aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(
        capacity_reservation_preference="capacity-reservations-only",
        capacity_reservation_target=aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
            capacity_reservation_id=plan.reservation,
            capacity_reservation_resource_group_arn=plan.reservation_group,
        ),
    )


def _user_data(plan: PoolPlan, access: ClusterAccess) -> pulumi.Input[str] | None:
    """None where EKS's own is all that a node needs."""
    if plan.image is None:
        return node_config({"featureGates": dict(plan.node_features)}) if plan.node_features else None
    if plan.image.user_data is not None:
        return encoded(plan.image.user_data)

    def joins(parts: Sequence[str]) -> str:
        name, endpoint, authority, cidr = parts
        return node_config(
            joining(
                name=name,
                endpoint=endpoint,
                certificate_authority=authority,
                service_cidr=cidr,
                labels=plan.node_labels,
                taint=plan.taint,
                features=plan.node_features,
            )
        )

    return pulumi.Output.all(access.name, access.endpoint, access.certificate_authority, access.service_cidr).apply(
        joins
    )
