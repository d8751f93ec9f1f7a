"""This machine in plain words: what is measured on it, what is counted, how safely, and the one thing to improve."""

from __future__ import annotations

import platform
from dataclasses import dataclass

import psutil

from autograder.course import has_references, lesson_ids, load_lesson
from autograder.engine import calibration
from autograder.engine.sandbox import start as sandbox
from autograder.engine.timing import num_cores
from autograder.show import BLUE, plain, render
from course_lib.base import installed_version

SMALL_MEMORY = 4.0  # GiB; below, a check may have to swap
_WALLS = {
    "bubblewrap": "shut off from your files, from the network and from other programs",
    "landlock": "shut off from your files and from the network",
    "limits": "with limits on time and memory; it could read your files",
}
_NOTHING_TO_DO = "Nothing here needs a change."


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What `machine` found; a notebook shows it as a card, a terminal as text. Texts may hold `code`.

    Attributes:
        facts: name and text of each.
        advice: the one thing that would be better, and how to get it; "" where nothing is.
    """

    facts: tuple[tuple[str, str], ...]
    advice: str

    def __repr__(self) -> str:
        lines = [f"{name}: {text}" for name, text in self.facts]
        return plain("\n".join([*lines, self.advice or _NOTHING_TO_DO]))

    def _repr_html_(self) -> str:
        return render(
            "machine.html",
            facts=self.facts,
            advice=self.advice or _NOTHING_TO_DO,
            colour=BLUE,
            label="Your machine",
            max_width="60em",
        )


def machine() -> Machine:
    """Look at this machine: make it the last line of a cell. Loads torch; changes nothing."""
    cores, memory = num_cores(), psutil.virtual_memory().total / 2**30
    status, calibrated, gpu = sandbox.probe(), calibration.load(), _gpu()
    wall = f"are checked in a process of their own, {_WALLS[status.level]} (sandbox level `{status.level}`)."
    facts = (
        ("You have", _hardware(cores, memory, gpu)),
        ("Measured", _measured(calibrated)),
        ("Counted", _counted(gpu)),
        ("Your solutions", wall),
    )
    return Machine(facts=facts, advice=_advice(cores, memory, status, calibrated))


def _gpu() -> str:
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name(0)
    return "Apple GPU (mps)" if torch.backends.mps.is_available() else ""


def _hardware(cores: int, memory: float, gpu: str) -> str:
    system = {"Darwin": "macOS"}.get(platform.system(), platform.system())
    versions = f"Python {platform.python_version()}, torch {installed_version('torch')}, {system}"
    accelerator = gpu or "no GPU, and no lesson needs one"
    return (
        f"{cores} {'core' if cores == 1 else 'cores'}, {memory:.0f} GiB of memory, {accelerator}. {versions}."
    )


def _measured(calibrated: calibration.Found) -> str:
    lessons = map(load_lesson, lesson_ids())
    timed = [exercise.id for lesson in lessons for exercise in lesson.exercises if exercise.clock]
    text = (
        f"with a clock, in {len(timed)} exercises: how many times faster your code is than a plain version. Both run "
        "here in turns, so a slow machine is no disadvantage."
    )
    if not calibrated:
        return f"{text} Which of these speedups this machine can show is not known yet: it is not calibrated."
    if moved := [exercise_id for exercise_id, reached in calibrated.items() if not reached.applies]:
        return f"{text} This machine cannot show the speedup of {', '.join(moved)}: counts decide there."
    return f"{text} This machine is calibrated and can show all that were tried."


def _counted(gpu: str) -> str:
    what = "without a clock: padded tokens, updates, messages between processes, waits for results of a GPU."
    if gpu.startswith("Apple"):
        return f"{what} The lessons time on the processor; a count is the same everywhere."
    if gpu:
        return f"{what} The lessons' experiments use your GPU, so you can time these waits as well."
    return f"{what} Only a GPU makes such a wait long, but the count is the same here."


def _advice(cores: int, memory: float, status: sandbox.SandboxStatus, calibrated: calibration.Found) -> str:
    """The first of what would be better; `workbook doctor` tells all."""
    wall = f"A stronger wall around your solutions is possible: {status.reason}. To get it: {status.fix}"
    if memory < SMALL_MEMORY:
        return f"{memory:.0f} GiB of memory is little. Close other programs before you run a check."
    if status.fix and status.level == "limits":
        return wall
    if not calibrated and has_references():
        minutes = calibration.MINUTES
        return (
            f"Better: calibrate, so that no check asks for a speedup that this machine cannot show. Run "
            f"`workbook calibrate` in a terminal; it takes about {minutes} minutes, once."
        )
    if status.fix:
        return wall
    if cores < 2:
        return "One core makes timings noisy. A check may end undecided; that is no fail: run it again."
    return ""
