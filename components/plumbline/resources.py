"""The resources of our own provider, as Pulumi programs see them. Their type names are an interface."""

from collections.abc import Mapping, Sequence

import pulumi

from plumbline.gate.expectation import PluginExpectation, PoolExpectation
from plumbline.migrate.guard import GuardInputs
from plumbline.plan import PoolPlan, SitePlan
from plumbline.plan.labels import EKS_NODE_GROUP


class Provider(pulumi.ProviderResource):
    """Our provider. It has nothing to configure, so nothing can replace it."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("plumbline", name, {}, opts)


class Declaration(pulumi.CustomResource):
    """Which generation each pool is declared to have, so that a guard knows what is retired.

    It has to depend on nothing: the provider must hear of it before anything can fail.
    """

    def __init__(
        self, name: str, site: str, generations: Mapping[str, str], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("plumbline:index:Declaration", name, {"site": site, "generations": dict(generations)}, opts)


class FabricGate(pulumi.CustomResource):
    """Completes when every node of a generation is proven; until then the update fails and names the cause.

    Let what needs the fabric depend on it. No stack output should: a blocked first update would save none of them.
    """

    proven: pulumi.Output[bool]
    """Whether the last proof passed."""

    def __init__(
        self,
        name: str,
        expectation: PoolExpectation,
        kubeconfig: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {**expectation.inputs(), "kubeconfig": pulumi.Output.secret(kubeconfig), "proof": None, "proven": None}
        secret = pulumi.ResourceOptions(additional_secret_outputs=["kubeconfig"])
        super().__init__("plumbline:index:FabricGate", name, inputs, pulumi.ResourceOptions.merge(secret, opts))


class RetireGuard(pulumi.CustomResource):
    """Stands between a generation and its deletion: the engine deletes it first, and it can refuse.

    It has to depend on the generation's node groups.
    """

    def __init__(
        self,
        name: str,
        guard: GuardInputs,
        kubeconfig: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {**guard.inputs(), "kubeconfig": pulumi.Output.secret(kubeconfig)}
        secret = pulumi.ResourceOptions(additional_secret_outputs=["kubeconfig"])
        super().__init__("plumbline:index:RetireGuard", name, inputs, pulumi.ResourceOptions.merge(secret, opts))


def expectation(site: SitePlan, pool: PoolPlan) -> PoolExpectation:
    """What the gate of a pool has to see."""
    needed: Sequence[PluginExpectation] = [
        PluginExpectation(
            namespace=plugin.namespace,
            name=plugin.name,
            image=plugin.image,
            resource=plugin.resource,
            setting=plugin.setting,
            driver=plugin.resource if plugin.resource in pool.slices else None,
        )
        for plugin in site.plugins
        if plugin.resource in pool.resources or plugin.resource in pool.slices
    ]
    return PoolExpectation(
        pool=pool.name,
        generation=pool.generation,
        nodes=pool.nodes,
        node_selector={EKS_NODE_GROUP: pool.full_name},
        machine=pool.machine,
        zone=pool.zone,
        architecture=pool.facts.architecture,
        node_labels=pool.node_labels,
        topology_labels=pool.topology_labels,
        resources=pool.resources,
        slices=pool.slices,
        plugins=tuple(needed),
        within_seconds=site.within.total_seconds(),
        stable_seconds=site.stable.total_seconds(),
        valid_seconds=site.valid.total_seconds(),
        cni_floor=pool.cni_floor,
        driver_floor=pool.facts.driver_floor,
        huge_pages=pool.fabric == "efa",
        starts=pool.starts,
        accept_deferred=site.accept_deferred if pool.starts else None,
    )


def guard_inputs(site: SitePlan, pool: PoolPlan) -> GuardInputs:
    """What the guard of a pool has to know when the pool is deleted."""
    return GuardInputs(
        pool=pool.name,
        generation=pool.generation,
        node_selector={EKS_NODE_GROUP: pool.full_name},
        resources=tuple(sorted(pool.resources)),
        on_destroy=pool.on_destroy,
        within_seconds=site.within.total_seconds(),
    )
