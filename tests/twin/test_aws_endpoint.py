"""AWS's own API at the address that a rehearsal's environment names, before the daemon runs and after it ran again."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.toolbox import CHECKOUT
from twin.client import Client, DaemonFailed, leftovers
from twin.control_plane import _PORTS
from twin.state import StateFolder

ASK = """
import boto3
print(boto3.client("sts").get_caller_identity()["Account"])
found = boto3.client("ec2").describe_capacity_reservations(MaxResults=1)
print(found["CapacityReservations"][0]["StartDate"].isoformat())
"""


def ask(state: StateFolder, **more: str) -> list[str]:
    """What a program prints that knows the rehearsal by its environment alone."""
    environment = {**os.environ, **more, **state.environment()}
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateFolder]:
    folder = StateFolder(tmp_path / "a state")
    yield folder
    Client(folder).stop()
    assert leftovers(folder.root) == []


def test_the_port_is_chosen_once_whoever_asks_first(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        ports = set(pool.map(lambda _: StateFolder(tmp_path / "state").aws_port, range(32)))
    assert len(ports) == 1
    assert ports.pop() in _PORTS
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["aws.port"]
    assert StateFolder(tmp_path / "other").aws_port != StateFolder(tmp_path / "state").aws_port


def test_proxies_are_not_asked_for_the_rehearsal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "example.com,127.0.0.1")
    environment = StateFolder(tmp_path).environment()
    assert environment["NO_PROXY"] == environment["no_proxy"] == "example.com,127.0.0.1,localhost"


@pytest.mark.control_plane
def test_programs_reach_it_by_the_environment_also_after_a_restart(state: StateFolder) -> None:
    client, before = Client(state), state.environment()
    client.start()
    proxy = "http://127.0.0.1:9"
    account, opened = ask(state, HTTP_PROXY=proxy, http_proxy=proxy)
    assert account == "123456789012"
    process = state.daemon.process()
    assert process
    process.kill()
    process.wait(10)
    client.start()
    assert state.environment() == before
    assert ask(state) == [account, opened]


@pytest.mark.control_plane
def test_a_port_that_somebody_took_is_named(state: StateFolder) -> None:
    taking = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(state.aws_port)]
    process = subprocess.Popen(taking, cwd=CHECKOUT, stderr=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        assert process.stdout
        process.stdout.readline()
        with pytest.raises(
            DaemonFailed, match=f"port {state.aws_port}, which AWS_ENDPOINT_URL of this rehearsal names"
        ):
            Client(state).start()
    finally:
        process.kill()
        process.communicate()
