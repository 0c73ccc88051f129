"""`deferlearn fit`: from a table of cases, their truth and human answers to a model file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import deferlearn
from deferlearn._utils.units import unit_of
from deferlearn._utils.words import counted, listed
from deferlearn.cli import _options as shared
from deferlearn.cli._errors import noted, reported, require
from deferlearn.cli._experts import parse_capacities, print_experts
from deferlearn.cli._files import check_paths, costs_file, long_table, name_and_digest
from deferlearn.cli._options import (
    answers_option,
    argument,
    option,
    parse_budget,
    parse_grades,
)
from deferlearn.cli._screen import (
    print_errors,
    print_facts,
    print_grid,
    print_json,
    say,
    say_notes,
    status,
    work_status,
)

if TYPE_CHECKING:
    from deferlearn.tables import Cases, TabularTeam

NAME = "fit"
# With this many cases the tuning can take minutes.
MANY_CASES = 500
# Up to so many cases the certificate takes a few seconds. With 12 features, one core needs 3 seconds for
# 1000 cases and 17 seconds for 2000.
MAX_CERTIFIED = 1000
EXAMPLES = """Examples:

deferlearn fit cases.csv --label diagnosis --human reader_1 --human reader_2 --out model.skops

deferlearn fit cases.csv --label diagnosis --answers answers.csv --case id --reader who --answer said
--budget 10% --group patient --out model.skops

deferlearn fit cases.csv --label diagnosis --human reader_1 --machine-score ai_probability --out model.skops

deferlearn fit cases.csv --label stage --human reader_1 --grades "none<mild<severe" --out model.skops

deferlearn fit cases.csv --label stage --human reader_1 --cost-matrix costs.csv --out model.skops

deferlearn fit cases.csv --label diagnosis --id id --label-studio export.json --out model.skops

deferlearn fit cases.csv --label diagnosis --expert reader_1=0.05 --expert reader_2=10 --out model.skops
"""


def fit(
    cases: Annotated[Path, argument("CSV, parquet or Excel file with one row per case.")],
    *,
    label: shared.Label,
    out: Annotated[Path, option("File for the model; an existing file is replaced.")],
    human: Annotated[
        list[str] | None,
        answers_option(
            "Column of a reader's answers; can be repeated. Without answers, humans count as always right."
        ),
    ] = None,
    expert: Annotated[
        list[str] | None,
        answers_option(
            "Column of an expert's answers and the most that this expert takes, as in reader_1=0.05: a "
            "share of the cases (0.05, 5%) or a whole number of the cases in the file; 0 for an expert who "
            "takes no new cases; can be repeated. Experts are told apart: each gets the cases that this "
            "expert is good at. Default: the readers of --human count as one human."
        ),
    ] = None,
    answers: shared.LongTable = None,
    case: shared.CaseColumn = "case",
    reader: shared.ReaderColumn = "reader",
    answer: shared.AnswerColumn = "answer",
    label_studio: Annotated[
        Path | None,
        answers_option("Export of Label Studio (JSON) with answers. Default: none."),
    ] = None,
    ignore_unknown: Annotated[
        bool,
        answers_option(
            "Leave out answers to cases that the table does not have. Default: they are an error.",
            "--ignore-unknown",
        ),
    ] = False,
    identifier: shared.CaseNames = None,
    group: shared.Group = None,
    machine_score: shared.MachineScore = None,
    grades: shared.Grades = None,
    cost_matrix: shared.CostMatrix = None,
    budget: Annotated[
        str | None,
        option(
            "The most cases that humans may take: a share (0.2, 20%) or a whole number of cases. Default: "
            "0.2, and with --expert as many as the capacities allow."
        ),
    ] = None,
    alpha: shared.Alpha = None,
    drop: shared.Drop = None,
    category: shared.Category = None,
    number: shared.Number = None,
    keep: shared.Keep = None,
    seed: shared.Seed = 0,
    jobs: shared.Jobs = None,
    evaluate: Annotated[
        bool,
        typer.Option(
            help="Estimate the errors on held-out cases; of more than 1000 cases on a random sample."
        ),
    ] = True,
    certify: Annotated[
        bool | None,
        option(
            "Store a certificate: how far the selection of the deferred cases can be from the best one. "
            "Default: only if it takes a few seconds.",
            "--certify/--no-certify",
        ),
    ] = None,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = ".",
    encoding: shared.Encoding = "utf8",
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
) -> None:
    """Learn from a table which cases humans should take, and a machine for the other cases.

    Columns that are not named in an option become features: numbers, categories and booleans, with gaps.
    Columns that are left out (identifiers, dates, free text, constants) are listed with the reason. The
    model file is written completely or not at all.
    """
    require(NAME, "pyarrow")
    with reported(NAME):
        from deferlearn.tables import TableError, open_table

        share = None if budget is None else parse_budget(budget)
        capacity = parse_capacities(expert, "--expert") if expert else None
        if capacity is not None and human:
            raise TableError(
                "give --human or --expert, not both: readers of --human count as one human, and those of "
                "--expert are told apart"
            )
        if capacity is not None and not any(capacity.values()):
            raise TableError("--expert leaves no time to any expert: one capacity must be above 0")
        if capacity is not None and certify:
            raise TableError(
                "--certify is not possible with --expert: there is no such certificate"
            )
        if answers is not None and label_studio is not None:
            raise TableError("give --answers or --label-studio, not both")
        if label_studio is not None and identifier is None:
            raise TableError("--label-studio needs --id, the column that names the cases")
        inputs = [path for path in (cases, answers, label_studio) if path is not None]
        check_paths([out], [*inputs, *costs_file(cost_matrix)])
        identifier = identifier or (case if answers is not None else None)
        written: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
        file = open_table(cases, **written)
        file.require([label], "given by --label")
        file.require(human or [], "given by --human")
        if capacity is not None:
            # A long table may have the answers of experts who have no column.
            long_given = answers is not None or label_studio is not None
            human = [name for name in capacity if name in file.columns or not long_given]
            file.require(human, "given by --expert")
        file.require([identifier] if identifier else [], "which names the cases (--id)")
        file.require([group] if group else [], "given by --group")
        file.require(machine_score or [], "given by --machine-score")
        file.require(drop or [], "given by --drop")
        file.require(keep or [], "given by --keep")
        file.require(number or [], "given by --number")
        file.require(category or [], "given by --category")
        costs: Any = None
        if cost_matrix is not None:
            from deferlearn.tables.costs import read_costs

            costs = read_costs(cost_matrix, written)
        # Imported here because it takes seconds: mistakes in the options are reported first.
        from deferlearn.tables import read_label_studio, select_cases
        from deferlearn.tables.cells import with_points
        from deferlearn.tables.suspects import check_forgotten_readers, group_hints, telling_columns

        long: Any = None
        if answers is not None:
            long = long_table(answers, [case, reader, answer], written)
        elif label_studio is not None:
            long = read_label_studio(label_studio)
        chosen = select_cases(
            file.read(),
            label,
            humans=human or [],
            answers=long,
            identifier=identifier,
            group=group,
            machine_score=machine_score,
            grades=None if grades is None else parse_grades(grades),
            cost_matrix=costs,
            ignore_unknown=ignore_unknown,
        )
        decided = [name for names in (drop, category, number, keep) for name in names or []]
        check_forgotten_readers(chosen, [*decided, *(machine_score or [])])
        used = [name for name in chosen.features.column_names if name not in (drop or [])]
        chosen = replace(chosen, features=with_points(chosen.features, used, file.decimal))
        files = dict(zip(("cases", "answers"), map(name_and_digest, inputs), strict=False))
        for path in costs_file(cost_matrix):
            files["cost_matrix"] = name_and_digest(path)
        columns: dict[str, Any] = {
            "number": number or [],
            "category": category or [],
            "drop": drop or [],
        }
        model, notes = _fit(
            chosen,
            columns,
            evaluate,
            budget=share,
            capacity=capacity,
            alpha=alpha,
            seed=seed,
            n_jobs=jobs,
        )
        notes += _certify(model, len(chosen), False if capacity is not None else certify)
        notes += telling_columns(chosen, list(model.encoder.categories_))
        notes += group_hints(chosen)
        model.card_.update(files=files, notes=notes)
        with status(f"Storing the model in {out}"):
            deferlearn.save(model, out)
    if as_json:
        print_json({"model": str(out), **model.card_})
    else:
        _print(model.card_, out)


def _fit(
    cases: Cases, columns: dict[str, Any], evaluate: bool, **options: Any
) -> tuple[TabularTeam, list[str]]:
    """Fit a model and estimate its errors; also returns the notes for the user."""
    from deferlearn.tables import TableEncoder, TableError, fit_table
    from deferlearn.tables.experts import check_experts
    from deferlearn.tables.held_out import MAX_CASES
    from deferlearn.tables.settings import check_settings

    # Mistakes are reported before the fit begins.
    if options["capacity"] is not None:
        check_experts(cases, options["capacity"])
    check_settings(cases, options["budget"], options["alpha"])
    TableEncoder(**columns).fit(cases.features)
    slow = options["alpha"] is None and len(cases) >= MANY_CASES
    hint = " (the tuning can take minutes; --alpha skips it)" if slow else ""
    with noted() as notes:
        with work_status(f"Fitting machine and policy on {counted(len(cases), 'case')}{hint}"):
            try:
                model = fit_table(cases, **columns, **options)
            except TableError:
                raise
            except ValueError as error:  # an input that scikit-learn refuses
                raise TableError(str(error)) from error
        errors: Any = None
        why: list[str] = []
        if evaluate:
            with work_status("Estimating the errors on held-out cases"):
                errors, why = _held_out_errors(model, cases, options["seed"])
    notes += why
    model.card_["errors"] = errors
    if errors is not None and len(cases) > MAX_CASES:
        notes.append(
            f"The errors were estimated on a random sample of {MAX_CASES} of the {len(cases)} cases: teams "
            "that were fitted on a part of the sample decided the rest of it. The model has learned from "
            "all cases, and should err a little less."
        )
    if errors is not None and options["capacity"] is not None and _has_gaps(cases):
        notes.append(
            "Held-out cases without an answer of the expert to whom they go, or would go first, do not "
            "count in the errors."
        )
    if errors is not None and model.card_["tuned"]:
        notes.append(
            "Machine and policy were chosen on the same cases, so the errors of machine and team are a "
            "little too low."
        )
    if errors is not None and cases.groups is not None:
        notes.append("Cases of a group are alike: the intervals are narrower than they should be.")
    return model, notes


def _held_out_errors(model: TabularTeam, cases: Cases, seed: int) -> tuple[Any, list[str]]:
    """The errors on held-out cases, and a note if no model can be fitted on a part of the cases."""
    from deferlearn.tables.held_out import cross_validated_errors

    try:
        return cross_validated_errors(model, cases, seed), []
    except ValueError as error:  # such as a rare class whose cases are all of one group
        why = f"no model can be fitted on a part of the cases: {error}"
        return None, [f"The errors on held-out cases are not known, because {why}"]


def _has_gaps(cases: Cases) -> bool:
    """Whether some reader has not answered some case."""
    return cases.answers is not None and any(answer is None for answer in cases.answers.flat)


def _certify(model: TabularTeam, n_cases: int, wanted: bool | None) -> list[str]:
    """Compute the certificate that is stored with the model, or return a note on how to get it."""
    team = model.chosen
    if wanted is False or not hasattr(team, "certify"):  # other teams select no samples
        return []
    if wanted is None and n_cases > MAX_CERTIFIED:
        return [
            f"No certificate was computed: with more than {MAX_CERTIFIED} cases it can take minutes. "
            "Pass --certify to compute and store it."
        ]
    with status("Computing the certificate"):
        team.certify()
    return []


def _print(card: dict[str, Any], out: Path) -> None:
    source = card["files"]["cases"]
    rows = f"{card['rows']}"
    if card["rows_without_label"]:
        rows += f", and {card['rows_without_label']} without a label, left out"
    how = "tuned for the team" if card["tuned"] else "which goes with --alpha"
    policy = f"{card['policy']!r}, {how}"
    if len(card["experts"]) > 1:
        policy = f"the expert for whom {unit_of(card).expected} plus price is smallest"
    budget = card["budget"]
    share = f"{budget:.1%} of the cases" if isinstance(budget, float) else counted(budget, "case")
    print_facts(
        "Model",
        [
            ("cases", f"{rows} ({source['name']}, sha256 {source['sha256'][:12]})"),
            (
                "grades" if card["graded"] else "classes",
                (" < " if card["graded"] else ", ").join(
                    f"{k}: {v}" for k, v in card["class_counts"].items()
                ),
            ),
            *([("cost matrix", _costs(card))] if card["cost_matrix"] else []),
            *((f"{kind} columns", f"{len(n)}: {listed(n, 15)}") for kind, n in _by_kind(card)),
            ("features", len(card["features"])),
            *((f"left out: {name}", why) for name, why in card["dropped"].items()),
            *([("groups", card["groups"])] if card["groups"] else []),
            ("budget", share),
            ("expected to be deferred", f"{card['deferral_rate']:.1%}"),
            ("machine", _machine(card)),
            ("policy", policy),
            ("seed", card["seed"]),
        ],
    )
    if card["experts"]:
        print_experts(card["experts"], unit_of(card))
    elif card["readers"]:
        readers = [(r["reader"], r["answers"], f"{r['error']:.3f}") for r in card["readers"]]
        print_grid("Readers", ["reader", "answers", "error"], readers)
    errors = card["errors"]
    if errors:
        cases = counted(errors["machine"]["cases"], "held-out case")
        print_errors(f"Errors on {cases}", errors, "error")
    say_notes(card["notes"])
    say(f"Model: {out}")


def _machine(card: dict[str, Any]) -> str:
    if card["machine_score"] is not None:
        return str(card["machine"])
    how = "chosen for the team" if card["tuned"] else "as given"
    alpha = "" if card["alpha"] is None else f", alpha {card['alpha']:g}"
    return f"{card['machine']}{alpha}, {how}"


def _costs(card: dict[str, Any]) -> str:
    """The worst mistake of a cost matrix: it shows if rows and columns have been swapped."""
    classes, rows = card["cost_matrix"]["classes"], card["cost_matrix"]["costs"]
    most = max(max(row) for row in rows)
    truth = next(k for k, row in enumerate(rows) if most in row)
    said = classes[rows[truth].index(most)]
    return f"as given; the answer {said!r} to a case of {classes[truth]!r} costs {most:g}, the most"


def _by_kind(card: dict[str, Any]) -> list[tuple[str, list[str]]]:
    kinds = dict.fromkeys(card["columns"].values())
    return [(kind, [n for n, own in card["columns"].items() if own == kind]) for kind in kinds]
