"""The forwarder as the engine starts it: quick, transparent, and gone with its engine."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from tools.toolbox import CHECKOUT

SCRIPT = CHECKOUT / "twin" / "forward.py"


class Daemon(provider_pb2_grpc.ResourceProviderServicer):
    """Remembers who asked, and fails a create as one that is kept."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        self.seen.append({str(k): str(v) for k, v in context.invocation_metadata()})
        return plugin_pb2.PluginInfo(version="7.51.1")

    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        status = status_pb2.Status(code=2, message="kept")
        status.details.add().Pack(provider_pb2.ErrorResourceInitFailed(id="kept", reasons=["no capacity"]))
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(grpc.StatusCode.UNKNOWN, "kept")


@contextmanager
def forwarder(state: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    started = subprocess.Popen(
        [sys.executable, SCRIPT],
        env={**os.environ, "PLUMBLINE_TWIN_STATE": str(state), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout
    port = started.stdout.readline().strip()
    try:
        yield started, grpc.insecure_channel(f"127.0.0.1:{port}")
    finally:
        started.kill()
        started.communicate()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    answering = Daemon()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(answering, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    (tmp_path / "daemon.json").write_text(json.dumps({"grpc": f"127.0.0.1:{port}"}), "utf-8")
    yield answering
    server.stop(0).wait()


def test_calls_pass_with_the_name_of_the_instance_and_its_region(daemon: Daemon, tmp_path: Path) -> None:
    for _ in range(2):
        with forwarder(tmp_path, AWS_REGION="us-east-1") as (_process, channel):
            stub: Any = provider_pb2_grpc.ResourceProviderStub(channel)
            assert stub.GetPluginInfo(empty_pb2.Empty(), timeout=10).version == "7.51.1"
    assert [each["env-aws-region"] for each in daemon.seen] == ["us-east-1"] * 2
    assert len({each["plumbline-instance"] for each in daemon.seen}) == 2


def test_details_of_a_failure_pass(daemon: Daemon, tmp_path: Path) -> None:
    with forwarder(tmp_path) as (_process, channel):
        stub: Any = provider_pb2_grpc.ResourceProviderStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Create(provider_pb2.CreateRequest(), timeout=10)
    failed: Any = caught.value
    details = dict(failed.trailing_metadata())["grpc-status-details-bin"]
    kept = provider_pb2.ErrorResourceInitFailed()
    assert status_pb2.Status.FromString(details).details[0].Unpack(kept)
    assert (kept.id, list(kept.reasons)) == ("kept", ["no capacity"])


def test_daemon_that_does_not_answer_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "daemon.json").write_text(json.dumps({"grpc": "127.0.0.1:1"}), "utf-8")
    with forwarder(tmp_path) as (_process, channel):
        stub: Any = provider_pb2_grpc.ResourceProviderStub(channel)
        with pytest.raises(grpc.RpcError, match="run `make rehearse`"):
            stub.GetPluginInfo(empty_pb2.Empty(), timeout=10)


def test_without_a_rehearsal_it_says_so_and_ends(tmp_path: Path) -> None:
    environment = {**os.environ, "PLUMBLINE_TWIN_STATE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, SCRIPT], env=environment, capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode != 0
    assert "run `make rehearse`" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_told_to(daemon: Daemon, tmp_path: Path, number: signal.Signals) -> None:
    with forwarder(tmp_path) as (process, _channel):
        process.send_signal(number)
        assert process.wait(5) == 0


def test_it_ends_when_its_engine_is_killed(daemon: Daemon, tmp_path: Path) -> None:
    engine = subprocess.Popen(
        ["sh", "-c", f'"{sys.executable}" "{SCRIPT}" & echo $!; wait'],
        env={**os.environ, "PLUMBLINE_TWIN_STATE": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert engine.stdout
    lines = {engine.stdout.readline().strip(), engine.stdout.readline().strip()}
    engine.kill()
    deadline = time.monotonic() + 5
    while any(
        Path(f"/proc/{each}/cmdline").exists() and "forward" in Path(f"/proc/{each}/cmdline").read_text()
        for each in lines
    ):
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.05)
    engine.communicate()


def test_it_imports_nothing_of_pulumi() -> None:
    code = f"import sys, runpy; runpy.run_path({str(SCRIPT)!r}); print([m for m in sys.modules if 'pulumi' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.strip() == "[]"
