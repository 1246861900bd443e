"""Another Pulumi project, in another folder, with the wheel installed in its own environment."""

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rehearsals import Rehearsal, rehearsal
from tools.toolbox import CHECKOUT

pytestmark = pytest.mark.engine

PROGRAM = '''
"""A project of somebody else: one gate, on a pool that does not exist."""
import os

import pulumi

from plumbline.gate.expectation import PoolExpectation
from plumbline.resources import FabricGate, Provider

expectation = PoolExpectation(
    pool="other", generation="000000", nodes=1, node_selector={"pool": "other"}, machine="p5.48xlarge",
    zone="us-west-2b", architecture="amd64", node_labels={}, resources={"nvidia.com/gpu": 8}, plugins=(),
    within_seconds=2, stable_seconds=1, valid_seconds=3600,
)
provider = Provider("prover")
with open(os.environ["ANY_KUBECONFIG"]) as file:
    FabricGate("gate", expectation, file.read(), pulumi.ResourceOptions(provider=provider))
'''


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    with rehearsal(tmp_path_factory.mktemp("second")) as running:
        yield running


def uv(*arguments: str | Path) -> None:
    command = [CHECKOUT / ".plumbline" / "uv" / "bin" / "uv", *arguments]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose environment holds the built wheel, and finds the wheel's dependencies in ours."""
    folder = tmp_path_factory.mktemp("project")
    environment, wheels = folder / ".venv", folder / "dist"
    uv("build", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", wheels, CHECKOUT)
    uv("venv", "--python", sys.executable, environment)
    [wheel] = wheels.glob("plumbline-*.whl")
    uv("pip", "install", "--python", environment / "bin" / "python", "--no-deps", "--offline", wheel)
    [site_packages] = (folder / ".venv" / "lib").glob("python3*/site-packages")
    dependencies = [p for p in Path(sysconfig.get_path("purelib")).iterdir() if "plumbline" not in p.name]
    for each in dependencies:
        if not (site_packages / each.name).exists():
            (site_packages / each.name).symlink_to(each)
    text = "name: other\nruntime:\n  name: python\n  options:\n    virtualenv: .venv\n"
    (folder / "Pulumi.yaml").write_text(text)
    (folder / "__main__.py").write_text(PROGRAM)
    return folder


def test_init_adds_the_lines_once_and_the_wheel_serves_the_gate(stage: Rehearsal, project: Path) -> None:
    command = [str(project / ".venv" / "bin" / "plumbline"), "init", "--cwd", str(project)]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "added to Pulumi.yaml" in first.stdout
    assert "path: .venv/bin" in (project / "Pulumi.yaml").read_text()
    second = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "nothing was changed" in second.stdout

    [plane] = stage.state.planes.iterdir()
    stage.extra["ANY_KUBECONFIG"] = str(plane / "kubeconfig")
    stage.new_stack("dev", cwd=project)
    done = stage.up(stack="dev", cwd=project)
    assert done.code != 0
    assert "1 node of 1 did not join the cluster" in done.text
    assert "nodes with pool=other: none" in done.text
    gone = stage.pulumi("destroy", "--yes", "--skip-preview", stack="dev", cwd=project)
    assert gone.code == 0, gone.text
