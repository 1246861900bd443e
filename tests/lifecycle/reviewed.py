"""A stack's recorded resources, as a review sees them."""

from plumbline.review import Finding, Graph, Resource, review
from tests.rehearsals import Rehearsal


def findings(stage: Rehearsal) -> list[Finding]:
    """What a review finds in the stack, as it was built."""
    recorded = stage.exported()["deployment"]["resources"]
    resources = [
        Resource(
            type=each["type"],
            name=each["urn"].split("::")[-1],
            props={key: value for key, value in (each.get("inputs") or {}).items() if not key.startswith("__")},
            urn=each["urn"],
            id=each.get("id", ""),
            dependencies=tuple(each.get("dependencies") or ()),
        )
        for each in recorded
        if each.get("custom")
    ]
    zones = {
        each["id"]: each["outputs"]["availabilityZone"] for each in recorded if each["type"] == "aws:ec2/subnet:Subnet"
    }
    return review(Graph(resources, subnet_zones=zones))
