"""How progress looks: the map of the course on the start page, and the same as text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from autograder.common import in_points
from autograder.course import lesson_href
from autograder.kept import Summary, progress
from autograder.learner.handout import pending_updates
from autograder.learner.standing import (
    NOT_BEGUN,
    Standing,
    Step,
    is_course_passed,
    next_step,
    required,
    standings,
)
from autograder.quizzes import PASS_MARK
from autograder.show import BLUE, GREEN, render


class ProgressCard:
    """What `progress.summary` found; a notebook shows it as a card, a terminal as text."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self.as_of = datetime.now()

    def __repr__(self) -> str:
        return summary_text(self.summary)

    def _repr_html_(self) -> str:
        found = standings(self.summary)
        step = next_step(found, self.summary.last)
        return render(
            "progress.html",
            learner=self.summary.learner,
            problem=self.summary.problem,
            as_of=self.as_of,
            pass_mark=f"{PASS_MARK:.0%}".replace("%", " %"),
            updates=[str(update) for update in pending_updates(Path.cwd().parent)],
            lead=step.lead,
            where=_where(step),
            href=_href(step),
            rows=[_row(standing) for standing in found],
            total=_total(found),
            is_passed=is_course_passed(found),
            unfinished=_unfinished(found),
            colour=BLUE,
            full=GREEN,
            label="Your progress",
            max_width="60em",
        )


def progress_html() -> ProgressCard:
    """The learner's progress as a card for the start page: make it the last line of a cell."""
    return ProgressCard(progress.summary())


def summary_text(summary: Summary) -> str:
    """What `progress.summary` found, a line per lesson."""
    found = standings(summary)
    step = next_step(found, summary.last)
    lines = [f"Progress of {summary.learner}, {datetime.now():%Y-%m-%d %H:%M}"]
    if summary.problem:
        lines.append(summary.problem)
    lines.append(f"{step.lead} {_where(step)}")
    for row in map(_row, found):
        bar = ("█" * round(row.percent / 5)).ljust(20, "·")
        test = row.test and f"{row.test_name}: {row.test}"
        words = filter(None, [row.state, row.points, test, row.time])
        lines.append(f"  {row.id}  {row.title:<40} {bar}  {' · '.join(words)}")
    total = _total(found)
    lines.append(f"Total: {total.parts} · {total.points} · {total.time}")
    return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One row of the map. `test` is the state of quiz or exam, "" where there is none or nothing to say."""

    id: str
    title: str
    goal: str
    href: str
    percent: int
    points: str
    test: str
    test_name: str
    time: str
    state: str


@dataclass(frozen=True, kw_only=True)
class _Total:
    """The last row of the map."""

    percent: int
    parts: str
    points: str
    time: str


def _row(standing: Standing) -> _Row:
    part, max_score = standing.part, standing.max_score
    return _Row(
        id=part.id,
        title=part.title,
        goal=part.goal,
        href=lesson_href(part.id),
        percent=min(100, round(100 * standing.score / max_score)),
        points=f"{standing.score:g} of {max_score:g} right"
        if standing.is_exam
        else in_points(standing.score, max_score),
        test=standing.quiz_words if standing.quiz_words != NOT_BEGUN else "",
        test_name="exam" if standing.is_exam else "quiz",
        time=_time(standing.seconds, part.minutes),
        state=standing.state,
    )


def _total(found: list[Standing]) -> _Total:
    needed = required(found)
    num_passed = sum(standing.is_passed for standing in needed)
    graded = [standing for standing in needed if not standing.is_exam]
    score, max_score = sum(s.score for s in graded), sum(s.max_score for s in graded)
    return _Total(
        percent=min(100, round(100 * score / max_score)),
        parts=f"{num_passed} of {len(needed)} done",
        points=in_points(score, max_score),
        time=_time(sum(s.seconds for s in found), sum(s.part.minutes for s in found)),
    )


def _time(seconds: float, minutes: int) -> str:
    """Time spent, of the time that it takes about."""
    if minutes > 300:
        hours = f"about {minutes / 60:.0f} h"
        return f"{seconds / 3600:.1f} of {hours}" if seconds >= 360 else hours
    return f"{seconds / 60:.0f} of about {minutes} min" if seconds >= 60 else f"about {minutes} min"


def _where(step: Step) -> str:
    """The place of a step in words: "01 · Efficient training loops, exercise 1.3 · One epoch …"."""
    words = f"{step.part.id} · {step.part.title}"
    if step.section and step.place.startswith("exercise"):
        return f"{words}, exercise {step.section.heading}"
    if step.section and step.place.startswith("prediction"):
        return f"{words}, {step.place} in “{step.section.heading}”"
    return f"{words}, {step.place or 'from the top'}"


def _href(step: Step) -> str:
    return lesson_href(step.part.id, step.section.cell_id if step.section else "")


def _unfinished(found: list[Standing]) -> list[str]:
    """The exercises that have points left."""
    places = [place for standing in required(found) for place in standing.open_places]
    return [place.removeprefix("exercise ") for place in places if place.startswith("exercise")]
