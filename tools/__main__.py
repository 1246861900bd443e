"""`python -m tools`: build the tools, and say where they are."""

import shutil
import signal
import subprocess
import sys
from typing import Annotated

import typer

from tools import toolbox
from tools.build import BuildFailed, ensure
from tools.pins import load

app = typer.Typer(help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)


@app.command()
def build(names: Annotated[list[str] | None, typer.Argument(help="Tools; all by default.")] = None) -> None:
    """Build what is missing. Interrupted, it goes on where it was the next time."""
    if unknown := set(names or ()) - set(load()):
        typer.echo(f"no tool {', '.join(sorted(unknown))}; there are {', '.join(load())}", err=True)
        raise typer.Exit(2)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # whatever ends a build, ends it as Ctrl-C does
    try:
        ensure(names or ())
    except (BuildFailed, subprocess.CalledProcessError) as failure:
        typer.echo(f"tools: {failure}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("tools: interrupted; nothing half built is left, and `make tools` goes on from here", err=True)
        raise typer.Exit(130) from None


@app.command("bin")
def bin_() -> None:
    """Print the folder for PATH."""
    try:
        typer.echo(toolbox.bin_folder())
    except toolbox.ToolsMissing as missing:
        typer.echo(f"tools: {missing}", err=True)
        raise typer.Exit(1) from None


@app.command()
def status() -> None:
    """Say of each tool where it comes from."""
    for tool in load().values():
        for name in tool.outputs:
            path = toolbox.link_folder() / name
            typer.echo(f"{name}: {path.resolve() if path.exists() else 'not built'}")


@app.command()
def clean() -> None:
    """Remove the builds from the cache, for every checkout."""
    shutil.rmtree(toolbox.cache_folder() / "tools", ignore_errors=True)
    shutil.rmtree(toolbox.link_folder(), ignore_errors=True)


if __name__ == "__main__":
    sys.exit(app())
