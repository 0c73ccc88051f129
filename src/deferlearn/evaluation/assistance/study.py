"""Does assistance pay here? The measurement behind the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length

from deferlearn.evaluation.assistance import inputs, tables, verdict
from deferlearn.evaluation.assistance.factors import factor_table
from deferlearn.evaluation.assistance.judge import Judge
from deferlearn.evaluation.assistance.report import AssistanceReport
from deferlearn.evaluation.assistance.trial import Trial, check_estimator, make_splits, run_trial
from deferlearn.teams.refits import SplitData, check_confidence, check_human


def assistance_report(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    human_labels: ArrayLike,
    budgets: ArrayLike = (0.0, 0.05, 0.1, 0.2, 0.3),
    *,
    human_scores: ArrayLike | None = None,
    human_loss: ArrayLike | None = None,
    cv: Any = None,
    groups: ArrayLike | None = None,
    subgroup: Any = None,
    pos_label: Any = None,
    false_positive: float = 1.0,
    false_negative: float = 1.0,
    deferral_cost: float = 0.0,
    min_gain: float = 0.01,
    human_error_factors: Sequence[float] = (0.5, 1.0, 2.0),
    confidence: float = 0.95,
    batch: bool = True,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> AssistanceReport:
    r"""Say whether a team of machine and human beats the machine alone on data like these, and when.

    At each budget a clone of the estimator is fitted on every training part and answers the test part
    together with the human; at a budget of 0 it is the machine alone. Each case is judged by teams that
    have not seen it, and all are compared case by case.

    Parameters
    ----------
    estimator : estimator with `predict_assisted` and a parameter `budget`
        `AssistedSVC`, a triage baseline, or a pipeline around one, fitted or not: clones are fitted.
    X : array-like of shape (n_samples, n_features)
        Cases.
    y : array-like of shape (n_samples,)
        True labels of two classes.
    human_labels : array-like of shape (n_samples,) or (n_samples, n_readers)
        The humans' answers, in the labels of y. Of several readers the majority counts, as in
        `AssistedSVC.predict_assisted`. Answers may be missing (NaN, None); a case that nobody answered is
        learned from, but not judged.
    budgets : array-like, default=(0, 0.05, 0.1, 0.2, 0.3)
        Fractions, or numbers of training samples if all of them are integers. 0 is always measured.
    human_scores, human_loss : array-like, default=None
        What `fit` is told of the human instead of `human_labels`; at most one of them.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None: five folds, twice. An integer: that many folds. Folds are shuffled, stratified, and by
        groups if given. A case that is tested several times counts once, with the mean of its tests.
    groups : array-like of shape (n_samples,), default=None
        Groups, such as patients, that no fold tears apart and that intervals are based on.
    subgroup : str or array-like of shape (n_samples,), default=None
        A column of the data frame X, or a value for each case: results are given for each value too.
    pos_label : label, default=None
        The positive class; None is the larger of two numbers. For words it must be said.
    false_positive, false_negative : float, default=1
        Price of an error of either kind, as in `deferlearn.metrics.team_cost`.
    deferral_cost : float, default=0
        Price of a case that a human takes, in the same unit.
    min_gain : float, default=0.01
        Gains in cost that are surely smaller count as none. 0 says "no" only where harm is shown.
    human_error_factors : sequence of float, default=(0.5, 1, 2)
        What if humans err so many times as often as in these data on the cases that they take?
    confidence : float, default=0.95
        Level of the intervals.
    batch : bool, default=True
        True: the batch rule (`defer_top`) in each test part. False: one case at a time (`defer`).
    n_jobs : int or None, default=None
        Number of processes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Seed of the folds; the estimator has its own.

    Returns
    -------
    report : AssistanceReport
        Tables, `pays`, `best_budget` and a `verdict` in words; print it, or `plot()` it.

    See Also
    --------
    deferlearn.evaluation.curves.automation_curve : Any metric of several teams over many splits.

    Notes
    -----
    **Intervals** are about new cases from where these came from, and rest on cases, or groups of them,
    not on splits: splits of one data set share cases, and their results are not independent.

    - Comparisons of teams with the machine, and of budgets, are paired by case, with the interval of Bonett
      and Price (2012) and Student's t; the intervals of one table hold at all budgets together. What the
      choice of training cases does to team and machine largely cancels in their difference.
    - It does not cancel in the error, sensitivity, specificity and cost of a team or machine, nor in
      comparisons with the human. Their variances are widened by :math:`1 + n / n_{train}`, the
      correction of Nadeau and Bengio (2003) for resampled splits.
    - In simulations (triage with 100 and 250 cases, `AssistedSVC` with 100, three budgets) intervals at 95%
      held in 91 to 99% of the data sets for errors, in 92 to 98% for all differences from the machine
      together, in 97 to 98% for all those from the human together. With 60 cases differences always held:
      their intervals are wider than needed there. Without widening, those of errors held in as few as
      83%. Where assistance had no effect, the verdict was "yes" in at most 2% of the data sets.

    **The best budget** is reached from the machine alone upwards: a larger budget is taken if it is shown
    to cost less than the machine and than the budget taken last.

    **Human error by a factor** :math:`f`. Humans in practice may be more or less careful than those who
    answered here. The table `factors` asks what becomes of the fitted teams if humans err f times as
    often on the cases that these hand over, on either class, at most always. Expected costs are computed,
    nothing is drawn: right answers become wrong, or wrong ones right, at random. The choice of
    the cases stays as it was learned.

    **Tuning** that has seen these data makes the team look better than it is. Put it into the estimator.

    References
    ----------
    C. Nadeau, Y. Bengio: Inference for the Generalization Error. Machine Learning 52, 2003.

    D. G. Bonett, R. M. Price: Adjusted Wald Confidence Interval for a Difference of Binomial Proportions
    Based on Paired Data. Journal of Educational and Behavioral Statistics 37, 2012.

    Y. Bengio, Y. Grandvalet: No Unbiased Estimator of the Variance of K-Fold Cross-Validation. Journal
    of Machine Learning Research 5, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn import assistance_report
    >>> from deferlearn.teams import UncertaintyTriage
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(150, random_state=1)
    >>> expert = np.where(np.arange(150) % 10, y, -y)  # errs on every tenth case
    >>> report = assistance_report(
    ...     UncertaintyTriage(alpha=0.1, cv=None), X, y, expert, budgets=[0.2, 0.4], random_state=0
    ... )
    >>> report.headline
    'Does assistance pay? Yes, at a budget of 40%.'
    >>> [row["budget"] for row in report.teams]
    [0.0, 0.2, 0.4, None]
    """
    told = {"human_labels": human_labels, "human_scores": human_scores, "human_loss": human_loss}
    told_by = check_human(told)
    check_confidence(confidence)
    check_estimator(estimator)
    check_consistent_length(X, y, *told.values(), groups)
    answers = inputs.check_labels(y, human_labels, pos_label)
    n = len(answers.y)
    levels = inputs.check_levels(budgets)
    prices = inputs.check_prices(answers, false_positive, false_negative, deferral_cost)
    factors = inputs.check_factors(human_error_factors)
    gain = inputs.check_gain(min_gain)
    group = inputs.group_codes(groups, n)
    parts = inputs.subgroup_values(subgroup, X, n)
    splits = make_splits(cv, X, answers.y, groups, answers.classes, random_state)
    data = SplitData(X, answers.y, answers.labels, told_by, told[told_by], groups)
    trial = run_trial(
        estimator,
        data,
        answers.truth,
        answers.human,
        answers.read,
        group,
        splits,
        levels,
        batch=batch,
        n_jobs=n_jobs,
    )
    judge = Judge(trial, prices, confidence)
    column, values = parts if parts is not None else (None, None)
    settings = _settings(estimator, answers, trial, batch) | asdict(prices)
    return _report(judge, factors, gain, column, values, settings)


def _report(
    judge: Judge,
    factors: list[float],
    min_gain: float,
    column: str | None,
    values: list[Any] | None,
    settings: dict[str, Any],
) -> AssistanceReport:
    teams = tables.team_table(judge)
    rows = factor_table(judge, factors)
    subgroups = [] if values is None else tables.subgroup_table(judge, values)
    best = judge.trial.budgets[tables.best_place(judge)]
    measure = "error" if judge.prices.plain else "cost"
    readers = settings["n_readers"]
    found = verdict.Findings(
        teams,
        rows,
        subgroups,
        best,
        min_gain,
        measure,
        settings["n_cases"],
        settings["n_groups"],
        settings["n_left_out"],
        column or "",
        f" (the majority of {readers} readers)" if readers > 1 else "",
        not judge.trial.human_wrong.any(),
    )
    pays, budget = verdict.decide(found)
    return AssistanceReport(
        pays,
        budget,
        best,
        verdict.sentences(found, pays, budget),
        measure,
        judge.confidence,
        teams,
        tables.step_table(judge),
        rows,
        subgroups,
        column,
        settings | {"min_gain": min_gain},
    )


def _settings(estimator: Any, answers: inputs.Answers, trial: Trial, batch: bool) -> dict[str, Any]:
    return {
        "estimator": repr(estimator),
        "n_cases": len(trial.rows),
        "n_left_out": len(answers.y) - len(trial.rows),
        "n_groups": len(np.unique(trial.group)),
        "n_positive": int(trial.positive.sum()),
        "n_readers": answers.n_readers,
        "n_splits": trial.n_splits,
        "classes": answers.classes.tolist(),
        "pos_label": answers.pos_label,
        "batch": bool(batch),
    }
