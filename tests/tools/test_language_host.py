"""Our language host under the real engine: programs, failures, policy packs, and the end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tools import toolbox
from twin.state import StateFolder

pytestmark = pytest.mark.engine
PACK = """
from pulumi_policy import EnforcementLevel, PolicyPack, StackValidationPolicy

def refuse(args, report):
    report("the pack ran on " + str(len(args.resources)) + " resources")

PolicyPack("pack", policies=[StackValidationPolicy(
    name="refuse", description="refuses", validate=refuse, enforcement_level=EnforcementLevel.MANDATORY)])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    environment = Path(sys.executable).parent.parent
    text = f"name: tried\nruntime:\n  name: python\n  options:\n    virtualenv: {environment}\n"
    (tmp_path / "Pulumi.yaml").write_text(text)
    (tmp_path / "__main__.py").write_text("import pulumi\npulumi.export('answer', 42)\n")
    assert pulumi(tmp_path, "stack", "init", "dev").returncode == 0
    return tmp_path


def environment(project: Path) -> dict[str, str]:
    state = StateFolder(project / "state")
    state.prepare()
    return {**os.environ, **state.environment()}


def pulumi(project: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(toolbox.bin_folder() / "pulumi"), *arguments, "--non-interactive"]
    return subprocess.run(
        command, cwd=project, env=environment(project), capture_output=True, text=True, check=False, timeout=120
    )


def test_program_runs_and_one_that_raises_fails_with_its_own_words(project: Path) -> None:
    done = pulumi(project, "up", "--yes", "--skip-preview")
    assert done.returncode == 0, done.stdout
    assert "answer: 42" in done.stdout
    (project / "__main__.py").write_text("import pulumi\nraise pulumi.RunError('all that is wrong')\n")
    failed = pulumi(project, "up", "--yes", "--skip-preview")
    assert failed.returncode != 0
    assert "all that is wrong" in failed.stdout
    assert "Traceback" not in failed.stdout + failed.stderr


def test_policy_pack_runs_in_preview(project: Path) -> None:
    pack = project / "pack"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (pack / "__main__.py").write_text(PACK)
    done = pulumi(project, "preview", "--policy-pack", str(pack))
    assert done.returncode != 0
    assert "the pack ran on 1 resources" in done.stdout


def test_environment_that_is_missing_is_named(project: Path) -> None:
    file = project / "Pulumi.yaml"
    file.write_text(file.read_text().replace(str(Path(sys.executable).parent.parent), "nowhere"))
    done = pulumi(project, "preview")
    assert done.returncode != 0
    assert "no Python in" in done.stdout + done.stderr
    assert "runtime.options.virtualenv" in done.stdout + done.stderr


def caught_waiting(project: Path, program: str) -> "subprocess.Popen[str]":
    """An engine whose program has printed `waiting`."""
    (project / "__main__.py").write_text(program)
    process = subprocess.Popen(
        [str(toolbox.bin_folder() / "pulumi"), "preview", "--non-interactive"],
        cwd=project,
        env=environment(project),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    assert any("waiting" in line for line in process.stdout)
    return process


def test_interrupt_ends_the_program_and_the_host_quietly(project: Path) -> None:
    process = caught_waiting(project, "import time\nprint('waiting', flush=True)\ntime.sleep(300)\n")
    os.killpg(process.pid, signal.SIGINT)
    try:
        rest, _ = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)  # as a person does who presses Ctrl-C again
            process.wait(30)
    assert process.returncode != 0
    assert "Traceback" not in rest


def test_host_program_and_what_it_started_end_when_the_engine_was_killed(project: Path) -> None:
    program = (
        "import subprocess\nchild = subprocess.Popen(['sleep', '300'])\nprint('waiting', flush=True)\nchild.wait()\n"
    )
    process = caught_waiting(project, program)
    started = psutil.Process(process.pid).children(recursive=True)
    assert "sleep" in [child.name() for child in started]
    process.kill()
    process.wait()
    _, left = psutil.wait_procs(started, timeout=30)
    for child in left:
        child.kill()
    assert left == []
