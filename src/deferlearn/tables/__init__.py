"""From a table to decisions: encode columns as features, fit a team on them, route new cases.

This is what the commands `deferlearn fit` and `deferlearn apply` do, for use from Python. It needs
pyarrow, which ``deferlearn[cli]`` installs.
"""

from deferlearn.tables.cases import Cases, select_cases
from deferlearn.tables.encoder import TableEncoder
from deferlearn.tables.errors import TableError
from deferlearn.tables.files import TableFile, open_table, read_table
from deferlearn.tables.frames import as_table
from deferlearn.tables.labelstudio import read_label_studio
from deferlearn.tables.routing import Router
from deferlearn.tables.team import TabularTeam, fit_table, make_team

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
