"""Does assistance pay here? The measurement behind the report."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn.evaluation.assistance import inputs, tables
from deferlearn.evaluation.assistance.classes import sensitivity_table
from deferlearn.evaluation.assistance.factors import factor_table
from deferlearn.evaluation.assistance.judge import Judge
from deferlearn.evaluation.assistance.report import AssistanceReport
from deferlearn.evaluation.assistance.trial import (
    check_estimator,
    class_order,
    make_splits,
    run_trial,
)
from deferlearn.evaluation.assistance.verdict import Findings, decide, sentences
from deferlearn.evaluation.checks import check_confidence, split_data
from deferlearn.metrics.counts import check_costs


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
    cost_matrix: ArrayLike | None = None,
    min_gain: float = 0.01,
    human_error_factors: Sequence[float] = (0.5, 1.0, 2.0),
    confidence: float = 0.95,
    batch: bool = True,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> AssistanceReport:
    r"""Say whether a team of machine and human beats the machine alone on data like these, and when.

    At each budget a clone of the estimator is fitted on every training part and answers the test part
    together with the human; at a budget of 0 the machine answers alone. Each case is judged by teams
    that were fitted without it, and all comparisons are made case by case.

    Parameters
    ----------
    estimator : estimator with `predict_assisted` and a parameter `budget`
        `AssistedSVC`, a triage baseline, or a pipeline around one. Only clones of it are fitted.
    X : array-like of shape (n_samples, n_features)
        Cases.
    y : array-like of shape (n_samples,)
        True labels of two classes or more.
    human_labels : array-like of shape (n_samples,) or (n_samples, n_readers)
        The humans' answers, in the labels of y. If there are several readers, the majority counts, as in
        `AssistedSVC.predict_assisted`. Answers may be missing (NaN, None); a case without any answer is
        used for training, but not judged.
    budgets : array-like, default=(0, 0.05, 0.1, 0.2, 0.3)
        Fractions, or numbers of training samples if all of them are integers. 0 is always measured.
    human_scores, human_loss : array-like, default=None
        Passed to `fit` instead of `human_labels`; at most one of them.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None means five folds, repeated twice; an integer is the number of folds. Folds are shuffled,
        stratified, and keep groups together if they are given. A case that is tested several times
        counts once, with the mean of its tests.
    groups : array-like of shape (n_samples,), default=None
        Groups, such as patients, that are kept together in the folds and that intervals are based on.
    subgroup : str or array-like of shape (n_samples,), default=None
        A column of the data frame X, or a value for each case. Without it there are no results by
        subgroup.
    pos_label : label, default=None
        The positive one of two classes; None means the larger of two numbers. Labels that are words need
        it. With more classes, none is positive.
    false_positive, false_negative : float, default=1
        Cost of an error of either kind, as in `deferlearn.metrics.team_cost`. With more than two classes
        both must be the same.
    deferral_cost : float, default=0
        Cost of a case that a human takes, in the same unit.
    cost_matrix : array-like of shape (n_classes, n_classes), default=None
        What each answer (column) to a case of each class (row) costs, in the order of the team's
        ``classes_``, instead of `false_positive` and `false_negative`.
    min_gain : float, default=0.01
        A gain in cost that is shown to be smaller counts as none. With 0 the answer is "no" only if
        harm is shown at every budget.
    human_error_factors : sequence of float, default=(0.5, 1, 2)
        The table `factors` shows what happens if humans err that many times as often on the deferred
        cases as in these data.
    confidence : float, default=0.95
        Level of the intervals.
    batch : bool, default=True
        True: cases are deferred by the batch rule (`defer_top`) in each test part. False: they are
        deferred one at a time (`defer`).
    n_jobs : int or None, default=None
        Number of processes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Seed of the folds; the estimator has its own.

    Returns
    -------
    report : AssistanceReport
        Tables, `pays`, `best_budget` and a `verdict` in words. Print it to read it.

    See Also
    --------
    deferlearn.evaluation.curves.automation_curve : Any metric of several teams over many splits.

    Notes
    -----
    **Intervals** are about new cases from the same source. They are based on cases, or groups of cases,
    not on splits: splits of one data set share cases, so their results are not independent.

    - Comparisons of teams with the machine, and of budgets, are paired by case, with the interval of Bonett
      and Price (2012) and Student's t; the intervals of one table hold at all budgets together. What the
      choice of training cases does to team and machine largely cancels in their difference.
    - It does not cancel in the error, sensitivity, specificity and cost of a team or machine, nor in
      comparisons with the human. Their variances are widened by :math:`1 + n / n_{train}`, the
      correction of Nadeau and Bengio (2003) for resampled splits.
    - In simulations (triage with 100 and 250 cases, `AssistedSVC` with 100, three budgets) 95% intervals
      held in 91 to 99% of the data sets for errors, in 92 to 98% for all differences from the machine
      together, and in 97 to 98% for all those from the human together. With 60 cases those of differences
      always held, so they are wider than needed there. Without widening, intervals of errors held in as
      few as 83%. If assistance had no effect, the verdict was "yes" in at most 2% of the data sets.

    **The best budget** is found from the machine alone upwards: a larger budget is taken if it is shown
    to cost less than the machine and less than the budget taken last.

    **Human error by a factor** :math:`f`. Humans in practice may be more or less careful than those who
    answered here. The table `factors` shows the fitted teams if humans err f times as often on the cases
    that these teams defer, on either class, but at most always. Right answers become wrong, or wrong ones
    right, at random; the expected costs are computed without draws. The choice of the deferred cases
    stays as it was learned.

    **More than two classes.** The verdict compares errors, and with `cost_matrix` their costs. The table
    `teams` then holds macro F1 instead of sensitivity and specificity, and for an estimator whose
    ``classes`` are grades also the mean number of grades by which answers are off, and the kappa with
    quadratic weights. The table `sensitivities` shows which share of each class is found.

    **Tuning** on these data makes the team look better than it is, unless it is part of the estimator.

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
    data = split_data(X, y, human_labels, human_scores, human_loss, groups)
    check_confidence(confidence)
    check_costs(min_gain=min_gain)
    check_estimator(estimator)
    answers = inputs.check_labels(y, human_labels, pos_label, groups, class_order(estimator))
    levels = inputs.check_levels(budgets)
    given = inputs.Costs(false_positive, false_negative, deferral_cost)
    costs = inputs.Costs.of(given, cost_matrix, answers)
    factors = inputs.check_factors(human_error_factors)
    column, values = inputs.subgroup_values(subgroup, X, len(answers.y))
    splits = make_splits(cv, X, answers.y, groups, random_state)
    data = replace(data, y=answers.y, human_labels=answers.labels)
    trial = run_trial(estimator, data, answers, splits, levels, batch=batch, n_jobs=n_jobs)
    settings = {
        "estimator": repr(estimator),
        "n_left_out": len(answers.y) - len(trial.rows),
        "n_readers": answers.n_readers,
        "classes": answers.classes.tolist(),
        "pos_label": answers.pos_label,
        "batch": bool(batch),
        "min_gain": float(min_gain),
    }
    if len(answers.classes) > 2:
        settings["graded"] = answers.graded
    return make_report(
        Judge(trial, costs, confidence),
        factors=factors,
        subgroup_name=column,
        subgroup_values=values,
        settings=settings,
    )


def make_report(
    judge: Judge,
    *,
    factors: list[float],
    subgroup_name: str | None,
    subgroup_values: list[Any],
    settings: dict[str, Any],
) -> AssistanceReport:
    """The report about a trial, from its tables to its verdict."""
    trial = judge.trial
    counts = {
        "n_cases": len(trial.rows),
        "n_groups": len(np.unique(trial.group)),
        **tables.n_positive(judge),
        "n_splits": trial.n_splits,
    }
    found = Findings(
        teams=tables.team_table(judge),
        factors=factor_table(judge, factors),
        subgroups=tables.subgroup_table(judge, subgroup_values),
        best_budget=trial.budgets[tables.best_place(judge)],
        measure="error" if judge.unit_costs == inputs.Costs() else "cost",
        subgroup_name=subgroup_name,
        settings=settings | counts | vars(judge.unit_costs),
    )
    pays, budget = decide(found)
    return AssistanceReport(
        **vars(found),
        pays=pays,
        budget=budget,
        verdict=sentences(found, pays, budget),
        confidence=judge.confidence,
        steps=tables.step_table(judge),
        sensitivities=sensitivity_table(judge),
    )
