"""Names for types of arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Index = NDArray[np.intp]
Labels = NDArray[Any]
