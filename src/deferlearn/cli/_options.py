"""Options that several commands share, each defined once."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from deferlearn.cli._screen import set_quiet

# The largest seed of numpy's generator.
MAX_SEED = 2**32 - 1
# A longer number of cases is a mistake.
MAX_DIGITS = 18

# Headings of the help.
FILES, ANSWERS, COLUMNS = "Format of CSV files", "Human answers", "Columns"


def option(text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    """An option whose help says what happens without it, so that the default is not shown.

    Parameters
    ----------
    text : str
        What the option does.
    *names : str
        Names, if they differ from that of the parameter.
    panel : str or None, default=None
        Heading of the help.
    **more
        Further options of `typer.Option`.

    Returns
    -------
    typer.Option
    """
    return typer.Option(*names, help=text, show_default=False, rich_help_panel=panel, **more)


def argument(text: str, **more: Any) -> Any:
    """A positional argument.

    Parameters
    ----------
    text : str
        What the argument is.
    **more
        Further options of `typer.Argument`.

    Returns
    -------
    typer.Argument
    """
    return typer.Argument(help=text, show_default=False, **more)


# Options below the headings of the help.
answers_option = partial(option, panel=ANSWERS)
column = partial(option, panel=COLUMNS)

Model = Annotated[Path, argument("Model file that `deferlearn fit` wrote.")]
OutFolder = Annotated[
    Path, typer.Option(help="Folder for the results. It is made if it does not exist.")
]
LongTable = Annotated[
    Path | None,
    option("Long table of answers, with one row per answer. Default: none.", panel=ANSWERS),
]
CaseColumn = Annotated[
    str, typer.Option(help="Column of the long table with the case.", rich_help_panel=ANSWERS)
]
ReaderColumn = Annotated[
    str, typer.Option(help="Column of the long table with the reader.", rich_help_panel=ANSWERS)
]
AnswerColumn = Annotated[
    str, typer.Option(help="Column of the long table with the answer.", rich_help_panel=ANSWERS)
]
Delimiter = Annotated[
    str | None,
    option(
        "Character between cells of CSV files, or the word tab. Default: a comma, and a tab for .tsv.",
        panel=FILES,
    ),
]
Decimal = Annotated[
    str,
    typer.Option(
        help="Decimal separator of CSV files, . or , (it is never guessed).", rich_help_panel=FILES
    ),
]
Encoding = Annotated[str, typer.Option(help="Encoding of CSV files.", rich_help_panel=FILES)]
Seed = Annotated[
    int,
    typer.Option(min=0, max=MAX_SEED, help="Random seed; the same seed gives the same results."),
]
Jobs = Annotated[int | None, option("Number of fits that run at the same time. Default: 1.", min=1)]
AllJobs = Annotated[
    int | None, option("Number of jobs that run at the same time. Default: one per core.", min=1)
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        callback=set_quiet,
        help="Print nothing but notes and errors, on stderr.",
    ),
]
Label = Annotated[str, option("Column of the true labels, with two or more classes.")]
CaseNames = Annotated[
    str | None,
    column(
        "Column with the names of the cases; it is not a feature. Default: the column named by "
        "--case if --answers is given, otherwise none.",
        "--id",
    ),
]
Group = Annotated[
    str | None,
    column(
        "Column with the group of each case, such as a patient; it is not a feature. Cases of a group "
        "stay together in folds. Default: no groups."
    ),
]
Subgroup = Annotated[
    str | None,
    column(
        "Column of groups, such as a site, which the report compares with each other. Default: none."
    ),
]
MachineScore = Annotated[
    list[str] | None,
    column(
        "Column with the score of a machine that cannot be retrained, such as a commercial product: "
        "the probability of the second class (in alphabetical order), or any other number. With more "
        "than two classes, repeat the option: one column per class, in alphabetical order, or in the "
        "order of --grades. The score is calibrated and replaces our own machines. Default: machines "
        "are trained."
    ),
]
Grades = Annotated[
    str | None,
    column(
        "The classes are grades: all labels from the lowest to the highest, as in "
        '"none<mild<severe". An error then counts once for each grade that it is off. If a label '
        "itself contains <, put spaces around the < between labels. Default: classes have no order."
    ),
]
CostMatrix = Annotated[
    str | None,
    column(
        'What mistakes cost, in units of one error: a file, or JSON as in \'{"classes": ["none", '
        '"severe"], "costs": [[0, 1], [8, 0]]}\', with a row per true class and a column per answer. In a '
        "table the first column names the true classes, and the header names the answers. Default: every "
        "mistake costs 1, or with --grades 1 for each grade by which the answer is off."
    ),
]
Alpha = Annotated[
    float | None,
    option(
        "Regularisation of a linear SVM. With it, nothing is tuned, and the policy is 'margin'. "
        "Default: machine and policy are chosen for the team."
    ),
]
Drop = Annotated[list[str] | None, column("Column to leave out; can be repeated.")]
Category = Annotated[
    list[str] | None,
    column("Column to take as categories; can be repeated. Default: decided by its cells."),
]
Number = Annotated[
    list[str] | None,
    column("Column to take as numbers; can be repeated. Default: decided by its cells."),
]
Keep = Annotated[
    list[str] | None,
    column(
        "Column to use as a feature although its values are the classes, as those of a reader are; can "
        "be repeated. Default: such a column is an error."
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Use fewer budgets and splits: a third of the time.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def parse_budget(text: str, option: str = "--budget") -> float | int:
    """A share or a number of cases from the text of an option.

    Parameters
    ----------
    text : str
        Such as 0.2, 20% or 30.
    option : str, default="--budget"
        What the text was given as, for the error.

    Returns
    -------
    budget : float or int
        A whole number without point and percent sign is a number of cases.

    Examples
    --------
    >>> from deferlearn.cli._options import parse_budget
    >>> [parse_budget(text) for text in ("0.2", "20%", "30", "1", "1.0")]
    [0.2, 0.2, 30, 1, 1.0]
    """
    from deferlearn.tables import TableError

    plain = text.strip()
    if plain.isdecimal() and len(plain) <= MAX_DIGITS:
        return int(plain)
    try:
        budget = float(plain.removesuffix("%")) / 100 if plain.endswith("%") else float(plain)
    except ValueError:
        budget = -1.0
    if plain.isdecimal() or not 0.0 <= budget <= 1.0:
        raise TableError(
            f"{option} {text[:30]} must be a share such as 0.2 or 20%, or a whole number of cases"
        )
    return budget


def parse_grades(text: str) -> list[str]:
    """The labels from the lowest grade to the highest, from the text of an option.

    Parameters
    ----------
    text : str
        Labels with < between them. If some of these signs have spaces around them, the others belong to
        labels.

    Returns
    -------
    grades : list of str

    Examples
    --------
    >>> from deferlearn.cli._options import parse_grades
    >>> parse_grades("none<mild<severe"), parse_grades("<5 mm < 5 mm < >5 mm")
    (['none', 'mild', 'severe'], ['<5 mm', '5 mm', '>5 mm'])
    """
    between = " < " if " < " in text else "<"
    return [grade.strip() for grade in text.split(between)]
