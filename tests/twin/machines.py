"""Machines for tests of the simulated nodes."""

import dataclasses

from twin.world import Instance


def p5(host: str, *, efa: int = 32, gpus: int = 8) -> Instance:
    """A p5.48xlarge of the cluster `train`, by the last part of its address."""
    name = f"ip-10-20-1-{host}.us-west-2.compute.internal"
    return Instance(
        id=f"i-{int(host):017x}",
        cluster="train",
        machine="p5.48xlarge",
        architecture="amd64",
        region="us-west-2",
        zone="us-west-2b",
        zone_id="usw2-az2",
        provider_id=f"aws:///us-west-2b/i-{int(host):017x}",
        node_name=name,
        private_ip=f"10.20.1.{host}",
        labels={"eks.amazonaws.com/nodegroup": "h100-blue"},
        taints=(),
        cpus=192,
        memory_mib=2097152,
        hugepages_2mi_mib=10256,
        max_pods=250,
        gpus=gpus,
        efa_interfaces=efa,
        kubelet_version="v1.34.2-eks-ecaa3a6",
        os_image="Amazon Linux 2023.9.20251110",
        kernel="6.12.55-74.119.amzn2023.x86_64",
        group="h100-blue",
    )


def trn1(host: str) -> Instance:
    """A trn1.32xlarge: 16 devices of two cores each."""
    return dataclasses.replace(
        p5(host, efa=8, gpus=0), machine="trn1.32xlarge", neuron_devices=16, neuron_cores=32, group="trainium"
    )
