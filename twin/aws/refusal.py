"""How AWS says no."""

import uuid
from collections.abc import Mapping


class Refusal(Exception):
    """An API error, in the words that the provider passes on from AWS."""

    def __init__(self, operation: str, code: str, message: str, *, what: str = "") -> None:
        service = next((name for name, operations in _SERVICES.items() if operation in operations), "EC2")
        doing = f"{what}: " if what else ""
        # The AWS SDK knows the errors of most services by name; those of these it does not.
        said = f"api error {code}" if service in _UNNAMED else code
        super().__init__(
            f"{doing}operation error {service}: {operation}, https response error StatusCode: "
            f"{_STATUS.get(code, 400)}, RequestID: {uuid.uuid4()}, {said}: {message}"
        )
        self.code = code


_VERBS = ("Create", "Update", "Delete", "Describe")
_SERVICES: Mapping[str, frozenset[str]] = {
    "EKS": frozenset(
        {f"{verb}{noun}" for noun in ("Cluster", "Nodegroup", "AccessEntry", "Addon") for verb in _VERBS}
        | {f"{verb}PodIdentityAssociation" for verb in _VERBS}
        | {"UpdateClusterConfig", "UpdateClusterVersion", "UpdateNodegroupConfig", "UpdateNodegroupVersion"}
        | {"AssociateAccessPolicy", "DisassociateAccessPolicy"}
    ),
    "IAM": frozenset(
        {f"{verb}{noun}" for noun in ("Role", "Policy", "InstanceProfile") for verb in ("Create", "Get", "Delete")}
        | {"AddRoleToInstanceProfile", "CreatePolicyVersion", "AttachRolePolicy", "ListAttachedRolePolicies"}
        | {"PutRolePolicy"}
    ),
    "FSx": frozenset(f"{verb}{noun}" for noun in ("FileSystem", "DataRepositoryAssociation") for verb in _VERBS),
    "KMS": frozenset({"CreateKey", "PutKeyPolicy", "CreateAlias", "UpdateAlias", "DeleteAlias", "DescribeKey"}),
    "CloudWatch Logs": frozenset({"CreateLogGroup", "PutRetentionPolicy", "DeleteLogGroup"}),
    "Auto Scaling": frozenset({"PutScheduledUpdateGroupAction"}),
}
"""Operations by service; what is none of these is EC2's."""
_UNNAMED = ("Auto Scaling", "EC2")
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
