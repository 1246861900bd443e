"""The commands, and what they leave behind."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import toolbox
from twin.client import Client, leftovers
from twin.state import StateFolder

pytestmark = pytest.mark.control_plane


def _twin(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "twin", "--state", str(state), *words]
    return subprocess.run(command, cwd=toolbox.CHECKOUT, capture_output=True, text=True, timeout=90, check=False)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "a state"
    _twin(tmp_path / "a state", "down")


def test_a_killed_daemon_loses_nothing_and_leaves_nothing(state: Path) -> None:
    assert _twin(state, "start").returncode == 0
    assert _twin(state, "fault", "on", "plugin-crashloop").returncode == 0
    client = Client(StateFolder(state))
    process = client.state.daemon.process()
    assert process is not None
    process.send_signal(signal.SIGKILL)
    while client.state.daemon.process() is not None:
        time.sleep(0.02)
    planes = list((state / "planes").iterdir())

    assert _twin(state, "start").returncode == 0
    assert list((state / "planes").iterdir()) == planes, "the spare control plane of the killed daemon is taken over"
    assert client.faults() == {"plugin-crashloop"}

    again = client.state.daemon.process()
    assert again is not None
    again.send_signal(signal.SIGKILL)
    ended = _twin(state, "stop")
    assert "kube-apiserver" in ended.stdout
    assert leftovers(state) == []
    assert "nothing ran" in _twin(state, "down").stdout
    assert [path.name for path in state.iterdir()] == []


def test_an_unknown_fault_is_answered_with_the_known_ones(state: Path) -> None:
    refused = _twin(state, "fault", "on", "plugin-crashes")
    assert refused.returncode == 1
    assert "make rehearse" in refused.stderr
    assert "plugin-crashloop" in _twin(state, "fault", "list").stdout
