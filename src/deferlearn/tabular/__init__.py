"""From a table to decisions: columns as features, a team fitted on them, new cases routed.

What the commands `deferlearn fit` and `deferlearn apply` do, for Python. It needs pyarrow, which
``deferlearn[cli]`` brings.
"""

from deferlearn.tabular.cases import Cases, select_cases
from deferlearn.tabular.encoder import TableEncoder
from deferlearn.tabular.errors import TableError
from deferlearn.tabular.files import TableFile, open_table, read_table
from deferlearn.tabular.frames import as_table
from deferlearn.tabular.labelstudio import read_label_studio
from deferlearn.tabular.routing import Router
from deferlearn.tabular.team import TabularTeam, fit_table, make_team

__all__ = [
    "Cases",
    "Router",
    "TableEncoder",
    "TableError",
    "TableFile",
    "TabularTeam",
    "as_table",
    "fit_table",
    "make_team",
    "open_table",
    "read_label_studio",
    "read_table",
    "select_cases",
]
