"""The commands of `deferlearn`, put together."""

import typer

from deferlearn import __version__
from deferlearn.cli import apply as _apply
from deferlearn.cli import evaluate as _evaluate
from deferlearn.cli import fit as _fit
from deferlearn.cli import labelstudio as _labelstudio
from deferlearn.cli import report as _report
from deferlearn.cli._help import unwrapped
from deferlearn.cli.bench import bench
from deferlearn.cli.demo import demo
from deferlearn.cli.desk import desk
from deferlearn.cli.reproduce import reproduce

app = typer.Typer(
    help="Support vector machines that learn which cases to defer to a human.",
    no_args_is_help=True,
)
app.command()(demo)
for name, command, examples in (
    (_fit.NAME, _fit.fit, _fit.EXAMPLES),
    (_evaluate.NAME, _evaluate.evaluate, _evaluate.EXAMPLES),
    (_apply.NAME, _apply.apply, _apply.EXAMPLES),
    (_report.NAME, _report.report, _report.EXAMPLES),
    (_labelstudio.NAME, _labelstudio.import_answers, _labelstudio.EXAMPLES),
):
    app.command(name, help=unwrapped(command.__doc__), epilog=unwrapped(examples))(command)
app.command()(reproduce)
app.add_typer(bench, name="bench")
app.add_typer(desk, name="desk")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deferlearn {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Support vector machines that learn which cases to defer to a human."""
