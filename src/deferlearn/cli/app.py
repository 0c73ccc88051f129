"""The commands, put together."""

from __future__ import annotations

import typer

from deferlearn import __version__
from deferlearn.cli import apply as _apply
from deferlearn.cli import fit as _fit
from deferlearn.cli import labelstudio as _labelstudio
from deferlearn.cli.demo import demo
from deferlearn.cli.reproduce import reproduce

app = typer.Typer(
    help="Support vector machines that learn which cases to defer to a human.",
    no_args_is_help=True,
    add_completion=False,
)
app.command()(demo)
app.command(epilog=_fit.EXAMPLES)(_fit.fit)
app.command(epilog=_apply.EXAMPLES)(_apply.apply)
app.command(_labelstudio.NAME, epilog=_labelstudio.EXAMPLES)(_labelstudio.import_answers)
app.command()(reproduce)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deferlearn {__version__}")
        raise typer.Exit


# A callback also keeps `demo` a word of its own: typer drops the name of an only command.
@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Support vector machines that learn which cases to defer to a human."""
