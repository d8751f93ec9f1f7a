"""A result as people read it: a card for notebooks and feedback, and plain text for everywhere else."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from autograder.rich import GREEN, GREY, ORANGE, card, inline_html

WORDS = {
    "pass": ("Passed", GREEN, "✓"),
    "fail": ("Not yet", ORANGE, "✗"),
    "inconclusive": ("The clock could not decide", "#6639ba", "≈"),
    "error": ("Could not be run", "#b42318", "!"),
    "not_attempted": ("Not attempted", GREY, "○"),
}


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
    return "\n".join(lines)


def result_html(result: dict[str, Any]) -> str:
    """The same as a card, with the plot of the paired measurements where there are any."""
    if not result:
        return ""
    words, colour, mark = WORDS[result["verdict"]]
    parts = [
        f'<div style="font-size:1.1em"><strong><span aria-hidden="true">{mark}</span> {escape(words)}</strong>'
        f"&ensp;{escape(result['id'])} {escape(result.get('title', ''))}"
        f'<span style="float:right"><strong>{result["score"]:g}</strong> of {result["max_score"]:g} points</span>'
        "</div>",
        _reason_html(result["reason"]),
    ]
    if result.get("speedup") and result["speedup"].get("ratios"):
        parts.append(speed_plot(result["speedup"]))
    if counts := _counts(result):
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left;padding:.1em 1.2em .1em 0;font-weight:normal">{escape(name)}'
            f'</th><td style="text-align:right">{escape(value)}</td></tr>'
            for name, value in counts
        )
        parts.append(f'<table style="margin:.5em 0;border-collapse:collapse"><tbody>{rows}</tbody></table>')
    parts.append(f'<div style="opacity:.75;font-size:.85em;margin-top:.4em">{escape(_footer(result))}</div>')
    return card(colour, "".join(parts))


def speed_plot(speed: dict[str, Any], *, width: int = 560, height: int = 150) -> str:
    """The speedup of every block as dots on a log axis, with the bar, the estimate and its interval. SVG."""
    ratios, bar, estimate = speed["ratios"], speed["bar"], speed["estimate"]
    values = [*ratios, bar, 1.0, estimate]
    low, high = math.log(min(values) / 1.1), math.log(max(values) * 1.1)
    left, right, top, bottom = 0, width - 90, 10, height - 26

    def y(value: float) -> float:
        return bottom - (math.log(value) - low) / (high - low) * (bottom - top)

    def x(index: int) -> float:
        return left + (index + 0.5) / len(ratios) * (right - left)

    def line(value: float, text: str, style: str, shift: float = 4) -> str:
        return (
            f'<line x1="{left}" x2="{right}" y1="{y(value):.1f}" y2="{y(value):.1f}" {style}/>'
            f'<text x="{right + 6}" y="{y(value) + shift:.1f}" font-size="11" fill="currentColor">{text}</text>'
        )

    # Two labels that would overlap are pushed apart.
    apart = 6 if abs(y(bar) - y(estimate)) < 12 else 0
    sign = 1 if y(bar) > y(estimate) else -1
    dots = "".join(
        f'<circle cx="{x(i):.1f}" cy="{y(r):.1f}" r="4" fill="{"#0072b2" if r >= bar else "#d55e00"}"/>'
        for i, r in enumerate(ratios)
    )
    band = (
        f'<rect x="{left}" width="{right - left}" y="{y(speed["high"]):.1f}" '
        f'height="{max(1.0, y(speed["low"]) - y(speed["high"])):.1f}" fill="#0072b2" opacity="0.15"/>'
        if speed["low"]
        and speed["high"]
        and min(values) / 1.1 < speed["low"] < speed["high"] < max(values) * 1.1
        else ""
    )
    label = f"Speedup of each of {len(ratios)} blocks; estimate {estimate:.2f} times, asked for {bar:g} times"
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width} {height}" style="width:100%;max-width:{width}px;'
        f'display:block;margin:.4em 0"><title>{label}</title>{band}'
        + line(1.0, "1× equal", 'stroke="currentColor" stroke-opacity=".35" stroke-width="1"')
        + line(
            bar,
            f"{bar:g}× asked",
            'stroke="#d55e00" stroke-width="1.5" stroke-dasharray="5 4"',
            4 + apart * sign,
        )
        + line(estimate, f"{estimate:.2f}× you", 'stroke="#0072b2" stroke-width="1.5"', 4 - apart * sign)
        + dots
        + f'<text x="{left}" y="{height - 6}" font-size="11" fill="currentColor">one dot: one block of '
        "interleaved runs, higher is faster</text></svg>"
    )


def _reason_html(reason: str) -> str:
    lines = []
    for line in reason.splitlines():
        head, colon, tail = line.partition(": ")
        if colon and head in ("Expected", "Got", "Likely", "Next"):
            lines.append(f"<strong>{escape(head)}</strong>&ensp;{inline_html(tail)}")
        else:
            lines.append(inline_html(line))
    return f'<div style="margin:.5em 0">{"<br>".join(lines)}</div>'


def _counts(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name.replace("_", " "), f"{value:,.4g}" if isinstance(value, float) else f"{value:,}")
        for name, value in result["counts"].items()
    ]


def _footer(result: dict[str, Any]) -> str:
    parts = []
    if result.get("seconds"):
        parts.append(f"checked in {result['seconds']:.1f} s")
    if result.get("sandbox"):
        parts.append(f"sandbox: {result['sandbox']}")
    if result.get("speedup") and result["speedup"].get("spread") is not None:
        parts.append(f"noise of a block: {result['speedup']['spread']:.0%}")
    return " · ".join(parts)
