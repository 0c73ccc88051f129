"""Data like text, and how long a fit on it takes: TF-IDF rows with thousands of samples on the margin.

`python benchmarks/support/text.py` prints the figures; other benchmarks call `measure_fit`.
"""

from __future__ import annotations

import resource
import sys
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

# The task: defer 5% of 15,000 documents with 24,000 words, on one core.
N_DOCUMENTS, N_WORDS, ALPHA, BUDGET, RATIO = 15_000, 24_000, 7e-5, 0.05, 0.01


class Text(NamedTuple):
    """Documents by their words, the true labels, and a human's labels."""

    X: Any
    y: Array
    human: Array


def make_text(
    n_documents: int = N_DOCUMENTS,
    n_words: int = N_WORDS,
    words_per_document: int = 25,
    *,
    n_telling: int = 300,
    noise: float = 0.1,
    human_error: float = 0.1,
    seed: int = 0,
) -> Text:
    """Documents whose words follow Zipf's law, as TF-IDF in rows of length one.

    Labels come from a few hundred words that are neither the commonest nor rare, and some are wrong.
    """
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(3, n_words + 3)
    lengths = 1 + rng.poisson(words_per_document, n_documents)
    rows = np.repeat(np.arange(n_documents), lengths)
    columns = rng.choice(n_words, size=rows.size, p=share / share.sum())
    counts = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(n_documents, n_words))
    counts.sum_duplicates()
    documents_with = np.bincount(counts.indices, minlength=n_words)
    counts.data *= np.log((1.0 + n_documents) / (1.0 + documents_with))[counts.indices] + 1.0
    lengths = np.sqrt(counts.multiply(counts).sum(axis=1))
    X = sp.csr_array(sp.diags_array(1.0 / lengths) @ counts)
    # LinearSVC of scikit-learn accepts only this type.
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    weight = np.zeros(n_words)
    telling = rng.choice(np.arange(20, max(n_words // 5, 21 + n_telling)), n_telling, replace=False)
    weight[telling] = rng.normal(size=n_telling)
    score = X @ weight
    score += 0.3 * score.std() * rng.normal(size=n_documents) - np.median(score)
    y = np.where((score > 0) != (rng.random(n_documents) < noise), 1.0, -1.0)
    return Text(X, y, np.where(rng.random(n_documents) < human_error, -y, y))


class Fit(NamedTuple):
    """How long a fit took, and what is certified about it."""

    tol: float
    seconds: float  # elapsed
    cpu_seconds: float
    compiling_seconds: float  # of an earlier small fit, which compiles the engine or loads it
    n_picks: int
    slack: float  # the largest of a pick, relative to the best score
    gap: float  # of gains and values, absolute
    loss: float  # F of all samples, for comparison
    megabytes: float  # the largest memory of the process so far
    linear_svc_seconds: float  # elapsed, of scikit-learn's LinearSVC on all samples


def measure_fit(tol: float = 0.05, data: Text | None = None) -> Fit:
    """Fit an `AssistedSVC`, and scikit-learn's LinearSVC next to it."""
    from sklearn.svm import LinearSVC

    from deferlearn import AssistedSVC
    from deferlearn.objective.scaling import mu_from_alpha

    X, y, human = make_text() if data is None else data
    team = AssistedSVC(
        budget=BUDGET, alpha=ALPHA, submodularity_ratio=RATIO, tol=tol, cv=None, random_state=0
    )
    small = make_text(2_100, 2_100, seed=1)
    start = perf_counter()
    AssistedSVC(
        budget=3, alpha=ALPHA, submodularity_ratio=RATIO, tol=tol, cv=None, random_state=0
    ).fit(small.X, small.y, human_labels=small.human)
    compiling = perf_counter() - start
    start, cpu = perf_counter(), process_time()
    team.fit(X, y, human_labels=human)
    seconds, cpu = perf_counter() - start, process_time() - cpu
    machine = LinearSVC(C=1.0 / mu_from_alpha(ALPHA, len(y)), loss="hinge", max_iter=10_000)
    start = perf_counter()
    machine.fit(X, y)
    linear = perf_counter() - start
    unit = 2**20 if sys.platform == "darwin" else 2**10
    result = team.selection_
    return Fit(
        tol, seconds, cpu, compiling, len(result.order), result.slack, result.gap,
        result.initial_value, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, linear,
    )  # fmt: skip


def main() -> None:
    """Print how long fits with several tolerances take."""
    data = make_text()
    print(
        f"{data.X.shape[0]} x {data.X.shape[1]}, {data.X.nnz / data.X.shape[0]:.1f} words per row"
    )
    for tol in (0.05, 0.01):
        fit = measure_fit(tol, data)
        print(
            f"tol={tol}: {fit.seconds:.1f} s ({fit.cpu_seconds:.1f} s of the processor, and before that "
            f"{fit.compiling_seconds:.1f} s for a small fit), {fit.n_picks} picks, certified slack "
            f"{fit.slack:.4f} at most, certified gap {fit.gap:.2g} (F = {fit.loss:.6g}), "
            f"{fit.megabytes:.0f} MB; LinearSVC {fit.linear_svc_seconds:.2f} s"
        )


if __name__ == "__main__":
    main()
