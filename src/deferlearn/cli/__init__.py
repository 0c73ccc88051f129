"""The command line: `deferlearn --help`."""

import sys

from deferlearn import __version__


def main() -> None:
    """Run the command line; the entry point of the command `deferlearn`."""
    if sys.argv[1:] == ["--version"]:  # scripts ask for it often, and typer takes longer to load
        print(f"deferlearn {__version__}")
        return
    try:
        from deferlearn.cli.app import app
    except ModuleNotFoundError as error:
        # Other missing modules are defects, which must show.
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"deferlearn: the command line needs {error.name}: pip install 'deferlearn[cli]'")
    except KeyboardInterrupt:  # while loading; later each command handles it
        print("deferlearn: stopped; nothing was changed", file=sys.stderr)
        sys.exit(130)
    app()
