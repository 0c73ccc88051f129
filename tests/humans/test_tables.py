"""Long tables of answers: all containers, gaps, and rows that make no sense."""

import numpy as np
import pytest

from deferlearn.humans import answers_from_table, loss_from_labels, loss_from_table

CASE = ["x", "y", "x", "z", "y", "x"]
READER = ["Ann", "Ann", "Bob", "Bob", "Cy", "Cy"]
ANSWER = [1, 1, -1, -1, 1, None]
NAMES = ["z", "y", "x"]
Y = np.array([-1, -1, 1])


def make(kind, case="case", reader="reader", answer="answer"):
    columns = {case: CASE, reader: READER, answer: ANSWER, "note": ["?"] * 6}
    if kind == "dict":
        return columns
    if kind == "frame":
        return pytest.importorskip("pandas").DataFrame(columns)
    rows = [
        (c, r, np.nan if a is None else a) for c, r, a in zip(CASE, READER, ANSWER, strict=True)
    ]
    return np.array(rows, dtype=[(case, "U1"), (reader, "U3"), (answer, "f8")])


@pytest.mark.parametrize("kind", ["dict", "frame", "structured"])
def test_containers(kind):
    names = {"case": "image", "reader": "who", "answer": "says"}
    table = make(kind, *names.values())
    # z: right; y: wrong twice; x: right and wrong.
    raw = loss_from_table(table, Y, cases=NAMES, shrinkage=0, **names)
    assert raw.tolist() == [0, 2, 1]
    # Class -1 has the average 1: (0 + 1) / 2 and (4 + 1) / 3; class +1 is x alone.
    steady = loss_from_table(table, Y, cases=NAMES, **names)
    np.testing.assert_allclose(steady, [1 / 2, 5 / 3, 1])
    wide, readers = answers_from_table(table, NAMES, **names)
    assert readers[:2] == ["Ann", "Bob"]
    np.testing.assert_array_equal(wide[:, :2], [[np.nan, -1], [1, np.nan], [1, -1]])
    np.testing.assert_array_equal(loss_from_labels(wide, Y), raw)


def test_positions_name_the_cases_by_default():
    table = {"case": [1, 0], "reader": [0, 0], "answer": ["a", "b"]}
    assert loss_from_table(table, ["a", "b"], shrinkage=0).tolist() == [2, 2]
    wide, readers = answers_from_table(table, 2)
    assert wide.tolist() == [["b"], ["a"]]
    assert readers == [0]


def test_case_without_answers():
    table = {"case": [0, 1], "reader": ["A", "A"], "answer": [1, -1]}
    with pytest.warns(UserWarning, match="no answer was given for 1 of 3 cases.*1 of class 1"):
        loss = loss_from_table(table, [1, 1, 1], shrinkage=0)
    assert loss.tolist() == [0, 2, 1]


def test_scores():
    table = {"case": [0, 0, 1], "reader": ["A", "B", "A"], "answer": [0.5, 1.0, 0.25]}
    loss = loss_from_table(table, [1, -1], kind="scores", shrinkage=0, human_bound=1)
    assert loss.tolist() == [0.25, 1.25]
    with pytest.raises(ValueError, match="outside"):
        loss_from_table(table, [1, -1], kind="scores", human_bound=0.9)


def test_anonymous_answers_all_count():
    table = {"case": [0, 0, 0], "answer": [1, 1, -1]}
    loss = loss_from_table(table, [1], reader=None, shrinkage=0)
    np.testing.assert_allclose(loss, [2 / 3])


def test_large_table_equals_its_wide_form():
    rng = np.random.default_rng(0)
    n, readers = 300, 40
    y = rng.choice(["no", "yes"], size=n)
    wide = np.where(rng.random((n, readers)) < 0.3, "no", "yes").astype(object)
    wide[rng.random((n, readers)) < 0.9] = None
    wide[:, 0] = "no"
    case, reader = np.nonzero(wide != None)  # noqa: E711
    shuffled = rng.permutation(len(case))
    case, reader = case[shuffled], reader[shuffled]
    table = {"case": case, "reader": reader, "answer": wide[case, reader]}
    for shrinkage in (0, 2.5, "auto"):
        np.testing.assert_allclose(
            loss_from_table(table, y, shrinkage=shrinkage),
            loss_from_labels(wide, y, shrinkage=shrinkage),
        )


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ({"case": [0], "reader": [0]}, {}, "no column 'answer', only 'case', 'reader'"),
        ({"case": [0, 1], "reader": [0], "answer": [1]}, {}, "different lengths"),
        (
            {"case": [9], "reader": [0], "answer": [1]},
            {},
            r"cases that are not among those of y \(1 in all\), such as 9",
        ),
        (
            {"case": [0, None, np.nan], "reader": [0, 1, 2], "answer": [1, 1, None]},
            {},
            "column 'case' names no case in 2 of 3 rows, the first of them row 1",
        ),
        (
            {"case": [0], "reader": [0], "answer": [1]},
            {"cases": [0, None]},
            "cases names no case in 1",
        ),
        ({"case": [1, 1], "reader": ["A", "A"], "answer": [1, 1]}, {}, "'A' answered case 1 more"),
        ({"case": [0], "reader": [0], "answer": [3]}, {}, "3.0 at row 0"),
        ({"case": [0], "reader": [0], "answer": [1]}, {"cases": [0]}, "1 entries and y has 2"),
        ({"case": [0], "reader": [0], "answer": [1]}, {"cases": [0, 0]}, "occurs twice"),
        ({"case": [0], "reader": [0], "answer": [1]}, {"kind": "votes"}, "'votes' is not known"),
        ({"case": [], "reader": [], "answer": []}, {}, "no case has an answer"),
        ([(0, 0, 1)], {}, "DataFrame, a dict of columns or a structured array, got list"),
        (np.zeros(3), {}, "structured array, got ndarray"),
    ],
)
def test_tables_that_make_no_sense(table, options, message):
    with pytest.raises(ValueError, match=message):
        loss_from_table(table, [1, -1], **options)


@pytest.mark.parametrize("gap", [None, float("nan"), np.nan, "NA", "masked"])
def test_readers_without_a_name_are_refused(gap):
    """Two of them are the same one, or not: nobody knows."""
    readers = ["Ann", "x", "x", "Bob"]
    if gap == "masked":
        readers = np.ma.masked_equal(readers, "x")
    else:
        gap = pytest.importorskip("pandas").NA if gap == "NA" else gap
        readers = [gap if name == "x" else name for name in readers]
    table = {"case": [0, 0, 0, 1], "reader": readers, "answer": [1, 1, -1, -1]}
    expected = "column 'reader' names no reader in 2 of 4 rows, the first of them row 1"
    with pytest.raises(ValueError, match=expected):
        loss_from_table(table, [1, -1])
    with pytest.raises(ValueError, match=expected):
        answers_from_table(table, 2)
    assert loss_from_table(table, [1, -1], reader=None, shrinkage=0).tolist() == [2 / 3, 0]


def test_a_case_that_nobody_read_needs_no_reader():
    """As a left join of cases and answers has it."""
    table = {"case": [0, 1, 2], "reader": ["A", None, "B"], "answer": [1, None, -1]}
    with pytest.warns(UserWarning, match="no answer was given for 1 of 3 cases"):
        assert loss_from_table(table, [1, 1, -1], shrinkage=0).tolist() == [0, 0, 0]
    assert answers_from_table(table, 3)[1] == ["A", "B"]
