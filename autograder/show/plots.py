"""The one look of every figure in the course: colours that survive colour blindness, and a text for each.

Figures are built without `pyplot`: no global state, nothing shown by accident, nothing on stderr.

    fig, ax = figure()
    bars(ax, ["padded to 1024", "bucketed"], [92.8, 4.1], unit="%")
    show(fig, alt="Bar chart: 92.8 % of the slots are padding at width 1024, 4.1 % with buckets.")
"""

from __future__ import annotations

import base64
import html
import io
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"  # the first of `plots.mplstyle`
GREY, INK = "#8A8A8A", "#222222"

WIDTH = 8.0  # inches: fills a notebook column at the size below without scrolling
PIXELS_PER_INCH = 96  # CSS pixels; the image itself is drawn at twice that, for sharp screens


def figure(
    rows: int = 1, columns: int = 1, *, height: float = 3.0, width: float = WIDTH, **subplots: Any
) -> tuple[Figure, Any]:
    """A figure in the course's style and its axes (one, or an array [rows, columns] as `subplots` gives).

    height, width: inches of the whole figure. `subplots`: passed to `Figure.subplots` (`sharex=True`, …).
    """
    # On its first run matplotlib announces on stderr that it builds a font cache; no cell should look failed.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    from matplotlib import rc_file
    from matplotlib.figure import Figure

    # For good, not within a context: titles and legends ask for the style when they are added, later.
    rc_file(Path(__file__).with_suffix(".mplstyle"), use_default_template=False)
    made = Figure(figsize=(width, height), layout="constrained")
    return made, made.subplots(rows, columns, **subplots)


def to_html(fig: Figure, alt: str) -> str:
    """An `<img>` that carries the picture and its text. Raises ValueError when `alt` says nothing."""
    if not alt.strip():
        raise ValueError("a figure needs alt text: one sentence that says what it shows, with its numbers")
    png = io.BytesIO()
    fig.savefig(png, dpi=2 * PIXELS_PER_INCH)  # without pyplot a figure has the Agg canvas, which makes PNG
    data = base64.b64encode(png.getvalue()).decode("ascii")
    width = round(fig.get_figwidth() * PIXELS_PER_INCH)
    return (
        f'<img src="data:image/png;base64,{data}" alt="{html.escape(alt, quote=True)}" '
        f'width="{width}" style="max-width:100%;height:auto">'
    )


def show(fig: Figure, alt: str) -> None:
    """Display the figure in the notebook; readers without the picture get `alt`."""
    from IPython.display import display

    display({"text/html": to_html(fig, alt), "text/plain": alt}, raw=True)


def bars(
    ax: Axes,
    names: Sequence[str],
    values: Iterable[float],
    *,
    unit: str = "",
    digits: int = 1,
    colors: Sequence[str] | str = BLUE,
) -> None:
    """Horizontal bars in reading order, each with its value written at its end. Needs no x axis."""
    heights = [float(value) for value in values]
    positions = range(len(heights))
    ax.barh(positions, heights, color=colors, height=0.62)
    ax.set_yticks(positions, labels=list(names))
    ax.invert_yaxis()
    shown = unit if unit in ("×", "") else f" {unit}"
    for position, value in zip(positions, heights, strict=True):
        ax.annotate(
            f"{value:,.{digits}f}{shown}", (value, position), (4, 0), textcoords="offset points", va="center"
        )
    ax.set_xlim(0, max(heights, default=0.0) * 1.18 or 1.0)
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xticks([])


def mark(ax: Axes, x: float, text: str, *, y: float = 0.96, side: str = "right") -> None:
    """A dotted vertical line at `x` with a label beside it; `y` is the label's height, 0 … 1 of the axes."""
    ax.axvline(x, color=GREY, linestyle=":", linewidth=1.4)
    ax.annotate(
        text,
        (x, y),
        (5 if side == "right" else -5, 0),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="left" if side == "right" else "right",
        va="top",
        fontsize=9.5,
        color=INK,
    )
