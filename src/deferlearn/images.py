"""Features of images, as the paper makes them: a network, then standardised principal components.

The network is whatever the user has, as a function from a batch of images to one vector an image:
this package needs no deep-learning library. Images are read with Pillow, an optional dependency
(``pip install 'deferlearn[images]'``).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from deferlearn._image_files import ImageError, PathLike, Size, batches, survey

__all__ = ["ImageError", "ImageFeatures", "image_features"]

Vectors = NDArray[np.float64]
Network = Callable[[NDArray[np.uint8]], ArrayLike]


class ImageFeatures(TransformerMixin, BaseEstimator):
    """Turn image files into the few numbers that tell them apart best, as seen by a network.

    Each image goes through the network; its vector is standardised and projected onto the first
    principal components. Mean, scale and components are those of the images given to `fit`, so
    that in a pipeline nothing of the test images leaks into them.

    Parameters
    ----------
    network : callable
        Function from a batch of images, an array of unsigned bytes of shape (n_images, height,
        width, 3), to an array of shape (n_images, n_values).
    n_components : int, default=50
        How many principal components are kept; the paper's 50.
    size : (int, int) or None, default=None
        Width and height to which every image is resized. With None all images must have the same
        size, because a batch is one array.
    batch_size : int, default=32
        How many images the network gets at once.

    Attributes
    ----------
    scaler_ : `~sklearn.preprocessing.StandardScaler`
        Fitted on the network's vectors.
    pca_ : `~sklearn.decomposition.PCA`
        Fitted on the standardised vectors.
    image_size_ : (int, int)
        Width and height of the images that the network gets.

    See Also
    --------
    image_features : The same in one call, for images that are fixed in advance.

    Examples
    --------
    The paper's networks, from torchvision; VGG16 without its last layer gives 4,096 values, and
    ``resnet50`` as it is gives 1,000:

    >>> import torch  # doctest: +SKIP
    >>> from torchvision.models import VGG16_Weights, vgg16  # doctest: +SKIP
    >>> weights = VGG16_Weights.DEFAULT  # doctest: +SKIP
    >>> model = vgg16(weights=weights).eval()  # doctest: +SKIP
    >>> model.classifier = model.classifier[:-1]  # doctest: +SKIP
    >>> prepare = weights.transforms()  # doctest: +SKIP
    >>> def network(images):  # doctest: +SKIP
    ...     batch = torch.from_numpy(images).permute(0, 3, 1, 2)
    ...     with torch.no_grad():
    ...         return model(prepare(batch)).numpy()

    Any function will do. This one takes the mean colour:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from deferlearn.images import ImageFeatures
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [Path(folder) / f"{k}.png" for k in range(4)]
    ...     for k, file in enumerate(files):
    ...         Image.new("RGB", (8, 8), (10 * k, 20, 5 * k * k)).save(file)
    ...     features = ImageFeatures(lambda images: images.mean(axis=(1, 2)), n_components=2)
    ...     features.fit(files[:3]).transform(files).shape
    (4, 2)
    """

    def __init__(
        self,
        network: Network,
        *,
        n_components: int = 50,
        size: Size | None = None,
        batch_size: int = 32,
    ) -> None:
        self.network = network
        self.n_components = n_components
        self.size = size
        self.batch_size = batch_size

    def fit(self, files: Iterable[PathLike], y: object = None) -> ImageFeatures:
        """Learn mean, scale and principal components of the network's vectors.

        Parameters
        ----------
        files : sequence of path-like
            The training images.
        y : ignored
            Only here for pipelines.

        Returns
        -------
        self : ImageFeatures
        """
        self.fit_transform(files)
        return self

    def fit_transform(self, files: Iterable[PathLike], y: object = None) -> Vectors:
        """Fit, and transform the same images; the network sees each of them once.

        Parameters
        ----------
        files : sequence of path-like
            The training images.
        y : ignored
            Only here for pipelines.

        Returns
        -------
        features : ndarray of shape (n_images, n_components)
        """
        paths = _as_list(files)
        self._check_options()
        size, errors = survey(paths, self.size)
        if errors:
            raise next(iter(errors.values()))
        vectors = self._vectors(paths, size)
        return self._fit_vectors(vectors, size)._project(vectors)

    def transform(self, files: Iterable[PathLike]) -> Vectors:
        """Features of images.

        Parameters
        ----------
        files : sequence of path-like
            The images.

        Returns
        -------
        features : ndarray of shape (n_images, n_components)
        """
        check_is_fitted(self)
        vectors = self._vectors(_as_list(files), self.image_size_)
        if vectors.shape[1] != self.scaler_.n_features_in_:
            raise ValueError(
                f"the network gave {vectors.shape[1]} values an image, and "
                f"{self.scaler_.n_features_in_} when the features were fitted"
            )
        return self._project(vectors)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the features.

        Parameters
        ----------
        input_features : ignored
            Only here for pipelines.

        Returns
        -------
        names : ndarray of str
            "pca0", "pca1" and so on.
        """
        check_is_fitted(self)
        return self.pca_.get_feature_names_out()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def _check_options(self) -> None:
        if not callable(self.network):
            raise TypeError(
                "network must be a function from a batch of images to one vector an image, "
                f"got {self.network!r}"
            )
        _check_count("n_components", self.n_components)
        _check_count("batch_size", self.batch_size)
        if self.size is not None:
            if not isinstance(self.size, tuple | list) or len(self.size) != 2:
                raise ValueError(f"size must be (width, height) or None, got {self.size!r}")
            for length in self.size:
                _check_count("width and height in size", length)

    def _vectors(self, files: list[PathLike], size: Size) -> Vectors:
        parts: list[Vectors] = []
        for images in batches(
            files, size, resize=self.size is not None, batch_size=self.batch_size
        ):
            part = np.asarray(self.network(images), dtype=np.float64)
            expected = parts[0].shape[1] if parts else "n_values"
            right = part.ndim == 2 and len(part) == len(images) and part.shape[1] > 0
            if not right or (parts and part.shape[1] != expected):
                raise ValueError(
                    f"network must give an array of shape ({len(images)}, {expected}) for a batch "
                    f"of {len(images)} images, got the shape {part.shape}"
                )
            if not np.isfinite(part).all():
                file = files[sum(map(len, parts)) + int(np.argwhere(~np.isfinite(part))[0, 0])]
                raise ImageError(file, "the network's values for it are not finite")
            parts.append(part)
        return np.concatenate(parts)

    def _fit_vectors(self, vectors: Vectors, size: Size) -> ImageFeatures:
        if self.n_components > min(vectors.shape):
            raise ValueError(
                f"n_components={self.n_components} needs as many training images and values of the "
                f"network, got {vectors.shape[0]} images and {vectors.shape[1]} values: "
                "lower n_components"
            )
        if not np.ptp(vectors, axis=0).any():
            raise ValueError("the network gives the same values for all training images")
        self.image_size_ = size
        self.scaler_ = StandardScaler().fit(vectors)
        # Full: the randomised solver, which scikit-learn may choose otherwise, needs a seed.
        self.pca_ = PCA(self.n_components, svd_solver="full").fit(self.scaler_.transform(vectors))
        return self

    def _project(self, vectors: Vectors) -> Vectors:
        return self.pca_.transform(self.scaler_.transform(vectors))


def image_features(
    files: Iterable[PathLike],
    grades: ArrayLike,
    network: Network,
    *,
    train: ArrayLike,
    n_components: int = 50,
    size: Size | None = None,
    batch_size: int = 32,
    on_error: Literal["raise", "skip"] = "raise",
) -> Bunch:
    """Make a data set of graded images, as the paper does: network, standardisation, PCA.

    Standardisation and principal components are fitted on the training images only. The network
    sees each image once, and none before all files have been looked at.

    Parameters
    ----------
    files : sequence of path-like
        The images.
    grades : array-like of shape (n_images,)
        What is known of each, such as a doctor's grade. It does not enter the features.
    network : callable
        Function from a batch of images to one vector an image; see `ImageFeatures`.
    train : array-like of bool or int
        Mask or positions of the training images among `files`.
    n_components : int, default=50
        How many principal components are kept; the paper's 50.
    size : (int, int) or None, default=None
        Width and height to which every image is resized. With None all images must have the same
        size.
    batch_size : int, default=32
        How many images the network gets at once.
    on_error : {'raise', 'skip'}, default='raise'
        What happens to a file that cannot be read, or whose size is not that of most others: an
        `ImageError`, or it is left out, and a warning says how many were.

    Returns
    -------
    bunch : `~sklearn.utils.Bunch`
        Of the images that were used: `data` of shape (n_used, n_components), `grades`, `files`,
        `train` (a mask), `used` (their positions in what was given); besides `skipped`, a list of
        `ImageError` with `file` and `reason`, and `transformer`, the fitted `ImageFeatures`, for new
        images.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from deferlearn.images import image_features
    >>> def mean_colour(images):
    ...     return images.mean(axis=(1, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [Path(folder) / f"{k}.png" for k in range(4)]
    ...     for k, file in enumerate(files):
    ...         Image.new("RGB", (8, 8), (10 * k, 20, 5 * k * k)).save(file)
    ...     eyes = image_features(files, [0, 1, 3, 2], mean_colour, train=[0, 1, 2], n_components=2)
    >>> eyes.data.shape, eyes.grades, eyes.train
    ((4, 2), array([0, 1, 3, 2]), array([ True,  True,  True, False]))
    """
    paths = _as_list(files)
    grades = np.asarray(grades)
    if grades.ndim == 0 or len(grades) != len(paths):
        raise ValueError(
            f"grades has the shape {grades.shape}: give one grade for each of {len(paths)} files"
        )
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error must be 'raise' or 'skip', got {on_error!r}")
    in_training = _as_mask(train, len(paths))
    transformer = ImageFeatures(
        network, n_components=n_components, size=size, batch_size=batch_size
    )
    transformer._check_options()
    image_size, errors = survey(paths, size)
    if errors and on_error == "raise":
        raise next(iter(errors.values()))
    used = np.array([k for k in range(len(paths)) if k not in errors], dtype=np.intp)
    if errors:
        first = next(iter(errors.values()))
        warnings.warn(
            f"{len(errors)} of {len(paths)} images are left out, the first is {first}", stacklevel=2
        )
    if not in_training[used].any():
        raise ValueError("train names no image that can be used: there is nothing to fit")
    vectors = transformer._vectors([paths[k] for k in used], image_size)
    transformer._fit_vectors(vectors[in_training[used]], image_size)
    return Bunch(
        data=transformer._project(vectors),
        grades=grades[used],
        files=[paths[k] for k in used],
        train=in_training[used],
        used=used,
        skipped=list(errors.values()),
        transformer=transformer,
    )


def _as_list(files: Iterable[PathLike]) -> list[PathLike]:
    if isinstance(files, str | bytes | os.PathLike):
        raise TypeError(f"files must be a sequence of paths, got the single path {files!r}")
    paths = list(files)
    for k, path in enumerate(paths):
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"files must be paths, number {k} is {path!r}")
    if not paths:
        raise ValueError("files is empty: give at least one image")
    return paths


def _as_mask(train: ArrayLike, n_files: int) -> NDArray[np.bool_]:
    given = np.asarray(train)
    if given.dtype == bool:
        if given.shape != (n_files,):
            raise ValueError(
                f"train is a mask of the shape {given.shape}: give one value for each of "
                f"{n_files} files"
            )
        return given
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(f"train must be a mask or a list of positions, got {train!r}")
    outside = (given < 0) | (given >= n_files)
    if outside.any():
        raise ValueError(
            f"train names the position {given[outside][0]}, and there are {n_files} files"
        )
    mask = np.zeros(n_files, dtype=bool)
    mask[given.astype(np.intp)] = True
    return mask


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
