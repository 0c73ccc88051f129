"""
From image files to a team
==========================

Images become features as in the paper: a network makes one vector per image, the vectors are
standardised, and their first principal components are kept. The network is yours; any function from
a batch of images to one vector per image will do. Copy `NetworkFeatures` from here: it needs
scikit-learn and Pillow only.
"""

import os
import tempfile
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from deferlearn import AssistedSVC, make_assisted_pipeline
from deferlearn.datasets import load_digits_parity

# %%
# Reading images
# --------------
# A file that cannot be used should stop the work before the network has spent hours on the others,
# and the error should say which file it was.

# Pillow turns these modes into eight bits per colour faithfully. Of modes with 16 or 32 bits it would keep
# the lowest eight bits only.
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV")


def open_image(file):
    """Decode a whole file, because Pillow notices only then that one is cut off."""
    try:
        with Image.open(file) as image:
            if image.mode not in MODES:
                raise ValueError(f"its mode {image.mode!r} has more than eight bits per colour")
            # A palette with transparent colours must become RGBA first, or Pillow warns.
            return (image.convert("RGBA") if image.mode == "P" else image).convert("RGB")
    # A damaged file ends in nearly any exception, depending on the format and on the damage.
    except Exception as error:
        raise ValueError(f"{os.fspath(file)}: this image cannot be read ({error})") from error


def find_unusable(files, size=None):
    """Positions of the files that cannot be used, and why.

    With `size` images may have any size, since they are resized. Without it, all images must have the
    size of most of them.
    """
    sizes, errors = {}, {}
    for k, file in enumerate(files):
        try:
            sizes[k] = open_image(file).size
        except ValueError as error:
            errors[k] = str(error)
    if sizes and size is None:
        usual = Counter(sizes.values()).most_common(1)[0][0]
        errors |= {k: wrong_size(files[k], s, usual) for k, s in sizes.items() if s != usual}
    return dict(sorted(errors.items()))


def wrong_size(file, found, expected):
    return (
        f"{os.fspath(file)}: it has {found[0]} x {found[1]} pixels and not {expected[0]} x "
        f"{expected[1]}: give size=(width, height) to have all images resized"
    )


# %%
# A transformer
# -------------
# In a pipeline, whatever comes after it is fitted on the training images only: nothing of the test
# images leaks into the mean, the scale and the principal components.


class NetworkFeatures(TransformerMixin, BaseEstimator):
    """Turn image files into the vectors that a network makes of them.

    Parameters
    ----------
    network : callable
        Function from a batch of images, an array of unsigned bytes of shape (n_images, height, width, 3),
        to an array of shape (n_images, n_values).
    size : (int, int) or None, default=None
        Width and height to which every image is resized. With None all images must have the same size.
    batch_size : int, default=32
        How many images the network gets at once.
    """

    def __init__(self, network, *, size=None, batch_size=32):
        self.network = network
        self.size = size
        self.batch_size = batch_size

    def fit(self, files, y=None):
        """Look at every image; the network is not called."""
        files = list(files)
        for message in find_unusable(files, self.size).values():
            raise ValueError(message)
        self.image_size_ = tuple(self.size or open_image(files[0]).size)
        return self

    def transform(self, files):
        """One vector per image."""
        check_is_fitted(self)
        files = list(files)
        parts = []
        for start in range(0, len(files), self.batch_size):
            batch = files[start : start + self.batch_size]
            vectors = np.asarray(self.network(self._pixels(batch)), dtype=np.float64)
            if vectors.ndim != 2 or len(vectors) != len(batch):
                raise ValueError(
                    f"the network must give {len(batch)} vectors for {len(batch)} images, got an array "
                    f"of shape {vectors.shape}"
                )
            strange = ~np.isfinite(vectors).all(axis=1)
            if strange.any():
                file = os.fspath(batch[int(strange.argmax())])
                raise ValueError(f"{file}: the network's values for this image are not finite")
            parts.append(vectors)
        return np.concatenate(parts)

    def _pixels(self, files):
        images = [open_image(file) for file in files]
        for file, image in zip(files, images, strict=True):
            if self.size is None and image.size != self.image_size_:
                raise ValueError(wrong_size(file, image.size, self.image_size_))
        return np.stack([np.asarray(image.resize(self.image_size_)) for image in images])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.string = True
        return tags


# %%
# The paper's networks come from torchvision. VGG16 without its last layer makes 4,096 values::
#
#     import torch
#     from torchvision.models import VGG16_Weights, vgg16
#
#     weights = VGG16_Weights.DEFAULT
#     model = vgg16(weights=weights).eval()
#     model.classifier = model.classifier[:-1]
#     prepare = weights.transforms()
#
#     def network(images):
#         batch = torch.from_numpy(images).permute(0, 3, 1, 2)
#         with torch.no_grad():
#             return model(prepare(batch)).numpy()
#
# Nothing is downloaded here, so a small network with random weights stands in: 24 filters of 3 x 3
# pixels, what is negative set to 0, and the mean over each quarter of the image.

FILTERS = np.random.RandomState(0).standard_normal((9, 24))


def network(images):
    grey = images.mean(axis=3) / 255.0
    windows = np.lib.stride_tricks.sliding_window_view(grey, (3, 3), axis=(1, 2))
    n, height, width = windows.shape[:3]
    answers = np.maximum(windows.reshape(n, height, width, 9) @ FILTERS, 0.0)
    halves = [slice(0, height // 2), slice(height // 2, height)]
    return np.hstack(
        [answers[:, rows, columns].mean(axis=(1, 2)) for rows in halves for columns in halves]
    )


# %%
# Images in a folder
# ------------------
# 600 handwritten digits as PNG files, with the labels of an expert who needs enough ink. Is the digit even?
# One of the files is damaged, and it is left out.

folder = tempfile.TemporaryDirectory()
digits = load_digits_parity()
files = [Path(folder.name) / f"digit{k:03d}.png" for k in range(600)]
for path, row in zip(files, digits.data, strict=False):
    Image.fromarray((row.reshape(8, 8) * 15).astype(np.uint8)).resize((16, 16)).save(path)
files[7].write_bytes(files[7].read_bytes()[:60])

unusable = find_unusable(files)
for message in unusable.values():
    print(message.removeprefix(folder.name + os.sep))
used = [k for k in range(len(files)) if k not in unusable]
train, test = train_test_split(used, test_size=0.5, random_state=0)

# %%
# A team
# ------
# From here on it is a pipeline like any other, which takes file names.

y, expert = digits.target, digits.human_labels
team = make_assisted_pipeline(
    NetworkFeatures(network),
    StandardScaler(),
    PCA(30, svd_solver="full"),  # the other solvers draw random numbers
    AssistedSVC(budget=0.3, alpha=0.05, random_state=0),
)
team.fit([files[k] for k in train], y[train], assistedsvc__human_labels=expert[train])

new = [files[k] for k in test]
errors = {
    "machine": (team.predict(new) != y[test]).mean(),
    "expert": (expert[test] != y[test]).mean(),
    "team": (team.predict_assisted(new, expert[test]) != y[test]).mean(),
}
for who, error in errors.items():
    print(f"{who}: {error:.3f}")

# %%
# The cases that the team leaves to the expert first, and those that it keeps.

order = np.argsort(-team.deferral_score(new), kind="stable")
figure, axes = plt.subplots(2, 8, figsize=(8, 2.6), layout="constrained")
for axis, k in zip(axes.flat, [*order[:8], *order[-8:]], strict=True):
    axis.imshow(open_image(new[k]))
    axis.set(xticks=[], yticks=[])
axes[0, 0].set_title("for the expert", loc="left", fontsize=9)
axes[1, 0].set_title("for the machine", loc="left", fontsize=9)
folder.cleanup()
