"""How AWS says no."""

import uuid


class Refusal(Exception):
    """An API error, in the words that the provider passes on from AWS."""

    def __init__(self, operation: str, code: str, message: str, *, what: str = "") -> None:
        service = "EKS" if operation in _EKS else "IAM" if operation in _IAM else "EC2"
        doing = f"{what}: " if what else ""
        # The AWS SDK knows the errors of EKS and IAM by name; those of EC2 it does not.
        said = f"api error {code}" if service == "EC2" else code
        super().__init__(
            f"{doing}operation error {service}: {operation}, https response error StatusCode: "
            f"{_STATUS.get(code, 400)}, RequestID: {uuid.uuid4()}, {said}: {message}"
        )
        self.code = code


_EKS = {
    f"{verb}{noun}"
    for noun in ("Cluster", "Nodegroup", "AccessEntry", "Addon")
    for verb in ("Create", "Update", "Delete", "Describe")
} | {"UpdateNodegroupConfig", "UpdateNodegroupVersion", "AssociateAccessPolicy", "DisassociateAccessPolicy"}
_IAM = {"CreateRole", "GetRole", "DeleteRole", "AttachRolePolicy", "ListAttachedRolePolicies"}
_STATUS = {
    "ResourceInUseException": 409,
    "ResourceNotFoundException": 404,
    "EntityAlreadyExists": 409,
    "DeleteConflict": 409,
    "NoSuchEntity": 404,
}


class LaunchFailure(Exception):
    """Instances that could not be launched, or did not join: the node group fails, and is kept."""

    def __init__(self, code: str, message: str, resources: list[str]) -> None:
        which = f"{', '.join(resources)}: " if resources else ""
        super().__init__(f"{which}{code}: {message}")
        self.code = code
