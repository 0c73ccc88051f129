"""Read image files as arrays of one size, and say which file is at fault when that fails."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

PathLike = str | os.PathLike[str]
Size = tuple[int, int]  # width, height

# What Pillow turns into eight bits a colour faithfully. Other modes hold 16 or 32 bits, of which it
# would cut off all but the lowest eight.
_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV")


class ImageError(ValueError):
    """An image file that cannot be used; the message begins with its name.

    Parameters
    ----------
    file : path-like
        The file.
    reason : str
        What is wrong with it.

    Examples
    --------
    >>> from deferlearn.images import ImageError
    >>> print(ImageError("eye.png", "it is empty"))
    eye.png: it is empty
    """

    def __init__(self, file: PathLike, reason: str) -> None:
        super().__init__(f"{os.fspath(file)}: {reason}")
        self.file = file
        self.reason = reason

    def __reduce__(self) -> tuple[type[ImageError], tuple[PathLike, str]]:
        # Errors cross process borders as pickles, by default with the message as only argument.
        return type(self), (self.file, self.reason)


def survey(files: Sequence[PathLike], size: Size | None) -> tuple[Size, dict[int, ImageError]]:
    """Look at every image before a network spends hours on some of them.

    Parameters
    ----------
    files : sequence of path-like
        At least one.
    size : (int, int) or None
        Width and height to which images will be resized. With None they must all have the same
        size: the most frequent one, the first of equals.

    Returns
    -------
    size : (int, int)
        What all images will have.
    errors : dict
        Positions of the files that cannot be used, and why.
    """
    sizes: dict[int, Size] = {}
    errors: dict[int, ImageError] = {}
    for k, file in enumerate(files):
        try:
            sizes[k] = _open(file).size
        except ImageError as error:
            errors[k] = error
    if size is None:
        if not sizes:
            raise next(iter(errors.values()))
        size = Counter(sizes.values()).most_common(1)[0][0]
        errors |= {k: _other_size(files[k], s, size) for k, s in sizes.items() if s != size}
    return (size[0], size[1]), dict(sorted(errors.items()))


def batches(
    files: Sequence[PathLike], size: Size, *, resize: bool, batch_size: int
) -> Iterator[NDArray[np.uint8]]:
    """Images as arrays of the shape (at most batch_size, height, width, 3), in the order given."""
    for start in range(0, len(files), batch_size):
        yield np.stack([_pixels(f, size, resize) for f in files[start : start + batch_size]])


def _pixels(file: PathLike, size: Size, resize: bool) -> NDArray[np.uint8]:
    image = _open(file)
    if image.size != size:
        if not resize:
            raise _other_size(file, image.size, size)
        image = image.resize(size)
    return np.asarray(image, dtype=np.uint8)


def _open(file: PathLike) -> Any:
    """Decode a whole file: Pillow notices only then that one is cut off."""
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "reading images needs Pillow: pip install 'deferlearn[images]'"
        ) from error
    try:
        with Image.open(file) as image:
            if image.mode not in _MODES:
                raise ImageError(
                    file,
                    f"its mode is {image.mode!r}, more than eight bits a colour: "
                    "convert it to eight bits first",
                )
            # A palette with transparent colours must go by way of RGBA, or Pillow warns.
            return (image.convert("RGBA") if image.mode == "P" else image).convert("RGB")
    except (ImageError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise ImageError(file, "there is no such file") from error
    # A damaged file ends in nearly any exception, depending on the format and on the damage.
    except Exception as error:
        raise ImageError(file, f"this image cannot be read ({error})") from error


def _other_size(file: PathLike, found: Size, expected: Size) -> ImageError:
    return ImageError(
        file,
        f"it has {found[0]} x {found[1]} pixels and not {expected[0]} x {expected[1]}: "
        "give size=(width, height) to have all images resized",
    )
