"""What the real check says of a solution, over and over, the clock aside."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

#: Where a check waits half a minute, a right solution answers in a second: what never ends is found sooner.
USUAL_SECONDS, ENOUGH_SECONDS = 30.0, 12.0


@dataclass(frozen=True)
class Verdict:
    """What a check said: its verdict, whether that is all the points that need no clock, and why."""

    verdict: str
    is_full: bool
    reason: str
    review: tuple[str, ...] = ()


def _prepare() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is loaded
    os.environ["WORKBOOK_DATA"] = tempfile.mkdtemp(prefix="workbook-judge-")
    from autograder.engine import calibration, workers
    from tests.autograder.solutions import out_of_reach

    found = out_of_reach()
    calibration.load = lambda: found
    exchange = workers.Worker._exchange

    def impatient(self: Any, request: Any, seconds: float, look: str) -> Any:
        return exchange(self, request, ENOUGH_SECONDS if seconds <= USUAL_SECONDS else seconds, look)

    workers.Worker._exchange = impatient  # type: ignore[method-assign]


def judge(exercise_id: str, source: str) -> Verdict:
    """What the check says of one solution."""
    from autograder.course import find_exercise
    from autograder.engine.check import check_source

    result = check_source(exercise_id, source, again=True)
    full = find_exercise(exercise_id)[1].clock_free_score
    return Verdict(result.verdict, result.score >= full, str(result.reason), result.review)


def _judge_case(case: tuple[str, str]) -> Verdict:
    return judge(*case)


def judge_all(cases: Iterable[tuple[str, str]], processes: int = 2) -> Iterator[Verdict]:
    """Verdicts on (exercise id, source), in their order."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_prepare) as pool:
        yield from pool.map(_judge_case, cases)
