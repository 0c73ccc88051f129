"""What an assisted machine has to beat: the paper's four baselines, with the estimator's methods.

- `FullAutomation`: the machine answers everything.
- `NoAutomation`: humans answer everything.
- `UncertaintyTriage`: humans take the cases of which the machine is least sure.
- `PredictedErrorTriage`: humans take the cases where two networks expect more errors of the machine
  than of the human.

Each is fitted and asked like `deferlearn.AssistedSVC`, so that a comparison is a loop over estimators.
In none of them does the machine know that somebody will help: it is trained on all samples.
"""

from deferlearn.baselines.automation import FullAutomation, NoAutomation
from deferlearn.baselines.predicted_error import PredictedErrorTriage
from deferlearn.baselines.uncertainty import UncertaintyTriage

__all__ = ["FullAutomation", "NoAutomation", "PredictedErrorTriage", "UncertaintyTriage"]
