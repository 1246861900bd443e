"""A whole site on AWS."""

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from plumbline.aws.cluster import AwsCluster
from plumbline.aws.lustre import AwsLustre
from plumbline.aws.network import AwsNetwork
from plumbline.aws.pool import AwsPool
from plumbline.aws.system import AwsSystemPool
from plumbline.kubernetes.plugins import DevicePlugins
from plumbline.plan import SitePlan
from plumbline.resources import Declaration, FabricGate, Provider


class AwsSite(pulumi.ComponentResource):
    """Network, cluster, storage, plugins and pools, each pool followed by its gate.

    Pass `depends_on=site.gates` to what needs the fabric: it is created only once every pool is proven.
    """

    network: AwsNetwork
    cluster: AwsCluster
    kubernetes: k8s.Provider
    """For programs that create more in the cluster."""
    storage: Mapping[str, AwsLustre]
    """By the file system's name."""
    pools: Mapping[str, AwsPool]
    """By the pool's name."""
    gates: list[FabricGate]

    def __init__(
        self,
        name: str,
        plan: SitePlan,
        *,
        kubeconfig: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it.

        Args:
            name: prefix of its resources' names.
            plan: what `plumbline.stack.load()` gave.
            kubeconfig: for a cluster that exists, used in place of the AWS CLI's credentials; a secret.
            opts: as for every component.
        """
        super().__init__("plumbline:index:AwsSite", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        cloud = aws.Provider(f"{name}-aws", region=plan.region, opts=child)
        on_aws = pulumi.ResourceOptions(parent=self, providers=[cloud])
        self.network = AwsNetwork(name, plan, on_aws)
        self.cluster = AwsCluster(name, plan, self.network, given_kubeconfig=kubeconfig, opts=on_aws)
        self.kubernetes = k8s.Provider(
            f"{name}-kubernetes",
            kubeconfig=self.cluster.kubeconfig,
            enable_server_side_apply=True,
            # Nothing more: with --continue-on-error, engine 3.274.1 panics on a provider whose dependency failed.
            opts=pulumi.ResourceOptions(parent=self, depends_on=self.cluster.control_plane),
        )
        serving: list[pulumi.Resource] = [*self.cluster.ready]
        if not plan.cluster.exists:
            system = AwsSystemPool(f"{name}-system", plan, network=self.network, cluster=self.cluster, opts=on_aws)
            serving += [system.node_group, *self.cluster.add_after_nodes(name, plan, system.node_group)]
        plugins = DevicePlugins(
            f"{name}-plugins", plan.plugins, pulumi.ResourceOptions(parent=self, providers=[self.kubernetes])
        )
        self.storage = {
            each.name: AwsLustre(
                f"{name}-{each.name}",
                each,
                site=plan.name,
                network=self.network,
                kubernetes=self.kubernetes,
                opts=on_aws,
            )
            for each in plan.storage
        }
        prover = Provider(f"{name}-prover", child)
        Declaration(name, plan.name, plan.generations, pulumi.ResourceOptions(parent=self, provider=prover))
        self.pools = {
            pool.name: AwsPool(
                pool.full_name,
                pool,
                site=plan,
                network=self.network,
                cluster=self.cluster,
                plugins=plugins.daemon_sets,
                serving=[*serving, *(part for each in pool.storage for part in self.storage[each].serving)],
                prover=prover,
                opts=on_aws,
            )
            for pool in plan.pools
        }
        self.gates = [pool.gate for pool in self.pools.values()]
        self.register_outputs({"cluster": self.cluster.name})
