"""What a rehearsal does about what an earlier one left."""

import json
import os
from pathlib import Path

import pytest

from twin.rehearse import _left_locked, rehearse
from twin.state import StateFolder


def lock(state: StateFolder, pid: int, stack: str = "local") -> None:
    folder = state.pulumi / ".pulumi" / "locks" / "organization" / "plumbline" / stack
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{pid}.json").write_text(json.dumps({"pid": pid, "username": "u", "hostname": "h"}))


def test_lock_of_a_killed_engine_is_taken_away_and_that_of_a_live_one_is_not(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    assert not _left_locked(state, "local")
    lock(state, 2**22 + 1)
    assert _left_locked(state, "local")
    assert not _left_locked(state, "other")
    lock(state, os.getpid())
    assert not _left_locked(state, "local")


@pytest.mark.parametrize(
    ("stack", "fault", "words"),
    [
        ("local", "no-such-fault", "plugin-wrong-architecture: the tag of the EFA device plugin"),
        ("no-such-stack", None, "stacks/Pulumi.no-such-stack.yaml does not exist; there are adopted, local"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stack: str, fault: str | None, words: str
) -> None:
    assert rehearse(StateFolder(tmp_path), stack, fault) == 2
    assert words in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [], "nothing was started"
