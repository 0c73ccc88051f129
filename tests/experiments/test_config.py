"""Settings: what is wrong is refused in words, before anything is computed."""

import pytest

from deferlearn.experiments import Config, load_config


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"splits": 0}, "splits = 0"),
        ({"splits": 2.5}, "splits = 2.5"),
        ({"splitz": 3}, "splitz = 3: Extra inputs"),
        ({"budgets": ()}, "budgets"),
        ({"budgets": (0.1, 1.2)}, "budgets.1 = 1.2"),
        ({"budgets": (0.2, 0.1)}, r"budgets must rise: \[0.2, 0.1\]"),
        ({"budgets": (0.1, 0.1)}, "budgets has a value twice"),
        ({"datasets": ("messidor", "moon")}, "datasets.1 = 'moon'"),
        ({"alphas": (0.0,)}, "alphas.0 = 0.0"),
        ({"alphas": (float("nan"),)}, "alphas.0 = nan"),
        ({"submodularity_ratio": "guess"}, "'guess'"),
        ({"submodularity_ratio": 0.0}, "0.0"),
        ({"protocol": "mine"}, "protocol = 'mine'"),
        ({"protocol": "published", "splits": 5}, "one split, got splits=5"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_wrong_settings(changes, words):
    with pytest.raises(ValueError, match=words):
        Config.preset(**changes)


def test_presets():
    assert Config.preset("repeated").splits >= 20
    assert Config.preset("published").splits == 1
    quick = Config.preset(quick=True)
    assert quick.splits < Config().splits
    assert set(quick.budgets) <= set(Config().budgets)
    # The paper's.
    assert Config().retina_budgets == (0.0, 0.04, 0.08, 0.12, 0.16, 0.2)
    assert Config().spreads == (0.2, 0.4, 0.6, 0.8)


def test_toml(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('protocol = "repeated"\nsplits = 30\nbudgets = [0.0, 0.5]\n')
    config = load_config(file)
    assert (config.splits, config.budgets) == (30, (0.0, 0.5))
    assert config.spreads == Config().spreads
    assert load_config(file, splits=7).splits == 7  # the command line goes before the file
    assert load_config(file, quick=True).delta == Config.preset(quick=True).delta


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"splits = ", "is not TOML"),
        (b"\xff\xfe", "not UTF-8"),
        (b"splits = 'many'", "splits = 'many'"),
        (b"[extra]\nx = 1", "extra"),
    ],
)
def test_bad_files(tmp_path, content, words):
    file = tmp_path / "bad.toml"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        load_config(file)


def test_configs_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Config().splits = 3
