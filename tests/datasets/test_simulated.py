"""scikit-learn's data with experts: the data unchanged, the skill where it should be."""

import numpy as np
import pytest
from sklearn import datasets as sklearn_datasets
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from deferlearn.datasets import load_breast_cancer, load_digits, load_digits_parity
from deferlearn.humans import SkilledHuman, UniformHuman

BOTH = [load_breast_cancer, load_digits_parity]


def test_breast_cancer_is_scikit_learns():
    ours, theirs = load_breast_cancer(), sklearn_datasets.load_breast_cancer()
    np.testing.assert_array_equal(ours.data, theirs.data)
    malignant = theirs.target == list(theirs.target_names).index("malignant")
    np.testing.assert_array_equal(ours.target == 1, malignant)
    assert ours.feature_names == list(theirs.feature_names)
    assert theirs.DESCR in ours.DESCR


def test_digits_are_scikit_learns():
    ours, theirs = load_digits_parity(), sklearn_datasets.load_digits()
    np.testing.assert_array_equal(ours.data, theirs.data)
    np.testing.assert_array_equal(ours.digits, theirs.target)
    assert set(ours.digits[ours.target == 1]) == {0, 2, 4, 6, 8}
    assert set(ours.digits[ours.target == -1]) == {1, 3, 5, 7, 9}
    assert theirs.DESCR in ours.DESCR


@pytest.mark.parametrize(
    ("load", "size", "good", "poor"),
    [
        (load_breast_cancer, lambda X: X[:, 0], 0.01, 0.2),
        (load_digits_parity, lambda X: X.sum(axis=1), 0.02, 0.3),
    ],
)
def test_expert_is_good_above_the_median(load, size, good, poor):
    bunch = load()
    values = size(bunch.data)
    above = values > np.median(values)
    np.testing.assert_array_equal(bunch.human_error, np.where(above, good, poor))
    np.testing.assert_array_equal(bunch.human_loss, 2 * bunch.human_error)
    for part, error in [(above, good), (~above, poor)]:
        # Draws of all kinds, so that a mistake in one place cannot hide in the noise of one draw.
        wrong = np.mean(
            [
                np.mean((load(random_state=seed).human_labels != bunch.target)[part])
                for seed in range(10)
            ]
        )
        deviation = np.sqrt(error * (1 - error) / (10 * part.sum()))
        assert wrong == pytest.approx(error, abs=4 * deviation)


@pytest.mark.parametrize(
    ("load", "error"), [(load_breast_cancer, 0.02), (load_digits_parity, 0.10)]
)
def test_machine_errs_as_the_docstring_says_and_less_than_the_expert(load, error):
    bunch = load()
    machine = make_pipeline(StandardScaler(), SVC(kernel="linear", C=0.1))
    wrong = cross_val_predict(machine, bunch.data, bunch.target, cv=10) != bunch.target
    assert wrong.mean() == pytest.approx(error, abs=0.005)
    assert np.mean(bunch.human_labels != bunch.target) > wrong.mean()
    # Where the expert is good, the machine has errors to mend.
    good = bunch.human_error < 0.1
    assert wrong[good].mean() > bunch.human_error[good].max()
    if load is load_breast_cancer:
        assert wrong[good].mean() > 2 * wrong[~good].mean()


@pytest.mark.parametrize("load", BOTH)
def test_draws_are_repeatable_and_scores_are_the_labels(load):
    first, again, other = load(), load(), load(random_state=1)
    np.testing.assert_array_equal(first.human_labels, again.human_labels)
    assert (first.human_labels != other.human_labels).any()
    np.testing.assert_array_equal(first.human_scores, first.human_labels)


@pytest.mark.parametrize("load", BOTH)
def test_another_expert(load):
    bunch = load(human=SkilledHuman(0.0))
    np.testing.assert_array_equal(bunch.human_labels, bunch.target)
    assert not bunch.human_loss.any()
    shown = []
    load(human=SkilledHuman(lambda X: shown.append(X) or np.zeros(len(X))))
    np.testing.assert_array_equal(shown[0], bunch.data)


@pytest.mark.parametrize("load", [*BOTH, load_digits])
@pytest.mark.parametrize("human", [UniformHuman(0.2), 0.1, "doctor"])
def test_no_expert(load, human):
    with pytest.raises(
        TypeError, match=r"human must be a deferlearn\.humans\.SkilledHuman or None"
    ):
        load(human=human)


def test_ten_digits_are_scikit_learns():
    ours, theirs = load_digits(), sklearn_datasets.load_digits()
    np.testing.assert_array_equal(ours.data, theirs.data)
    np.testing.assert_array_equal(ours.target, theirs.target)
    assert ours.target_names == [str(digit) for digit in range(10)]
    assert theirs.DESCR in ours.DESCR
    perfect = load_digits(human=SkilledHuman(0.0))
    np.testing.assert_array_equal(perfect.human_labels, perfect.target)
    assert not perfect.human_error.any()


def test_expert_for_digits_is_good_along_the_first_component():
    bunch = load_digits()
    component = PCA(n_components=1, svd_solver="full").fit_transform(bunch.data)[:, 0]
    good = bunch.human_error == 0.05
    assert set(bunch.human_error) == {0.05, 0.35}
    # The sign of a component means nothing; the loader chooses it by the largest entry.
    assert (good == (component > 0)).all() or (good == (component < 0)).all()
    direction = np.array(bunch.human.error.direction)
    assert direction[np.abs(direction).argmax()] > 0
    draws = np.array([load_digits(random_state=seed).human_labels for seed in range(10)])
    wrong = draws != bunch.target
    for part, error in ((good, 0.05), (~good, 0.35)):
        deviation = np.sqrt(error * (1 - error) / (10 * part.sum()))
        assert wrong[:, part].mean() == pytest.approx(error, abs=4 * deviation)
    # Wrong answers are any of the other nine.
    steps = np.bincount(((draws - bunch.target) % 10)[wrong], minlength=10)
    assert steps[0] == 0
    np.testing.assert_allclose(steps[1:] / wrong.sum(), 1 / 9, atol=0.03)


def test_machine_for_digits_errs_as_the_docstring_says():
    bunch = load_digits()
    machine = make_pipeline(StandardScaler(), SVC())
    wrong = cross_val_predict(machine, bunch.data, bunch.target, cv=10) != bunch.target
    assert wrong.mean() == pytest.approx(0.04, abs=0.005)
    assert np.mean(bunch.human_labels != bunch.target) > 4 * wrong.mean()
    # Where the machine errs and the expert is good, the expert is mostly right.
    good = bunch.human_error < 0.1
    assert np.mean((bunch.human_labels != bunch.target)[wrong & good]) < 0.2
