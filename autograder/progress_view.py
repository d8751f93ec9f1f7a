"""How progress looks: the map of lessons on the start page, and the same as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from autograder.rich import BLUE, GREEN, card, render

TITLES = {
    "00": "Start here",
    "01": "Efficient training loops",
    "02": "Mixed precision",
    "03": "Batch size and gradient accumulation",
    "04": "Checkpointing and early stopping",
    "05": "Hyperparameter tuning",
    "06": "Distributed training basics",
    "07": "Managing GPUs and cost",
    "08": "Reproducibility with seeds and configs",
    "09": "Skill exam",
    "10": "Mini project",
}


# `row.bar` is empty for a lesson that is not out yet.
_CARD = """
<strong>Your progress</strong> <span style="opacity:.75">({{ learner }})</span>
{% if problem %}<p style="color:var(--jp-error-color1,#b42318)">{{ problem }}</p>{% endif %}
{% if not last %}<p>Nothing here yet: begin with the exercise below.</p>
{% else %}<p>Continue where you stopped: {{ linked(where, href) }}</p>{% endif %}
<table style="border-collapse:collapse;margin:.5em 0;width:100%"><thead><tr>
{% for name in ("Lesson", "Exercises", "") %}
<th scope="col" style="text-align:left;{{ cell }}">{{ name }}</th>
{% endfor %}
</tr></thead><tbody>
{% for row in rows %}
<tr{% if not row.is_out %} style="opacity:.6"{% endif %}>
<td style="white-space:nowrap;{{ cell }}">{{ linked(row.id ~ " · " ~ row.title, row.href) }}</td>
<td style="{{ cell }}">{% if row.is_out %}<div role="progressbar" aria-valuemin="0" aria-valuemax="100"
 aria-valuenow="{{ row.percent }}" aria-label="Lesson {{ row.id }}: {{ row.percent }} %"
 style="width:7em;height:.7em;border-radius:.35em;overflow:hidden;background:var(--jp-layout-color3,#ccc)">
<div style="width:{{ row.percent }}%;height:100%;background:{{ full if row.percent == 100 else part }}"></div></div>
{% endif %}</td>
<td style="{{ cell }}">{{ row.words }}</td></tr>
{% endfor %}
</tbody></table>"""
_LINKED = """{% macro linked(text, href) %}
{% if href %}<a href="{{ href }}">{{ text }}</a>{% else %}{{ text }}{% endif %}
{% endmacro %}"""


class ProgressCard:
    """What `progress.summary` found; a notebook shows it as a card, a terminal as text."""

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary

    def __repr__(self) -> str:
        return summary_text(self.summary)

    def _repr_html_(self) -> str:
        last = self.summary["last"]
        body = render(
            _LINKED + _CARD,
            **self.summary,
            rows=_rows(self.summary),
            where=last and _where(last),
            href=last and _href(_slug_and_points(last["lesson"])[0]),
            cell="text-align:left;padding:.15em .8em .15em 0",
            full=GREEN,
            part=BLUE,
        )
        return card(BLUE, body, label="Your progress")


def summary_text(summary: dict[str, Any]) -> str:
    """What `progress.summary` found, a line per lesson."""
    lines = [f"Progress of {summary['learner']}"]
    if summary["problem"]:
        lines.append(summary["problem"])
    for row in _rows(summary):
        bar = ("█" * round(row["percent"] / 5)).ljust(20, "·")
        lines.append(f"  {row['id']}  {row['title']:<40} {bar}  {row['words']}")
    if summary["last"]:
        lines.append(f"Last: {_where(summary['last'])}")
    return "\n".join(lines)


def _rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per lesson of the course: id, title, is_out, percent of its points, words, href ("" if there is none)."""
    return [
        {"id": lesson_id, "title": title, **_row(lesson_id, summary["lessons"].get(lesson_id))}
        for lesson_id, title in TITLES.items()
    ]


def _row(lesson_id: str, found: dict[str, Any] | None) -> dict[str, Any]:
    slug, max_score = _slug_and_points(lesson_id)
    if not slug:
        return {"is_out": False, "percent": 0, "words": "not out yet", "href": ""}
    score, words = 0.0, []
    if found:
        score = sum(exercise["score"] for exercise in found["exercises"].values())
        if quiz := found["quiz"]:
            words.append(f"quiz {quiz['score']:g} of {quiz['max_score']:g}{' ✓' if quiz['passed'] else ''}")
        elif found["answered"]:
            words.append(f"quiz: {found['answered']} answered")
        if found["seconds"] >= 60:
            words.append(f"{found['seconds'] / 60:.0f} min")
    words.insert(0, f"{score:g} of {max_score:g} points")
    percent = min(100, round(100 * score / max_score))
    return {"is_out": True, "percent": percent, "words": " · ".join(words), "href": _href(slug)}


def _where(last: dict[str, Any]) -> str:
    place = f", {last['place']}" if last["place"] else ""
    day = last["at"][:10]
    return f"{last['lesson']} · {TITLES.get(last['lesson'], 'lesson')}{place} ({day})"


def _slug_and_points(lesson_id: str) -> tuple[str, float]:
    """Stem and points of a lesson; ("", 0) for one that this version does not have."""
    from autograder.lessons import lesson_ids, load_lesson

    if lesson_id not in lesson_ids():
        return "", 0.0
    lesson = load_lesson(lesson_id)
    return lesson.slug, float(sum(exercise.max_score for exercise in lesson.exercises))


def _href(slug: str) -> str:
    """Way from the notebook in the current folder to a lesson's, "" where it is not there."""
    if not slug:
        return ""
    ways = (Path(f"{slug}.ipynb"), Path("..", slug, f"{slug}.ipynb"), Path(slug, f"{slug}.ipynb"))
    return next((way.as_posix() for way in ways if way.is_file()), "")
