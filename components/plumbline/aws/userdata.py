"""What nodes of AL2023 are told when they start: NodeConfig documents for nodeadm, in the format that EKS merges.

https://awslabs.github.io/amazon-eks-ami/nodeadm/
"""

import base64
from collections.abc import Mapping
from email.message import Message
from email.mime.multipart import MIMEMultipart
from typing import Any

import yaml


def node_config(spec: Mapping[str, Any]) -> str:
    """A NodeConfig as user data of several parts, in base64. EKS puts its own part beside it."""
    document = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": dict(spec)}
    part = Message()
    part["Content-Type"] = "application/node.eks.aws"
    part.set_payload(yaml.safe_dump(document, sort_keys=True))
    whole = MIMEMultipart(boundary="plumbline")
    whole.attach(part)
    return encoded(whole.as_string())


def encoded(text: str) -> str:
    """User data as a launch template takes it."""
    return base64.b64encode(text.encode()).decode()


def joining(
    *,
    name: str,
    endpoint: str,
    certificate_authority: str,
    service_cidr: str,
    labels: Mapping[str, str],
    taint: tuple[str, str, str],
    features: Mapping[str, bool],
) -> dict[str, Any]:
    """The spec by which an instance of one's own image joins, with its labels and its taint from birth.

    EKS gives such a node its taints only after it joined, when pods may have come already.
    https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html
    """
    key, value, effect = taint
    flags = [
        "--node-labels=" + ",".join(f"{label}={labels[label]}" for label in sorted(labels)),
        f"--register-with-taints={key}={value}:{effect}",
    ]
    spec: dict[str, Any] = {
        "cluster": {
            "name": name,
            "apiServerEndpoint": endpoint,
            "certificateAuthority": certificate_authority,
            "cidr": service_cidr,
        },
        "kubelet": {"flags": flags},
    }
    return {**spec, "featureGates": dict(features)} if features else spec
