"""How AWS says no."""

import uuid


class Refusal(Exception):
    """An API error, in the words that the provider passes on from AWS."""

    def __init__(self, operation: str, code: str, message: str, *, what: str = "") -> None:
        service = "EKS" if operation in _EKS else "IAM" if operation in _IAM else "EC2"
        doing = f"{what}: " if what else ""
        super().__init__(
            f"{doing}operation error {service}: {operation}, https response error StatusCode: 400, "
            f"RequestID: {uuid.uuid4()}, api error {code}: {message}"
        )
        self.code = code


_EKS = {"CreateCluster", "DeleteCluster", "CreateNodegroup", "UpdateNodegroupConfig", "UpdateNodegroupVersion"}
_IAM = {"CreateRole", "DeleteRole", "AttachRolePolicy"}


class LaunchFailure(Exception):
    """Instances that could not be launched, or did not join: the node group fails, and is kept."""

    def __init__(self, code: str, message: str, resources: list[str]) -> None:
        super().__init__(f"{', '.join(resources)}: {code}: {message}")
        self.code = code
