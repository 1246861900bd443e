"""States that released versions recorded: this version takes them over, and replaces or deletes nothing in them."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.recorded.record import AUTHORITY, ENDPOINT, HERE, PLANE
from tests.rehearsals import Rehearsal, rehearsal
from tools.toolbox import bin_folder
from twin.control_plane import ControlPlane
from twin.state import StateFolder

pytestmark = pytest.mark.engine
VERSIONS = sorted(folder.name for folder in HERE.iterdir() if (folder / "state.json").exists())


def restored(root: Path, version: str) -> tuple[str, str]:
    """Put what the recorded cloud held into a state folder. Returns address and certificate of its control plane."""
    state = StateFolder(root)
    plane = ControlPlane(state.planes / PLANE)
    plane.prepare()
    marks = {ENDPOINT: plane.endpoint, AUTHORITY: plane.certificate_authority_base64}
    for file in (HERE / version / "cloud").glob("*/*.json"):
        target = state.documents / file.parent.name / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_filled(file, marks), "utf-8")
    return plane.endpoint, plane.certificate_authority_base64


def _filled(file: Path, marks: dict[str, str]) -> str:
    text = file.read_text("utf-8")
    for mark, value in marks.items():
        text = text.replace(mark, value)
    return text


def put_into_the_cluster(running: Rehearsal, state: dict[str, Any]) -> None:
    """What the recorded stack had in its cluster, by the field managers that had put it there: it may be updated."""
    for each in state["deployment"]["resources"]:
        if not each["type"].startswith("kubernetes:"):
            continue
        command = [str(bin_folder() / "kubectl"), "--kubeconfig", str(running.state.kubeconfig), "apply", "-f", "-"]
        command += ["--server-side", "--field-manager", each["outputs"]["__fieldManager"]]
        text = json.dumps(each["outputs"]["__inputs"])
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_newer_version_replaces_and_deletes_nothing(version: str, tmp_path: Path) -> None:
    root = tmp_path / "state"
    endpoint, authority = restored(root, version)
    with rehearsal(root) as running:
        running.new_stack()
        file = tmp_path / "state.json"
        file.write_text(_filled(HERE / version / "state.json", {ENDPOINT: endpoint, AUTHORITY: authority}), "utf-8")
        assert running.pulumi("stack", "import", "--file", str(file)).code == 0
        recorded = json.loads(file.read_text("utf-8"))
        put_into_the_cluster(running, recorded)
        before = {each["urn"] for each in recorded["deployment"]["resources"]}
        done = running.preview()
        assert done.code == 0, done.text
        operations = done.operations("update", "create")
        assert operations == GOES, "nothing is replaced, and nothing is deleted but what moved"
        assert {step["urn"] for step in done.steps} >= before
        made = {what.split()[0] for what, operation in done.operations().items() if operation == "create"}
        assert made == COMES
        running.client.stop()
        shutil.rmtree(root / "pulumi")


GOES = {"RolePolicyAttachment train-node-AmazonEKS_CNI_Policy": "delete"}
"""The CNI has a role of its own by now, and the nodes' loses that right: at the end, after everything else."""
COMES = {
    "Addon",
    "AwsSystemPool",
    "LaunchTemplate",
    "LogGroup",
    "NodeGroup",
    "Role",
    "RolePolicyAttachment",
}
"""What a site has by now besides: add-ons, a system pool and logs."""


def test_there_is_a_recorded_state() -> None:
    assert VERSIONS
