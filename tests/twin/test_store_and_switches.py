"""What outlives a daemon: documents, faults, and the identity of processes."""

import asyncio
import sys
from pathlib import Path

import pytest

from twin.faults import FAULTS, Switches
from twin.processes import Supervised
from twin.store import FileStore


def test_documents_outlive_the_store(tmp_path: Path) -> None:
    FileStore(tmp_path).put("vpc", "vpc/1 ü", {"tags": {"a": [1]}})
    again = FileStore(tmp_path)
    assert again.get("vpc", "vpc/1 ü") == {"tags": {"a": [1]}}
    again.list("vpc")["vpc/1 ü"]["tags"]["a"].append(2)
    assert again.get("vpc", "vpc/1 ü") == {"tags": {"a": [1]}}
    again.delete("vpc", "vpc/1 ü")
    assert FileStore(tmp_path).list("vpc") == {}


def test_a_half_written_document_is_no_document(tmp_path: Path) -> None:
    FileStore(tmp_path).put("vpc", "1", {"a": 1})
    (tmp_path / "vpc" / "1.4711.tmp").write_text("{", "utf-8")
    assert FileStore(tmp_path).list("vpc") == {"1": {"a": 1}}


def test_faults_outlive_the_daemon_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    switches = Switches(FileStore(tmp_path))
    assert switches.on == frozenset()
    switches.set(frozenset({"plugin-crashloop"}))
    assert Switches(FileStore(tmp_path)).on == {"plugin-crashloop"}
    with pytest.raises(KeyError, match="no-such-fault"):
        switches.set(frozenset({"no-such-fault"}))
    assert switches.on == {"plugin-crashloop"}
    assert all(fault.description and fault.bites for fault in FAULTS.values())


def test_a_change_between_a_look_and_a_wait_is_not_missed(tmp_path: Path) -> None:
    async def look() -> None:
        switches = Switches(FileStore(tmp_path))
        seen = switches.version
        switches.set(frozenset({"plugin-crashloop"}))
        await asyncio.wait_for(switches.changed(3600, seen), 1)

    asyncio.run(look())


def test_a_process_is_known_again_by_its_start_and_ends_even_if_it_does_not_listen(tmp_path: Path) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    )
    started = Supervised("x", tmp_path / "x.pid")
    started.start([sys.executable, "-c", stubborn], tmp_path / "log")
    while not (tmp_path / "log").read_text():
        pass
    found = Supervised("x", tmp_path / "x.pid")
    assert found.process() == started.process()
    assert found.stop(0.2)
    assert found.process() is None
    assert not found.stop(0.2)
