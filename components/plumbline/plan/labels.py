"""Labels and taints of ours on nodes. They are an interface: gates, guards and DaemonSets select by them."""

SITE = "plumbline.dev/site"
POOL = "plumbline.dev/pool"
GENERATION = "plumbline.dev/generation"
FABRIC = "plumbline.dev/fabric"
CAPACITY = "plumbline.dev/capacity"
ACCELERATOR = "plumbline.dev/accelerator"
DEVICES = "plumbline.dev/devices"
"""`dra` on nodes whose EFA devices are given out by DRA; no other node has it."""

PLUGIN = "plumbline.dev/plugin"
"""On the pods of our device plugins; its value is the plugin's key in the declaration."""

EKS_NODE_GROUP = "eks.amazonaws.com/nodegroup"
"""Written by EKS itself, so a node is found by it even when our own labels did not arrive."""

MACHINE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
ARCHITECTURE = "kubernetes.io/arch"
AWS_NETWORK_LAYER = "topology.k8s.aws/network-node-layer-{layer}"
"""Written by the AWS cloud controller; layer 1 is the top."""

GPU_TAINT = ("nvidia.com/gpu", "present", "NoSchedule")
"""Keeps pods that ask for no GPU away from GPU nodes: key, value, effect."""

NEURON_TAINT = ("aws.amazon.com/neuron", "present", "NoSchedule")
"""The same for Trainium."""
