"""Faults that people reported in public: each gets its verdict, its level, and findings that say what matters."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from plumbline.review import ALL_RULES, UNKNOWN, Graph, from_engine, review
from plumbline.review.holders import group_held, holders
from tests.review.reported import CASES, GRAPHS, case, findings, masked, paths

EXPECT: list[dict[str, Any]] = yaml.safe_load((CASES / "EXPECT.yaml").read_text("utf-8"))
IN_GRAPHS = [
    entry
    for entry in EXPECT
    if entry["file"][:2] in GRAPHS and entry["part"] not in ("bad_ec2", "bad_tcp_udp_icmp_only")
]


def name(entry: Mapping[str, Any]) -> str:
    return f"{entry['file'].partition('.')[0]}-{entry['part']}"


@pytest.mark.parametrize("entry", EXPECT, ids=name)
def test_verdict_level_and_words(entry: Mapping[str, Any]) -> None:
    found = findings(entry["file"], entry["part"])
    if entry["verdict"] == "pass":
        assert [str(each) for each in found] == []
        return
    assert {each.level for each in found} == {entry.get("level", "error")}
    said = "\n".join(str(each) for each in found)
    assert entry["words"], "a fault has to be named"
    assert [word for word in entry["words"] if word not in said] == [], said
    assert all(each.source.startswith("https://") and each.next and each.needed for each in found)


@pytest.mark.parametrize("entry", IN_GRAPHS, ids=name)
def test_what_is_unknown_takes_findings_away_and_never_adds_one(entry: Mapping[str, Any]) -> None:
    graph = GRAPHS[entry["file"][:2]](entry["file"], entry["part"])
    before = {(each.rule, each.resource) for each in review(graph)}
    zones = {"subnet-0aaaa0000000001": "eu-west-1a"}
    for target in graph.resources:
        for path in paths(target.props):
            if path[0] == "networkInterfaces" and len(path) > 1 and isinstance(path[1], int) and path[1] > 2:
                continue  # thirty interfaces alike
            changed = dataclasses.replace(target, props=masked(target.props, path, UNKNOWN))
            others = [changed if each is target else each for each in graph.resources]
            after = review(Graph(others, subnet_zones=zones, image_platforms=graph.image_platforms))
            assert {(each.rule, each.resource) for each in after} <= before, path
            if len(path) == 1:
                assert not [each for each in after if each.resource == target.label and each.path[:1] == path], path


def test_order_of_resources_changes_nothing() -> None:
    for entry in IN_GRAPHS:
        graph = GRAPHS[entry["file"][:2]](entry["file"], entry["part"])
        once = review(graph)
        turned = Graph(graph.resources[::-1], subnet_zones=graph.subnet_zones, image_platforms=graph.image_platforms)
        assert [str(each) for each in review(turned)] == [str(each) for each in once]
        assert [str(each) for each in review(graph)] == [str(each) for each in once]


def test_the_engines_mark_of_an_unknown_is_seen_at_any_depth() -> None:
    news = from_engine(case("55-unknown-sentinel.json")["check_during_preview"]["news"])
    assert news["kubeconfig"] is UNKNOWN
    assert news["nested"]["subnets"] == [UNKNOWN, "subnet-0aaaa0000000001"]
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": [1]}
    output = {"4dabf18193072939515e22adb298388d": "d0e6a833031e9bbcd3f4e8bde6ca49a4"}
    assert from_engine({"a": secret, "b": output, "c": {**output, "value": 2}}) == {"a": [1], "b": UNKNOWN, "c": 2}


def test_rules_have_names_of_their_own_and_sources() -> None:
    names = [rule.id for rule in ALL_RULES]
    assert len(set(names)) == len(names)
    assert all(rule.source.startswith("https://") for rule in ALL_RULES)
    assert all(rule.id == rule.id.lower() and " " not in rule.id for rule in ALL_RULES)


def test_interface_that_holds_a_group_is_named_and_only_our_own_loose_one_may_go() -> None:
    text = (CASES / "62-sg-dependency.log").read_text("utf-8")
    group = group_held(text)
    assert group == "sg-0aaaabbbbccccdd05"
    assert group_held("AccessDenied: sg-0aaaabbbbccccdd05") is None
    left, foreign = holders(case("62-lingering-eni.json"), group, "train")
    assert (left.id, left.removable) == ("eni-0aaaa000000000001", True)
    assert (foreign.id, foreign.removable) == ("eni-0aaaa000000000002", False)
    assert "ELB app/other/0000, in-use" in str(foreign)
    assert not any(each.removable for each in holders(case("62-lingering-eni.json"), group, "another"))
    assert holders(case("62-lingering-eni.json"), "sg-0", "train") == []
