"""A capacity block that has not begun: the stack is built, the gate waits, and a declared reason lets it complete."""

import pytest

from plumbline.plan import plan_site
from plumbline.site import read_site
from tests.lifecycle.test_green_blocked_recovered import pools, report
from tests.rehearsals import Rehearsal
from tests.sites import GOOD, declare_pool

pytestmark = pytest.mark.engine
LATER = {"kind": "capacity-block", "id": "cr-0a1b2c3d4e5f60751", "zone": "us-west-2b"}
SITE = declare_pool(capacity=LATER)
REASON = "the block begins in the night, and the cluster is wanted before"


def test_block_to_come_builds_the_pool_without_nodes_and_blocks_until_then(stage: Rehearsal) -> None:
    done = stage.up(config=stage.config(SITE))
    assert done.code != 0
    assert "fabric not proven on pool h100" in done.text
    assert "deferred until" in done.text
    assert "or give a reason as plumbline:site.proof.accept_deferred" in done.text
    name = plan_site(read_site(SITE)[0]).pools[0].full_name
    assert pools(stage) == {f"train:{name}"}
    [group] = [g for g in stage.resources("aws:eks/nodeGroup:NodeGroup") if g["id"] == f"train:{name}"]
    assert group["outputs"]["scalingConfig"] == {"desiredSize": 0, "minSize": 0, "maxSize": 2}
    assert "kubernetes:core/v1:Namespace" not in stage.types()
    [gate] = report(stage)["gates"]
    assert gate["verdict"] == "unknown"


def test_declared_reason_completes_the_stack_unproven(stage: Rehearsal) -> None:
    site = {**SITE, "proof": {**GOOD["proof"], "accept_deferred": REASON}}
    done = stage.up(config=stage.config(site))
    assert done.code == 0, done.text
    assert f'completed unproven: "{REASON}"' in done.text
    assert "kubernetes:core/v1:Namespace" in stage.types()
    found = report(stage)
    assert found["proven"] is False
    assert found["gates"][0]["verdict"] == "unknown"


def test_block_that_begins_turns_the_same_pool_into_one_that_has_to_be_proven(stage: Rehearsal) -> None:
    """Another block, one that runs, stands for the same one later: the clock is not ours to turn."""
    running = declare_pool(capacity={**LATER, "id": "cr-0a1b2c3d4e5f60750"})
    done = stage.up(config=stage.config(running))
    assert done.code == 0, done.text
    assert report(stage)["proven"] is True
    name = plan_site(read_site(running)[0]).pools[0].full_name
    assert pools(stage) == {f"train:{name}"}, "the generation that had no nodes is gone"
