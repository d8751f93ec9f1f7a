"""A result as people read it: a card for notebooks and feedback, and plain text for everywhere else."""

from __future__ import annotations

import math
from typing import Any

from autograder.common import MAX_ATTEMPTS
from autograder.show.rich import GREEN, GREY, ORANGE, render

WORDS = {
    "pass": ("Passed", GREEN, "✓"),
    "fail": ("Not yet", ORANGE, "✗"),
    "inconclusive": ("The clock could not decide", "#6639ba", "≈"),
    "stopped": ("Stopped", GREY, "■"),
    "error": ("Could not be run", "#b42318", "!"),
    "not_attempted": ("Not attempted", GREY, "○"),
}
_RIGHT, _BOTTOM, _HEIGHT = 470, 124, 114  # of the plot without its labels, in its own units
_LABEL_HEIGHT = 12


def result_text(result: dict[str, Any]) -> str:
    """One exercise in a few plain lines."""
    words, _, mark = WORDS[result["verdict"]]
    points = f": {result['score']:g} of {result['max_score']:g} points" if has_points(result) else ""
    lines = [f"{mark} {result['id']} {words}{points}", result["reason"]]
    lines += [f"  {name}: {value}" for name, value in _counts(result)]
    if facts := _facts(result):
        lines.append(f"  {' · '.join(facts)}")
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
        label=f"Check of {result['id']}: {words}",
        has_points=has_points(result),
        facts=_facts(result),
        lines=[line.partition(": ") for line in result["reason"].splitlines()],
        plot=Markup(speed_plot(speed)) if speed.get("ratios") else "",
        shown_counts=_counts(result),
    )


def has_points(result: dict[str, Any]) -> bool:
    """Whether the check came to points at all; one that was stopped gives none and takes none."""
    return result["verdict"] != "stopped"


def _facts(result: dict[str, Any]) -> list[str]:
    """How the verdict came about, in a few words each."""
    speed, sandbox, facts = result.get("speedup") or {}, result.get("sandbox"), []
    if result.get("seconds"):
        facts.append(f"{'checked in' if has_points(result) else 'stopped after'} {result['seconds']:.1f} s")
    if speed.get("spread") is not None:
        facts.append(f"noise of a block: {speed['spread']:.0%}")
    if "attempts" in speed:
        counted = f"{speed['attempts']} of {MAX_ATTEMPTS} for this code"
        is_open = result["verdict"] == "inconclusive"
        facts.append(f"no attempt used: {counted} so far" if is_open else f"attempt {counted}")
    if sandbox:
        facts.append(f"sandbox: {sandbox}")
    if sandbox == "limits":
        facts.append("`workbook doctor` says how to raise that level")
    return facts


def speed_plot(speed: dict[str, Any]) -> str:
    """The blocks of a measurement as SVG, on a log axis."""
    values = [*speed["ratios"], speed["bar"], 1.0, speed["estimate"]]
    floor, ceiling = min(values) / 1.1, max(values) * 1.1

    def y(value: float, shift: float = 0.0) -> str:
        return f"{_BOTTOM - math.log(value / floor) / math.log(ceiling / floor) * _HEIGHT + shift:.1f}"

    above = float(y(speed["bar"])) - float(y(speed["estimate"]))
    beside_equal = min(abs(float(y(speed[name])) - float(y(1.0))) for name in ("bar", "estimate"))
    low, high = speed["low"], speed["high"]
    has_band = bool(low and high) and floor < low < high < ceiling
    return render(
        "speed.html",
        **speed,
        right=_RIGHT,
        x=lambda index: f"{(index + 0.5) / len(speed['ratios']) * _RIGHT:.1f}",
        y=y,
        equal="1× equal" if beside_equal >= _LABEL_HEIGHT else "",  # the least of the three, where they meet
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
