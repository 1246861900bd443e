"""`python -m twin`: the rehearsal's commands."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from tools.toolbox import ToolsMissing
from twin.client import Client, DaemonFailed
from twin.faults import FAULTS
from twin.state import DEFAULT, StateFolder

app = typer.Typer(help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)
fault_app = typer.Typer(help="Faults: switched on and off while everything runs.", no_args_is_help=True)
app.add_typer(fault_app, name="fault")


@dataclass
class _Chosen:
    state: StateFolder


_chosen = _Chosen(StateFolder(DEFAULT))


@app.callback()
def choose(state: Annotated[Path, typer.Option(help="Folder that holds the rehearsal's state.")] = DEFAULT) -> None:
    """The rehearsal: a real control plane, a simulated cloud, simulated nodes."""
    _chosen.state = StateFolder(state.resolve())


@app.command()
def start(flap: float = 2.0, capacity_kept: float = 300.0) -> None:
    """Start the daemon and a control plane, unless they run."""
    _told(lambda: _client().start(["--flap", str(flap), "--capacity-kept", str(capacity_kept)]))


@app.command()
def stop() -> None:
    """End the daemon and every control plane; what they recorded stays."""
    typer.echo(f"ended: {', '.join(_client().stop()) or 'nothing ran'}")


@app.command()
def down() -> None:
    """End everything, and take away what the rehearsal recorded."""
    typer.echo(f"ended: {', '.join(_client().remove()) or 'nothing ran'}")


@app.command()
def status() -> None:
    """What runs, and which faults are on."""
    client = _client()
    process = client.state.daemon.process()
    if process is None:
        typer.echo(f"nothing runs in {client.state.root}")
        raise typer.Exit(1)
    world = client.world()
    typer.echo(f"daemon: pid {process.pid}")
    typer.echo(f"clusters: {', '.join(world['clusters']) or 'none'}")
    for machine in world["machines"].values():
        typer.echo(f"machine: {machine['id']} {machine['node_name']} of {machine['group']} in {machine['zone']}")
    typer.echo(f"faults: {', '.join(sorted(client.faults())) or 'none'}")


@app.command()
def env() -> None:
    """Print exports for a shell."""
    _told(_client().start)
    for name, value in _chosen.state.environment().items():
        typer.echo(f"export {name}={shlex.quote(value)}")


@app.command()
def rehearse(
    stack: Annotated[str, typer.Option(help="Stack: a file stacks/Pulumi.STACK.yaml.")] = "local",
    fault: Annotated[str | None, typer.Option(help="Fault to switch on.")] = None,
) -> None:
    """`pulumi up` of a stack on the simulated cloud."""
    from twin.rehearse import rehearse as run

    try:
        raise typer.Exit(run(_chosen.state, stack, fault or None))
    except (ToolsMissing, DaemonFailed) as failure:
        _fail(failure)


@app.command(hidden=True)
def daemon(flap: float = 2.0, capacity_kept: float = 300.0) -> None:
    """Serve in the foreground; `start` calls this."""
    from twin.daemon import run
    from twin.nodes.kubelet import Timing

    os.chdir(_chosen.state.root)
    run(_chosen.state.root, Timing(flap=flap, capacity_kept=capacity_kept))


@fault_app.command("list")
def list_faults() -> None:
    """All faults, with a mark at those that are on."""
    on = _client().faults() if _chosen.state.address() else frozenset()
    for fault in FAULTS.values():
        typer.echo(f"{'*' if fault.name in on else ' '} {fault.name}: {fault.description}")


@fault_app.command()
def on(name: str) -> None:
    """Switch a fault on."""
    _told(lambda: _client().set_faults(_client().faults() | {name}))


@fault_app.command()
def off(name: str) -> None:
    """Switch a fault off."""
    _told(lambda: _client().set_faults(_client().faults() - {name}))


@fault_app.command()
def clear() -> None:
    """Switch all faults off."""
    _told(lambda: _client().set_faults([]))


def _client() -> Client:
    return Client(_chosen.state)


def _told(action: object) -> None:
    assert callable(action)
    try:
        action()
    except (ToolsMissing, DaemonFailed) as failure:
        _fail(failure)


def _fail(failure: Exception) -> NoReturn:
    typer.echo(f"rehearsal: {failure}", err=True)
    raise typer.Exit(1)


if __name__ == "__main__":
    app()
