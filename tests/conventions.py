"""Checks of scikit-learn that teams do not pass, and why."""

_WHY = (
    "a weight is the cost of an error: folds deal out samples, not weights, so a sample of weight 2 is "
    "not two samples, and a weight of 0 is refused"
)
WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": _WHY,
    "check_sample_weight_equivalence_on_sparse_data": _WHY,
}


def expected_failures(estimator):
    """For `parametrize_with_checks`."""
    return WEIGHTS
