"""The published split through the experiments: the figures that other code has given before."""

import pytest

from deferlearn.experiments import Config, reproduce

# Wrong test cases and F1, with a fifth deferred; see tests/datasets/test_published_figures.py.
EXPECTED = {
    "messidor": {
        "humans": (24, 0.871), "full": (53, 0.671), "uncertainty": (43, 0.739),
        "distorted": (47, 0.725),
    },
    "stare": {
        "humans": (21, 0.788), "full": (35, 0.646), "uncertainty": (29, 0.695),
        "distorted": (28, 0.720),
    },
    "aptos": {
        "humans": (51, 0.824), "full": (46, 0.835), "uncertainty": (39, 0.857),
        "distorted": (44, 0.843),
    },
}  # fmt: skip
SIZES = {"messidor": (48, 32, 160), "stare": (45, 29, 148), "aptos": (85, 56, 280)}


@pytest.mark.parametrize("dataset", EXPECTED)
def test_figures(authors_data, tmp_path, dataset):
    config = Config.preset("published", retina_budgets=(0.2,), datasets=(dataset,))
    rows = reproduce("fig5", config, tmp_path).rows
    mine = rows[rows["policy"].isin(["", "nearest"])]
    for method, (wrong, f1) in EXPECTED[dataset].items():
        (row,) = mine[mine["method"] == method].to_dict("records")
        assert row["wrong"] == wrong, method
        assert f"{row['f1']:.3f}" == f"{f1:.3f}", method
        n_deferred, n_asked, n_test = SIZES[dataset]
        assert row["n_test"] == n_test
        if method in ("uncertainty", "distorted"):
            assert row["n_asked"] == n_asked
        if method == "distorted":
            assert row["n_deferred"] == n_deferred
