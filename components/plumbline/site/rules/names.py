"""Names that have to differ, and to fit."""

from collections.abc import Iterator

from plumbline.catalog import AwsCatalogue, nearest
from plumbline.site.problems import Problem, shown
from plumbline.site.rules.draft import Draft, Rule

GENERATION_LENGTH = 6
"""Characters of a generation's digest in names."""


def _pool_names_differ(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    seen: set[str] = set()
    for pool in draft.pools:
        if pool.name is None:
            continue
        if pool.name in seen:
            yield Problem(
                path=("pools", pool.index, "name"),
                found=f"{shown(pool.name)}, as an earlier pool",
                needed="a name of its own for each pool",
                next="rename one of them; a renamed pool is a new pool, built before the old one goes",
            )
        seen.add(pool.name)


def _names_fit(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    """A name has to fit for every generation: one that fits today only would fail at the first replacement."""
    if draft.name is None:
        return
    limit = catalogue.eks.nodegroup_name_length
    for pool in draft.pools:
        if pool.name is None:
            continue
        group = f"{draft.name}-{pool.name}-{'x' * GENERATION_LENGTH}"
        length = len(group)
        if length > limit:
            yield Problem(
                path=("pools", pool.index, "name"),
                found=f"{shown(pool.name)}, with which node groups get names of {length} characters ({group})",
                needed=f"{limit} characters at most",
                next=f"shorten the pool's or the site's name by {length - limit}",
            )


def _storage_names(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    names: list[str] = []
    for each in draft.storage:
        if each.name in names:
            yield Problem(
                path=("storage", each.index, "name"),
                found=f"{shown(each.name)}, as an earlier file system",
                needed="a name of its own for each file system",
                next="rename one of them",
            )
        elif each.name is not None:
            names.append(each.name)
    for pool in draft.pools:
        for index, name in enumerate(pool.storage or ()):
            if name not in names:
                close = nearest(name, names)
                yield Problem(
                    path=("pools", pool.index, "storage", index),
                    found=shown(name),
                    needed=f"a name under storage: {', '.join(names) or 'there is none'}",
                    next=f"did you mean {close[0]}?" if close else f"add a file system {name} under storage",
                )


RULES: tuple[Rule, ...] = (
    _pool_names_differ,
    _names_fit,
    _storage_names,
)
