"""What the authors' program stored when it made the paper's Figure 5."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from deferlearn.datasets._files import (
    RESULTS_VARIABLE,
    Folder,
    RemoteFile,
    get_results_home,
    read_verified,
)
from deferlearn.datasets._pickles import Tree, read_tree

# Budgets n/|V| in the files, and the names of the methods there.
BUDGETS = (0.0, 0.04, 0.08, 0.12, 0.16, 0.2)
ALGORITHMS = {"distorted": "distort_greedy", "stochastic": "stochastic_distort_greedy"}
METHODS = {**ALGORITHMS, "uncertainty": "kl_triage_Alg", "predicted": "kl_triage_estimated"}
# How each method's cases at test time are called in the files.
RANKINGS = {"distorted": "LR", "stochastic": "LR", "uncertainty": "Alg", "predicted": "Est"}

# Keys of the only split and the only human in the files.
SPLIT, HUMAN = "3", "1"


def _results(name: str, sha256: str) -> RemoteFile:
    return RemoteFile(name, sha256, place="Results", variable=RESULTS_VARIABLE)


# Each file, and the lambda in its name, which is a key in it as well.
FILES: dict[str, tuple[RemoteFile, str]] = {
    "messidor": (
        _results(
            "Messidor_soft_linear_with_offset_res_0.03.pkl",
            "bbc9f108d0a4b8a44db7f63f84c7c74b0c847f189d4c2773642b993595d81b41",
        ),
        "0.03",
    ),
    "stare": (
        _results(
            "Stare_soft_linear_with_offset_res_0.5.pkl",
            "fbbe13f1ad04b87dc9e952e5bde947d78aa2251ee01b68c5e8b6372b89f52457",
        ),
        "0.5",
    ),
    "aptos": (
        _results(
            "Aptos_soft_linear_with_offset_res_0.6.pkl",
            "d0227c294b78e2965ae77af4019d731abaac0609f9bd5e232679fc7a74ff6e27",
        ),
        "0.6",
    ),
}

_DESCR = """\
{name}: what the authors' program stored when it made Figure 5 of "Classification Under Human Assistance"

human_loss_train, human_labels_train, human_labels_test
              the draw of the first reader behind the figure, in the rows of `published_split`
alpha         the program's lambda
budgets       n/|V|
picks         by algorithm and budget: the deferred training samples, in the order of the selection
asked         by method and budget: the test cases that the human answers
error, f1     by method and budget: the points of the figure

The methods are distorted, stochastic, uncertainty and predicted. The files come from the folder Results
of the authors' public repository on GitHub, Networks-Learning/classification-under-assistance. It states
no licence for them.
"""


def published_run(
    name: str, *, data_home: Folder = None, download_if_missing: bool = True
) -> Bunch:
    """What the authors' program stored when it made the paper's Figure 5.

    Parameters
    ----------
    name : {"messidor", "stare", "aptos"}
        The data set.
    data_home : path-like or None, default=None
        Folder of the result files. None means the folder named by the environment variable
        ``DEFERLEARN_RESULTS``, or without it the folder of the data files, see `get_data_home`.
    download_if_missing : bool, default=True
        Whether a file that is not in the folder is downloaded into it; otherwise it is an error.

    Returns
    -------
    bunch : `~sklearn.utils.Bunch`
        With the human draw (`human_loss_train`, `human_labels_train`, `human_labels_test`),
        `alpha`, `budgets`, the samples and cases that were deferred (`picks`, `asked`), the points of the
        figure (`error`, `f1`), and `DESCR`, which explains them. The rows are those of `published_split`.

    Examples
    --------
    >>> from deferlearn.datasets import published_run
    >>> run = published_run("stare")  # doctest: +SKIP
    >>> len(run.picks["distorted"][0.2])  # doctest: +SKIP
    45
    """
    if name not in FILES:
        raise ValueError(f"name={name!r} is not known; use one of {', '.join(FILES)}")
    file, alpha = FILES[name]
    folder = get_results_home(data_home)
    content = read_verified(file, folder, download_if_missing=download_if_missing)
    try:
        return _bunch(name, alpha, read_tree(content)[SPLIT])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file.name} lacks what it should hold: {error!r}") from error


def _bunch(name: str, alpha: str, run: Tree) -> Bunch:
    def of(method: str, budget: float) -> Tree:
        found: Tree = run[HUMAN][str(budget)][alpha][METHODS[method]]
        return found

    def points(what: str) -> dict[str, dict[float, float]]:
        return {m: {b: _point(of(m, b), RANKINGS[m], what) for b in BUDGETS} for m in METHODS}

    return Bunch(
        human_loss_train=np.asarray(run["c"], dtype=np.float64),
        human_labels_train=np.asarray(run["y_h"], dtype=np.int64),
        human_labels_test=np.asarray(run["y_h_test"], dtype=np.int64),
        alpha=float(alpha),
        budgets=BUDGETS,
        picks={m: {b: _rows(of(m, b)["subset"]) for b in BUDGETS} for m in ALGORITHMS},
        asked={
            m: {b: _rows(of(m, b)["subset_test"][RANKINGS[m]]) for b in BUDGETS} for m in METHODS
        },
        error=points("error"),
        f1=points("f_score"),
        DESCR=_DESCR.format(name=name.capitalize()),
    )


def _point(stored: Tree, ranking: str, what: str) -> float:
    results: Any = stored["test_res"][ranking]
    return float(results["f_score"] if what == "f_score" else results[ranking][what])


def _rows(numbers: Any) -> NDArray[np.int64]:
    # Empty sets are stored as floats.
    return np.asarray(numbers).astype(np.int64)
