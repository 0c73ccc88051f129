"""Settings: what is wrong is refused in words, before anything is computed."""

import numpy as np
import pytest

from deferlearn.experiments import Config, load_config
from deferlearn.objective import SVMObjective
from deferlearn.selection import submodularity_sweep
from deferlearn.selection.sweep import SMALLEST_STEP


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"splits": 0}, "splits = 0"),
        ({"splits": 2.5}, "splits = 2.5"),
        ({"splits": True}, "splits = True: must be a valid integer"),
        ({"splits": "30"}, "splits = '30': must be a valid integer"),
        ({"splitz": 3}, "splitz = 3: no such setting; there are protocol, splits, seed"),
        ({"budgets": ()}, r"budgets = \(\): must have at least 1 item"),
        ({"budgets": 0.3}, "budgets = 0.3: must be a list"),
        ({"budgets": (0.1, 1.2)}, r"^budgets\[1\] = 1.2: must be less than 1$"),
        ({"budgets": ("a",)}, r"^budgets\[0\] = 'a': must be a valid number$"),
        ({"spreads": [k / 10 for k in range(7)]}, "must have at most 6 items, not 7"),
        ({"delta": 1e-5}, "delta = 1e-05: must be greater than or equal to 0.001"),
        ({"budgets": (0.2, 0.1)}, r"budgets must rise: \[0.2, 0.1\]"),
        ({"budgets": (0.1, 0.1)}, "budgets has a value twice"),
        (
            {"datasets": ("messidor", "moon")},
            r"^datasets\[1\] = 'moon': must be 'messidor', 'stare' or 'aptos'$",
        ),
        ({"alphas": (0.0,)}, r"alphas\[0\] = 0.0"),
        ({"alphas": (float("nan"),)}, r"alphas\[0\] = nan: must be a finite number"),
        ({"submodularity_ratio": "guess"}, "= 'guess': must be 'sweep' or a valid number"),
        ({"submodularity_ratio": 0.0}, "= 0.0: must be 'sweep' or greater than 0"),
        ({"seed": -3, "folds": 1}, "seed = -3: .*; folds = 1: "),
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


def test_numbers_of_numpy():
    assert Config.preset(splits=np.int64(4), spreads=np.array([0.5])).spreads == (0.5,)


def test_what_is_refused_here_is_refused_by_the_sweep():
    """The least step is the sweep's own, so that no job fails for it."""
    least = Config.preset(delta=SMALLEST_STEP).delta
    X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
    submodularity_sweep(SVMObjective(X, y), [1.0] * 4, n=1, delta=least)
    with pytest.raises(ValueError, match="delta"):
        submodularity_sweep(SVMObjective(X, y), [1.0] * 4, n=1, delta=0.9 * least)


def test_toml(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('protocol = "repeated"\nsplits = 30\nbudgets = [0.0, 0.5]\n')
    config = load_config(file)
    assert (config.splits, config.budgets) == (30, (0.0, 0.5))
    assert config.spreads == Config().spreads
    assert load_config(file, splits=7).splits == 7  # the command line goes before the file
    assert load_config(file, quick=True).delta == Config.preset(quick=True).delta
    assert load_config(file, protocol="published", splits=1).protocol == "published"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"splits = ", "is not TOML"),
        (b"\xff\xfe", "not UTF-8"),
        (b"splits: 3", "is not TOML"),  # YAML
        (b"splits = 'many'", r"bad.toml: splits = 'many'"),
        (b"[extra]\nx = 1", "extra = .*: no such setting"),
        (b"quick = true", "quick = True: no such setting"),
        (b"protocol = ['published']", "must be 'repeated' or 'published'"),
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
