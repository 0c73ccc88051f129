"""What experts have to do, how much they could do, and what more of their time would be worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from deferlearn._utils.units import ERRORS, unit_of_team
from deferlearn._utils.words import distinct_names
from deferlearn.plot._frame import require_matplotlib, wrap_label
from deferlearn.plot.curves import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# In inches: the width of a new figure, the height of an expert's row, and the room for labels.
WIDTH, ROW, AROUND = 5.4, 0.3, 1.25

# Letters in points, the height of a bar, and the share of the width that the prices take.
LETTERS, THICK, PRICES = 9.0, 0.62, 0.24

HEADING = "{} avoided per\n1,000 more cases"


def price_words(price: float) -> str:
    """What 1,000 more cases of an expert's time would avoid, at the price of one case.

    Parameters
    ----------
    price : float
        What one case avoids.

    Returns
    -------
    words : str

    Examples
    --------
    >>> from deferlearn.plot.load import price_words
    >>> [price_words(price) for price in (0.0, 0.0004, 0.0213, 0.25)]
    ['0', 'less than 1', '21', '250']
    """
    if price <= 0:
        return "0"
    # Prices below that are decided by coins between experts who are alike.
    return "less than 1" if price < 0.001 else f"{1000 * price:,.0f}"


@dataclass(eq=False, repr=False)
class LoadDisplay:
    """The load of each expert against the capacity, and what one more case would be worth.

    A bar is the share of the cases that an expert gets, and the frame around it is the capacity.
    Beside it stands the price of the expert's time: the errors that the team would avoid, per 1,000 more
    cases; for grades, the grades of error, and with a cost matrix, its units. It holds for the next few
    cases; of many more, each is worth less. `from_estimator` makes the display.

    Parameters
    ----------
    load : dict
        For each expert the share of the cases that this expert gets.
    capacity : dict
        The share that the expert can take.
    prices : dict
        What one more case is worth: the errors avoided, or what `unit` says.
    unit : str, default="errors"
        What prices count.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds it.
    bars_, frames_ : matplotlib BarContainer
        Loads and capacities, from top to bottom.

    See Also
    --------
    SkillsDisplay : How often each expert errs.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from deferlearn.plot import LoadDisplay
    >>> load, capacity = {"Ann": 0.1, "Bob": 0.02}, {"Ann": 0.1, "Bob": 0.2}
    >>> display = LoadDisplay(load, capacity=capacity, prices={"Ann": 0.124, "Bob": 0.0}).plot()
    >>> [text.get_text() for text in display.ax_.texts][1:]
    ['124', '0']
    >>> matplotlib.pyplot.close(display.figure_)
    """

    load: Mapping[str, float]
    _: KW_ONLY
    capacity: Mapping[str, float]
    prices: Mapping[str, float]
    unit: str = ERRORS.name

    def __post_init__(self) -> None:
        for name, given in (("capacity", self.capacity), ("prices", self.prices)):
            missing = [expert for expert in self.load if expert not in given]
            if missing:
                raise ValueError(f"{name} has no value for the expert {missing[0]!r} of load")
        if not self.load:
            raise ValueError("load must have at least one expert, got none")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> LoadDisplay:
        """Draw the loads that a fitted `ExpertTeam` expects.

        Parameters
        ----------
        estimator : ExpertTeam
            A fitted one.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **kwargs
            Passed on to `plot`.

        Returns
        -------
        display : LoadDisplay
            Drawn.
        """
        if not hasattr(estimator, "load_"):
            raise TypeError(
                f"the picture needs a fitted ExpertTeam with load_; {type(estimator).__name__} has none"
            )
        display = cls(
            estimator.load_,
            capacity=estimator.capacity_,
            prices=estimator.prices_,
            unit=unit_of_team(estimator.team_).name,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, width: float = WIDTH) -> LoadDisplay:
        """Draw loads, capacities and prices.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure with pyplot, as high as the number of experts asks for.
        width : float, default=5.4
            The width of a new figure in inches.

        Returns
        -------
        self : LoadDisplay
            With `ax_`, `figure_`, `bars_` and `frames_`.
        """
        require_matplotlib()
        if ax is None:
            import matplotlib.pyplot as plt

            size = (width, ROW * len(self.load) + AROUND)
            ax = plt.subplots(figsize=size, layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        rows = list(range(len(self.load)))
        load = [self.load[name] for name in self.load]
        capacity = [self.capacity[name] for name in self.load]
        self.bars_ = ax.barh(rows, load, THICK, color=COLOURS[0], label="load")
        self.frames_ = ax.barh(
            rows,
            capacity,
            THICK,
            facecolor="none",
            edgecolor="0.25",
            linewidth=1.1,
            label="capacity",
        )
        most = max(*load, *capacity, 1e-6)
        ax.set_xlim(0.0, most / (1 - PRICES))
        # The right part of the axes belongs to the prices.
        ticks = [tick for tick in ax.get_xticks() if tick <= most * (1 + 1e-9)]
        ax.set_xticks(ticks, [f"{100 * tick:.3g}%" for tick in ticks], fontsize=LETTERS)
        ax.text(
            1.0,
            1.0,
            HEADING.format(self.unit),
            transform=ax.transAxes,
            ha="right",
            va="bottom",
            fontsize=LETTERS,
        )
        for row, name in zip(rows, self.load, strict=True):
            ax.text(
                1.0,
                row,
                price_words(self.prices[name]),
                transform=ax.get_yaxis_transform(),
                ha="right",
                va="center",
                fontsize=LETTERS,
            )
        ax.set_yticks(rows, distinct_names(list(self.load)), fontsize=LETTERS)
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.tick_params(axis="y", length=0)
        for side in ("right", "top"):
            ax.spines[side].set_visible(False)
        wrap_label(ax, "share of the cases: load, and capacity (frame)", LETTERS)
        return self
