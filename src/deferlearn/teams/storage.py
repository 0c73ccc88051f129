"""Store a fitted model in a file that can be opened without running what a stranger put into it."""

import hashlib
import io
import json
import os
import warnings
import zipfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from deferlearn import __version__
from deferlearn._utils.atomic import write_atomically

# scikit-learn is imported where it is used: a part of a file is read without it.
if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# Of sha256, in hexadecimal digits.
CHECKSUM_SIZE = 64

# Beyond the types that skops itself takes for safe (scikit-learn's public estimators, numpy's arrays,
# plain values): our own, what scikit-learn keeps inside fitted trees, forests and networks, and the
# splitters that are given as folds. It is a list of names, so that what a file can make is known before
# the file is seen.
TRUSTED = (
    "deferlearn.humans.coding.Coding",
    "deferlearn.teams.machine.Machine",
    "deferlearn.teams.machine.SumMachine",
    "deferlearn.teams.machine.MachineSettings",
    "deferlearn.teams.threshold.Threshold",
    "deferlearn.teams.advantage_model.AdvantageModel",
    "deferlearn.teams.advantage.AdvantageTriage",
    "deferlearn.teams.assisted_triage.AssistedTriage",
    "deferlearn.teams.automation.FullAutomation",
    "deferlearn.teams.automation.NoAutomation",
    "deferlearn.teams.blend.Blend",
    "deferlearn.teams.blend.BlendedMachine",
    "deferlearn.teams.brought.BroughtMachine",
    "deferlearn.teams.calibration.Calibration",
    "deferlearn.teams.odds.SidedCalibration",
    "deferlearn.teams.odds.SoftmaxCalibration",
    "deferlearn.teams.odds.StepCalibration",
    "deferlearn.teams.probabilities.ClassMachine",
    "deferlearn.teams.ranking.ByUncertainty",
    "deferlearn.teams.brought.ScoreColumn",
    "deferlearn.teams.forest.ForestClassifier",
    "deferlearn.teams.forest.ForestRegressor",
    "deferlearn.teams.predicted_error.PredictedErrorTriage",
    "deferlearn.teams.team_cv.TeamCV",
    "deferlearn.teams.surrogates.compare_confidence.CompareConfidence",
    "deferlearn.teams.surrogates.cross_entropy.CrossEntropySurrogate",
    "deferlearn.teams.surrogates.differentiable_triage.DifferentiableTriage",
    "deferlearn.teams.surrogates.differentiable_triage.TriageModel",
    "deferlearn.teams.surrogates.linear.LinearModel",
    "deferlearn.teams.surrogates.logistic.LogisticModel",
    "deferlearn.teams.surrogates.one_vs_all.OneVsAllSurrogate",
    "deferlearn.teams.surrogates.realizable.RealizableSurrogate",
    "deferlearn.teams.uncertainty.UncertaintyTriage",
    "deferlearn.bounds.certificate.Certificate",
    "deferlearn.bounds.optimum.OptimumBound",
    "deferlearn.bounds.ratio.RatioBound",
    "deferlearn.bounds.ratio.SubmodularityBound",
    "deferlearn.teams.assisted_svc_cv.AssistedSVCCV",
    "deferlearn.teams.pipeline.AssistedPipeline",
    "deferlearn.teams.policy.DeferralPolicy",
    "deferlearn.teams.assisted_svc.AssistedSVC",
    "deferlearn.tables.encoder.TableEncoder",
    "deferlearn.tables.encoding.Encoding",
    "deferlearn.tables.guard.Guard",
    "deferlearn.tables.team.TabularTeam",
    "numpy.dtype",
    "numpy.number",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.link.MultinomialLogit",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn._loss.loss.HalfMultinomialLoss",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.model_selection._split.GroupKFold",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedGroupKFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
)


@runtime_checkable
class HasMembers(Protocol):
    """A model that stores more in its file, for programs that need only a part of it."""

    def archive_members(self) -> dict[str, bytes]:
        """The content of each further part by its name."""
        ...


def save(
    estimator: "BaseEstimator", path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> None:
    """Write a model to a file, completely or not at all.

    The file is a zip archive of arrays and a description (skops), not a pickle; its comment holds a
    checksum, and the versions of deferlearn and scikit-learn. A model that holds a type which `load`
    would refuse is refused here already, by name.

    Parameters
    ----------
    estimator : estimator
        An `AssistedSVC`, a pipeline that ends in one, or another scikit-learn estimator.
    path : path-like
        The file; an existing one is replaced. Its folder must exist.
    trusted : iterable of str, default=()
        Names of further types, such as "mypackage.MyClassifier", that you will give to `load` too.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import deferlearn
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(60, random_state=0)
    >>> clf = deferlearn.AssistedSVC(cv=2, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     deferlearn.save(clf, Path(folder) / "team.skops")
    ...     again = deferlearn.load(Path(folder) / "team.skops")
    >>> bool((again.decision_function(X) == clf.decision_function(X)).all())
    True
    """
    import skops.io
    from sklearn.base import BaseEstimator

    if not isinstance(estimator, BaseEstimator):
        raise TypeError(f"save takes an estimator, got an object of type {_name_of(estimator)!r}.")
    try:
        content = skops.io.dumps(estimator, compression=zipfile.ZIP_DEFLATED)
    except (TypeError, NotImplementedError, skops.io.exceptions.UnsupportedTypeException) as error:
        raise TypeError(f"The model holds something that cannot be stored: {error}") from error
    unknown = _unknown_types(content, _allowed(trusted))
    if unknown:
        raise TypeError(
            f"The model holds {', '.join(repr(name) for name in unknown)}, which `load` does not trust. "
            "Name it by trusted=[...], here and in `load`, if you know where it comes from."
        )
    if isinstance(estimator, HasMembers):
        content = _with_members(content, estimator.archive_members())
    write_atomically(path, with_versions(content))


def load(path: str | os.PathLike[str], trusted: Iterable[str] = ()) -> Any:
    """Read a model that `save` has written.

    A file can only make objects of a fixed list of types; one that asks for others is refused before
    anything is made. So is one that does not match its checksum, and one that `save` has not written:
    what others have written with skops is read by ``skops.io.load``. A checksum finds accidents, not
    attackers: whoever changes a file on purpose can write a new one.

    Parameters
    ----------
    path : path-like
        The file.
    trusted : iterable of str, default=()
        Names of further types to allow, if you know that the file comes from someone you trust.

    Returns
    -------
    estimator
        The model as it was saved.

    Warns
    -----
    UserWarning
        If another version (the first two numbers of it) of deferlearn or scikit-learn has saved it.
    """
    import skops.io
    from sklearn.base import BaseEstimator

    allowed = _allowed(trusted)
    content, name = Path(path).read_bytes(), os.fspath(path)
    written_by = _versions_in(content, name)
    # Whatever error a strange description causes in skops, it is the file that is at fault.
    fault = f"{name}, saved with {_listed(written_by)}, cannot be read: "
    try:
        unknown = _unknown_types(content, allowed)
    except Exception as error:
        raise ValueError(fault + repr(error)) from error
    if unknown:
        raise ValueError(
            f"{name} is refused: it asks for {', '.join(map(repr, unknown))}, which is not a part of "
            "deferlearn's models. Pass trusted=[...] with these names only if you know where the file "
            "comes from."
        )
    _warn_of_versions(written_by, name)
    try:
        model = skops.io.loads(content, trusted=allowed)
        parts = [model, *model.get_params().values()] if isinstance(model, BaseEstimator) else []
        for part in (part for part in parts if isinstance(part, BaseEstimator)):
            if not part.get_params(deep=False).keys() <= vars(part).keys():
                raise ValueError(f"{_name_of(part)!r} came without its parameters")
    except Exception as error:
        raise ValueError(fault + repr(error)) from error
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"{name} holds no estimator, but a {_name_of(model)!r}.")
    return model


def read_member(content: bytes, path: str, member: str) -> bytes | None:
    """Read one part of a model file, and nothing else.

    Parameters
    ----------
    content : bytes
        The file.
    path : str
        Its name, for messages.
    member : str
        The name of the part.

    Returns
    -------
    part : bytes or None
        None if there is no such part. As in `load`, a file that does not match its checksum is refused, and
        other versions cause a warning.
    """
    written_by = _versions_in(content, path)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if member not in archive.namelist():
            return None
        part = archive.read(member)
    _warn_of_versions(written_by, path)
    return part


def _with_members(content: bytes, members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, part in members.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def versions() -> dict[str, str]:
    """The packages that write and read a model, with their versions."""
    return {"deferlearn": __version__, "scikit-learn": version("scikit-learn")}


def with_versions(content: bytes) -> bytes:
    """The archive with a comment: a checksum, and the versions."""
    written = json.dumps(versions()).encode()
    comment = _checksum(content, written) + written
    # An archive ends with the length of its comment, in two bytes, and the comment.
    return content[:-2] + len(comment).to_bytes(2, "little") + comment


def _checksum(content: bytes, written: bytes) -> bytes:
    return hashlib.sha256(content + written).hexdigest().encode()


def _versions_in(content: bytes, path: str) -> dict[str, str]:
    """The versions that wrote the archive, if it matches its checksum."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            comment = archive.comment
    except Exception as error:  # damage can make zipfile fail in many ways
        raise ValueError(
            f"{path} is damaged, or no model that deferlearn.save has written: {error!r}"
        ) from error
    checksum, written = comment[:CHECKSUM_SIZE], comment[CHECKSUM_SIZE:]
    if not written:
        raise ValueError(
            f"{path} is no model that deferlearn.save has written: it has no checksum. What skops itself "
            "has written is read by skops.io.load."
        )
    if checksum != _checksum(content[: -len(comment) - 2] + bytes(2), written):
        raise ValueError(
            f"{path} is damaged, or was changed after it was saved: its content does not match its "
            "checksum. Use another copy, or fit and save the model again."
        )
    return dict(json.loads(written))


def _warn_of_versions(written_by: dict[str, str], name: str) -> None:
    here = versions()
    if any(_series(written_by.get(package, "")) != _series(here[package]) for package in here):
        warnings.warn(
            f"{name} was saved with {_listed(written_by)}, and is read with {_listed(here)}: a model may "
            "answer differently there. Fit and save it again, or install what it was saved with.",
            UserWarning,
            stacklevel=3,
        )


def _series(version: str) -> list[str]:
    """The first two numbers: the third one changes for repairs only."""
    return version.split(".")[:2]


def _listed(packages: dict[str, str]) -> str:
    return " and ".join(f"{package} {version}" for package, version in packages.items())


def _allowed(trusted: Iterable[str]) -> list[str]:
    if isinstance(trusted, str):
        raise TypeError(f"trusted={trusted!r} must be a list of names, not one string.")
    names = list(trusted)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"trusted must hold names such as 'package.Type', got {name!r}.")
    return [*TRUSTED, *names]


def _unknown_types(content: bytes, allowed: list[str]) -> list[str]:
    """Types in the file that are not on the list."""
    import skops.io

    return sorted(set(skops.io.get_untrusted_types(data=content)) - set(allowed))


def _name_of(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
