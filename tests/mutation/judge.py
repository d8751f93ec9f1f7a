"""What the real check says of a solution, over and over, the clock aside."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from autograder.engine.rules import key_of

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
    from autograder.lessons.checking import mistakes
    from tests.autograder.solutions import out_of_reach

    found = out_of_reach()
    calibration.load = lambda: found
    exchange = workers.Worker._exchange

    def impatient(self: Any, request: Any, seconds: float, look: str) -> Any:
        return exchange(self, request, ENOUGH_SECONDS if seconds <= USUAL_SECONDS else seconds, look)

    workers.Worker._exchange = impatient  # type: ignore[method-assign]
    _Naming.original = staticmethod(mistakes.name_the_mistake)
    mistakes.name_the_mistake = _Naming.name_the_mistake  # before a check takes it from there


class _Naming:
    """To find the name of a mistake takes twins, and most of the time of a check that says no."""

    is_on = True
    original: Callable[..., str]

    @classmethod
    def name_the_mistake(cls, *arguments: Any, **named: Any) -> str:
        return cls.original(*arguments, **named) if cls.is_on else ""


def judge(exercise_id: str, source: str) -> Verdict:
    """What the check says of one solution."""
    from autograder.course import find_exercise
    from autograder.engine.check import check_source

    result = check_source(exercise_id, source, again=True)
    full = find_exercise(exercise_id)[1].clock_free_score
    return Verdict(result.verdict, result.score >= full, str(result.reason), result.review)


@dataclass(frozen=True)
class Case:
    """A solution to judge; `time` tells apart the times it is judged."""

    exercise_id: str
    source: str
    time: int = 0

    @functools.cached_property
    def digest(self) -> str:
        """The same only where the solution and all that judges it are the same."""
        whole = f"{_key(self.exercise_id, self.source)}{self.source}{self.time or ''}"
        return hashlib.sha256(whole.encode()).hexdigest()[:24]


_key = functools.lru_cache(maxsize=1)(key_of)  # the times of one solution follow each other


def _judge_case(case: Case, named: bool) -> Verdict:
    _Naming.is_on = named
    verdict = judge(case.exercise_id, case.source)
    if not named and (verdict.is_full or "The check itself went wrong" in verdict.reason):
        return _judge_case(case, named=True)
    return verdict


def judge_all(
    cases: Sequence[Case], *, results: Path | None = None, processes: int = 2, named: bool = True
) -> Iterator[tuple[Case, Verdict]]:
    """Each case with its verdict, those first whose verdict is kept in `results`, where all others are written.

    `named`: whether the mistake of what is refused is named too; what finds it is left out else.
    """
    digests = [case.digest for case in cases]  # now: what judges may change while it judges
    kept = _kept(results)
    yield from ((case, kept[digest]) for case, digest in zip(cases, digests, strict=True) if digest in kept)
    open_ = [(case, digest) for case, digest in zip(cases, digests, strict=True) if digest not in kept]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_prepare) as pool:
        verdicts = pool.map(functools.partial(_judge_case, named=named), [case for case, _ in open_])
        for (case, digest), verdict in zip(tqdm(open_, unit="check", disable=None), verdicts, strict=True):
            if results:
                with results.open("a") as file:
                    print(json.dumps({"case": digest} | asdict(verdict)), file=file)
            yield case, verdict


def _kept(results: Path | None) -> dict[str, Verdict]:
    entries: Iterable[Any] = ()
    if results and results.exists():
        entries = map(json.loads, results.read_text().splitlines())
    return {entry.pop("case"): Verdict(**entry | {"review": tuple(entry["review"])}) for entry in entries}
