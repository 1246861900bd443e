"""Machines: what they are bought by, what they need, how their fabric is laid out, and how it is proven."""

import re
from collections.abc import Iterator

from plumbline.catalog import AwsCatalogue, nearest
from plumbline.catalog.versions import older
from plumbline.site.problems import Problem, shown
from plumbline.site.rules.draft import Draft, Rule


def _machine_known(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    for pool in draft.pools:
        if pool.machine is None or pool.machine in catalogue.machines:
            continue
        close = nearest(pool.machine, catalogue.machines)
        yield Problem(
            path=("pools", pool.index, "machine"),
            found=shown(pool.machine),
            needed=f"a machine of the catalogue: {', '.join(catalogue.machines)}",
            next=f"did you mean {close[0]}?" if close else "choose one of these",
        )


def _machine_allows(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    """What a machine can be bought by, and the Kubernetes version that it needs."""
    for pool, name, facts in draft.machines(catalogue):
        if pool.capacity and pool.capacity.kind not in facts.capacity_kinds:
            yield Problem(
                path=("pools", pool.index, "capacity", "kind"),
                found=shown(pool.capacity.kind),
                needed=f"a kind of capacity that {name} is sold by: {', '.join(facts.capacity_kinds)}",
                next=f"see {catalogue.address(facts, 'capacity_kinds')}",
                warns="capacity_kinds" in facts.unconfirmed,
            )
        floor = facts.kubernetes_floor
        if floor and draft.cluster and older(draft.cluster.version, floor):
            yield Problem(
                path=("cluster", "version"),
                found=shown(draft.cluster.version),
                needed=f"{floor} or newer, for {name} of pools[{pool.index}]",
                next=f"see {catalogue.address(facts, 'kubernetes_floor')}",
                warns="kubernetes_floor" in facts.unconfirmed,
            )


def _fabric_fits(draft: Draft, catalogue: AwsCatalogue) -> Iterator[Problem]:
    """How EFA is laid out, given out and counted."""
    for pool, name, facts in draft.machines(catalogue):
        if pool.layout == "legacy" and facts.cards_without_efa:
            cards = ", ".join(map(str, facts.cards_without_efa))
            yield Problem(
                path=("pools", pool.index, "layout"),
                found='"legacy", which puts EFA on card 0',
                needed=f"current: {name} has cards without EFA ({cards})",
                next=f"remove layout; see {catalogue.address(facts, 'cards_without_efa')}",
            )
        image = draft.plugins.efa.image if draft.plugins else None
        tag = re.search(r":v?([0-9]+(?:\.[0-9]+)+)", image or "")
        floor = facts.efa_plugin_floor
        if floor and tag and pool.fabric == "efa" and pool.devices != "dra" and older(tag[1], floor):
            yield Problem(
                path=("plugins", "efa", "image"),
                found=shown(image),
                needed=f"version {floor} or newer, for {name} of pools[{pool.index}]",
                next=f"remove the line to take the pinned default; see {catalogue.address(facts, 'efa_plugin_floor')}",
                warns="efa_plugin_floor" in facts.unconfirmed,
            )
    cni = draft.cluster.addons.vpc_cni if draft.cluster else None
    floor = catalogue.eks.cni_efa_only_floor
    if cni and older(cni.partition("-")[0], floor) and any(pool.fabric == "efa" for pool in draft.pools):
        yield Problem(
            path=("cluster", "addons", "vpc_cni"),
            found=shown(cni),
            needed=f"v{floor} or newer: older ones take efa-only interfaces for their own",
            next="remove the line to take the pinned one; "
            f"see {catalogue.address(catalogue.eks, 'cni_efa_only_floor')}",
        )
    for pool in draft.pools:
        if pool.devices != "dra":
            continue
        if pool.fabric == "none":
            yield Problem(
                path=("pools", pool.index, "devices"),
                found='"dra", and fabric "none"',
                needed="fabric: efa, whose devices it gives out",
                next="remove devices, or set fabric: efa",
            )
        floor = catalogue.eks.dra_kubernetes_floor
        if draft.cluster and older(draft.cluster.version, floor):
            yield Problem(
                path=("pools", pool.index, "devices"),
                found=f'"dra", with Kubernetes {draft.cluster.version}',
                needed=f"Kubernetes {floor} or newer",
                next="raise cluster.version, or use the plugin; "
                f"see {catalogue.address(catalogue.eks, 'dra_kubernetes_floor')}",
            )


def _one_image(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    for pool in draft.pools:
        if pool.image and pool.ami_release:
            yield Problem(
                path=("pools", pool.index, "ami_release"),
                found=f"{shown(pool.ami_release)}, and image.id {pool.image.id}",
                needed="one of them: a release is one of EKS's own AMI",
                next="remove one",
            )


def _stable_before_deadline(draft: Draft, _: AwsCatalogue) -> Iterator[Problem]:
    if draft.proof and draft.proof.stable >= draft.proof.within:
        yield Problem(
            path=("proof", "stable"),
            found=f"{draft.proof.stable.total_seconds():.0f} s",
            needed=f"less than proof.within, {draft.proof.within.total_seconds():.0f} s",
            next="shorten stable or lengthen within; otherwise no pool can ever be proven",
        )


RULES: tuple[Rule, ...] = (
    _machine_known,
    _machine_allows,
    _fabric_fits,
    _one_image,
    _stable_before_deadline,
)
