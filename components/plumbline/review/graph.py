"""Resources and how they point at each other, as far as that is known in preview."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plumbline.review.values import UNKNOWN, Json, Unknown, items, look, text


@dataclass(frozen=True, kw_only=True, eq=False)
class Resource:
    """One resource of a stack, as it will be."""

    type: str
    """Its type token: `aws:ec2/launchTemplate:LaunchTemplate`."""
    name: str
    """Its name in the program."""
    props: Json
    """Its inputs, in the engine's spelling."""
    urn: str = ""
    id: str | Unknown = UNKNOWN
    """Its id in the cloud; unknown before it exists."""
    dependencies: tuple[str, ...] = ()
    """URNs, or names, of what it depends on in any way."""
    property_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By property, URNs or names of what its value is made from."""
    deleted_with: str | Unknown | None = UNKNOWN
    """URN of the resource whose deletion takes this one along; None where there is none, unknown where nobody told."""

    @property
    def label(self) -> str:
        """The resource, for people: its URN, or type and name."""
        return self.urn or f"{self.type}::{self.name}"


@dataclass(frozen=True, kw_only=True)
class Pointers:
    """What a property points at."""

    resources: tuple[Resource, ...] = ()
    """Resources of the stack."""
    foreign: tuple[str, ...] = ()
    """Ids of what is not in the stack."""
    open: bool = False
    """Whether it may point at more, which nobody can tell yet."""

    @property
    def keys(self) -> set[str]:
        """A name for each of them, the same wherever it is pointed at from."""
        return {resource.label for resource in self.resources} | set(self.foreign)


class Graph:
    """The resources of one stack, or of a part of it."""

    def __init__(
        self,
        resources: Sequence[Resource],
        *,
        subnet_zones: Mapping[str, str] | None = None,
        image_platforms: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`subnet_zones`: zones of subnets by id; `image_platforms`: `os/architecture`s by image, where they are known.

        Both are looked up by the caller, so that a review depends on nothing but what it is given.
        """
        self.resources = tuple(resources)
        self.image_platforms = dict(image_platforms or {})
        self.subnet_zones = dict(subnet_zones or {})
        self._by_urn = {resource.urn: resource for resource in resources if resource.urn}

    def of(self, *types: str) -> Iterator[Resource]:
        """All resources of these types."""
        return (resource for resource in self.resources if resource.type in types)

    def pointers(self, resource: Resource, path: Sequence[str | int], type_: str) -> Pointers:
        """What the id, or the ids, at `path` of the resource point at, among resources of the type.

        A known id is compared. An unknown one points at what the property depends on; where that is more than there
        are unknown ids, nobody can tell which.
        """
        value = look(resource.props, *path)
        if value is None:
            return Pointers()
        given = value if isinstance(value, list | tuple) else [value]
        found, foreign = [], []
        for each in given:
            if isinstance(each, str):
                match = next((other for other in self.of(type_) if other.id == each), None)
                if match:
                    found.append(match)
                else:
                    foreign.append(each)
        unknowns = sum(each is UNKNOWN for each in given)
        if not unknowns:
            return Pointers(resources=tuple(found), foreign=tuple(foreign))
        candidates = [other for other in self._depended_on(resource, str(path[0]), type_) if other.id is UNKNOWN]
        whole_list = value is UNKNOWN and str(path[-1]).endswith("s")
        if len(candidates) > unknowns and not whole_list:
            return Pointers(resources=tuple(found), foreign=tuple(foreign), open=True)
        return Pointers(
            resources=(*found, *candidates),
            foreign=tuple(foreign),
            open=whole_list or len(candidates) < unknowns,
        )

    def _depended_on(self, resource: Resource, prop: str, type_: str) -> list[Resource]:
        named = resource.property_dependencies.get(prop, resource.dependencies)
        return [other for other in self.of(type_) if other.urn in named or other.name in named]

    def zones(self, resource: Resource, *path: str | int) -> set[str] | None:
        """The zones of the subnets at `path`; None where one of them is not known."""
        subnets = look(resource.props, *path)
        if not isinstance(subnets, list | tuple):
            return None
        pointers = self.pointers(resource, path, "aws:ec2/subnet:Subnet")
        zones = [self.subnet_zones.get(each) for each in pointers.foreign]
        for subnet in pointers.resources:
            id_ = subnet.id if isinstance(subnet.id, str) else ""
            zones.append(text(subnet.props, "availabilityZone") or self.subnet_zones.get(id_))
        known = {zone for zone in zones if zone}
        return None if pointers.open or None in zones else known


def at(resource: Resource, *path: str | int) -> Any:
    """What is at the path of a resource's inputs."""
    return look(resource.props, *path)


def enumerated(resource: Resource, *path: str | int) -> list[tuple[int, Any]]:
    """The items that are known at least in part, each with its place in the list."""
    return [(i, each) for i, each in enumerate(items(resource.props, *path)) if each is not UNKNOWN]
