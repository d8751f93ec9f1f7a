"""What the checks of several lessons ask: of a report its numbers, of an order that it is whole and can be repeated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking.quality import TOLERANCES


def require_keys(
    job: Job,
    report: Mapping[str, object],
    names: Iterable[str],
    *,
    what: str = "a report",
    likely: str = "a key is missing or misspelt, or its value is not one number",
) -> None:
    """Fail unless the report has something under each of these names; `what` says what it is, such as "a plan"."""
    names = tuple(names)
    missing = [name for name in names if name not in report]
    job.require(
        not missing,
        expected=f"{what} with {', '.join(names)}",
        got=f"no {', '.join(missing)}",
        likely=likely,
        look="the docstring lists them",
    )


def require_close(
    job: Job,
    name: str,
    got: float,
    expected: float,
    *,
    likely: str,
    look: str = "",
    rel_tol: float = TOLERANCES["float32"],
) -> None:
    """Fail unless the number called `name` is what it should be, up to rounding."""
    job.require(
        math.isclose(got, expected, rel_tol=rel_tol, abs_tol=1e-6),
        expected=f"{name} = {expected:.6g}",
        got=f"{got:.6g}",
        likely=likely,
        look=look or f"work {name} out by hand for a case of two or three numbers",
    )


def require_report(
    job: Job,
    report: Mapping[str, float],
    expected: Mapping[str, float],
    likely: Mapping[str, str],
    *,
    where: str = "",
    look: str = "",
    rel_tol: float = TOLERANCES["float32"],
) -> None:
    """Fail unless the report has every number of which `likely` says why it may be wrong, and each is as expected.

    Args:
        expected: the right numbers; more of them than are asked for do no harm.
        likely: why, by the number's name, in the order in which they are compared.
        where: follows the name in the reason, such as " on rank 1".
        look: with "NAME" where the number's name belongs.
    """
    require_keys(job, report, likely)
    for name, text in likely.items():
        at = look.replace("NAME", name)
        require_close(
            job, f"{name}{where}", report[name], expected[name], likely=text, look=at, rel_tol=rel_tol
        )


def require_each_once(
    job: Job,
    got: Iterable[Hashable],
    wanted: Iterable[Hashable],
    *,
    expected: str,
    likely: str,
    look: str,
    likely_repeated: str = "",
    look_repeated: str = "",
    most: int = 1,
) -> None:
    """Fail unless `got` holds everything that is wanted, nothing else, and nothing more than `most` times.

    For what a sampler, a loader or a rank goes over: indices, samples, or pairs of them.

    Args:
        likely: why something never comes; for something that comes too often, where that has no reason of its own.
        likely_repeated: why something comes too often, or is none of what is wanted.
    """
    times = Counter(got.tolist() if isinstance(got, np.ndarray) else got)
    wanted = set(wanted.tolist() if isinstance(wanted, np.ndarray) else wanted)
    missing = len(wanted - times.keys())
    often = [one for one, number in times.items() if number > most or one not in wanted]
    job.require(
        not missing,
        expected=expected,
        got=f"{missing} that never come",
        likely=likely,
        look=look,
    )
    job.require(
        not often,
        expected=expected,
        got=f"{len(often)} that come too often, {times.total()} in all",
        likely=likely_repeated or likely,
        look=look_repeated or look,
    )


def require_repeatable(
    job: Job,
    *,
    what: str,
    is_same: bool,
    when: str,
    unseeded: str,
    look_unseeded: str,
    is_another: bool = True,
    another: str = "",
    fixed: str = "",
    look_fixed: str = "",
) -> None:
    """Fail unless the same seed gave the same, and another seed or epoch something else.

    Args:
        what: a singular, such as "order".
        is_same: whether it was the same where it had to be: `when`, such as "for the same seed and epoch".
        unseeded: why it was not, with `look_unseeded`.
        is_another: whether it was another one where it had to be: `another`, such as "after set_epoch(1)".
        fixed: why it was not, with `look_fixed`.
    """
    job.require(
        is_another,
        expected=f"another {what} {another}",
        got=f"the same {what} again",
        likely=fixed,
        look=look_fixed,
    )
    job.require(
        is_same,
        expected=f"the same {what} {when}",
        got=f"another {what}",
        likely=unseeded,
        look=look_unseeded,
    )


def require_left_alone(job: Job, before: Mapping[str, str], after: Mapping[str, str], *, when: str) -> None:
    """Fail where a switch of the harness's `switches` is another one afterwards; `when`: such as "after an error"."""
    changed = [name for name in before if after[name] != before[name]]
    if changed:
        name = changed[0]
        raise failure(
            expected=f"{name} as it was {when}: {before[name]}",
            got=after[name],
            likely=f"{name} is switched for the whole process and not put back: what runs next computes otherwise",
            look="use a `with` block, or put the old value back in `finally`",
        )


def require_same_parts(
    job: Job,
    got: Mapping[str, Any],
    right: Mapping[str, Any],
    parts: Mapping[str, tuple[str, str]],
    *,
    expected: str,
    said: str,
    look: str,
) -> None:
    """Fail at the first part that is not the same to the bit: it tells where two runs went apart.

    Args:
        parts: `{name: (what, likely)}`, in the order in which a mistake is easiest to see.
        expected: with "WHAT" where the part's own words belong; so `said`, which is what was got.
    """
    for name, (what, likely) in parts.items():
        job.require(
            np.array_equal(got[name], right[name]),
            expected=expected.replace("WHAT", what),
            got=said.replace("WHAT", what),
            likely=likely,
            look=look,
        )


def put_told(job: Job, answers: Sequence[dict[str, Any]], **names: str) -> None:
    """Put into each answer of the learner's last call what was told of it as it happened, in place of what it says.

    Args:
        answers: one for each stretch of counting, in order.
        names: key of the answers -> what `Counts` calls it.
    """
    for answer, counts in zip(answers, job.learner().counts(len(answers)), strict=True):
        answer |= {key: getattr(counts, name) for key, name in names.items()}


def watched(job: Job, answer: Mapping[str, Any], where: str, *, of: str = "") -> None:
    """Flag a solution of which a part ran where the harness counts nothing: a person has to look at it.

    Args:
        answer: with the number of such calls under "unwatched", from `course_lib.measuring.counters.count_events`.
        where: what is not counted there, such as "syncs are not counted, as in another thread".
        of: what the answer is of, where there are several, such as "run A".
    """
    if answer["unwatched"]:
        prefix = f"{of}: " if of else ""
        job.flag(f"{prefix}{answer['unwatched']} forwards or steps ran where {where}")
