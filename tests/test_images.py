"""Features of images that the tests make, with damaged and odd ones among them."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from deferlearn.images import ImageError, ImageFeatures, image_features

N_IMAGES, N_VALUES = 12, 7
WIDTH, HEIGHT = 10, 6
WEIGHTS = np.random.RandomState(3).standard_normal((WIDTH * HEIGHT * 3, N_VALUES))


def network(images):
    assert images.dtype == np.uint8
    return images.reshape(len(images), -1) / 255.0 @ WEIGHTS


class Counting:
    """A network that remembers how large its batches were."""

    def __init__(self, function=network):
        self.function = function
        self.sizes = []

    def __call__(self, images):
        self.sizes.append(len(images))
        return self.function(images)


@pytest.fixture
def pixels():
    return np.random.RandomState(0).randint(256, size=(N_IMAGES, HEIGHT, WIDTH, 3)).astype(np.uint8)


@pytest.fixture
def files(tmp_path, pixels):
    paths = [tmp_path / f"eye{k:02d}.png" for k in range(N_IMAGES)]
    for path, image in zip(paths, pixels, strict=True):
        Image.fromarray(image).save(path)
    return paths


def by_svd(vectors, train, n_components):
    """The same features by numpy's decomposition; their signs are arbitrary."""
    mean, deviation = vectors[train].mean(axis=0), vectors[train].std(axis=0)
    standard = (vectors - mean) / deviation
    _, _, axes = np.linalg.svd(standard[train], full_matrices=False)
    return standard @ axes[:n_components].T


def assert_equal_up_to_signs(found, expected):
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-10)


def test_features_are_the_principal_components_of_the_training_part(files, pixels):
    train = np.arange(N_IMAGES) < 8
    bunch = image_features(files, np.arange(N_IMAGES), network, train=train, n_components=4)
    assert_equal_up_to_signs(bunch.data, by_svd(network(pixels), train, 4))
    np.testing.assert_array_equal(bunch.grades, np.arange(N_IMAGES))
    np.testing.assert_array_equal(bunch.train, train)
    np.testing.assert_array_equal(bunch.used, np.arange(N_IMAGES))
    assert bunch.files == files
    assert bunch.skipped == []
    np.testing.assert_allclose(bunch.data[train].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(bunch.transformer.transform(files), bunch.data, atol=1e-12)


def test_test_images_leave_no_trace_in_the_training_features(files):
    train = list(range(8))
    before = image_features(files, np.zeros(N_IMAGES), network, train=train, n_components=3)
    for path in files[8:]:
        Image.new("RGB", (WIDTH, HEIGHT), "white").save(path)
    after = image_features(files, np.zeros(N_IMAGES), network, train=train, n_components=3)
    np.testing.assert_array_equal(after.data[:8], before.data[:8])
    assert not np.allclose(after.data[8:], before.data[8:])


def test_transformer_does_the_same_as_the_function(files):
    bunch = image_features(files, np.zeros(N_IMAGES), network, train=range(8), n_components=3)
    features = ImageFeatures(network, n_components=3).fit(files[:8])
    np.testing.assert_array_equal(features.transform(files), bunch.data)
    np.testing.assert_array_equal(
        clone(features).fit_transform(map(str, files[:8])), bunch.data[:8]
    )
    assert features.image_size_ == (WIDTH, HEIGHT)
    assert features.get_feature_names_out().tolist() == ["pca0", "pca1", "pca2"]


def test_in_a_pipeline_each_fold_has_its_own_components(files):
    model = make_pipeline(ImageFeatures(network, n_components=3), SVC())
    scores = cross_val_score(model, files, [0, 1] * 6, cv=3)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("batch_size", [1, 5, 12, 100])
def test_batches_do_not_matter_and_the_network_sees_each_image_once(files, batch_size):
    whole = image_features(files, np.zeros(N_IMAGES), network, train=range(8), n_components=3)
    counting = Counting()
    parts = image_features(
        files, np.zeros(N_IMAGES), counting, train=range(8), n_components=3, batch_size=batch_size
    )
    np.testing.assert_allclose(parts.data, whole.data, atol=1e-10)
    assert sum(counting.sizes) == N_IMAGES
    assert max(counting.sizes) == min(batch_size, N_IMAGES)


def test_pixels_arrive_as_they_are_in_every_eight_bit_mode(tmp_path):
    seen = []

    def look(images):
        seen.append(images)
        return images.mean(axis=(1, 2))

    colours = Image.new("RGB", (3, 2), (200, 100, 50))
    colours.putpixel((2, 0), (1, 2, 3))
    transparent = colours.convert("RGBA").quantize()
    transparent.info["transparency"] = 0
    made = {
        "rgb.png": colours,
        "rgba.png": colours.convert("RGBA"),
        "palette.png": colours.quantize(),
        "transparent.png": transparent,
        "grey.png": colours.convert("L"),
        "black.png": colours.convert("1"),
        "cmyk.tif": colours.convert("CMYK"),
    }
    for name, image in made.items():
        image.save(tmp_path / name)
    ImageFeatures(look, n_components=1).fit([tmp_path / name for name in made])
    images = dict(zip(made, seen[0], strict=True))
    for name in ("rgb.png", "rgba.png", "palette.png", "cmyk.tif"):
        np.testing.assert_array_equal(images[name], np.asarray(colours), err_msg=name)
    assert images["rgb.png"].shape == (2, 3, 3)
    assert (images["grey.png"] == images["grey.png"][..., :1]).all()
    assert set(np.unique(images["black.png"])) <= {0, 255}


def broken(kind, path):
    """Spoil the image at `path`; what its error must say."""
    if kind == "truncated":
        path.write_bytes(path.read_bytes()[:-40])
        return "cannot be read"
    if kind == "truncated jpeg":
        noise = np.random.RandomState(1).randint(256, size=(64, 64, 3)).astype(np.uint8)
        Image.fromarray(noise).save(path, format="JPEG")
        path.write_bytes(path.read_bytes()[:1000])
        return "cannot be read"
    if kind == "flipped bits":
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
        return "cannot be read"
    if kind == "text":
        path.write_text("this is not an image")
        return "cannot be read"
    if kind == "empty":
        path.write_bytes(b"")
        return "cannot be read"
    if kind == "missing":
        path.unlink()
        return "there is no such file"
    if kind == "folder":
        path.unlink()
        path.mkdir()
        return "cannot be read"
    if kind == "sixteen bits":
        Image.fromarray(np.full((HEIGHT, WIDTH), 5000, dtype=np.uint16)).save(path)
        return "more than eight bits a colour"
    Image.new("RGB", (WIDTH + 1, HEIGHT)).save(path)
    return r"it has 11 x 6 pixels and not 10 x 6: give size="


BROKEN = [
    "truncated", "truncated jpeg", "flipped bits", "text", "empty", "missing", "folder",
    "sixteen bits", "other size",
]  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("which", [0, 5])
def test_broken_image_is_an_error_that_names_it(files, kind, which):
    message = broken(kind, files[which])
    counting = Counting()
    for call in (
        lambda: image_features(files, np.zeros(N_IMAGES), counting, train=range(8), n_components=3),
        lambda: ImageFeatures(counting, n_components=3).fit(files),
    ):
        with pytest.raises(ImageError, match=message) as caught:
            call()
        assert str(caught.value).startswith(str(files[which]))
        assert caught.value.file == files[which]
    # All files are looked at before the network begins.
    assert counting.sizes == []


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_image_found_by_transform(files, kind):
    features = ImageFeatures(network, n_components=3).fit(files[:8])
    message = broken(kind, files[9])
    with pytest.raises(ImageError, match=message):
        features.transform(files[8:])


def test_broken_images_can_be_skipped_with_a_report(files, pixels):
    spoilt = {0: "other size", 3: "text", 9: "missing"}
    for k, kind in spoilt.items():
        broken(kind, files[k])
    train = np.arange(N_IMAGES) < 8
    with pytest.warns(UserWarning, match=r"3 of 12 images are left out, the first is .*eye00\.png"):
        bunch = image_features(
            files, np.arange(N_IMAGES), network, train=train, n_components=3, on_error="skip"
        )
    kept = [k for k in range(N_IMAGES) if k not in spoilt]
    assert bunch.used.tolist() == bunch.grades.tolist() == kept
    assert bunch.files == [files[k] for k in kept]
    assert [error.file for error in bunch.skipped] == [files[k] for k in spoilt]
    assert all(error.reason in str(error) for error in bunch.skipped)
    np.testing.assert_array_equal(bunch.train, train[kept])
    assert_equal_up_to_signs(bunch.data, by_svd(network(pixels[kept]), train[kept], 3))


def test_images_of_different_sizes_can_be_resized(files):
    broken("other size", files[5])
    shapes = []

    def look(images):
        shapes.append(images.shape)
        return images.mean(axis=(1, 2))

    bunch = image_features(
        files, np.zeros(N_IMAGES), look, train=range(8), n_components=2, size=[4, 8]
    )
    assert shapes == [(12, 8, 4, 3)]
    assert bunch.transformer.image_size_ == (4, 8)
    assert bunch.transformer.transform(files[5:6]).shape == (1, 2)


def test_nothing_left_to_fit(files):
    for path in files:
        path.write_bytes(b"")
    options = {"n_components": 1, "on_error": "skip"}
    with pytest.raises(ImageError, match=r"eye00\.png: this image cannot be read"):
        image_features(files, np.zeros(N_IMAGES), network, train=range(8), **options)
    with (
        pytest.warns(UserWarning, match="12 of 12"),
        pytest.raises(ValueError, match="train names no image that can be used"),
    ):
        image_features(files, np.zeros(N_IMAGES), network, train=[0], size=(4, 4), **options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda images: images, r"shape \(12, n_values\) for a batch of 12 images, got the shape"),
        (lambda images: network(images)[:-1], r"got the shape \(11, 7\)"),
        (lambda images: np.zeros((len(images), 0)), r"got the shape \(12, 0\)"),
        (lambda images: np.ones((len(images), 5)), "the same values for all training images"),
    ],
)
def test_wrong_networks(files, wrong, message):
    with pytest.raises(ValueError, match=message):
        ImageFeatures(wrong, n_components=2).fit(files)


def test_network_that_changes_its_mind(files):
    def shrinking(images):
        return network(images)[:, : len(images)]

    with pytest.raises(ValueError, match=r"shape \(2, 5\) for a batch of 2 images.* \(2, 2\)"):
        ImageFeatures(shrinking, n_components=2, batch_size=5).fit(files)
    features = ImageFeatures(shrinking, n_components=2).fit(files)
    with pytest.raises(ValueError, match="gave 3 values an image, and 7 when"):
        features.transform(files[:3])


def test_values_that_are_not_finite_name_the_image(files, pixels):
    def overflowing(images):
        vectors = network(images)
        vectors[(images == pixels[7]).all(axis=(1, 2, 3)), 2] = np.inf
        return vectors

    with pytest.raises(ImageError, match=r"eye07\.png: the network's values for it are not finite"):
        ImageFeatures(overflowing, n_components=2, batch_size=5).fit(files)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_components": 9}, ValueError, "n_components=9 needs .* got 8 images and 7 values"),
        ({"n_components": 0}, ValueError, "n_components must be a positive integer, got 0"),
        ({"n_components": 0.5}, ValueError, "n_components must be a positive integer, got 0.5"),
        ({"batch_size": 0}, ValueError, "batch_size must be a positive integer, got 0"),
        ({"size": 224}, ValueError, r"size must be \(width, height\) or None, got 224"),
        ({"size": (0, 5)}, ValueError, "width and height in size must be a positive integer"),
        ({"network": "vgg16"}, TypeError, "network must be a function .* got 'vgg16'"),
        ({"on_error": "ignore"}, ValueError, "on_error must be 'raise' or 'skip', got 'ignore'"),
        ({"grades": [1, 2]}, ValueError, r"grades has the shape \(2,\): .* each of 12 files"),
        ({"train": [0, 12]}, ValueError, "train names the position 12, and there are 12 files"),
        ({"train": [-1]}, ValueError, "train names the position -1"),
        ({"train": [True]}, ValueError, r"train is a mask of the shape \(1,\)"),
        ({"train": [0.5]}, ValueError, "train must be a mask or a list of positions"),
        ({"train": []}, ValueError, "train names no image"),
        ({"files": []}, ValueError, "files is empty"),
        ({"files": "eye.png"}, TypeError, "got the single path 'eye.png'"),
        ({"files": [3]}, TypeError, "files must be paths, number 0 is 3"),
    ],
)
def test_bad_input(files, change, error, message):
    given = {
        "files": files, "grades": np.zeros(N_IMAGES), "network": network, "train": range(8),
        "n_components": 3,
    }  # fmt: skip
    with pytest.raises(error, match=message):
        image_features(**(given | change))


def test_transform_before_fit(files):
    with pytest.raises(NotFittedError):
        ImageFeatures(network).transform(files)


def test_errors_survive_other_processes():
    error = pickle.loads(pickle.dumps(ImageError("eye.png", "it is empty")))
    assert (error.file, error.reason, str(error)) == (
        "eye.png",
        "it is empty",
        "eye.png: it is empty",
    )


def test_without_pillow_it_says_what_to_install():
    code = (
        "import sys; sys.modules['PIL'] = None\n"
        "from deferlearn.images import ImageFeatures\n"
        "ImageFeatures(len).fit(['eye.png'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "reading images needs Pillow: pip install 'deferlearn[images]'" in done.stderr
