"""Harness of 8.5 and 8.6: decisions on many comparisons, and measurements on clocks that are no clocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_counting import see
from autograder.lessons.checking.harness_shared import learner, numbers


def decide_all(pairs: np.ndarray, margin: float) -> list[str]:
    """The learner's decision on each comparison; `pairs` float64 [M, 2, n]: baseline and candidate over n seeds."""
    return [str(learner(baseline.copy(), candidate.copy(), margin)) for baseline, candidate in pairs]


def decide_each(scores: list[np.ndarray], margins: list[float]) -> dict[str, Any]:
    """The learner's decision on each comparison of a margin and a number of pairs of its own, float64 [2, n].

    Beside the "verdicts" it says how many of the scores were "changed".
    """
    given = [both.copy() for both in scores]
    verdicts = [str(learner(*both, margin)) for both, margin in zip(given, margins, strict=True)]
    changed = sum(not np.array_equal(one, two) for one, two in zip(given, scores, strict=True))
    return {"verdicts": verdicts, "changed": changed}


class _TooMany(Exception):
    """More steps than a measurement may take."""


class _Broken(Exception):
    """A step that fails."""


_ERRORS: dict[str, BaseException] = {
    "torch's": RuntimeError(
        "put_ does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. "
        "You can turn off determinism just for this operation, or you can use the 'warn_only=True' option."
    ),
    "of a list": IndexError("list index out of range"),
    "stopped by hand": KeyboardInterrupt(),
    "its own": _Broken("this step fails"),
}


class _Machine:
    """A training step and a clock of its own: what a step takes is made up, so that the truth is known.

    Told as it happens, each with the machine's number: a "reading" of the clock, a "step" (deterministic, benchmark,
    readings of the clock before it, warnings only, seconds), one that was "broken", and one too many ("over").
    """

    def __init__(self, facts: dict[str, Any], number: int) -> None:
        self.facts, self.rng, self.number = facts, np.random.default_rng(facts["seed"]), number
        self.now = float(facts["starts_at"])
        self.num_with = [0, 0]
        self.num_readings = self.num_steps = 0
        self.is_over = False

    def handed(self) -> tuple[Callable[[], None], Callable[[], float]]:
        """Step and clock; no methods: a copy of one is of another machine, whose steps nobody counts."""
        return lambda: self.step(), lambda: self.clock()

    def clock(self) -> float:
        self.num_readings += 1
        see("reading", self.number)
        return self.now

    def step(self) -> None:
        facts, number = self.facts, self.num_steps
        if number >= facts["max_steps"]:
            self.is_over = True
            see("over", self.number)
            raise _TooMany(f"a measurement may take {facts['max_steps']} steps, and this is one more")
        is_deterministic = int(torch.are_deterministic_algorithms_enabled())
        if (
            facts["breaks"]
            and number >= facts["breaks_at"]
            and is_deterministic != facts["was_deterministic"]
        ):
            see("broken", self.number)
            raise _ERRORS[facts["breaks"]]
        seconds = facts["seconds"] * (facts["ratio"] if is_deterministic else 1.0)
        seconds *= np.exp(facts["noise"] * self.rng.standard_normal() + facts["drift"] * number)
        if self.rng.random() < facts["spikes"]:
            seconds *= 6.0
        if self.num_with[is_deterministic] < facts["cold_steps"]:
            seconds *= 300.0
        self.num_with[is_deterministic] += 1
        self.now += float(seconds)
        searches = int(torch.backends.cudnn.benchmark)
        warns = int(torch.is_deterministic_algorithms_warn_only_enabled())
        self.num_steps += 1
        see("step", self.number, is_deterministic, searches, self.num_readings, warns, float(seconds))


def _settings() -> list[str]:
    return [
        f"deterministic algorithms {torch.are_deterministic_algorithms_enabled()}",
        f"warn_only {torch.is_deterministic_algorithms_warn_only_enabled()}",
        f"benchmark {torch.backends.cudnn.benchmark}",
    ]


def measure_cost(machines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The learner's measurement of each made-up machine, and how it left ours; no report where a step failed."""
    found = []
    for number, facts in enumerate(machines):
        machine = _Machine(facts, number)
        torch.use_deterministic_algorithms(facts["was_deterministic"], warn_only=facts["was_warn_only"])
        torch.backends.cudnn.benchmark = facts["was_benchmark"]
        was = _settings()
        report: Any = {}
        raised = ""
        try:
            report = learner(*machine.handed())
        except _TooMany:
            raised = "too many"
        except BaseException as error:
            if not facts["breaks"]:
                raise  # a mistake of the solution's own
            raised = "the error" if error is _ERRORS[facts["breaks"]] else f"{type(error).__name__}: {error}"
        found.append(
            {
                "report": {} if machine.is_over or facts["breaks"] else numbers(report),
                "was": was,
                "raised": raised,
                "left": _settings(),
            }
        )
    return found
