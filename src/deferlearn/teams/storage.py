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
from deferlearn._utils.archives import ArchiveTooLarge, check_sizes
from deferlearn._utils.atomic import write_atomically

# scikit-learn is imported where it is used: a part of a file is read without it.
if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# Of sha256, in hexadecimal digits.
CHECKSUM_SIZE = 64


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
    checksum, and the versions of deferlearn and scikit-learn. A model that holds a type or a parameter
    which `load` would refuse is refused here already, by name.

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
    from sklearn.base import BaseEstimator

    from deferlearn.teams.stored_description import unknown_types

    named = _named(trusted)
    if not isinstance(estimator, BaseEstimator):
        raise TypeError(f"save takes an estimator, got an object of type {_name_of(estimator)!r}.")
    content = _dumped(estimator)
    unknown = unknown_types(content, named)
    if unknown:
        raise TypeError(
            f"The model holds {', '.join(repr(name) for name in unknown)}, which `load` does not trust. "
            "Name it by trusted=[...], here and in `load`, if you know where it comes from."
        )
    try:
        _check_parts(estimator, named)
    except ValueError as error:
        raise TypeError(
            f"The model holds something that `load` does not trust: {error}."
        ) from error
    if isinstance(estimator, HasMembers):
        content = _with_members(content, estimator.archive_members())
    write_atomically(path, with_versions(content))


def load(path: str | os.PathLike[str], trusted: Iterable[str] = ()) -> Any:
    """Read a model that `save` has written.

    A file can only make objects of a fixed list of types; one that asks for others is refused before
    anything is made. So is one that becomes far larger when it is read. A model that names a cache, a file
    or a function, and one whose parts do not fit together, is refused too: neither asking nor refitting
    a stranger's model runs code of the file. So is one that does not match its checksum, and one that
    `save` has not written: what others have written with skops is read by ``skops.io.load``. A checksum
    finds accidents, not attackers: whoever changes a file on purpose can write a new one.

    Parameters
    ----------
    path : path-like
        The file.
    trusted : iterable of str, default=()
        Names of further types and functions to allow, if you know that the file comes from someone you
        trust. The parameters of these types are not checked.

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

    from deferlearn.teams.stored_description import FOR_SKOPS, unknown_types

    named = _named(trusted)
    content, name = Path(path).read_bytes(), os.fspath(path)
    written_by = _versions_in(content, name)
    # Whatever error a strange description causes in skops, it is the file that is at fault.
    fault = f"{name}, saved with {_listed(written_by)}, cannot be read: "
    try:
        unknown = unknown_types(content, named)
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
        model = skops.io.loads(content, trusted=[*FOR_SKOPS, *named])
        _check_parts(model, named)
    except Exception as error:
        raise ValueError(fault + repr(error)) from error
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"{name} holds no estimator, but a {_name_of(model)!r}.")
    return model


def _dumped(estimator: "BaseEstimator") -> bytes:
    """The archive that skops writes; not compressed if `load` would take it for a bomb."""
    import skops.io

    try:
        content = skops.io.dumps(estimator, compression=zipfile.ZIP_DEFLATED)
        try:
            check_sizes(content)
        except ArchiveTooLarge:
            content = skops.io.dumps(estimator)
    except (TypeError, NotImplementedError, skops.io.exceptions.UnsupportedTypeException) as error:
        raise TypeError(f"The model holds something that cannot be stored: {error}") from error
    return bytes(content)


def _check_parts(model: Any, named: frozenset[str]) -> None:
    """Refuse a model with parts that may run code, touch files, or be read beyond their end."""
    from sklearn.base import BaseEstimator

    from deferlearn.teams.stored_structure import check_structure
    from deferlearn.teams.stored_values import check_values, parts_of

    parts = list(parts_of(model))
    for part in parts:
        if _name_of(part) not in named:
            check_values(part)
        if isinstance(part, BaseEstimator):
            missing = set(type(part)._get_param_names()) - vars(part).keys()
            if missing:
                raise ValueError(f"{_name_of(part)} came without {', '.join(sorted(missing))}")
    for part in parts:
        check_structure(part)


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
    try:
        check_sizes(content)
    except ArchiveTooLarge as error:
        raise ValueError(f"{path} is refused: {error}.") from error
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


def _named(trusted: Iterable[str]) -> frozenset[str]:
    if isinstance(trusted, str):
        raise TypeError(f"trusted={trusted!r} must be a list of names, not one string.")
    names = list(trusted)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"trusted must hold names such as 'package.Type', got {name!r}.")
    return frozenset(names)


def _name_of(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
