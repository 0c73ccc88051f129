"""The command line: `deferlearn --help`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the entry point of the command `deferlearn`."""
    try:
        from deferlearn.cli.app import app
    except ModuleNotFoundError as error:
        # Only what the extra brings: any other missing module is a defect and shows as one.
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"deferlearn: the command line needs {error.name}: pip install 'deferlearn[cli]'")
    except KeyboardInterrupt:  # loading takes seconds; from then on each command sees to it
        print("deferlearn: stopped; nothing was changed", file=sys.stderr)
        sys.exit(130)
    app()
