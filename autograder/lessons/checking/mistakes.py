"""A wrong result that equals the result of a twin with one known mistake: that is the learner's mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autograder.engine import Job
from autograder.lessons.checking.mutants import edited

Likely = str | Callable[[Any], str]
"""Why, in a learner's words; or how the twin's result decides between two such sentences."""


def name_the_mistake(
    likely: Mapping[str, Likely], *, twin: Callable[[str], Any], is_same: Callable[[Any], bool]
) -> str:
    """Why a result is wrong: the text of the first mistake with which a twin gets the same; "" where none does.

    Args:
        likely: a text for each mistake that a twin knows, those first that are easiest to tell apart.
        twin: what a right solution gives that makes the mistake of this name: `twin_of` in a worker, or a function
            of the check's own. Called for one mistake after the other, until one is found.
        is_same: whether the learner's result is this one of a twin.
    """
    for mistake, text in likely.items():
        wrong = twin(mistake)
        if is_same(wrong):
            return text(wrong) if callable(text) else text
    return ""


def twin_of(job: Job, source: str, function: str, arguments: Mapping[str, Any]) -> Callable[[str], Any]:
    """Twins for `name_the_mistake`: what the harness' `function` answers for `source`, with a mistake made in it.

    The source has a line `MISTAKE = "none"`, and asks for MISTAKE where it can go wrong.
    """

    def answer(mistake: str) -> Any:
        mistaken = edited(source, ('MISTAKE = "none"', f'MISTAKE = "{mistake}"'))
        return job.twin(mistaken).call(function, **arguments)

    return answer
