"""The sections of the report: numbers in, sentences, tables and pictures out."""

from __future__ import annotations

from typing import Any

from deferlearn.report import pictures
from deferlearn.report.charts import measured, percent
from deferlearn.report.html import Markup, bullets, definitions, grid, join, tag
from deferlearn.report.rows import MAX_ROWS
from deferlearn.report.where import MAX_COLUMNS

Numbers = dict[str, Any]


def summary(numbers: Numbers) -> Markup:
    """What this is about, and what to know before reading on."""
    cases, model = numbers["cases"], numbers["model"]
    counts = ", ".join(f"{label}: {count}" for label, count in cases["class_counts"].items())
    readers = ", ".join(
        f"{r['reader']} ({r['answers']} answers, error {measured(r['error'])})"
        for r in cases["readers"]
    )
    judged = "Errors are those of the stored model on these cases."
    if numbers["judged_by"] != "the stored model":
        judged = (
            "The model was fitted on these cases. Errors are those of teams that were fitted without the "
            "case."
        )
    elif not cases["seen_in_training"]:
        judged += (
            " The file is not the one that it was fitted on; if it has seen some of the cases all the "
            "same, errors of machine and team are too low."
        )
    left_out = cases["rows_without_label"]
    without = f", and {left_out} without a label, left out" if left_out else ""
    return join(
        definitions(
            [
                ("Cases", f"{cases['rows']} ({counts}){without}"),
                (
                    "Humans",
                    readers + (" (their majority counts)" if len(cases["readers"]) > 1 else ""),
                ),
                (
                    "Model",
                    f"policy {model['policy']}, alpha {model['alpha']:.4g}, "
                    f"budget {_budget(model['budget'])}, fitted on {model['rows']} cases",
                ),
                ("Judged by", judged),
            ]
        ),
        bullets(numbers["notes"]) if numbers["notes"] else "",
    )


def verdict(numbers: Numbers) -> Markup:
    """The verdict of the report of assistance."""
    found = numbers["assistance"]
    if found is None:
        return tag("p", f"Not measured: {numbers['refits']['skipped']}.")
    return join(
        tag("p", found["headline"], class_=f"answer {found['pays']}"),
        bullets(found["verdict"]),
        tag("p", _refit_words(numbers), class_="muted"),
    )


def _refit_words(numbers: Numbers) -> str:
    some, n = numbers["refits"]["cases"], numbers["cases"]["rows"]
    lot = f" ({some} of the {n} cases, drawn by lot)" if some < n else ""
    return (
        f"For this, teams of the model's kind were fitted on parts of these cases{lot} and judged on the "
        "others; what was tuned keeps its values, which flatters a little if that was on the same cases."
    )


def errors(numbers: Numbers) -> Markup:
    """Errors, confusion matrices, and who is right where the other is wrong."""
    classes = numbers["cases"]["classes"]
    matrices = []
    for who, table in numbers["confusion"].items():
        rows = []
        for true in classes:
            total = sum(table[true].values())
            cells = [_count(table[true][said], total, said == true) for said in classes]
            rows.append([true, *cells])
        share = numbers["errors"][who]
        wrong = f"{share['count']} of {share['cases']} wrong ({measured(share['share'])})"
        caption = f"{who.capitalize()}: {wrong}"
        headings = ["truth", *(f"says {said}" for said in classes)]
        matrices.append(tag("div", grid(caption, headings, rows)))
    together = grid(
        "Machine and human on the same cases",
        ["machine", "human", "left to the machine", "deferred"],
        [[r["machine"], r["human"], r["kept"], r["deferred"]] for r in numbers["together"]],
        words=2,
    )
    judged, rows_ = numbers["cases"]["judged"], numbers["cases"]["rows"]
    among = "" if judged == rows_ else f" Judged are the {judged} cases that a human has answered."
    return join(
        tag("div", join(pictures.error_intervals(numbers), *matrices), class_="panels two"),
        tag(
            "p",
            f"One case at a time: a human takes a case whose score is above the threshold.{among}",
        ),
        together,
    )


def _count(count: int, total: int, right: bool) -> Markup:
    share = f" ({measured(count / total)})" if total else ""
    return tag("span", f"{count}{share}", class_="right" if right else "wrong")


def where(numbers: Numbers) -> Markup:
    """Errors by class and by columns."""
    rows: list[list[Any]] = []
    last = None
    for row in numbers["where"]:
        name = (
            row["column"] if row["column"] != last else tag("span", row["column"], class_="muted")
        )
        last = row["column"]
        shares = [measured(row[key]) for key in ("deferred", "machine", "human", "team")]
        rows.append([name, row["value"], row["cases"], *shares])
    more = len(numbers["model"]["columns"]) - MAX_COLUMNS
    said = (
        f" Of the model's columns the first {MAX_COLUMNS} are shown, {more} are not."
        if more > 0
        else ""
    )
    found = numbers["assistance"]
    return join(
        tag(
            "p",
            "Numbers are cut into quarters. Where there are few cases, such differences are mostly chance: "
            f"they are where to look, not a result.{said}",
        ),
        grid(
            "Errors by truth and by columns",
            ["column", "value", "cases", "deferred", "machine errs", "human errs", "team errs"],
            rows,
            words=2,
        ),
        _subgroups(found) if found and found["subgroups"] else "",
    )


def _subgroups(found: Numbers) -> Markup:
    rows = [row for row in found["subgroups"] if row["budget"] == found["budget"]]
    return grid(
        f"Subgroups of {found['subgroup_name']} at a budget of {percent(found['budget'])}, on cases left "
        "out; the difference in percentage points, with its 95% interval",
        [
            "subgroup",
            "cases",
            "deferred",
            "machine errs",
            "human errs",
            "team errs",
            "team less machine",
        ],
        [
            [
                row["subgroup"],
                row["n_cases"],
                *(
                    measured(row[k])
                    for k in ("deferred", "machine_error", "human_error", "team_error")
                ),
                _difference(row),
            ]
            for row in rows
        ],
    )


def curves(numbers: Numbers) -> Markup:
    """Automation curves, and the numbers behind them."""
    found = numbers["assistance"]
    if found is None:
        return tag("p", f"Not measured: {numbers['refits']['skipped']}.")
    positive = found["settings"]["pos_label"]
    other = next(label for label in numbers["cases"]["classes"] if label != positive)
    rows = [
        [
            row["who"] if row["who"] != "team" else f"team, {percent(row['budget'])}",
            measured(row["deferred"]),
            _interval(row, "error"),
            _error_on(row, "sensitivity"),
            _error_on(row, "specificity"),
            _difference(row) if "difference" in row else "",
        ]
        for row in found["teams"]
    ]
    return join(
        tag(
            "div",
            join(pictures.verdict_curve(numbers), pictures.automation_curves(numbers)),
            class_="panels",
        ),
        grid(
            "Batch rule, on cases left out, with 95% intervals; differences in percentage points",
            [
                "who",
                "deferred",
                "error",
                f"error where the truth is {positive}",
                f"error where the truth is {other}",
                "less machine",
            ],
            rows,
        ),
    )


def rate(numbers: Numbers) -> Markup:
    """Asked, promised and observed share."""
    c = numbers["calibration"]
    seen = c["observed"]
    fits = (
        "which agrees with the promise"
        if c["kept"]
        else "which does not agree with the promise: these cases may differ from those in training"
    )
    sentence = (
        f"Asked for: at most {percent(c['asked'])} of the cases. Promised for new cases: "
        f"{measured(c['promised'])}. Of these {seen['cases']} cases the stored model defers "
        f"{seen['count']}, {measured(seen['share'])} (95% interval {measured(seen['lower'])} to "
        f"{measured(seen['upper'])}), {fits}."
    )
    if c["in_sample"]:
        sentence += " It was fitted on these cases, so that this is no test."
    picture: Any = ""
    if numbers["curves"] is not None:
        picture = tag("div", pictures.rate_curve(numbers), class_="panels")
    return join(tag("p", sentence), picture)


def cases(numbers: Numbers, rows: Numbers) -> Markup:
    """The table that sorts and filters, filled by the page's script."""
    shown, total = len(rows["rows"]), rows["total"]
    said = "What the stored model says of each case, by its score. A click on a heading sorts."
    if shown < total:
        said += (
            f" The table holds the first {shown:,} of {total:,} cases (at most {MAX_ROWS:,}), those "
            "deferred first."
        )
    if rows["features_left_out"]:
        said += f" {rows['features_left_out']} of the model's columns are not shown."
    if numbers["cases"]["seen_in_training"]:
        said += (
            " The model has learned from these cases: its answers are better here than on new ones."
        )
    options = {
        "cases-taken": ("taken by", ["", "human", "machine"]),
        "cases-errs": ("who errs", ["", "machine", "human", "team", "anybody", "nobody"]),
    }
    selects = [
        tag(
            "label",
            join(
                label,
                tag(
                    "select",
                    join(*(tag("option", value or "all", value=value) for value in values)),
                    id=name,
                ),
            ),
        )
        for name, (label, values) in options.items()
    ]
    search = tag("label", join("search", Markup('<input id="cases-search" type="search">')))
    table = tag(
        "table",
        Markup("<thead><tr></tr></thead><tbody></tbody>"),
        id="cases-table",
    )
    return join(
        tag("p", said),
        tag("noscript", tag("p", "The table needs JavaScript.")),
        tag("div", join(search, *selects), class_="controls"),
        tag("p", "", id="cases-count", class_="muted", aria_live="polite"),
        tag("div", table, class_="scroll", tabindex=0, role="region", aria_label="Cases"),
        tag("button", "Show more", id="cases-more", class_="more", type="button"),
    )


def certificate(numbers: Numbers) -> Markup:
    """The certificate in plain words."""
    return join(
        tag(
            "p",
            "The model chose which training cases humans take. How far can that choice be from the best "
            "one, on the training cases and in terms of the loss that was minimised? That is no statement "
            "about errors on new cases.",
        ),
        bullets(numbers["certificate"]["words"]),
    )


def again(numbers: Numbers) -> Markup:
    """Command, files, versions and seeds."""
    known, model = numbers["provenance"], numbers["model"]
    rows: list[tuple[str, Any]] = [
        (role, join(file["name"], ", sha256 ", tag("code", file["sha256"])))
        for role, file in known.get("files", {}).items()
    ]
    rows += [
        (f"the model's {role}", join(file["name"], ", sha256 ", tag("code", file["sha256"])))
        for role, file in model["files"].items()
    ]
    rows += [
        ("seeds", f"{known['seed']} for this report, {model['seed']} for the model"),
        ("versions", _versions(known["versions"]) + f", {known['platform']}"),
        ("model written by", _versions(model["versions"]) + f", {model['created']}"),
        ("report written", known["created"]),
    ]
    command = known.get("command")
    return join(tag("pre", tag("code", command)) if command else "", definitions(rows))


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def _budget(budget: float | int) -> str:
    return f"{budget} cases" if isinstance(budget, int) else percent(budget)


def _interval(row: Numbers, name: str) -> str:
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    return "" if value is None else f"{measured(value)} ({measured(low)} to {measured(high)})"


def _error_on(row: Numbers, name: str) -> str:
    """Errors on a class from the share that is recognised."""
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    return (
        ""
        if value is None
        else f"{measured(1 - value)} ({measured(1 - high)} to {measured(1 - low)})"
    )


def _difference(row: Numbers) -> str:
    value, low, high = (row[f"difference{end}"] for end in ("", "_low", "_high"))
    return "" if value is None else f"{100 * value:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
