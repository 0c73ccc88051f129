"""What an experiment is run with: one validated record, from defaults or from a TOML file."""

import os
import tomllib
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from deferlearn.selection.sweep import SMALLEST_STEP


def _python_int(value: Any) -> Any:
    """Integers of numpy as those of Python."""
    return value if type(value) is bool or not isinstance(value, Integral) else int(value)


Protocol = Literal["repeated", "published"]
Retina = Literal["messidor", "stare", "aptos"]
# Strict: neither "0.2" in quotes nor true is a number.
Whole = Annotated[int, Field(strict=True), BeforeValidator(_python_int)]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Share = Annotated[Real, Field(ge=0.0, lt=1.0)]
Weight = Annotated[Real, Field(ge=0.0, le=1.0)]
Positive = Annotated[Real, Field(gt=0.0)]
# At most as many levels of human error as a figure can distinguish.
Levels = Annotated[tuple[Weight, ...], Field(min_length=1, max_length=6)]

# With fewer splits, the t-intervals are too wide to be shown as results.
FEWEST_SPLITS = 20
# The ratio that the authors' program uses instead of a sweep.
PUBLISHED_RATIO = 0.01
PUBLISHED_EPSILON = 0.001

PRESETS: dict[tuple[str, bool], dict[str, Any]] = {
    ("repeated", False): {},
    ("repeated", True): {
        "splits": 3,
        "delta": 0.5,
        "budgets": (0.0, 0.1, 0.2, 0.3),
        "size_budgets": (0.0, 0.25, 0.5),
        "retina_budgets": (0.0, 0.08, 0.2),
        "alphas": (0.03, 0.3),
    },
    ("published", False): {
        "splits": 1,
        "submodularity_ratio": PUBLISHED_RATIO,
        "epsilon": PUBLISHED_EPSILON,
    },
}
# One split is quick as it is.
PRESETS["published", True] = PRESETS["published", False]


class Config(BaseModel):
    """Everything that decides an experiment's numbers, checked when it is made.

    Parameters
    ----------
    protocol : {"repeated", "published"}, default="repeated"
        "published": one split, the first 40% of the rows for the test, with the human draws in the
        authors' result files, and their program's lambda and submodularity ratio.
        "repeated": random stratified splits and new draws, lambda by cross-validation.
    splits : int, default=20
        Number of splits or draws; 1 for "published".
    seed : int, default=0
        Seed of the first split or draw; the others have the numbers that follow.
    submodularity_ratio : "sweep" or float in (0, 1], default="sweep"
        The paper's gamma, or its meta-algorithm, which searches for it.
    delta, epsilon : float in (0, 1), default=0.1 and 0.01
        Step of the sweep, at least 0.001; accuracy parameter of the stochastic algorithm.
    n_samples : int, default=400
        Size of the synthetic data.
    budgets, size_budgets, retina_budgets : tuple of float
        Shares n/|V| of fig3, of fig4, and of the experiments on medical data.
    datasets : tuple of {"messidor", "stare", "aptos"}
        The medical data sets.
    spreads : tuple of up to six floats
        Human errors of fig4.
    human_weights : tuple of up to six floats
        Levels of human error of fig6, each the weight of the uniform distribution in a doctor's answers.
    alphas : tuple of float
        Candidates for lambda on medical data, under "repeated".
    folds : int, default=5
        Number of folds of that cross-validation.

    Examples
    --------
    >>> from deferlearn.experiments import Config
    >>> Config.preset("repeated").splits
    20
    >>> Config.preset("published").submodularity_ratio
    0.01
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: Protocol = "repeated"
    splits: Annotated[Whole, Field(ge=1, le=10_000)] = FEWEST_SPLITS
    seed: Annotated[Whole, Field(ge=0, le=2**31)] = 0
    submodularity_ratio: Literal["sweep"] | Annotated[Real, Field(gt=0.0, le=1.0)] = "sweep"
    delta: Annotated[Real, Field(ge=SMALLEST_STEP, lt=1.0)] = 0.1
    epsilon: Annotated[Real, Field(gt=0.0, lt=1.0)] = 0.01
    n_samples: Annotated[Whole, Field(ge=20, le=100_000)] = 400
    budgets: Annotated[tuple[Share, ...], Field(min_length=1)] = (
        0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5,
    )  # fmt: skip
    size_budgets: Annotated[tuple[Share, ...], Field(min_length=1)] = (
        0.0, 0.1, 0.2, 0.3, 0.4, 0.5,
    )  # fmt: skip
    retina_budgets: Annotated[tuple[Share, ...], Field(min_length=1)] = (
        0.0, 0.04, 0.08, 0.12, 0.16, 0.2,
    )  # fmt: skip
    datasets: Annotated[tuple[Retina, ...], Field(min_length=1)] = ("messidor", "stare", "aptos")
    spreads: Levels = (0.2, 0.4, 0.6, 0.8)
    human_weights: Levels = (0.0, 0.25, 0.5, 0.75)
    alphas: Annotated[tuple[Positive, ...], Field(min_length=1)] = (
        0.01, 0.03, 0.1, 0.3, 1.0, 3.0,
    )  # fmt: skip
    folds: Annotated[Whole, Field(ge=2, le=100)] = 5

    @model_validator(mode="after")
    def _settings_fit_together(self) -> Self:
        if self.protocol == "published" and self.splits != 1:
            raise ValueError(
                f"the published protocol has one split, got splits={self.splits}: leave it out, or "
                "choose protocol 'repeated'"
            )
        lists = ("budgets", "size_budgets", "retina_budgets", "datasets")
        for name in (*lists, "spreads", "human_weights", "alphas"):
            values = getattr(self, name)
            if len(set(values)) != len(values):
                raise ValueError(f"{name} has a value twice: {list(values)}")
            if name.endswith("budgets") and list(values) != sorted(values):
                raise ValueError(f"{name} must rise: {list(values)}")
        return self

    @classmethod
    def preset(cls, protocol: str = "repeated", quick: bool = False, **changes: Any) -> Self:
        """The settings of a protocol, with changes.

        Parameters
        ----------
        protocol : {"repeated", "published"}, default="repeated"
            See the class.
        quick : bool, default=False
            Three splits and a coarse sweep, to see that everything runs; not for results.
        **changes
            Any of the class's parameters.

        Returns
        -------
        config : Config

        Raises
        ------
        ValueError
            In one line, for each problem: which setting, which value, what is allowed.
        """
        return cls.from_settings({"protocol": protocol, **changes}, quick)

    @classmethod
    def from_settings(cls, settings: dict[str, Any], quick: bool = False) -> Self:
        """The same from a dict, such as the content of a file."""
        # As text: a file can hold a list here, which cannot be the key of a dict.
        base = PRESETS.get((str(settings.get("protocol", "repeated")), quick), {})
        try:
            return cls(**{**base, **settings})
        except ValidationError as error:
            raise ValueError(_in_words(error)) from None

    @property
    def seeds(self) -> range:
        """A seed for each split or draw."""
        return range(self.seed, self.seed + self.splits)


def load_config(
    path: str | os.PathLike[str], protocol: str | None = None, quick: bool = False, **changes: Any
) -> Config:
    r"""Settings from a TOML file; those that it leaves out are as in the protocol's preset.

    Parameters
    ----------
    path : path-like
        A file of lines such as ``splits = 50``, with the names of `Config`.
    protocol : str, default=None
        Protocol to use instead of the one in the file.
    quick : bool, default=False
        As in `Config.preset`.
    **changes
        Settings to use instead of those in the file.

    Returns
    -------
    config : Config

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deferlearn.experiments import load_config
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "mine.toml"
    ...     _ = file.write_text("splits = 50\nspreads = [0.1, 0.9]")
    ...     load_config(file).spreads
    (0.1, 0.9)
    """
    try:
        settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not TOML: it is not UTF-8 text") from None
    if protocol is not None:
        settings["protocol"] = protocol
    try:
        return Config.from_settings({**settings, **changes}, quick)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


# Words of pydantic, and those for the author of a TOML file.
WORDS = {
    "Value error, ": "",
    "Input should be": "must be",
    "a valid tuple": "a list",
    "Tuple should": "must",
    " after validation": "",
}


def _in_words(error: ValidationError) -> str:
    """All problems in one line: which setting, which value, what is allowed."""
    said: dict[str, list[str]] = {}
    for problem in error.errors():
        name, *inner = problem["loc"] or ("",)
        place = "".join(f"[{part}]" for part in inner if isinstance(part, int))
        text = problem["msg"]
        for theirs, ours in WORDS.items():
            text = text.replace(theirs, ours)
        if problem["type"] == "extra_forbidden":
            text = f"no such setting; there are {', '.join(Config.model_fields)}"
        # If entries of a list are refused, pydantic also calls the list too short.
        if problem["type"] == "too_short" and len(problem["input"]):
            continue
        start = f"{name}{place} = {problem['input']!r}: " if name else ""
        said.setdefault(start, []).append(text)
    # Several texts about one value belong to its alternatives, "sweep" and a number.
    return "; ".join(
        start + texts[0] + "".join(f" or {text.removeprefix('must be ')}" for text in texts[1:])
        for start, texts in said.items()
    )
