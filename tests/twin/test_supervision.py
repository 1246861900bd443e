"""A control plane whose parts end by themselves is made whole again."""

from pathlib import Path

import pytest

from tests.twin.rehearsal import Rehearsal, eventually
from twin.control_plane import free_ports
from twin.nodes.kubelet import Timing

pytestmark = pytest.mark.control_plane
PARTS = ("kube-controller-manager", "kube-scheduler", "kube-apiserver", "etcd")


def test_parts_that_were_killed_are_started_again(tmp_path: Path) -> None:
    running = Rehearsal(tmp_path, Timing())
    try:
        plane = running.world._planes["train"]
        before = {process.pid for process in map(plane.process, PARTS) if process}
        assert len(before) == len(PARTS)
        for process in map(plane.process, PARTS):
            assert process
            process.kill()
        eventually(
            lambda: {process.pid for process in map(plane.process, PARTS) if process},
            lambda pids: len(pids) == len(PARTS) and not pids & before,
            30,
        )
        assert running.api("GET", "/api/v1/namespaces/kube-system")["metadata"]["name"] == "kube-system"
    finally:
        running.close()


def test_ports_lie_below_those_that_connections_get() -> None:
    ports = free_ports(3)
    assert len(set(ports)) == 3
    assert all(20000 <= port < 32000 for port in ports)
