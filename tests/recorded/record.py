"""Records the state of a green stack, for `tests/lifecycle/test_recorded_states.py`: run once for each release.

    python -m tests.recorded.record 0.1.0

What belongs to one machine, the address and the certificate of its control plane, is replaced by marks.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.rehearsals import Rehearsal, rehearsal

HERE = Path(__file__).parent
ENDPOINT, AUTHORITY = "@ENDPOINT@", "@AUTHORITY@"
PLANE = "plane-recorded"


def cluster_of(running: Rehearsal) -> tuple[str, str]:
    """Address and certificate (base64) of the cluster in a stack's state."""
    [cluster] = running.resources("aws:eks/cluster:Cluster")
    return cluster["outputs"]["endpoint"], cluster["outputs"]["certificateAuthority"]["data"]


def record(version: str) -> None:
    """Write `tests/recorded/<version>/`."""
    with tempfile.TemporaryDirectory() as folder, rehearsal(Path(folder)) as running:
        running.new_stack()
        done = running.up()
        assert done.code == 0, done.text
        endpoint, authority = cluster_of(running)
        target = HERE / version
        shutil.rmtree(target, ignore_errors=True)
        (target / "cloud").mkdir(parents=True)
        state: dict[str, Any] = running.exported(secrets=True)
        for resource in state["deployment"]["resources"]:
            resource.pop("sourcePosition", None)  # a path of this machine
            resource.pop("stackTrace", None)
        _write(target / "state.json", json.dumps(state, indent=1), endpoint, authority)
        for file in sorted(running.state.documents.glob("*/*.json")):
            if file.parent.name == "daemon":
                continue
            text = file.read_text("utf-8")
            if file.parent.name == "plane":
                text = json.dumps({**json.loads(text), "folder": PLANE})
            (target / "cloud" / file.parent.name).mkdir(exist_ok=True)
            _write(target / "cloud" / file.parent.name / file.name, text, endpoint, authority)


def _write(file: Path, text: str, endpoint: str, authority: str) -> None:
    file.write_text(text.replace(endpoint, ENDPOINT).replace(authority, AUTHORITY) + "\n", "utf-8")


if __name__ == "__main__":
    record(sys.argv[1])
