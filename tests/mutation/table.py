"""Right solutions to change, what is known of the changes that pass, and the table of them all."""

from __future__ import annotations

import functools
import itertools
import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.engine.rules import key_of
from tests.autograder.solutions import alternative_sources, reference_sources
from tests.mutation.operators import Mutation

SURVIVORS = Path(__file__).with_name("survivors")
NUM_ALTERNATIVES = 2
"""Beside the reference: a change that a check does not see, it misses in the second and third solution too."""
FIELDS = ("exercise", "before", "after", "kind", "why")
KINDS = ("equivalent", "tolerated")


@dataclass(frozen=True)
class Mutant:
    """One change of one right solution."""

    exercise_id: str
    of: str
    """The solution's name, such as "reference"."""
    mutation: Mutation

    @property
    def kind(self) -> str | None:
        """As what it is listed, if it is."""
        return known_survivors(lesson_of(self.exercise_id)).get((self.exercise_id, *self.mutation.key))


def lesson_of(exercise_id: str) -> str:
    return exercise_id.partition(".")[0].zfill(2)


def solutions(exercise_id: str) -> dict[str, str]:
    """Name → source of the right solutions of an exercise."""
    lesson_id = lesson_of(exercise_id)
    found = {"reference": reference_sources(lesson_id)[exercise_id]}
    for name, sources in alternative_sources(lesson_id).items():
        if exercise_id in sources:
            found[name] = sources[exercise_id]
    return found


def mutated(exercise_id: str) -> dict[str, str]:
    """Name → source of the solutions that are changed."""
    return dict(itertools.islice(solutions(exercise_id).items(), 1 + NUM_ALTERNATIVES))


@functools.cache
def known_survivors(lesson_id: str) -> dict[tuple[str, str, str], str]:
    """(exercise, before, after) → kind. Raises ValueError for an entry of no kind or without a reason."""
    path = SURVIVORS / f"{lesson_id}.toml"
    listed = tomllib.loads(path.read_text())["survivor"] if path.exists() else []
    for entry in listed:
        if entry["kind"] not in KINDS or not entry["why"].strip():
            raise ValueError(
                f"{path.name}: each entry has a kind, {' or '.join(KINDS)}, and a reason: {entry}"
            )
    return {(entry["exercise"], entry["before"], entry["after"]): entry["kind"] for entry in listed}


def judged_by(exercise_id: str) -> str:
    """What judges an exercise, in eight digits: others where a check, its harness or the engine has changed."""
    return key_of(exercise_id, "")[:8]


def table(cases: Iterable[Mutant], survived: Collection[Mutant]) -> str:
    """Markdown: a row for each exercise, and one for all."""
    rows: dict[str, list[Mutant]] = {}
    for case in cases:
        rows.setdefault(case.exercise_id, []).append(case)
    rows["all"] = [case for some in rows.values() for case in some]
    lines = [
        "| | solutions | mutants | killed | equivalent | tolerated | survived | killed, of those not equivalent "
        "| judged by |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for name, some in rows.items():
        passed = [case for case in some if case in survived]
        kinds = [case.kind for case in passed]
        killed, equivalent = len(some) - len(passed), kinds.count("equivalent")
        share = f"{killed / (len(some) - equivalent):.1%}" if len(some) > equivalent else "none"
        num_solutions = len({(case.exercise_id, case.of) for case in some})
        lines.append(
            f"| {name} | {num_solutions} | {len(some)} | {killed} | {equivalent} | {kinds.count('tolerated')} "
            f"| {kinds.count(None)} | {share} | {'' if name == 'all' else judged_by(name)} |"
        )
    return "\n".join(lines)
