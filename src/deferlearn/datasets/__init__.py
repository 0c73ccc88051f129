"""Data to try things on: generators (`make_*`) and the paper's real data (`fetch_*`)."""

from deferlearn.datasets._files import get_data_home
from deferlearn.datasets._generators import make_linear, make_quadratic, make_shifted
from deferlearn.datasets._retina import (
    fetch_aptos,
    fetch_messidor,
    fetch_stare,
    published_split,
)

__all__ = [
    "fetch_aptos",
    "fetch_messidor",
    "fetch_stare",
    "get_data_home",
    "make_linear",
    "make_quadratic",
    "make_shifted",
    "published_split",
]
