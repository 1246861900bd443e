"""The `plumbline` command."""

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from plumbline import __version__
from plumbline.gate.message import message
from plumbline.gate.wording import seconds
from plumbline.project import ProjectUnchanged, add_provider
from plumbline.report import GateReport, StackUnreadable, as_json, export_state, gates, kubeconfig

app = typer.Typer(
    help="Plumbline: clusters for training, proven before the stack completes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Folder = Annotated[Path, typer.Option("--cwd", "-C", help="Folder of the Pulumi project.")]
Stack = Annotated[str | None, typer.Option("--stack", "-s", help="Stack; the selected one by default.")]


@app.command()
def report(
    cwd: Folder = Path(),
    stack: Stack = None,
    as_json_: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """What was proven, when, and what was seen; of a blocked stack as well.

    Exit status 0: every pool is proven. 1: one is not, or there is none. 2: the stack could not be read.
    """
    reports = gates(_state(cwd, stack))
    document = as_json(reports)
    if as_json_:
        typer.echo(json.dumps(document, indent=2))
    else:
        _show(reports)
    raise typer.Exit(0 if document["proven"] else 1)


@app.command("kubeconfig")
def show_kubeconfig(
    cwd: Folder = Path(),
    stack: Stack = None,
    pool: Annotated[str | None, typer.Option(help="Of the cluster of this pool.")] = None,
) -> None:
    """The cluster's kubeconfig, on standard output; of a blocked stack as well. It is a secret: mind where it goes."""
    text = kubeconfig(_state(cwd, stack, secrets=True), pool)
    if text is None:
        _fail("no cluster is recorded in this stack yet: run `pulumi up` first")
    typer.echo(text)


@app.command()
def init(cwd: Folder = Path()) -> None:
    """Make the Pulumi project in this folder find Plumbline's provider."""
    try:
        typer.echo(add_provider(cwd))
    except ProjectUnchanged as problem:
        _fail(str(problem))


@app.command()
def version() -> None:
    """The version."""
    typer.echo(__version__)


def _state(cwd: Path, stack: str | None, *, secrets: bool = False) -> dict[str, Any]:
    try:
        return export_state(cwd, stack, secrets=secrets)
    except StackUnreadable as problem:
        _fail(str(problem))


def _fail(text: str) -> NoReturn:
    typer.echo(f"plumbline: {text}", err=True)
    raise typer.Exit(2)


def _show(reports: list[GateReport]) -> None:
    console = Console(soft_wrap=True)
    if not reports:
        console.print("nothing is proven: no gate is recorded in this stack yet")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("pool", "generation", "verdict", "nodes proven", "when (UTC)", "valid until"):
        table.add_column(heading, overflow="fold")
    for each in reports:
        proof, expected = each.proof, each.expected
        table.add_row(
            expected.pool,
            expected.generation,
            each.verdict,
            f"{len(proof.nodes) if proof else 0} of {expected.nodes}",
            f"{proof.at:%Y-%m-%d %H:%M:%S}" if proof else "never",
            f"{proof.valid_until:%Y-%m-%d}" if proof and proof.valid_until else "-",
        )
    console.print(table)
    for each in reports:
        _show_details(console, each)


def _show_details(console: Console, each: GateReport) -> None:
    proof = each.proof
    took = f", took {seconds(proof.seconds)}" if proof else ""
    console.print(f"\npool {each.expected.pool}, generation {each.expected.generation}{took}")
    if proof is None:
        console.print("  nothing recorded: its gate was interrupted")
        return
    for phase in proof.phases:
        console.print(escape(f"  {phase.name}: {phase.verdict}; {phase.summary}"))
    for name, node in sorted(proof.nodes.items()):
        advertised = ", ".join(f"{resource} {amount}" for resource, amount in sorted(node.advertised.items()))
        console.print(escape(f"  {name}: {advertised}; {node.identity.get('provider id', '')}"))
    if not proof.proven:
        console.print(escape(message(proof.headline, proof.diagnoses, proof.warnings)))
    elif each.blocked:
        console.print(escape("\n".join(each.blocked)))
    else:
        for warning in proof.warnings:
            console.print(escape(f"  warning: {warning}"))


def main() -> None:
    """Entry point."""
    app()


if __name__ == "__main__":
    main()
