"""The network: one private subnet per zone, a way out, and the security group that EFA needs."""

from collections.abc import Callable, Mapping

import pulumi
import pulumi_aws as aws

from plumbline.plan import SitePlan, SubnetPlan

Named = Callable[[str], dict[str, str]]
"""From a suffix to tags, the Name tag among them."""


class AwsNetwork(pulumi.ComponentResource):
    """The network of a site: a VPC of its own, or a security group in one that exists."""

    vpc_id: pulumi.Input[str]
    subnets: Mapping[str, pulumi.Input[str]]
    """Ids of the private subnets of nodes and pods, by zone."""
    fabric_group: aws.ec2.SecurityGroup
    """For nodes: all traffic to and from itself, and out."""
    ready: list[pulumi.Resource]
    """What has to exist before a node can start: routes, endpoints and rules."""

    def __init__(self, name: str, plan: SitePlan, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("plumbline:index:AwsNetwork", name, None, opts)
        tags = {"plumbline.dev/site": plan.name}

        def named(suffix: str) -> dict[str, str]:
            return {**tags, "Name": f"{name}-{suffix}"}

        if plan.network.vpc:
            self.vpc_id = plan.network.vpc
            self.subnets = dict(plan.network.existing_subnets)
            way_out: list[pulumi.Resource] = []
        else:
            way_out = self._build(name, plan, named)
        rules = self._fabric_rules(name, named)
        self.ready = [*way_out, *rules]
        self.register_outputs({"vpcId": self.vpc_id})

    def _build(self, name: str, plan: SitePlan, named: Named) -> list[pulumi.Resource]:
        """A VPC of its own. Returns what makes its way out."""
        child = pulumi.ResourceOptions(parent=self)
        vpc = aws.ec2.Vpc(
            f"{name}-vpc",
            cidr_block=str(plan.network.cidr),
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=named("vpc"),
            opts=child,
        )
        private = {
            subnet.zone: aws.ec2.Subnet(
                f"{name}-private-{subnet.zone}",
                vpc_id=vpc.id,
                availability_zone=subnet.zone,
                cidr_block=str(subnet.private),
                # A node with several interfaces cannot have a public address, and should not.
                map_public_ip_on_launch=False,
                tags=named(f"private-{subnet.zone}"),
                opts=child,
            )
            for subnet in plan.network.subnets
        }
        self.vpc_id = vpc.id
        self.subnets = {zone: subnet.id for zone, subnet in private.items()}
        if plan.network.egress == "endpoints":
            return self._endpoints(name, plan, vpc, private, named)
        return self._nat(name, plan.network.subnets[0], vpc, private, named)

    def _nat(
        self, name: str, first: SubnetPlan, vpc: aws.ec2.Vpc, private: Mapping[str, aws.ec2.Subnet], named: Named
    ) -> list[pulumi.Resource]:
        """A NAT gateway in the first zone, and routes to it from every private subnet."""
        child = pulumi.ResourceOptions(parent=self)
        gateway = aws.ec2.InternetGateway(f"{name}-internet", vpc_id=vpc.id, tags=named("internet"), opts=child)
        public = aws.ec2.Subnet(
            f"{name}-public-{first.zone}",
            vpc_id=vpc.id,
            availability_zone=first.zone,
            cidr_block=str(first.public),
            map_public_ip_on_launch=False,
            tags=named(f"public-{first.zone}"),
            opts=child,
        )
        address = aws.ec2.Eip(
            f"{name}-nat",
            domain="vpc",
            tags=named("nat"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[gateway]),
        )
        nat = aws.ec2.NatGateway(
            f"{name}-nat", subnet_id=public.id, allocation_id=address.id, tags=named("nat"), opts=child
        )
        outside = aws.ec2.RouteTable(
            f"{name}-public",
            vpc_id=vpc.id,
            routes=[aws.ec2.RouteTableRouteArgs(cidr_block="0.0.0.0/0", gateway_id=gateway.id)],
            tags=named("public"),
            opts=child,
        )
        inside = aws.ec2.RouteTable(
            f"{name}-private",
            vpc_id=vpc.id,
            routes=[aws.ec2.RouteTableRouteArgs(cidr_block="0.0.0.0/0", nat_gateway_id=nat.id)],
            tags=named("private"),
            opts=child,
        )
        tables = {f"public-{first.zone}": (public, outside)}
        tables |= {f"private-{zone}": (subnet, inside) for zone, subnet in private.items()}
        return [
            aws.ec2.RouteTableAssociation(f"{name}-{key}", subnet_id=subnet.id, route_table_id=table.id, opts=child)
            for key, (subnet, table) in tables.items()
        ]

    def _endpoints(
        self,
        name: str,
        plan: SitePlan,
        vpc: aws.ec2.Vpc,
        private: Mapping[str, aws.ec2.Subnet],
        named: Named,
    ) -> list[pulumi.Resource]:
        """No way out but to the services that nodes need.

        https://docs.aws.amazon.com/eks/latest/userguide/private-clusters.html
        """
        child = pulumi.ResourceOptions(parent=self)
        inside = aws.ec2.RouteTable(f"{name}-private", vpc_id=vpc.id, tags=named("private"), opts=child)
        routes: list[pulumi.Resource] = [
            aws.ec2.RouteTableAssociation(
                f"{name}-private-{zone}", subnet_id=subnet.id, route_table_id=inside.id, opts=child
            )
            for zone, subnet in private.items()
        ]
        group = aws.ec2.SecurityGroup(
            f"{name}-endpoints",
            vpc_id=vpc.id,
            description="Endpoints of AWS services: HTTPS from inside the VPC",
            tags=named("endpoints"),
            opts=child,
        )
        https = aws.vpc.SecurityGroupIngressRule(
            f"{name}-endpoints-https",
            security_group_id=group.id,
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            cidr_ipv4=str(plan.network.cidr),
            opts=child,
        )
        services: list[pulumi.Resource] = [
            aws.ec2.VpcEndpoint(
                f"{name}-{service}",
                vpc_id=vpc.id,
                service_name=f"com.amazonaws.{plan.region}.{service}",
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=[subnet.id for subnet in private.values()],
                security_group_ids=[group.id],
                tags=named(service),
                opts=child,
            )
            for service in plan.network.endpoints
        ]
        storage = aws.ec2.VpcEndpoint(
            f"{name}-s3",
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{plan.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[inside.id],
            tags=named("s3"),
            opts=child,
        )
        return [*routes, https, *services, storage]

    def _fabric_rules(self, name: str, named: Named) -> list[pulumi.Resource]:
        """EFA traffic is matched by rules that reference the group itself, in both directions; never by addresses.

        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html#efa-start-security
        """
        child = pulumi.ResourceOptions(parent=self)
        self.fabric_group = aws.ec2.SecurityGroup(
            f"{name}-fabric",
            vpc_id=self.vpc_id,
            description="Nodes of GPU pools: everything among themselves, and out",
            tags=named("fabric"),
            opts=child,
        )
        group = self.fabric_group.id
        return [
            aws.vpc.SecurityGroupIngressRule(
                f"{name}-fabric-in",
                security_group_id=group,
                referenced_security_group_id=group,
                ip_protocol="-1",
                opts=child,
            ),
            aws.vpc.SecurityGroupEgressRule(
                f"{name}-fabric-out",
                security_group_id=group,
                referenced_security_group_id=group,
                ip_protocol="-1",
                opts=child,
            ),
            aws.vpc.SecurityGroupEgressRule(
                f"{name}-fabric-internet",
                security_group_id=group,
                ip_protocol="-1",
                cidr_ipv4="0.0.0.0/0",
                opts=child,
            ),
        ]
