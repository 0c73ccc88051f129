"""The story about images runs, and what users copy from it stands damaged and odd images."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

STORY = Path(__file__).parents[2] / "examples" / "plot_images_to_features.py"
N_IMAGES, N_VALUES = 12, 7
WIDTH, HEIGHT = 10, 6
WEIGHTS = np.random.RandomState(3).standard_normal((WIDTH * HEIGHT * 3, N_VALUES))


@pytest.fixture(scope="module")
def story():
    """The whole story, run once, its plots drawn to nowhere."""
    import matplotlib.pyplot as plt

    spec = importlib.util.spec_from_file_location("plot_images_to_features", STORY)
    module = importlib.util.module_from_spec(spec)
    plt.switch_backend("agg")
    spec.loader.exec_module(module)
    yield module
    plt.close("all")


def network(images):
    assert images.dtype == np.uint8
    return images.reshape(len(images), -1) / 255.0 @ WEIGHTS


class Counting:
    """A network that remembers how large its batches were."""

    def __init__(self):
        self.sizes = []

    def __call__(self, images):
        self.sizes.append(len(images))
        return network(images)


@pytest.fixture
def pixels():
    return np.random.RandomState(0).randint(256, size=(N_IMAGES, HEIGHT, WIDTH, 3)).astype(np.uint8)


@pytest.fixture
def files(tmp_path, pixels):
    paths = [tmp_path / f"eye{k:02d}.png" for k in range(N_IMAGES)]
    for path, image in zip(paths, pixels, strict=True):
        Image.fromarray(image).save(path)
    return paths


@pytest.fixture
def features(story):
    def make(n_components=3, network=network, **options):
        pca = PCA(n_components, svd_solver="full")
        return make_pipeline(story.NetworkFeatures(network, **options), StandardScaler(), pca)

    return make


def by_svd(vectors, train, n_components):
    """The same features by numpy's decomposition; their signs are arbitrary."""
    mean, deviation = vectors[train].mean(axis=0), vectors[train].std(axis=0)
    standard = (vectors - mean) / deviation
    _, _, axes = np.linalg.svd(standard[train], full_matrices=False)
    return standard @ axes[:n_components].T


def assert_equal_up_to_signs(found, expected):
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-10)


def test_the_story_ends_with_a_team_that_beats_machine_and_expert(story):
    assert list(story.unusable) == [7]
    assert story.errors["team"] < min(story.errors["machine"], story.errors["expert"])


def test_features_are_the_principal_components_of_the_training_part(files, pixels, features):
    fitted = features(4).fit(files[:8])
    train = np.arange(N_IMAGES) < 8
    assert_equal_up_to_signs(fitted.transform(files), by_svd(network(pixels), train, 4))
    np.testing.assert_allclose(fitted.transform(files[:8]).mean(axis=0), 0, atol=1e-12)
    assert fitted[0].image_size_ == (WIDTH, HEIGHT)
    np.testing.assert_allclose(
        clone(fitted).fit_transform(list(map(str, files[:8]))),
        fitted.transform(files[:8]),
        atol=1e-12,
    )


def test_test_images_leave_no_trace_in_the_training_features(files, features):
    fitted = features().fit(files[:8])
    before = fitted.transform(files)
    for path in files[8:]:
        Image.new("RGB", (WIDTH, HEIGHT), "white").save(path)
    after = clone(fitted).fit(files[:8]).transform(files)
    np.testing.assert_array_equal(after[:8], before[:8])
    assert not np.allclose(after[8:], before[8:])


def test_in_a_pipeline_each_fold_has_its_own_components(files, features):
    model = make_pipeline(*(step for _, step in features().steps), SVC())
    scores = cross_val_score(model, files, [0, 1] * 6, cv=3)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("batch_size", [1, 5, 12, 100])
def test_batches_do_not_matter_and_the_network_sees_each_image_once(files, story, batch_size):
    counting = Counting()
    made = story.NetworkFeatures(counting, batch_size=batch_size).fit_transform(files)
    np.testing.assert_allclose(
        made, story.NetworkFeatures(network).fit_transform(files), atol=1e-10
    )
    assert sum(counting.sizes) == N_IMAGES
    assert max(counting.sizes) == min(batch_size, N_IMAGES)


def test_pixels_arrive_as_they_are_in_every_eight_bit_mode(tmp_path, story):
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
    story.NetworkFeatures(look).fit_transform([tmp_path / name for name in made])
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
        return "cannot be read .*No such file"
    if kind == "folder":
        path.unlink()
        path.mkdir()
        return "cannot be read"
    if kind == "sixteen bits":
        Image.fromarray(np.full((HEIGHT, WIDTH), 5000, dtype=np.uint16)).save(path)
        return "more than eight bits per colour"
    Image.new("RGB", (WIDTH + 1, HEIGHT)).save(path)
    return r"it has 11 x 6 pixels and not 10 x 6: give size="


BROKEN = [
    "truncated", "truncated jpeg", "flipped bits", "text", "empty", "missing", "folder",
    "sixteen bits", "other size",
]  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("which", [0, 5])
def test_broken_image_is_an_error_that_names_it(files, story, kind, which):
    message = broken(kind, files[which])
    counting = Counting()
    with pytest.raises(ValueError, match=message) as caught:
        story.NetworkFeatures(counting).fit_transform(files)
    assert str(caught.value).startswith(str(files[which]))
    # All files are looked at before the network begins.
    assert counting.sizes == []
    assert story.find_unusable(files) == {which: str(caught.value)}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_image_found_by_transform(files, story, kind):
    fitted = story.NetworkFeatures(network).fit(files[:8])
    message = broken(kind, files[9])
    with pytest.raises(ValueError, match=message):
        fitted.transform(files[8:])


def test_all_that_is_broken_is_found_in_order(files, story):
    kinds = dict(zip([10, 2, 4, 6], ["text", "other size", "missing", "sixteen bits"], strict=True))
    for k, kind in kinds.items():
        broken(kind, files[k])
    found = story.find_unusable(files)
    assert list(found) == sorted(kinds)
    # Where every image is resized, any size will do.
    assert list(story.find_unusable(files, size=(4, 4))) == [4, 6, 10]


def test_images_of_different_sizes_can_be_resized(files, story):
    broken("other size", files[5])
    shapes = []

    def look(images):
        shapes.append(images.shape)
        return images.mean(axis=(1, 2))

    fitted = story.NetworkFeatures(look, size=[4, 8]).fit(files)
    fitted.transform(files)
    assert shapes == [(12, 8, 4, 3)]
    assert fitted.image_size_ == (4, 8)
    assert fitted.transform(files[5:6]).shape == (1, 3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda images: images,
            r"12 vectors for 12 images, got an array of shape \(12, 6, 10, 3\)",
        ),
        (lambda images: network(images)[:-1], r"got an array of shape \(11, 7\)"),
    ],
)
def test_wrong_networks(files, story, wrong, message):
    with pytest.raises(ValueError, match=message):
        story.NetworkFeatures(wrong).fit_transform(files)


def test_network_that_changes_its_mind(files, features):
    def shrinking(images):
        return network(images)[:, : len(images)]

    fitted = features(2, shrinking).fit(files)
    with pytest.raises(ValueError, match="X has 3 features, but StandardScaler is expecting 7"):
        fitted.transform(files[:3])


def test_values_that_are_not_finite_name_the_image(files, pixels, story):
    def overflowing(images):
        vectors = network(images)
        vectors[(images == pixels[7]).all(axis=(1, 2, 3)), 2] = np.inf
        return vectors

    with pytest.raises(ValueError, match=r"eye07\.png: the network's values .* are not finite"):
        story.NetworkFeatures(overflowing, batch_size=5).fit_transform(files)


def test_transform_before_fit(files, story):
    with pytest.raises(NotFittedError):
        story.NetworkFeatures(network).transform(files)
