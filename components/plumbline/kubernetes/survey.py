"""What an adopted cluster runs already, read before anything is built: one device, one plugin."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from plumbline.catalog.dra import DRIVERS
from plumbline.gate.placement import why_excluded
from plumbline.gate.snapshot import Node, Taint
from plumbline.kubernetes.adopted import FoundPlugin, found_plugins
from plumbline.kubernetes.connection import Denied, connect
from plumbline.plan import PluginPlan, PoolPlan, SitePlan, labels
from plumbline.site import Problem

_GPU_LABELS = {"nvidia.com/gpu.present": "true", "feature.node.kubernetes.io/pci-10de.present": "true"}
"""By which other people's plugins find GPUs, where feature discovery runs.

https://github.com/NVIDIA/k8s-device-plugin/tree/main/deployments/helm/nvidia-device-plugin
"""


def survey(kubeconfig: str) -> list[FoundPlugin]:
    """Other people's device plugins and drivers in a cluster.

    Raises:
        Unreachable: it cannot be read.
    """
    # A Pulumi program runs inside an event loop of its own.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _survey(kubeconfig)).result()


async def _survey(kubeconfig: str) -> list[FoundPlugin]:
    async with connect(kubeconfig) as connection:
        sets = await connection.get("/apis/apps/v1/daemonsets")
        try:
            policies = await connection.get("/apis/nvidia.com/v1/clusterpolicies")
        except Denied as denied:
            if denied.status != 404:
                raise
            policies = {}
        return found_plugins(sets.get("items") or (), bool(policies.get("items")))


def doubled(plan: SitePlan, found: Sequence[FoundPlugin]) -> Iterator[Problem]:
    """Plugins that would be installed on nodes where somebody else's gives out the same devices already."""
    for plugin in plan.plugins:
        pools = [pool for pool in plan.pools if _needs(pool, plugin)]
        for theirs in found:
            if theirs.hardware != _hardware(plugin) or not any(_lands(theirs, pool) for pool in pools):
                continue
            same = theirs.key == plugin.key
            yield Problem(
                path=("plugins", plugin.key),
                found=f"{theirs} in the cluster, which gives out {theirs.resource} already",
                needed=f"one DaemonSet for it on the nodes of pool {', '.join(pool.name for pool in pools)}",
                next=f"set plugins.{plugin.key}.install: false, or take theirs away"
                if same
                else f"take theirs away, or set devices of the pool to what {theirs.resource} is given out by",
            )


def _needs(pool: PoolPlan, plugin: PluginPlan) -> bool:
    return plugin.resource in pool.resources or plugin.resource in pool.slices


def _hardware(plugin: PluginPlan) -> str:
    """The extended resource that stands for what a plugin gives out, whichever the mechanism."""
    driver = DRIVERS.get(plugin.resource)
    return driver.hardware if driver else plugin.resource


def _lands(theirs: FoundPlugin, pool: PoolPlan) -> bool:
    """Whether their pods would come to the pool's nodes, as far as labels and taints tell it before."""
    return theirs.daemon_set is None or why_excluded(theirs.daemon_set, _node(pool)) is None


def _node(pool: PoolPlan) -> Node:
    """A node of the pool, as it will be."""
    key, value, effect = pool.taint
    known = {
        **pool.node_labels,
        labels.EKS_NODE_GROUP: pool.full_name,
        labels.MACHINE: pool.machine,
        labels.ZONE: pool.zone,
        labels.ARCHITECTURE: pool.facts.architecture,
        "kubernetes.io/os": "linux",
    }
    return Node(
        name="",
        labels={**known, **_GPU_LABELS} if pool.facts.accelerator == "nvidia" else known,
        ready=True,
        not_ready_because="",
        capacity={},
        allocatable={},
        taints=(Taint(key=key, value=value, effect=effect),),
        provider_id="",
        info={},
    )
