"""`deferlearn demo`: whether it pays to ask the expert, with two tables of real experts' answers."""

from __future__ import annotations

import io
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from deferlearn import __version__
from deferlearn.cli import _options as shared
from deferlearn.cli import _stories
from deferlearn.cli._errors import reported, require
from deferlearn.cli._files import check_paths, command_line, made_folder
from deferlearn.cli._screen import print_json, say, status
from deferlearn.cli._stories import PLAIN, Told

if TYPE_CHECKING:
    from rich.table import Table

NAME = "demo"
# Who is compared: names in a report, and in words.
NAMES = {"machine": "machine alone", "human": "expert alone", "team": "team"}
COLOURS = {PLAIN: "0.5", "machine": "#0072B2", "human": "#D55E00", "team": "#009E73"}
# Two panels that stay readable when the picture is printed at half its width.
FIGURE_SIZE, FONT_SIZE, DPI = (11.0, 4.2), 12.5, 150
# A team that asks about fewer cases than this has learned not to ask.
HARDLY = 0.01
NOTE = (
    "Errors on test cases of nights and patients that the model has not seen, with 95% intervals for such "
    "cases. Machine and policy were chosen on the training cases, as `deferlearn fit` does by default, "
    "with a budget of 10% of the cases, on average. The two data sets were chosen to show both answers."
)


def demo(
    context: typer.Context,
    *,
    out: shared.OutFolder = Path("results"),
    seed: shared.Seed = 0,
    as_json: shared.AsJson = False,
) -> None:
    """Show a case where asking the expert pays and one where it does not, both with real experts.

    Prints a table for each, and writes a picture (demo.png) and two reports (sleep.html, nodules.html), as
    `deferlearn fit` and `deferlearn report` make them from your own table.
    """
    require(NAME, "matplotlib", "pyarrow", "pandas", "jinja2")
    start = perf_counter()
    picture = out / "demo.png"
    pages = {story.name: out / f"{story.name}.html" for story in _stories.STORIES}
    with reported(NAME), made_folder(out):
        # Imported here because it loads the compiled engine, which `--help` does not need.
        from deferlearn.tables.writing import StagedFiles

        check_paths([picture, *pages.values()], [])
        results = _measure(seed, command_line(context, spelled=("seed",)))
        with StagedFiles() as files:
            files.open(picture).write(_draw(results))
            for told in results:
                page = told.report.to_html()
                files.open(pages[told.story.name]).write(page.encode("utf-8"))
    seconds = perf_counter() - start
    if as_json:
        print_json({**_as_dict(results, seed, pages), "seconds": seconds, "picture": str(picture)})
    else:
        _print(results)
        say(*what_to_look_at(picture, pages), f"Seed {seed}, {seconds:.0f} s.")


def _measure(seed: int, command: str, n_jobs: int | None = -1) -> list[Told]:
    """Tell all stories, one after the other."""
    results = []
    for number, story in enumerate(_stories.STORIES, start=1):
        count = f"{number} of {len(_stories.STORIES)}"
        first = "; the first run compiles the engine, which takes longer" if number == 1 else ""
        with status(f"{count}: {story.title} (fit, then report{first})"):
            results.append(_stories.tell(story, seed, n_jobs, command))
    return results


def _print(results: list[Told]) -> None:
    from rich.console import Console

    console = Console()
    for told in results:
        # Not as title and caption of the table, which would be as narrow as its columns.
        console.print(told.story.title, style="bold", highlight=False, markup=False)
        console.print(told.story.text, highlight=False, markup=False)
        console.print(_table(told))
        console.print(verdict(told) + "\n", highlight=False, markup=False)
    console.print(NOTE + "\n", highlight=False, markup=False)


def verdict(told: Told) -> str:
    """Whether it pays to ask the expert, as the report says it, and how often the team asks.

    Parameters
    ----------
    told : Told
        The results.

    Returns
    -------
    sentences : str
    """
    effect = told.report.numbers["effect"]
    said = f"Does it pay to ask the expert? {effect['headline']}"
    if effect["deferred"]["share"] < HARDLY:
        said += (
            f" The team may ask about {_stories.BUDGET:.0%} of the cases, and hardly asks: it has learned "
            "from the training cases that the expert would not help."
        )
    return said


def what_to_look_at(picture: Path, pages: dict[str, Path]) -> list[str]:
    """Where the files are, and what to see in them.

    Parameters
    ----------
    picture : Path
        The picture.
    pages : dict of Path
        The reports by the names of the stories.

    Returns
    -------
    lines : list of str
    """
    return [
        "What to look at:",
        f"- Picture: {picture}. Both tables as bars: where the team's is shorter, asking pays.",
        f"- Reports, for any browser: {', '.join(str(page) for page in pages.values())}. They say whether "
        "asking pays, who errs where, and which cases go to the expert.",
        "- Your own table: deferlearn fit --help, then deferlearn report --help.",
    ]


def errors(told: Told) -> dict[str, dict[str, Any]]:
    """The errors of all who are compared, by name, with their intervals."""
    found = told.report.numbers["errors"]
    return {PLAIN: told.plain, **{who: found[who] for who in NAMES}}


def _table(told: Told) -> Table:
    from rich.table import Table

    numbers = told.report.numbers
    table = Table()
    table.add_column("who answers")
    table.add_column(f"wrong of {numbers['cases']['rows']:,}", justify="right")
    table.add_column("95% interval", justify="right")
    for who, found in errors(told).items():
        ends = f"{found['lower']:.1%} to {found['upper']:.1%}"
        table.add_row(NAMES.get(who, who), f"{found['share']:.1%}", ends)
    change = numbers["effect"]["difference"]
    asked = numbers["effect"]["deferred"]
    table.add_section()
    ends = f"{change['lower']:+.1%} to {change['upper']:+.1%}"
    table.add_row("team minus machine", f"{change['difference']:+.1%}", ends)
    table.add_section()
    ends = f"{asked['lower']:.1%} to {asked['upper']:.1%}"
    table.add_row("cases that the expert gets", f"{asked['share']:.1%}", ends)
    return table


def _as_dict(results: list[Told], seed: int, pages: dict[str, Path]) -> dict[str, Any]:
    """What `--json` prints about the stories."""
    return {
        "deferlearn": __version__,
        "seed": seed,
        "budget": _stories.BUDGET,
        "stories": [
            {
                "name": told.story.name,
                "title": told.story.title,
                "text": told.story.text,
                "errors": errors(told),
                "verdict": verdict(told),
                "report": str(pages[told.story.name]),
                "report_numbers": told.report.to_dict(),
                "seconds": told.seconds,
            }
            for told in results
        ],
        "note": NOTE,
    }


def _draw(results: list[Told]) -> bytes:
    import matplotlib

    # A figure without pyplot needs no screen and leaves no global state.
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"font.size": FONT_SIZE, "axes.titlesize": FONT_SIZE}):
        figure = Figure(figsize=FIGURE_SIZE, layout="constrained")
        axes = figure.subplots(1, len(results), squeeze=False)[0]
        for ax, told in zip(axes, results, strict=True):
            found = errors(told)
            for place, (who, row) in enumerate(reversed(found.items())):
                below, above = row["share"] - row["lower"], row["upper"] - row["share"]
                ax.barh(place, row["share"], color=COLOURS[who], height=0.62)
                ax.errorbar(row["share"], place, xerr=[[below], [above]], color="0.1", capsize=4)
            effect = told.report.numbers["effect"]
            asked, change = effect["deferred"]["share"], effect["difference"]
            names = {**NAMES, "team": f"team, which\nasks about {asked:.1%}"}
            ax.set_yticks(range(len(found)), [names.get(who, who) for who in reversed(found)])
            ends = f"{change['lower']:+.1%} to {change['upper']:+.1%}"
            question = told.story.title.split("?")[0]
            ax.set_title(
                f"{question}?\nteam - machine: {change['difference']:+.1%} ({ends})", loc="left"
            )
            ax.xaxis.set_major_formatter("{x:.0%}")
            ax.set_xlabel("wrong answers, with 95% interval")
            ax.set_xlim(left=0)
            ax.spines[["top", "right"]].set_visible(False)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=DPI)
    return content.getvalue()
