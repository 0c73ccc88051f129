"""Who decides and who is wrong, against counting by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deferlearn.tables.decisions import share_with_interval


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_intervals_are_clopper_and_pearson_by_the_beta_distribution(pair):
    count, n = pair
    found = share_with_interval(count, n)
    low = 0.0 if count == 0 else stats.beta.ppf(0.025, count, n - count + 1)
    high = 1.0 if count == n else stats.beta.ppf(0.975, count + 1, n - count)
    assert found["lower"] == pytest.approx(low, abs=1e-9)
    assert found["upper"] == pytest.approx(high, abs=1e-9)
    assert (found["share"], found["count"], found["cases"]) == (count / n, count, n)
