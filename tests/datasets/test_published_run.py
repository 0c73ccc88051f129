"""The authors' result files: what they say of the human behind Figure 5, and how they are found."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from deferlearn import datasets
from deferlearn.datasets import _published_run, published_run, published_split
from deferlearn.datasets._files import DamagedFileError
from deferlearn.datasets._published_run import FILES

NAMES = ("messidor", "stare", "aptos")
# Of the paper's caption: error and F1 of humans alone.
HUMANS = {"messidor": (0.15, 0.87), "stare": (0.14, 0.78), "aptos": (0.20, 0.80)}


@pytest.mark.parametrize("name", NAMES)
def test_the_human_is_that_of_the_figure(name, authors_data, authors_results):
    run = published_run(name, data_home=authors_results)
    data = getattr(datasets, f"fetch_{name}")(data_home=authors_data)
    train, test = published_split(data)
    truth, said = data.target[test], run.human_labels_test
    error, f1 = HUMANS[name]
    assert np.mean(said != truth) == pytest.approx(error, abs=0.005)
    assert f1_score(truth, said) == pytest.approx(f1, abs=0.01)
    # The data files of Messidor and Stare hold the same draw, that of Aptos another one.
    same = name != "aptos"
    assert np.array_equal(run.human_loss_train, data.human_loss[train]) == same
    assert np.array_equal(run.human_labels_train, data.human_labels[train]) == same
    assert np.array_equal(said, data.human_labels[test]) == same
    assert run.alpha == data.alpha


@pytest.mark.parametrize("name", NAMES)
def test_sizes(name, authors_results):
    run = published_run(name, data_home=authors_results)
    n_train, n_test = len(run.human_loss_train), len(run.human_labels_test)
    for budget in run.budgets:
        n = int(budget * n_train + 1e-9)
        for picks in (run.picks["distorted"][budget], run.picks["stochastic"][budget]):
            assert len(set(picks)) == len(picks) == n
            assert set(picks) <= set(range(n_train))
        for asked in run.asked.values():
            assert len(set(asked[budget])) == len(asked[budget]) == int(n * n_test / n_train)
    assert set(run.error) == set(run.f1) == {"distorted", "stochastic", "uncertainty", "predicted"}
    assert "human_labels_test" in run.DESCR


def test_a_copy_is_found_by_the_variable_or_beside_the_data(tmp_path, monkeypatch):
    here, data, given = (tmp_path / name for name in ("results", "data", "given"))
    for folder in (here, data, given):
        folder.mkdir()
        (folder / FILES["stare"][0].name).write_bytes(folder.name.encode())
    monkeypatch.setenv("DEFERLEARN_DATA", str(data))
    monkeypatch.setenv("DEFERLEARN_RESULTS", str(here))
    for options, found in [({}, here), ({"data_home": given}, given)]:
        with pytest.raises(DamagedFileError, match=f"{found}.*expected sha256 fbbe13f1"):
            published_run("stare", **options)
    monkeypatch.setenv("DEFERLEARN_RESULTS", "")
    with pytest.raises(DamagedFileError, match=str(data)):
        published_run("stare")
    with pytest.raises(FileNotFoundError, match="the environment variable DEFERLEARN_RESULTS"):
        published_run("aptos", download_if_missing=False)


def test_where_it_is_downloaded_from():
    for file, _ in FILES.values():
        assert file.url.endswith(f"67/Results/{file.name}")


def test_unknown_names_and_contents(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="name='eyes' is not known; use one of messidor, stare"):
        published_run("eyes")
    monkeypatch.setattr(_published_run, "read_verified", lambda *_, **__: b"\x80\x02}.")
    with pytest.raises(ValueError, match=r"res_0.5.pkl lacks what it should hold: KeyError\('3'\)"):
        published_run("stare", data_home=tmp_path)
