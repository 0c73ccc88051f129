"""`AssistedPipeline`: scikit-learn's pipeline with the methods of an assisted estimator."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear
from deferlearn.teams import AssistedPipeline, make_assisted_pipeline

X, Y = make_linear(60, random_state=0)
NEW, TRUTH = make_linear(50, random_state=1)
HUMAN = np.where(np.arange(50) % 4, TRUTH, -TRUTH)


def svc():
    return AssistedSVC(cv=2, random_state=0, submodularity_ratio=0.5)


def test_methods_go_through_the_transformers():
    team = make_assisted_pipeline(StandardScaler(), "passthrough", PCA(2), svc()).fit(X, Y)
    scaler = StandardScaler().fit(X)
    pca = PCA(2).fit(scaler.transform(X))

    def transform(Z):
        return pca.transform(scaler.transform(Z))

    by_hand, Z = svc().fit(transform(X), Y), transform(NEW)
    np.testing.assert_array_equal(team.predict(NEW), by_hand.predict(Z))
    np.testing.assert_allclose(team.deferral_score(NEW), by_hand.deferral_score(Z))
    np.testing.assert_array_equal(team.defer(NEW), by_hand.defer(Z))
    np.testing.assert_array_equal(team.defer_top(NEW, budget=7), by_hand.defer_top(Z, budget=7))
    for batch in (False, True):
        np.testing.assert_array_equal(
            team.predict_assisted(NEW, HUMAN, batch=batch),
            by_hand.predict_assisted(Z, HUMAN, batch=batch),
        )
        assert team.score_assisted(NEW, TRUTH, HUMAN, batch=batch) == by_hand.score_assisted(
            Z, TRUTH, HUMAN, batch=batch
        )


def test_a_function_is_asked_for_the_rows_of_x():
    team = make_assisted_pipeline(StandardScaler(), svc()).fit(X, Y)
    asked = []

    def doctor(rows):
        asked.extend(rows.tolist())
        return HUMAN[rows]

    team.predict_assisted(NEW, doctor)
    assert asked == np.flatnonzero(team.defer(NEW)).tolist()


def test_it_is_a_pipeline():
    team = AssistedPipeline([("scale", StandardScaler()), ("svc", svc())])
    assert isinstance(team, Pipeline)
    copied = clone(team).set_params(svc__budget=0.1)
    copied.fit(X, Y, svc__human_labels=np.where(np.arange(60) % 3, Y, -Y))
    assert copied[-1].deferred_.sum() == 6
    assert copied.classes_.tolist() == [-1, 1]
    assert isinstance(copied[:1], AssistedPipeline)


def test_methods_exist_only_where_the_last_step_has_them():
    plain = make_assisted_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    assert not hasattr(plain, "defer")
    with pytest.raises(AttributeError):
        plain.predict_assisted(NEW, HUMAN)


def test_before_fit():
    team = make_assisted_pipeline(StandardScaler(), svc())
    for call in (team.defer, team.deferral_score, team.defer_top):
        with pytest.raises(NotFittedError):
            call(NEW)


def test_score_is_the_machines_and_ignores_nothing():
    team = make_assisted_pipeline(StandardScaler(), svc()).fit(X, Y)
    assert team.score(NEW, TRUTH) == np.mean(team.predict(NEW) == TRUTH)
    weight = np.arange(50.0)
    assert team.score(NEW, TRUTH, sample_weight=weight) == pytest.approx(
        np.average(team.predict(NEW) == TRUTH, weights=weight)
    )
    for name in ("human_labels", "human_label"):
        with pytest.raises(TypeError, match=rf"no {name}: .*score_assisted"):
            team.score(NEW, TRUTH, **{name: HUMAN})
        with config_context(enable_metadata_routing=True), pytest.raises(TypeError, match=name):
            team.score(NEW, TRUTH, **{name: HUMAN})


def test_parameters_of_fit_are_for_a_step():
    team = AssistedPipeline([("scale", StandardScaler()), ("doctor", svc())])
    with pytest.raises(
        ValueError, match=r"human_labels belongs to no step.* doctor__human_labels="
    ):
        team.fit(X, Y, human_labels=Y)
    with pytest.raises(
        ValueError,
        match=r"svc__human_labels is for a step 'svc'.*'scale', 'doctor'.*doctor__human_labels",
    ):
        team.fit(X, Y, svc__human_labels=Y)
    with config_context(enable_metadata_routing=True), pytest.raises(TypeError, match="not routed"):
        team.fit(X, Y, doctor__human_labels=Y)


def test_answers_in_another_order_than_the_cases_bring_a_warning():
    pd = pytest.importorskip("pandas")
    cases = pd.DataFrame(X, index=[f"case {i}" for i in range(60)])
    answers = pd.Series(np.where(np.arange(60) % 3, Y, -Y), index=cases.index)
    mixed = answers.sample(frac=1.0, random_state=0)
    team = make_assisted_pipeline(StandardScaler(), svc())
    expected = r"^human_labels has the index of X in another order.*human_labels\.loc\[X\.index\]"
    with pytest.warns(UserWarning, match=expected):
        team.fit(cases, Y, assistedsvc__human_labels=mixed)
    by_position = clone(team).fit(X, Y, assistedsvc__human_labels=mixed.to_numpy())
    np.testing.assert_array_equal(team[-1].human_loss_, by_position[-1].human_loss_)
    for call in (
        lambda: team.predict_assisted(cases, mixed),
        lambda: team.predict_assisted(cases, mixed.to_frame()),
        lambda: team.score_assisted(cases, Y, mixed),
    ):
        with pytest.warns(UserWarning, match=expected):
            call()
    # What says nothing about an order, or the same one, is fine.
    for same in (
        mixed.loc[cases.index],
        answers.reset_index(drop=True),
        mixed.to_numpy(),
        mixed.tolist(),
    ):
        team.fit(cases, Y, assistedsvc__human_labels=same)
        team.predict_assisted(cases, same)
    team.fit(X, Y, assistedsvc__human_labels=mixed)
    team.predict_assisted(cases, lambda rows: answers.to_numpy()[rows])
