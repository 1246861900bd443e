"""The program that `pulumi up` runs: read the site, build it, export what people need."""

import pulumi
import pulumi_kubernetes as k8s

import plumbline.stack
from plumbline.aws import AwsSite

plan = plumbline.stack.load()
site = AwsSite(plan.name, plan, kubeconfig=plumbline.stack.kubeconfig())

# What ML teams use appears once every pool is proven, and not before. The engine deletes it before the guards of the
# pools are asked, and a namespace takes the jobs in it along: so it is left to go with its cluster.
training = k8s.core.v1.Namespace(
    "training",
    metadata={"name": "training"},
    opts=pulumi.ResourceOptions(provider=site.kubernetes, depends_on=site.gates, retain_on_delete=True),
)
for storage in site.storage.values():
    storage.claim("training", pulumi.ResourceOptions(depends_on=[training]))

# No output waits for a gate: a first update that is blocked would save none of them.
pulumi.export("cluster", site.cluster.name)
pulumi.export("region", plan.region)
pulumi.export("pools", {pool.name: {"generation": pool.generation, "nodes": pool.nodes} for pool in plan.pools})
pulumi.export("storage", {name: storage.id for name, storage in site.storage.items()})
