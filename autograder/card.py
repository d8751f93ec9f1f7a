"""A result as people read it: a card for notebooks and feedback, and plain text for everywhere else."""

from __future__ import annotations

import math
from typing import Any

from autograder.rich import GREEN, GREY, ORANGE, render

WORDS = {
    "pass": ("Passed", GREEN, "✓"),
    "fail": ("Not yet", ORANGE, "✗"),
    "inconclusive": ("The clock could not decide", "#6639ba", "≈"),
    "error": ("Could not be run", "#b42318", "!"),
    "not_attempted": ("Not attempted", GREY, "○"),
}
_RIGHT, _BOTTOM, _HEIGHT = 470, 124, 114  # of the plot without its labels, in its own units
_LABEL_HEIGHT = 12


def result_text(result: dict[str, Any]) -> str:
    """One exercise in a few plain lines."""
    words, _, mark = WORDS[result["verdict"]]
    lines = [
        f"{mark} {result['id']} {words}: {result['score']:g} of {result['max_score']:g} points",
        result["reason"],
    ]
    lines += [f"  {name}: {value}" for name, value in _counts(result)]
    if result.get("sandbox") == "limits":
        lines.append("  Checked at sandbox level 'limits': `workbook doctor` says how to raise it.")
    lines += [f"  For a person to look at; it costs no points: {why}" for why in result.get("review", ())]
    return "\n".join(lines)


def result_html(result: dict[str, Any]) -> str:
    """The same as a card, with the plot of the paired measurements where there are any."""
    if not result:
        return ""
    from markupsafe import Markup

    words, colour, mark = WORDS[result["verdict"]]
    speed = result.get("speedup") or {}
    return render(
        "result.html",
        **result,
        words=words,
        colour=colour,
        mark=mark,
        lines=[line.partition(": ") for line in result["reason"].splitlines()],
        plot=Markup(speed_plot(speed)) if speed.get("ratios") else "",
        shown_counts=_counts(result),
    )


def speed_plot(speed: dict[str, Any]) -> str:
    """The blocks of a measurement as SVG, on a log axis."""
    values = [*speed["ratios"], speed["bar"], 1.0, speed["estimate"]]
    floor, ceiling = min(values) / 1.1, max(values) * 1.1

    def y(value: float, shift: float = 0.0) -> str:
        return f"{_BOTTOM - math.log(value / floor) / math.log(ceiling / floor) * _HEIGHT + shift:.1f}"

    above = float(y(speed["bar"])) - float(y(speed["estimate"]))
    low, high = speed["low"], speed["high"]
    has_band = bool(low and high) and floor < low < high < ceiling
    return render(
        "speed.html",
        **speed,
        right=_RIGHT,
        x=lambda index: f"{(index + 0.5) / len(speed['ratios']) * _RIGHT:.1f}",
        y=y,
        # Two labels that would overlap are pushed apart.
        apart=math.copysign(6, above) if abs(above) < _LABEL_HEIGHT else 0,
        has_band=has_band,
        band_height=f"{max(1.0, float(y(low)) - float(y(high))):.1f}" if has_band else "",
    )


def _counts(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name.replace("_", " "), f"{value:,.4g}" if isinstance(value, float) else f"{value:,}")
        for name, value in result["counts"].items()
    ]
