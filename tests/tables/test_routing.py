"""Routing chunk by chunk: against the model's own methods on the whole table."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from case_tables import make_cases
from deferlearn.tables import Router, TableError, fit_table, select_cases
from deferlearn.tables.guard import learn_guard
from deferlearn.tables.routed import COLUMNS
from deferlearn.teams import threshold as _threshold

HUMANS = ["reader_1", "reader_2"]


@pytest.fixture(scope="module")
def model():
    cases = select_cases(make_cases(), "diagnosis", humans=HUMANS, identifier="id", group="patient")
    return fit_table(cases, alpha=0.1, seed=0)


@pytest.fixture(scope="module")
def new():
    table = make_cases(101, seed=1)
    table["size"][40:60] = [table["size"][40]] * 20  # equal scores
    table["dose"][40:60] = [table["dose"][40]] * 20
    table["age"][40:60] = [50] * 20
    table["site"][40:60] = ["Oslo"] * 20
    return pa.table({name: table[name] for name in ("id", "size", "dose", "age", "site")})


def route(model, table, rows, **options):
    router = Router(model, **options)
    chunks = [table.slice(start, rows) for start in range(0, table.num_rows, rows)]
    parts = [routed for _, routed in router.route(lambda: chunks)]
    return pa.concat_tables(parts), router


def test_answers_and_scores_are_those_of_the_model(model, new):
    routed, router = route(model, new, 30, version="v1")
    assert routed.column_names == list(COLUMNS)
    assert routed["machine_answer"].to_pylist() == model.predict(new).tolist()
    np.testing.assert_allclose(routed["decision_value"], model.decision_function(new), rtol=1e-12)
    np.testing.assert_allclose(routed["deferral_score"], model.deferral_score(new), rtol=1e-12)
    assert set(routed["model_version"].to_pylist()) == {"v1"}
    assert routed["rank"].null_count == 101
    assert router.totals.rows == 101


def test_one_by_one_is_defer(model, new):
    for rows in (7, 101):
        routed, router = route(model, new, rows)
        assert routed["deferred"].to_pylist() == model.defer(new).tolist()
        assert router.totals.deferred == model.defer(new).sum() > 0
        assert routed["taken_by"].to_pylist() == [
            "human" if deferred else "machine" for deferred in model.defer(new)
        ]


@pytest.mark.parametrize("budget", [0.0, 0, 1, 0.2, 37, 0.5, 101, 1.0])
@pytest.mark.parametrize("rows", [13, 200])
def test_a_batch_is_defer_top_also_among_equal_scores(model, new, budget, rows):
    routed, _ = route(model, new, rows, budget=budget)
    assert routed["deferred"].to_pylist() == model.defer_top(new, budget).tolist()
    scores = np.array(routed["deferral_score"])
    ranks = np.array(routed["rank"])
    expected = stats.rankdata(-scores.round(9), method="min")
    assert ranks.tolist() == expected.tolist()


class Scores:
    """A model that scores by the only column, to reach ties of every kind."""

    classes_ = np.array(["a", "b"])

    def __init__(self, floor=-np.inf):
        self.encoder = self.team = self.machine = self.chosen = self
        self.guard = learn_guard(["s"], {}, np.empty((0, 1)))
        self.floor = floor
        self.deferral_threshold_ = 0.0
        self.card_ = {"score_percentiles": [0.0] * 101, "columns": {"s": "number"}}

    def codes(self, table):
        return np.array(table["s"], dtype=float)[:, None], {}

    def features(self, codes):
        return codes

    def deferral_score(self, X):
        return X[:, 0]

    def defer_top(self, X, budget):
        assert budget == 1.0
        return X[:, 0] > self.floor

    decision_function = deferral_score


@settings(deadline=None, max_examples=150)
@given(
    scores=st.lists(
        st.sampled_from([-1.0, -1 - 1e-14, 0.0, 1 / 3, 0.1 + 0.2, 0.3, 1e9]), max_size=25
    ),
    share=st.floats(0, 1),
    rows=st.integers(1, 30),
)
def test_any_ties_in_any_chunks_are_those_of_the_batch_rule(scores, share, rows):
    count = int(share * len(scores))
    table = pa.table({"s": pa.array(scores, pa.float64())})
    if not scores:
        assert list(Router(Scores(), budget=0).route(list)) == []
        return
    routed, router = route(Scores(), table, rows, budget=count)
    assert routed["deferred"].to_pylist() == _threshold.first_of(np.array(scores), count).tolist()
    assert router.totals.deferred == count


def test_a_team_may_leave_a_part_of_the_budget():
    """Where it expects humans to do no better: whoever is at the top, and not welcome, stays."""
    scores = [0.5, -1.0, 2.0, -0.5]
    for rows in (1, 4):
        routed, router = route(Scores(floor=0.0), pa.table({"s": scores}), rows, budget=3)
        assert routed["deferred"].to_pylist() == [True, False, True, False]
        told = ["not expected to do better" in reason for reason in routed["reason"].to_pylist()]
        assert told == [False, False, False, True]
        assert router.totals.deferred == 2


def test_humans_take_all_of_a_small_file(model, new):
    routed, _ = route(model, new.slice(0, 5), 2, budget=30)
    assert routed["deferred"].to_pylist() == [True] * 5


def test_the_lot_is_by_row_not_by_chunk(model, new):
    audits = [
        route(model, new, rows, audit=0.3, seed=4)[0]["audit"].to_pylist() for rows in (9, 30, 101)
    ]
    assert audits[0] == audits[1] == audits[2]
    assert audits[0] != route(model, new, 50, audit=0.3, seed=5)[0]["audit"].to_pylist()


def test_the_lot_leaves_the_deferred_alone_and_has_its_share(model, new):
    many = pa.concat_tables([new] * 40)
    routed, router = route(model, many, 1000, audit=0.3, seed=0)
    audit, deferred = np.array(routed["audit"]), np.array(routed["deferred"])
    assert not (audit & deferred).any()
    n = int((~deferred).sum())
    # Five standard deviations of a binomial.
    assert abs(audit.sum() - 0.3 * n) < 5 * np.sqrt(n * 0.3 * 0.7)
    assert router.totals.audited == audit.sum()
    taken = np.array(routed["taken_by"].to_pylist())
    assert ((taken == "human") == (audit | deferred)).all()
    assert route(model, new, 50, audit=1.0)[1].totals.audited == (~model.defer(new)).sum()


def test_reasons_say_who_and_why(model, new):
    routed, _ = route(model, new, 30, audit=0.3, seed=0)
    threshold = f"{model.team.deferral_threshold_:.4g}"
    for row in routed.to_pylist():
        reason = row["reason"]
        who = "human (random audit): " if row["audit"] else f"{row['taken_by']}: "
        assert reason.startswith(who)
        above = "above" if row["deferred"] else "not above"
        assert f"{row['deferral_score']:.4g} {above} the threshold {threshold}" in reason
        side = "inside" if abs(row["decision_value"]) < 1 else "outside"
        assert f"machine's answer {row['machine_answer']!r} {side} its margin" in reason
    batch, _ = route(model, new, 30, budget=10)
    for row in batch.to_pylist():
        assert f"rank {row['rank']} of 101 by" in row["reason"]
        assert "the first 10 cases go to humans" in row["reason"]


def test_scores_are_compared_with_those_of_training(model, new):
    cases = pa.table(make_cases())
    training = np.sort(model.deferral_score(cases))
    routed, _ = route(model, new, 50)
    for row in routed.to_pylist():
        said = int(row["reason"].split("higher than ")[1].split("%")[0])
        share = 100 * np.searchsorted(training, row["deferral_score"]) / len(training)
        assert abs(said - share) <= 1 + 100 / len(training)


def test_new_categories_are_counted_over_chunks(model, new):
    site = ["Paris", "Oslo", *["Lyon"] * 3]
    table = new.slice(0, 5).set_column(4, "site", [site])
    _, router = route(model, table, 2)
    assert router.totals.unknown == {"site": (4, "Paris")}


def test_a_bad_cell_is_found_by_its_row_in_the_whole_table(model, new):
    ages = [str(age) for age in new["age"].to_pylist()[:9]]
    ages = ["" if age == "None" else age for age in ages]
    ages[7] = "old"
    table = new.slice(0, 9).set_column(3, "age", [ages])
    for options in ({}, {"budget": 2}):
        with pytest.raises(TableError, match="'old' in row 8 "):
            route(model, table, 3, **options)


def test_decimal_commas_are_read_and_kept(model, new):
    columns = {name: new[name].to_pylist() for name in new.column_names}
    columns["size"] = [str(value).replace(".", ",") for value in columns["size"]]
    commas = pa.table({**columns, "dose": [str(v).replace(".", ",") for v in columns["dose"]]})
    expected, _ = route(model, new, 30)
    assert route(model, commas, 30, decimal=",")[0] == expected
    ((chunk, _),) = Router(model, decimal=",").route(lambda: [commas])
    assert chunk == commas
    columns["size"][70] = "1.5"
    with pytest.raises(TableError, match=r"'1.5' in row 71 .* has a point"):
        route(model, pa.table(columns), 30, decimal=",")


def test_progress_is_told(model, new):
    told = []
    router = Router(model, budget=0.1)
    list(router.route(lambda: [new.slice(0, 60), new.slice(60)], told.append))
    assert told == [60, 41, 60, 41]


@pytest.mark.parametrize(
    "options", [{"audit": 1.5}, {"audit": -0.1}, {"budget": 1.5}, {"budget": -1}]
)
def test_shares_that_are_none(model, options):
    with pytest.raises(TableError, match=next(iter(options))):
        Router(model, **options)


# -- cases that the model was never meant for ----------------------------------------------------


def spoiled(new, rows):
    """New cases, some of which have a size in another unit."""
    sizes = [1000 * v if row < rows else v for row, v in enumerate(new["size"].to_pylist())]
    return new.set_column(1, "size", [sizes])


def test_unusual_cases_are_marked_counted_and_taken_by_humans(model, new):
    routed, router = route(model, spoiled(new, 5), 3)
    unusual = routed["unusual"].to_pylist()
    assert unusual == [bool(text) for text in model.unusual(spoiled(new, 5))]
    assert sum(unusual[:5]) >= 4
    assert sum(unusual[5:]) == 0
    for row in routed.to_pylist():
        assert row["deferred"] or not row["unusual"]
        if row["unusual"]:
            assert row["reason"].startswith("human: unusual case, 'size' is ")
            assert "in training" in row["reason"]
            assert row["reason"].endswith("the machine's error is not known here")
    assert router.totals.unusual == router.totals.unusual_deferred == sum(unusual)
    first, second = router.totals.notes()[:2]
    assert first.startswith(f"{sum(unusual)} of 101 cases are unusual")
    assert "'size' is" in second


def test_unusual_cases_may_stay_with_the_machine(model, new):
    routed, router = route(model, spoiled(new, 5), 30, defer_unusual=False)
    assert routed["deferred"].to_pylist() == model.defer(spoiled(new, 5)).tolist()
    assert router.totals.unusual > router.totals.unusual_deferred
    kept = [r for r in routed.to_pylist() if r["unusual"] and not r["deferred"]]
    assert all("unusual case, 'size' is" in row["reason"] for row in kept)
    assert "not to be trusted" in router.totals.notes()[0]


@pytest.mark.parametrize("rows", [13, 200])
def test_unusual_cases_come_first_within_the_budget(model, new, rows):
    table = spoiled(new, 30)
    unusual = np.array([bool(text) for text in model.unusual(table)])
    routed, router = route(model, table, rows, budget=10)
    deferred = np.array(routed["deferred"])
    assert deferred.sum() == 10
    assert (deferred <= unusual).all()
    assert "The machine keeps" in router.totals.notes()[0]
    more, _ = route(model, table, rows, budget=10, exceed_budget=True)
    np.testing.assert_array_equal(np.array(more["deferred"]), unusual)
    wide, _ = route(model, table, rows, budget=60)
    assert np.array(wide["deferred"]).sum() == 60
    assert (np.array(wide["deferred"]) >= unusual).all()


def test_one_by_one_the_budget_is_watched(model, new):
    assert route(model, new, 50)[1].over_budget() is None
    assert route(model, spoiled(new, 2), 50)[1].over_budget() is None
    assert route(model, spoiled(new, 101), 50)[1].over_budget() == 0.2
    assert route(model, spoiled(new, 101), 50, exceed_budget=True)[1].over_budget() is None
    assert route(model, spoiled(new, 101), 50, defer_unusual=False)[1].over_budget() is None


def test_the_table_as_a_whole_is_looked_at(model, new):
    _, router = route(model, spoiled(new, 101), 7)
    assert any("multiplied by about" in note for note in router.totals.notes())
    assert route(model, new, 101)[1].totals.shifts == []


def test_unused_places_are_counted_and_can_be_used():
    table = pa.table({"s": [0.5, -1.0, 2.0, -0.5]})
    _, router = route(Scores(floor=0.0), table, 3, budget=3)
    assert router.totals.unused == 1
    assert router.totals.notes() == [
        "1 place of the budget is unused: humans are not expected to do better there. "
        "--use-full-budget uses them."
    ]
    routed, router = route(Scores(floor=0.0), table, 3, budget=3, use_full_budget=True)
    assert routed["deferred"].to_pylist() == [True, False, True, True]
    assert router.totals.notes() == []
