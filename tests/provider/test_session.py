"""What one run of the engine tells all its provider processes."""

import os
import subprocess
from pathlib import Path

import psutil
import pytest

from plumbline.provider.birth import birth
from plumbline.provider.session import Session


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def test_nothing_is_declared_before_a_program_ran(file: Path) -> None:
    declared = Session(file).declared
    assert (declared.program_ran, declared.generations, declared.proven) == (False, {}, frozenset())


def test_another_process_of_the_same_run_hears_of_it(file: Path) -> None:
    Session(file).declare({"h100": "bbbbbb"})
    Session(file).judge("h100", "bbbbbb", proven=True)
    declared = Session(file).declared
    assert declared.program_ran
    assert declared.generations == {"h100": "bbbbbb"}
    assert ("h100", "bbbbbb") in declared.proven


def test_last_word_on_a_generation_counts(file: Path) -> None:
    session = Session(file)
    assert not session.doubted("h100", "bbbbbb")
    session.judge("h100", "bbbbbb", proven=False)
    assert session.doubted("h100", "bbbbbb")
    session.judge("h100", "bbbbbb", proven=True)
    assert not session.doubted("h100", "bbbbbb")
    session.judge("h100", "bbbbbb", proven=False)
    assert session.declared.proven == frozenset()


def test_file_is_private_named_after_the_engine_and_swept_when_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    session = Session.of_engine(os.getpid())
    session.declare({})
    assert session.file.stat().st_mode & 0o777 == 0o600
    assert session.file.parent.stat().st_mode & 0o777 == 0o700
    gone = session.file.with_name("run-999999999-1.jsonl")
    reused = session.file.with_name(f"run-{os.getpid()}-1.jsonl")
    gone.write_text("{}")
    reused.write_text("{}")
    assert Session.of_engine(os.getpid()).file == session.file
    assert session.file.exists()
    assert not gone.exists()
    assert not reused.exists(), "an engine of another time had this process id"


def test_folder_that_others_can_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    (tmp_path / f"plumbline-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(PermissionError, match="must belong to this user alone"):
        Session.of_engine(os.getpid())


def test_birth_is_of_the_process_and_not_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    before = birth(os.getpid())
    monkeypatch.setattr(psutil, "boot_time", lambda: 0.0)
    assert birth(os.getpid()) == before
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert birth(child.pid) != before
    finally:
        child.kill()
        child.wait()
    with pytest.raises(psutil.NoSuchProcess):
        birth(child.pid)
