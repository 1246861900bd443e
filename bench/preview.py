"""What components, planning and the account's checks cost: `pulumi preview` of a site, and of a flat program.

Both run in the same rehearsal, by turns, against the same state; the flat one registers the same resources.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.flat import program
from tools.toolbox import CHECKOUT
from twin.client import Client
from twin.state import StateFolder

ROUNDS = 5
LIMIT = 1.15
"""Of the ratio: issue and guide promise that a preview costs no more than this."""


def main() -> int:
    """Measure, and say the ratio. Returns 1 where it is above the limit."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="plumbline-bench-") as folder:
        state = StateFolder(Path(folder) / "state")
        client = Client(state)
        client.start(["--flap", "1", "--capacity-kept", "3"])
        try:
            return _measured(console, state, Path(folder) / "flat")
        finally:
            client.stop()


def _measured(console: Console, state: StateFolder, flat: Path) -> int:
    console.print("bench: pulumi up of stack local, then previews of it and of a flat program, by turns")
    _pulumi(state, CHECKOUT, "stack", "init", "--stack", "local")
    _pulumi(state, CHECKOUT, "up", "--yes", "--skip-preview", "--stack", "local")
    exported = json.loads(_pulumi(state, CHECKOUT, "stack", "export", "--show-secrets", "--stack", "local"))
    resources = exported["deployment"]["resources"]
    flat.mkdir()
    (flat / "Pulumi.yaml").write_text(_project(flat), "utf-8")
    (flat / "__main__.py").write_text(program(resources), "utf-8")
    _pulumi(state, flat, "stack", "init", "--stack", "flat")
    custom = sum(bool(each.get("custom")) for each in resources)
    registered = json.loads(_pulumi(state, flat, "preview", "--json", "--stack", "flat"))
    made = registered["changeSummary"]["create"] - 1  # the stack itself
    if made != custom:
        console.print(f"bench: the flat program registers {made} resources, and the site {custom}: no comparison")
        return 1
    # Neither has a state: the site's is set aside, so that both previews create everything.
    _pulumi(state, CHECKOUT, "stack", "init", "--stack", "fresh")
    (CHECKOUT / "stacks" / "Pulumi.fresh.yaml").unlink(missing_ok=True)  # the engine writes one, with a salt
    shutil.copy(CHECKOUT / "stacks" / "Pulumi.local.yaml", flat.parent / "Pulumi.fresh.yaml")
    ours, theirs = [], []
    for _ in range(ROUNDS):
        config = ["--config-file", str(flat.parent / "Pulumi.fresh.yaml")]
        ours.append(_timed(state, CHECKOUT, "preview", "--stack", "fresh", *config))
        theirs.append(_timed(state, flat, "preview", "--stack", "flat"))
    ratio = statistics.median(ours) / statistics.median(theirs)
    table = Table("preview of", "resources", "median s", "least s", "most s")
    for name, times in (("the site", ours), ("a flat program", theirs)):
        numbers = (statistics.median(times), min(times), max(times))
        table.add_row(name, str(custom), *(f"{number:.2f}" for number in numbers))
    console.print(table)
    console.print(f"ratio of the medians: {ratio:.3f}; at most {LIMIT}")
    return 0 if ratio <= LIMIT else 1


def _project(flat: Path) -> str:
    plumbline = os.path.relpath(Path(sys.executable).parent, flat)
    return (
        "name: flat\nruntime:\n  name: python\n"
        f"plugins:\n  providers:\n    - name: plumbline\n      path: {plumbline}\n"
    )


def _pulumi(state: StateFolder, cwd: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["pulumi", *arguments, "--non-interactive"],
        cwd=cwd,
        env={**os.environ, **state.environment(), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"pulumi {' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def _timed(state: StateFolder, cwd: Path, *arguments: str) -> float:
    started = time.perf_counter()
    _pulumi(state, cwd, *arguments)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
