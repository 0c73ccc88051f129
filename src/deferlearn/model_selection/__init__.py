"""Choosing a team by what machine and human get right together on cases not seen."""

from deferlearn.model_selection.assisted_cv import AssistedSVCCV

__all__ = ["AssistedSVCCV"]
