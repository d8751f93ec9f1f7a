"""What `workbook grade` shows: a bar for each phase with the time that is left, then what needs a person."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autograder.common import named, one_line
from autograder.engine.sandbox import CheckStopped
from autograder.grading.marking import Graded, OnProgress

_MOST_NAMES = 10  # of a line: all are in --json and in the report


@contextlib.contextmanager
def progress_bars() -> Iterator[OnProgress]:
    """Yields the function to call with a phase, what is done of it, and how much there is. On stderr."""
    from tqdm import tqdm

    bar: tqdm[Any] | None = None

    def show(phase: str, done: int, total: int) -> None:
        nonlocal bar
        if bar is None or bar.desc != phase:
            if bar:
                bar.close()
            # smoothing=0: results come in bursts, and the time left is by the mean of all so far
            bar = tqdm(total=total, desc=phase, file=sys.stderr, mininterval=0.5, smoothing=0)
        bar.update(done - bar.n)

    try:
        yield show
    except KeyboardInterrupt:
        raise CheckStopped(
            "stopped. What was finished is kept: the same command goes on from there"
        ) from None
    finally:
        if bar:
            bar.close()


def _by_reason(looks: Mapping[str, Sequence[str]]) -> list[str]:
    """Each line once, with those whom it is about: what many share would else hide what is one student's alone."""
    whose: dict[str, list[str]] = {}
    for name, told in looks.items():
        for line in dict.fromkeys(map(one_line, told)):
            whose.setdefault(line, []).append(named(name))
    told = []
    for line, names in whose.items():
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        told.append(f"  {', '.join(names[:_MOST_NAMES])}{more}: {line}")
    return told


def graded_text(found: Graded) -> str:
    """The outcome in lines: how many, then each student with something for a person to look at."""
    scores = [each.score for each in found.students.values() if each.score is not None]
    lines = [
        f"Lesson {found.lesson}: {found.graded} of {len(found.students)} submissions have a grade",
        f"{found.checked} checks ran, {found.reused} results were there already",
    ]
    if scores:
        most = next(each.max_score for each in found.students.values() if each.max_score is not None)
        lines.append(f"Mean score {sum(scores) / len(scores):.1f} of {most:g}")
    looks = {name: [*filter(None, [each.error]), *each.look] for name, each in found.students.items()}
    if any(looks.values()):
        lines += ["", "For a person to look at:"]
        lines += _by_reason(looks)
        if any(each.look for each in found.students.values()):
            lines.append(f"`workbook report {found.lesson}` groups them by equal code as well.")
    return "\n".join(lines)
