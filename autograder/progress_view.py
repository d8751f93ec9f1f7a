"""How progress looks: the map of lessons on the start page, and the same as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from autograder.lessons import lesson_ids, load_lesson
from autograder.rich import BLUE, GREEN, render

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
    """What `progress.summary` found; a notebook shows it as a card, a terminal as text."""

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary

    def __repr__(self) -> str:
        return summary_text(self.summary)

    def _repr_html_(self) -> str:
        last = self.summary["last"]
        return render(
            "progress.html",
            **self.summary,
            rows=_rows(self.summary),
            where=last and _where(last),
            href=last and lesson_href(last["lesson"]),
            colour=BLUE,
            full=GREEN,
            label="Your progress",
        )


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
        {"id": lesson_id, "title": title, "href": lesson_href(lesson_id)}
        | _reached(lesson_id, summary["lessons"].get(lesson_id))
        for lesson_id, title in TITLES.items()
    ]


def _reached(lesson_id: str, found: dict[str, Any] | None) -> dict[str, Any]:
    if lesson_id not in lesson_ids():
        return {"is_out": False, "percent": 0, "words": "not out yet"}
    found = found or {"exercises": {}, "quiz": None, "answered": 0, "seconds": 0.0}
    quiz, exercises = found["quiz"], load_lesson(lesson_id).exercises
    max_score = sum(exercise.max_score for exercise in exercises)
    score = sum(exercise["score"] for exercise in found["exercises"].values())
    words = [f"{score:g} of {max_score:g} points"] if exercises else []
    if not exercises:  # an exam: its quiz is all there is
        score, max_score = (quiz["score"], quiz["max_score"]) if quiz else (0, 1)
    if quiz:
        words.append(f"quiz {quiz['score']:g} of {quiz['max_score']:g}{' ✓' if quiz['passed'] else ''}")
    elif found["answered"]:
        words.append(f"quiz: {found['answered']} answered")
    if found["seconds"] >= 60:
        words.append(f"{found['seconds'] / 60:.0f} min")
    return {"is_out": True, "percent": min(100, round(100 * score / max_score)), "words": " · ".join(words)}


def _where(last: dict[str, Any]) -> str:
    place = f", {last['place']}" if last["place"] else ""
    return f"{last['lesson']} · {TITLES.get(last['lesson'], 'lesson')}{place} ({last['at'][:10]})"


def lesson_href(lesson_id: str) -> str:
    """Way from the notebook in the current folder to a lesson's, "" where it is not there."""
    if lesson_id not in lesson_ids():
        return ""
    slug = load_lesson(lesson_id).slug
    ways = (Path(f"{slug}.ipynb"), Path("..", slug, f"{slug}.ipynb"), Path(slug, f"{slug}.ipynb"))
    return next((way.as_posix() for way in ways if way.is_file()), "")
