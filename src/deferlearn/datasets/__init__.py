"""Data to try things on.

Generators (`make_*`), shipped data (`load_*`) and the paper's real data (`fetch_*`). Loaders and
fetchers return a scikit-learn `Bunch`, or tuples and pandas objects by the same options. `published_run`
is what the authors' program stored for the paper's Figure 5.
"""

from deferlearn.datasets._files import get_data_home
from deferlearn.datasets._generators import make_linear, make_quadratic, make_shifted
from deferlearn.datasets._lidc import load_lidc
from deferlearn.datasets._published_run import published_run
from deferlearn.datasets._retina import (
    fetch_aptos,
    fetch_messidor,
    fetch_stare,
    published_split,
)
from deferlearn.datasets._simulated import load_breast_cancer, load_digits, load_digits_parity
from deferlearn.datasets._sleep import load_sleep

__all__ = [
    "fetch_aptos",
    "fetch_messidor",
    "fetch_stare",
    "get_data_home",
    "load_breast_cancer",
    "load_digits",
    "load_digits_parity",
    "load_lidc",
    "load_sleep",
    "make_linear",
    "make_quadratic",
    "make_shifted",
    "published_run",
    "published_split",
]
