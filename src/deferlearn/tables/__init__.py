"""From a table to decisions: encode columns as features, fit a team on them, route new cases.

This is what the commands `deferlearn fit` and `deferlearn apply` do, for use from Python. It needs
pyarrow, which ``deferlearn[cli]`` installs.

Names are loaded when they are first used: `load_decider` and `Router` need neither scikit-learn nor the
compiled engine.
"""

from typing import TYPE_CHECKING

from deferlearn._utils.lazy import on_first_use

if TYPE_CHECKING:
    from deferlearn.tables.cases import Cases, select_cases
    from deferlearn.tables.decider import Decided, TableDecider, load_decider
    from deferlearn.tables.encoder import TableEncoder
    from deferlearn.tables.errors import TableError
    from deferlearn.tables.expert_routing import ExpertRouter
    from deferlearn.tables.files import TableFile, open_table, read_table
    from deferlearn.tables.frames import as_table
    from deferlearn.tables.labelstudio import read_label_studio
    from deferlearn.tables.routing import Router
    from deferlearn.tables.team import TabularTeam, fit_table, make_team

__all__ = [
    "Cases",
    "Decided",
    "ExpertRouter",
    "Router",
    "TableDecider",
    "TableEncoder",
    "TableError",
    "TableFile",
    "TabularTeam",
    "as_table",
    "fit_table",
    "load_decider",
    "make_team",
    "open_table",
    "read_label_studio",
    "read_table",
    "select_cases",
]

__getattr__ = on_first_use(
    __name__,
    {
        "Cases": "cases",
        "Decided": "decider",
        "ExpertRouter": "expert_routing",
        "Router": "routing",
        "TableDecider": "decider",
        "TableEncoder": "encoder",
        "TableError": "errors",
        "TableFile": "files",
        "TabularTeam": "team",
        "as_table": "frames",
        "fit_table": "team",
        "load_decider": "decider",
        "make_team": "team",
        "open_table": "files",
        "read_label_studio": "labelstudio",
        "read_table": "files",
        "select_cases": "cases",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
