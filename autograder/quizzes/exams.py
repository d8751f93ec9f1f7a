"""An exam: each attempt draws its questions from a bank that holds many more.

    {"answers": {"exam": {"seed": 4711, "attempt": 2, "handed_in": 1}, "09.1.3": {"choice": "b", …}, …}}

`09.1.3` is question 3 of attempt 1. The answers file keeps a seed, never a question: which ones an attempt has, in
which order and with which letters, follows from the bank, the seed and the attempt, for the learner after a restart
or on another machine as for the grader. An edit of the seed therefore gains another draw and nothing else: one of
`NUM_SEEDS`, to which the answers given so far do not belong. It chooses no question and moves no key. That an attempt
is handed in binds honest people only, for whoever edits the file could as well keep a copy of it from before; the
keys of a practice release are no better hidden (`question`). For the same reason the grader counts an open attempt
as it stands: nobody fails by a forgotten click, and asking it after each answer tells no more than the keys would.

Draws go by hashes: the order of `random.shuffle` is not promised from one version of Python to the next. They know
of a question its id, its lesson, whether it is measured and its letters: correcting a text changes no draw.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from autograder.kept import AnswersFile, Entry
from autograder.quizzes.bank import Bank
from autograder.quizzes.question import Luck, Question

KEY = "exam"  # of the entry in the answers file
# Few enough that nobody finds an attempt of questions he knows by trying seeds; enough that neighbours differ.
NUM_SEEDS = 10_000
MAX_ATTEMPTS = 50


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where somebody is in an exam.

    Attributes:
        seed: of all the attempts in one answers file.
        attempt: the last one that was begun; the first is 1.
        handed_in: the last one that was handed in; 0 before that.
    """

    seed: int
    attempt: int
    handed_in: int

    @property
    def is_open(self) -> bool:
        """Whether the last attempt still takes answers."""
        return self.handed_in < self.attempt


def place_in(answers: Mapping[str, Any]) -> Place | None:
    """The place that an answers file tells; None before the first attempt, and for what no exam wrote."""
    entry = answers.get(KEY)
    if not isinstance(entry, dict):
        return None
    numbers: list[Any] = [entry.get(name) for name in ("seed", "attempt", "handed_in")]
    if not all(type(number) is int for number in numbers):
        return None
    seed, attempt, handed_in = numbers
    if 0 <= seed < NUM_SEEDS and 1 <= attempt <= MAX_ATTEMPTS and handed_in in (attempt - 1, attempt):
        return Place(seed=seed, attempt=attempt, handed_in=handed_in)
    return None


def begin(file: AnswersFile, *, new_attempt: bool = False, more_time: float | None = None) -> Place:
    """The attempt to go on with. Begins the first, and another when it is asked for and the last is handed in.

    Args:
        more_time: how many times the usual time the learner says was granted; what was said before, by default.

    Raises:
        UserError: the place could not be saved: without it, a restart would draw other questions.
    """

    def started(old: Entry, place: Place) -> Entry:
        began = old.get("began")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        times = {**(began if isinstance(began, dict) else {}), str(place.attempt): now}
        return {**old, **asdict(place), "began": times}

    def next_place(old: Entry) -> Entry:  # asked under the lock: two kernels begin one attempt
        place = place_in({KEY: old})
        if more_time is not None:
            old = {**old, "more_time": more_time}
        if place is None:
            seed = secrets.randbelow(NUM_SEEDS)
            told = {"more_time": more_time} if more_time is not None else {}
            return started(told, Place(seed=seed, attempt=1, handed_in=0))
        if new_attempt and not place.is_open and place.attempt < MAX_ATTEMPTS:
            return started(old, replace(place, attempt=place.attempt + 1))
        return old

    place = place_in(file.entries())
    if place is None or (new_attempt and not place.is_open) or more_time is not None:
        file.save(KEY, next_place)
        place = place_in(file.entries())
        assert place is not None, "it has just been saved"
    return place


def close(file: AnswersFile, attempt: int) -> None:
    """Hand in an attempt: from now on it takes no answers. One that is handed in already stays so.

    Raises:
        UserError: it could not be saved.
    """

    def handed_in(old: Entry) -> Entry:
        place = place_in({KEY: old})
        return old | {"handed_in": attempt} if place and place.attempt == attempt else old

    file.save(KEY, handed_in)


def paper(bank: Bank, place: Place, attempt: int | None = None) -> Bank:
    """The questions of one attempt, of the last one by default, as a bank of their own.

    The same bank, seed and attempt always give the same paper, to the letter. Each question says where it was `drawn`
    from.
    """
    attempt = attempt or place.attempt
    questions = [
        question.as_drawn(f"{bank.lesson}.{attempt}.{number}", _luck(place.seed, attempt))
        for number, question in enumerate(deal(bank, place.seed, attempt), start=1)
    ]
    return replace(
        bank,
        title=f"{bank.title}, attempt {attempt}",
        questions=tuple(questions),
        attempt=attempt,
        is_open=attempt > place.handed_in,
    )


def deal(bank: Bank, seed: int, attempt: int) -> list[Question]:
    """The questions of an attempt as the bank has them, in the order of the paper.

    Every lesson has its share, `min_measured` are measured, and those that the attempts before had least often come
    first: attempts share questions only once the bank is used up.
    """
    dealt: Counter[str] = Counter()
    hand: list[Question] = []
    for number in range(1, attempt + 1):
        hand = _hand(bank, dealt, _luck(seed, number))
        dealt.update(question.id for question in hand)
    return hand


def _hand(bank: Bank, dealt: Counter[str], luck: Luck) -> list[Question]:
    fresh = sorted(bank.questions, key=lambda question: (dealt[question.id], luck(question.id)))
    measured = [question for question in fresh if question.is_measured]
    others = [question for question in fresh if not question.is_measured]
    share = math.ceil(bank.draw / len({question.lesson for question in fresh}))
    hand: list[Question] = []
    taken: Counter[str] = Counter()

    def take(candidates: Iterable[Question], *, enough: int, most: int) -> None:
        for question in candidates:
            if len(hand) < enough and taken[question.lesson] < most and question not in hand:
                hand.append(question)
                taken[question.lesson] += 1

    take(measured, enough=bank.min_measured, most=share)
    take(others, enough=bank.draw, most=1)  # no lesson is left out
    take(others, enough=bank.draw, most=share)
    return sorted(hand, key=lambda question: luck("place", question.id))


def _luck(seed: int, attempt: int) -> Luck:
    """A stable stand-in for chance: what sorts by it is shuffled, the same on every machine."""
    return lambda *what: hashlib.sha256(":".join(map(str, (seed, attempt, *what))).encode()).digest()
