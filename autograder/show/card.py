"""A result as people read it: a card for notebooks and feedback, and plain text for everywhere else."""

from __future__ import annotations

import math

from autograder.common import MAX_ATTEMPTS, Result, Speed, in_points
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


def result_text(result: Result) -> str:
    """One exercise in a few plain lines."""
    words, _, mark = WORDS[result.verdict]
    points = f": {in_points(result.score, result.max_score)}" if has_points(result) else ""
    lines = [f"{mark} {result.id} {words}{points}", str(result.reason)]
    lines += [f"  {name}: {value}" for name, value in _counts(result)]
    if facts := _facts(result):
        lines.append(f"  {' · '.join(facts)}")
    lines += [f"  For a person to look at; it costs no points: {why}" for why in result.review]
    return "\n".join(lines)


def result_html(result: Result, *, flags: bool = True) -> str:
    """The same as a card, with the plot of the paired measurements where there are any.

    flags: whether the reasons for a person to look stand on it; a student's own card has none.
    """
    from markupsafe import Markup

    words, colour, mark = WORDS[result.verdict]
    return render(
        "result.html",
        result=result,
        flags=result.review if flags else (),
        words=words,
        colour=colour,
        mark=mark,
        label=f"Check of {result.id}: {words}",
        has_points=has_points(result),
        facts=_facts(result),
        plot=Markup(speed_plot(result.speedup)) if result.speedup and result.speedup.ratios else "",
        shown_counts=_counts(result),
    )


def has_points(result: Result) -> bool:
    """Whether the check came to points at all; one that was stopped gives none and takes none."""
    return result.verdict != "stopped"


def _facts(result: Result) -> list[str]:
    """How the verdict came about, in a few words each."""
    speed, facts = result.speedup, []
    if result.seconds:
        facts.append(f"{'checked in' if has_points(result) else 'stopped after'} {result.seconds:.1f} s")
    if speed:
        facts.append(f"noise of a block: {speed.spread:.0%}")
    if speed and speed.attempts is not None:
        counted = f"{speed.attempts} of {MAX_ATTEMPTS} for this code"
        is_open = result.verdict == "inconclusive"
        facts.append(f"no attempt used: {counted} so far" if is_open else f"attempt {counted}")
    if result.sandbox:
        facts.append(f"sandbox: {result.sandbox}")
    if result.sandbox == "limits":
        facts.append("`workbook doctor` says how to raise that level")
    return facts


def speed_plot(speed: Speed) -> str:
    """The blocks of a measurement as SVG, on a log axis."""
    values = [*speed.ratios, speed.bar, 1.0, speed.estimate]
    floor, ceiling = min(values) / 1.1, max(values) * 1.1

    def y(value: float, shift: float = 0.0) -> str:
        return f"{_BOTTOM - math.log(value / floor) / math.log(ceiling / floor) * _HEIGHT + shift:.1f}"

    above = float(y(speed.bar)) - float(y(speed.estimate))
    beside_equal = min(abs(float(y(value)) - float(y(1.0))) for value in (speed.bar, speed.estimate))
    low, high = speed.low, speed.high
    has_band = bool(low and high) and floor < low < high < ceiling
    return render(
        "speed.html",
        speed=speed,
        right=_RIGHT,
        x=lambda index: f"{(index + 0.5) / len(speed.ratios) * _RIGHT:.1f}",
        y=y,
        equal="1× equal" if beside_equal >= _LABEL_HEIGHT else "",  # the least of the three, where they meet
        # Two labels that would overlap are pushed apart.
        apart=math.copysign(6, above) if abs(above) < _LABEL_HEIGHT else 0,
        has_band=has_band,
        band_height=f"{max(1.0, float(y(low)) - float(y(high))):.1f}" if has_band else "",
    )


def _counts(result: Result) -> list[tuple[str, str]]:
    return [
        (name.replace("_", " "), f"{value:,.4g}" if isinstance(value, float) else f"{value:,}")
        for name, value in result.counts.items()
    ]
