"""`deferlearn fit`: from a table of cases, their truth and human answers to a model file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from deferlearn.cli._errors import noted, reported
from deferlearn.cli._inputs import long_table, name_and_digest
from deferlearn.cli._tables import (
    ANSWERS,
    COLUMNS,
    MAX_SEED,
    AnswerColumn,
    AsJson,
    CaseColumn,
    Decimal,
    Delimiter,
    Encoding,
    Jobs,
    LongTable,
    ReaderColumn,
    check_paths,
    facts,
    grid,
    parse_budget,
    require_arrow,
    show,
    status,
)

if TYPE_CHECKING:
    from deferlearn.tables import Cases

NAME = "fit"
# From here on the tuning is worth a word of patience.
MANY_CASES = 500
EXAMPLES = """Examples:

deferlearn fit cases.csv --label diagnosis --human reader_1 --human reader_2 --out model.skops

deferlearn fit cases.csv --label diagnosis --answers answers.csv --case id --reader who --answer said
--budget 10% --group patient --out model.skops

deferlearn fit cases.csv --label diagnosis --id id --label-studio export.json --out model.skops
"""


def fit(
    cases: Annotated[
        Path, typer.Argument(help="CSV or parquet file, one row a case.", show_default=False)
    ],
    label: Annotated[
        str, typer.Option(help="Column of the truth, two classes.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="File for the model.", show_default=False)],
    human: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of a reader's answers; may be repeated.",
            show_default=False,
            rich_help_panel=ANSWERS,
        ),
    ] = None,
    answers: LongTable = None,
    case: CaseColumn = "case",
    reader: ReaderColumn = "reader",
    answer: AnswerColumn = "answer",
    label_studio: Annotated[
        Path | None,
        typer.Option(
            help="Answers as Label Studio exports them (JSON).",
            show_default=False,
            rich_help_panel=ANSWERS,
        ),
    ] = None,
    identifier: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Column of the cases that names them; it is no feature. Default: that of --case.",
            show_default=False,
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Column of what belongs together, such as a patient; it is no feature.",
            show_default=False,
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            help="The most that humans may take: a share (0.2, 20%) or a whole number of cases."
        ),
    ] = "0.2",
    alpha: Annotated[
        float | None,
        typer.Option(help="Regularisation; given, nothing is tuned.", show_default=False),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="Column to leave out; may be repeated.",
            show_default=False,
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            help="Column to take as categories, whatever it holds.",
            show_default=False,
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    number: Annotated[
        list[str] | None,
        typer.Option(
            help="Column to take as numbers, whatever it is named.",
            show_default=False,
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Of all that is random.")] = 0,
    jobs: Jobs = None,
    evaluate: Annotated[
        bool,
        typer.Option(help="Estimate errors on unseen cases, where there are at most 1000 cases."),
    ] = True,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    as_json: AsJson = False,
) -> None:
    """Learn from a table which cases humans should take, and a machine for the others.

    Columns that are not named here become features: numbers, categories and yes/no, gaps allowed. What is
    left out (identifiers, dates, free text, constants) is listed with the reason. Without answers, humans
    are taken to be always right. The model file is written whole or not at all, and an existing one is
    replaced.
    """
    require_arrow(NAME)
    with reported(NAME):
        from deferlearn.tables import TableError, open_table, select_cases
        from deferlearn.tables.cells import with_points

        share = parse_budget(budget)
        if answers is not None and label_studio is not None:
            raise TableError("give --answers or --label-studio, not both")
        inputs = [path for path in (cases, answers, label_studio) if path is not None]
        check_paths([out], inputs)
        identifier = identifier or (case if answers is not None else None)
        written: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
        file = open_table(cases, **written)
        file.require([label], "named by --label")
        file.require(human or [], "named by --human")
        file.require([identifier] if identifier else [], "which names the cases (--id)")
        file.require([group] if group else [], "named by --group")
        file.require(drop or [], "named by --drop")
        long = None
        if answers is not None:
            long = long_table(answers, [case, reader, answer], written)
        if label_studio is not None:
            long = _exported(label_studio, identifier)
        chosen = select_cases(
            file.read(),
            label,
            humans=human or [],
            answers=long,
            identifier=identifier,
            group=group,
        )
        if file.decimal == ",":
            used = [name for name in chosen.features.column_names if name not in (drop or [])]
            chosen = replace(chosen, features=with_points(chosen.features, used))
        card = _fit(
            chosen,
            out,
            dict(zip(("cases", "answers"), map(name_and_digest, inputs), strict=False)),
            evaluate,
            budget=share,
            alpha=alpha,
            seed=seed,
            number=number or [],
            category=category or [],
            drop=drop or [],
            n_jobs=jobs,
        )
    if as_json:
        typer.echo(json.dumps({"model": str(out), **card}, indent=2, allow_nan=False))
    else:
        _print(card, out)


def _exported(path: Path, identifier: str | None) -> dict[str, list[str]]:
    from deferlearn.tables import TableError, read_label_studio

    if identifier is None:
        raise TableError("--label-studio needs --id, the column that names the cases")
    return read_label_studio(path)


def _fit(
    cases: Cases, out: Path, files: dict[str, Any], evaluate: bool, **options: Any
) -> dict[str, Any]:
    """Fit, judge and store; the model's card."""
    import deferlearn
    from deferlearn.tables import TableEncoder, TableError, fit_table
    from deferlearn.tables.decisions import cross_validated_errors
    from deferlearn.tables.team import check_settings

    # Before anything is said to be going on: what cannot be used costs nobody any time.
    check_settings(cases, options["budget"], options["alpha"])
    TableEncoder(**{name: options[name] for name in ("number", "category", "drop")}).fit(
        cases.features
    )
    with noted() as notes:
        slow = options["alpha"] is None and len(cases) >= MANY_CASES
        hint = (
            " (with hundreds of cases this takes minutes; --alpha skips the tuning)" if slow else ""
        )
        with status(f"Fitting machine and policy on {len(cases)} cases{hint}"):
            try:
                model = fit_table(cases, **options)
            except TableError:
                raise
            except ValueError as error:  # what scikit-learn's rules make of unusable input
                raise TableError(str(error)) from error
        if not evaluate:
            errors = None
        else:
            with status("Judging them on cases left out"):
                errors = cross_validated_errors(model, cases, options["seed"])
    if cases.answers is None:
        notes.append("No answers are given, so humans are taken to be always right.")
    if errors is not None and model.card_["tuned"]:
        notes.append(
            "Policy and alpha were chosen on the same cases, so that these errors of machine and team are "
            "a little too low."
        )
    if errors is not None and cases.groups is not None:
        notes.append("Cases of a group are alike: the intervals are narrower than they should be.")
    model.card_.update(files=files, errors=errors, notes=notes)
    with status(f"Storing the model in {out}"):
        deferlearn.save(model, out)
    return dict(model.card_)


def _print(card: dict[str, Any], out: Path) -> None:
    console = Console()
    source = card["files"]["cases"]
    rows = f"{card['rows']}"
    if card["rows_without_label"]:
        rows += f", and {card['rows_without_label']} without a label, left out"
    how = "tuned for the team" if card["tuned"] else "as given"
    console.print(
        facts(
            "Model",
            [
                ("cases", f"{rows} ({source['name']}, sha256 {source['sha256'][:12]})"),
                ("classes", ", ".join(f"{k}: {v}" for k, v in card["class_counts"].items())),
                *((f"{kind} columns", _listed(names)) for kind, names in _by_kind(card)),
                ("features", len(card["features"])),
                *((f"left out: {name}", why) for name, why in card["dropped"].items()),
                *([("groups", card["groups"])] if card["groups"] else []),
                ("budget", _budget(card["budget"])),
                ("expected to be deferred", f"{card['deferral_rate']:.1%}"),
                ("who is deferred", f"policy {card['policy']!r}, {how}"),
                ("alpha", f"{card['alpha']:g}, {how}"),
                ("seed", card["seed"]),
            ],
        )
    )
    if card["readers"]:
        console.print(
            grid(
                "Readers",
                ["reader", "answers", "error"],
                [(r["reader"], r["answers"], f"{r['error']:.3f}") for r in card["readers"]],
            )
        )
    if card["errors"]:
        _print_errors(console, card["errors"])
    show(console, card["notes"])
    console.print(f"Model: {out}", highlight=False, markup=False, soft_wrap=True)


def _print_errors(console: Console, errors: dict[str, Any]) -> None:
    console.print(
        grid(
            f"Errors on {errors['team']['cases']} cases left out in turn",
            ["who", "error", "95% interval"],
            [
                (who, f"{e['error']:.3f}", f"{e['lower']:.3f} to {e['upper']:.3f}")
                for who, e in errors.items()
            ],
        )
    )


def _by_kind(card: dict[str, Any]) -> list[tuple[str, list[str]]]:
    kinds = dict.fromkeys(card["columns"].values())
    return [(kind, [n for n, own in card["columns"].items() if own == kind]) for kind in kinds]


def _listed(names: list[str], most: int = 15) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{len(names)}: {', '.join(names[:most])}{more}"


def _budget(budget: float | int) -> str:
    return f"{budget} cases" if isinstance(budget, int) else f"{budget:.1%} of the cases"
