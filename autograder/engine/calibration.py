"""What our references reach on this machine: which speed bars the clock asks for here, and which move to counts.

A bar is fair only where a good solution clears it with room to spare. How far it can be cleared depends on cores,
caches and versions, so `workbook calibrate` measures a reference of each timed exercise against the frozen baseline,
by the exercise's own check. Nothing of a learner's is looked at or changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from autograder.common import MAX_SPREAD, data_directory
from autograder.course import Exercise, find_exercise, has_references, lesson_ids, load_lesson
from autograder.engine.evidence import hardware
from autograder.engine.job import CheckFailed, Job, WorkerFailed
from autograder.engine.measure import APPLIES_FROM, Inconclusive
from course_lib.base import UserError, atomic_write_text

MINUTES = 3  # that `calibrate` takes, about


@dataclass(frozen=True, kw_only=True)
class Reached:
    """What the reference of an exercise reaches here.

    Attributes:
        speedup, low, high, bar, blocks, spread: as in a `Speed`.
        of: what harness and reference it was measured with.
        measured: the day.
    """

    speedup: float
    low: float
    high: float
    bar: float
    blocks: int
    spread: float
    of: str
    measured: str

    @property
    def applies(self) -> bool:
        """Whether the clock is asked for the bar on this machine."""
        return bool(self.speedup >= APPLIES_FROM * self.bar)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self) | {"applies": self.applies}


Found = dict[str, Reached]
"""By exercise."""


def calibrate(on_progress: Callable[[str, float], None]) -> Found:
    """Measure every reference, keep each as it is measured, and return what `load` does.

    Goes on where an interrupted calibration stopped; with nothing left to measure, it starts anew.
    Raises `UserError` when a reference does not run to the end, or none is installed.
    """
    if not has_references():
        raise UserError(
            "what students install holds no solution that could be measured, so each bar is asked as its lesson states "
            "it; calibrate where the whole project is installed"
        )
    ids = [e.id for number in lesson_ids() for e in load_lesson(number).exercises if e.clock]
    if load().keys() >= set(ids):
        _save({})
    for exercise_id in ids:
        if exercise_id not in load():
            _save(load() | {exercise_id: _measure(exercise_id, on_progress)})
    return load()


def load() -> Found:
    """What each reference reaches.

    Empty where nothing was calibrated on this hardware with these versions, or no reference is installed. Never raises.
    """
    if not has_references():
        return {}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        return {
            exercise_id: reached
            for exercise_id, entry in _read()[_machine()].items()
            if (reached := _reached(entry)).of == _fingerprint(exercise_id)
        }
    return {}


def table(found: Found) -> str:
    """A line per exercise for people: what the reference reaches, what is asked for, of what, and why."""
    lines = ["      reference    95 % interval    bar  √reference  asked of"]
    for exercise_id, reached in found.items():
        speedup, bar, root = reached.speedup, reached.bar, math.sqrt(reached.speedup)
        room = f"the reference reaches {speedup / bar:.1f} × the bar"
        of, need = "the clock", ""
        if not reached.applies:
            of, need = "counts", f", and {APPLIES_FROM} × is needed"
        interval = f"{reached.low:.2f} – {reached.high:.2f}×"
        row = f"{exercise_id:4}  {speedup:8.2f}×  {interval:>15}  {bar:4g}×  {root:9.2f}×"
        lines.append(f"{row}  {of}: {room}{need}")
        if reached.applies and bar > root:
            lines.append("      note: a bar above √reference is harder here than it is meant to be")
        if reached.spread > MAX_SPREAD:
            lines.append(f"      note: timings spread by {reached.spread:.0%}: repeat on a quiet machine")
    return "\n".join(lines)


def reference_source(exercise: Exercise) -> str:
    """The cell of the reference of a timed exercise."""
    assert exercise.clock
    return str(exercise.part(exercise.clock.reference))


def _measure(exercise_id: str, on_progress: Callable[[str, float], None]) -> Reached:
    (lesson, exercise), reason = find_exercise(exercise_id), ""
    job = Job.of(exercise, reference_source(exercise), lesson.harness)
    job.is_reference = True
    job.progress = lambda text, part: on_progress(f"{exercise_id}  {text}", part)
    try:
        exercise.part(exercise.check)(job)
    except (CheckFailed, Inconclusive, WorkerFailed) as error:  # a reference may be below the bar here
        reason = str(error)
    finally:
        job.close()
    if job.speed is None:
        raise UserError(f"the reference of {exercise_id} cannot be measured here: {' '.join(reason.split())}")
    speed = job.speed
    return Reached(
        speedup=speed.estimate,
        low=speed.low,
        high=speed.high,
        bar=speed.bar,
        blocks=speed.blocks,
        spread=speed.spread,
        of=_fingerprint(exercise_id),
        measured=time.strftime("%Y-%m-%d"),
    )


def _machine() -> str:
    """Hardware and versions that a speedup depends on, as a key."""
    versions = (f"{name} {importlib.metadata.version(name)}" for name in ("torch", "numpy"))
    return ", ".join([*map(str, hardware().values()), *versions])


def _fingerprint(exercise_id: str) -> str:
    lesson, exercise = find_exercise(exercise_id)
    return hashlib.sha256((lesson.harness + reference_source(exercise)).encode()).hexdigest()[:16]


def _reached(entry: Mapping[str, Any]) -> Reached:
    return Reached(**{each.name: entry[each.name] for each in fields(Reached)})


def _read() -> dict[str, dict[str, Any]]:
    with contextlib.suppress(OSError, ValueError):
        return dict(json.loads((data_directory() / "calibration.json").read_text(encoding="utf-8")))
    return {}


def _save(found: Found) -> None:
    entries = {exercise_id: asdict(reached) for exercise_id, reached in found.items()}
    text = json.dumps(_read() | {_machine(): entries}, indent=1)
    atomic_write_text(data_directory() / "calibration.json", text)
