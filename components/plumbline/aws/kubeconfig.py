"""The kubeconfig by which a cluster is found."""

import json


def kubeconfig(name: str, region: str, endpoint: str, certificate_authority: str) -> str:
    """A kubeconfig (JSON) with exec credentials by name: a gate may outlive a token, which lasts 15 minutes.

    Args:
        name: the cluster's name.
        region: its region.
        endpoint: address of its API server.
        certificate_authority: base64 of the PEM, as EKS gives it.
    """
    arguments = ["eks", "get-token", "--cluster-name", name, "--region", region, "--output", "json"]
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "aws",
            "args": arguments,
            "interactiveMode": "Never",
        }
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": name, "cluster": {"server": endpoint, "certificate-authority-data": certificate_authority}}
            ],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
    )
