"""From the raw declaration to a `Site`: structure by pydantic, rules across fields by `rules`, all errors at once."""

import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from plumbline.catalog import AwsCatalogue, aws_catalogue, nearest
from plumbline.site.model import Pool, Site, Storage
from plumbline.site.problems import NOTHING, Path, Problem, SiteError, shown
from plumbline.site.rules import Draft, PoolDraft, StorageDraft, broken_rules


def read_site(raw: Any, catalogue: AwsCatalogue | None = None) -> tuple[Site, tuple[Problem, ...]]:
    """The typed site, and warnings.

    Rules that join several fields run on whatever parts could be read, so that one run lists everything wrong.

    Args:
        raw: the value of `plumbline:site`, as parsed from the stack's file.
        catalogue: the facts to check against; the shipped ones by default.

    Raises:
        SiteError: something is wrong; its message lists all of it.
    """
    if not isinstance(raw, Mapping):
        needed = "a mapping with name, cloud, region, network, cluster and pools"
        next_step = "declare the site under config, as in stacks/Pulumi.local.yaml"
        raise SiteError([Problem(path=(), found=shown(raw), needed=needed, next=next_step)])
    draft, problems = _draft(raw)
    problems += broken_rules(draft, catalogue or aws_catalogue())
    errors = [problem for problem in problems if not problem.warns]
    if errors:
        raise SiteError(errors)
    return Site.model_validate(raw), tuple(problem for problem in problems if problem.warns)


def _draft(raw: Mapping[str, Any]) -> tuple[Draft, list[Problem]]:
    """Read each part by itself, so that what is wrong in one does not hide what is wrong in another."""
    problems: list[Problem] = []
    parts: dict[str, Any] = {}
    for name, field in Site.model_fields.items():
        if name in ("pools", "storage") or (name not in raw and not field.is_required()):
            continue
        if name in raw:
            parts[name] = _part(typing.cast(Any, Site.__annotations__[name]), raw[name], (name,), problems)
        else:
            problems.append(_missing((name,), Site))
    problems += [_unexpected((name,), Site) for name in raw if name not in Site.model_fields]
    draft = Draft(
        pools=tuple(_pools(raw, problems)),
        storage=tuple(_storage(raw, problems)),
        **{name: part for name, part in parts.items() if name in _DRAFTED},
    )
    return draft, problems


_DRAFTED = {"name", "region", "network", "cluster", "plugins", "proof"}
_POOL_PARTS = tuple(name for name in Pool.model_fields if name in PoolDraft.__dataclass_fields__)


def _storage(raw: Mapping[str, Any], problems: list[Problem]) -> Iterator[StorageDraft]:
    listed = raw.get("storage", [])
    if not isinstance(listed, list | tuple):
        problems.append(
            Problem(
                path=("storage",),
                found=shown(listed),
                needed="a list of file systems",
                next="write a list, or remove it",
            )
        )
        return
    for index, each in enumerate(listed):
        value = _part(Storage, each, ("storage", index), problems)
        name = each.get("name") if isinstance(each, Mapping) else None
        yield StorageDraft(index=index, name=name if isinstance(name, str) else None, value=value)


def _pools(raw: Mapping[str, Any], problems: list[Problem]) -> Iterator[PoolDraft]:
    pools = raw.get("pools", NOTHING)
    if not isinstance(pools, list) or not pools:
        problems.append(
            Problem(
                path=("pools",),
                found=shown(pools),
                needed="a list of pools, one at least",
                next="add a pool under pools",
            )
        )
        return
    for index, each in enumerate(pools):
        _part(Pool, each, ("pools", index), problems)
        if isinstance(each, Mapping):
            readable = {
                name: _part(Pool.__annotations__[name], each[name], (name,), []) for name in _POOL_PARTS if name in each
            }
            yield PoolDraft(index=index, **readable)


def _part(annotation: Any, value: Any, at: Path, problems: list[Problem]) -> Any:
    """The typed part, or None after noting in `problems` all that is wrong with it."""
    try:
        return TypeAdapter(annotation).validate_python(value)
    except ValidationError as error:
        problems += [_problem(annotation, at, details) for details in error.errors()]
        return None


def _problem(annotation: Any, at: Path, details: ErrorDetails) -> Problem:
    """A pydantic error in our words."""
    path, owner, wanted, current = _locate(annotation, at, details["loc"])
    match details["type"]:
        case "missing":
            return _missing(path, owner)
        case "extra_forbidden":
            return _unexpected(path, owner)
        case "literal_error" | "union_tag_invalid":
            context = details.get("ctx", {})
            choices = context.get("expected") or context.get("expected_tags")
            found = context.get("tag", details["input"])
            if details["type"] == "union_tag_invalid":
                path = (*path, "kind")
            close = nearest(str(found), [c.strip(" '") for c in str(choices).replace(" or ", ",").split(",")])
            next_step = f"did you mean {close[0]}?" if close else "write one of these"
            return Problem(path=path, found=shown(found), needed=f"one of {choices}", next=next_step)
        case "union_tag_not_found":
            tags = list(_tagged(current))
            needed = f"one of {', '.join(repr(tag) for tag in tags)}"
            return Problem(path=(*path, "kind"), found="nothing", needed=needed, next=f"add kind: {tags[0]}")
        case "value_error":
            needed = str(details["ctx"]["error"])
        case _:
            needed = details["msg"].removeprefix("Input should be ").removeprefix("String should ")
    example = f"for example {shown(wanted[1])}" if wanted[1] is not None else "correct the value"
    return Problem(path=path, found=shown(details["input"]), needed=f"{needed}{_meaning(wanted[0])}", next=example)


def _missing(path: Path, owner: Any) -> Problem:
    description, example = _field(owner, path[-1])
    hint = f", for example {shown(example)}" if example is not None else ""
    needed = (description or "a value").rstrip(".")
    return Problem(path=path, found="nothing", needed=needed, next=f"add {path[-1]}{hint}")


def _unexpected(path: Path, owner: Any) -> Problem:
    known = list(owner.model_fields)
    close = nearest(str(path[-1]), known)
    next_step = f"did you mean {close[0]}?" if close else "remove it"
    return Problem(path=path, found=f"a field {path[-1]}", needed=f"one of {', '.join(known)}", next=next_step)


def _meaning(description: str | None) -> str:
    return f" ({description.splitlines()[0].rstrip('.')})" if description else ""


def _field(owner: Any, name: str | int) -> tuple[str | None, Any]:
    """Description and example of a field of a model; Nones where it has none."""
    info = owner.model_fields.get(str(name)) if isinstance(owner, type) and issubclass(owner, BaseModel) else None
    if info is None:
        return None, None
    return info.description, info.examples[0] if info.examples else None


def _locate(annotation: Any, at: Path, loc: tuple[int | str, ...]) -> tuple[Path, Any, tuple[str | None, Any], Any]:
    """Where a pydantic location lies in the file.

    pydantic puts the tag of a union into the location, and a mark for the key of a mapping; the file has no such
    levels.

    Returns:
        The path, the model that owns its last part, that part's description and example, and its annotation.
    """
    path, owner, wanted = at, Site, _field(Site, at[-1])
    current = _bare(annotation)
    for part in loc:
        tags = _tagged(current)
        if part in tags:
            current = tags[str(part)]
            continue
        if part == "[key]":
            continue
        path = (*path, part)
        owner, current = current, _bare(_inner(current, part))
        wanted = _field(owner, part) if isinstance(owner, type) and isinstance(part, str) else wanted
    return path, owner, wanted, current


def _bare(annotation: Any) -> Any:
    """Without what wraps it: `Annotated`, and `None` as the other choice."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _bare(typing.get_args(annotation)[0])
    choices = [choice for choice in typing.get_args(annotation) if choice is not type(None)]
    if type(None) in typing.get_args(annotation) and len(choices) == 1:
        return _bare(choices[0])
    return annotation


def _inner(annotation: Any, part: str | int) -> Any:
    """The annotation of a field of a model, or of an element of a sequence or a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        info = annotation.model_fields.get(str(part))
        return info.annotation if info else None
    arguments = typing.get_args(annotation)
    if not arguments:
        return None
    return arguments[-1] if isinstance(part, str) else arguments[0]


def _tagged(annotation: Any) -> dict[str, type[BaseModel]]:
    """The members of a union that is told apart by `kind`, by their tag; empty for anything else."""
    annotation = _bare(annotation)
    members = [m for m in typing.get_args(annotation) if isinstance(m, type) and issubclass(m, BaseModel)]
    return {typing.get_args(m.model_fields["kind"].annotation)[0]: m for m in members if "kind" in m.model_fields}
