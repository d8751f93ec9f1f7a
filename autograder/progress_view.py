"""How progress looks: the map of lessons on the start page, and the same as text."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from autograder import progress
from autograder.rich import BLUE, ERROR_TEXT, GREEN, card

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


class ProgressCard:
    """The map of lessons; a notebook shows it as a card, a terminal as text."""

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary

    def __repr__(self) -> str:
        return summary_text(self.summary)

    def _repr_html_(self) -> str:
        return summary_html(self.summary)


def progress_html() -> ProgressCard:
    """The learner's progress as a card for the start page: make it the last line of a cell."""
    return ProgressCard(progress.summary())


def progress_text() -> str:
    """The learner's progress as text."""
    return summary_text(progress.summary())


def summary_text(summary: dict[str, Any]) -> str:
    """What `progress.summary` found, a line per lesson."""
    lines = [f"Progress of {summary['learner']}"]
    if summary.get("problem"):
        lines.append(summary["problem"])
    for row in _rows(summary):
        bar = "".join("█" if (i + 0.5) / 20 < row["share"] else "·" for i in range(20))
        lines.append(f"  {row['id']}  {row['title']:<40} {bar}  {row['words']}")
    if summary["last"]:
        lines.append(f"Last: {_where(summary['last'])}")
    return "\n".join(lines)


def summary_html(summary: dict[str, Any]) -> str:
    """What `progress.summary` found, as a card with a bar per lesson and the way back to the last place."""
    rows = "".join(_row_html(row) for row in _rows(summary))
    problem = (
        f'<p style="color:{ERROR_TEXT}">{escape(summary["problem"])}</p>' if summary.get("problem") else ""
    )
    return card(
        BLUE,
        f"<strong>Your progress</strong> <span style='opacity:.75'>({escape(summary['learner'])})</span>{problem}"
        f"{_continue_html(summary['last'])}"
        '<table style="border-collapse:collapse;margin:.5em 0;width:100%"><thead><tr>'
        + "".join(
            f'<th scope="col" style="text-align:left">{name}</th>' for name in ("Lesson", "Exercises", "")
        )
        + f"</tr></thead><tbody>{rows}</tbody></table>",
        label="Your progress",
    )


def _rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per lesson of the course: id, title, share of points (0 … 1), words, href ("" if not out yet)."""
    from autograder.lessons import lesson_ids

    existing = set(lesson_ids())
    rows = []
    for lesson_id, title in TITLES.items():
        found = summary["lessons"].get(lesson_id, {})
        slug, max_score = _slug_and_points(lesson_id) if lesson_id in existing else ("", 0.0)
        exercises: Mapping[str, Any] = found.get("exercises", {})
        score = sum(exercise["score"] for exercise in exercises.values())
        max_score = max(max_score, sum(exercise["max_score"] for exercise in exercises.values()))
        words = [f"{score:g} of {max_score:g} points"] if max_score else []
        if quiz := found.get("quiz"):
            words.append(f"quiz {quiz['score']:g} of {quiz['max_score']:g}{' ✓' if quiz['passed'] else ''}")
        elif found.get("answered"):
            words.append(f"quiz: {found['answered']} answered")
        if found.get("seconds", 0) >= 60:
            words.append(f"{found['seconds'] / 60:.0f} min")
        if lesson_id not in existing:
            words = ["not out yet"]
        share = score / max_score if max_score else 0.0
        href = _href(slug)
        rows.append(
            {"id": lesson_id, "title": title, "share": share, "words": " · ".join(words), "href": href}
        )
    return rows


def _row_html(row: dict[str, Any]) -> str:
    name = f"{row['id']} · {escape(row['title'])}"
    linked = f'<a href="{escape(row["href"])}">{name}</a>' if row["href"] else name
    percent = round(100 * row["share"])
    bar = (
        f'<div role="progressbar" aria-valuemin="0" aria-valuemax="100" aria-valuenow="{percent}" '
        f'aria-label="Lesson {row["id"]}: {percent} %" style="width:10em;height:.7em;border-radius:.35em;'
        f'overflow:hidden;background:var(--jp-layout-color3,#ccc)"><div style="width:{percent}%;height:100%;'
        f'background:{GREEN if percent == 100 else BLUE}"></div></div>'
        if row["words"] != "not out yet"
        else ""
    )
    faint = ' style="opacity:.6"' if row["words"] == "not out yet" else ""
    cell = '<td style="text-align:left;padding:.15em .8em .15em 0">'
    named = cell.replace("text-align", "white-space:nowrap;text-align")
    return f"<tr{faint}>{named}{linked}</td>{cell}{bar}</td>{cell}{escape(row['words'])}</td></tr>"


def _continue_html(last: dict[str, Any] | None) -> str:
    if last is None:
        return "<p>Nothing here yet: begin with the exercise below.</p>"
    href = _href(_slug_and_points(last["lesson"])[0])
    where = escape(_where(last))
    linked = f'<a href="{escape(href)}">{where}</a>' if href else where
    return f"<p>Continue where you stopped: {linked}</p>"


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
