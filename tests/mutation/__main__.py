"""Mutation testing of the checks.

    python -m tests.mutation 5.3 [5.4 …]
    python -m tests.mutation 05
    python -m tests.mutation --results FILE        # all exercises; a second run goes on where the first was ended

Changes the reference and two alternatives of an exercise a little, one change at a time, and has the real check judge
each, the clock aside. What the check lets pass is printed, in the form in which `survivors/` lists it: as equivalent,
for it does the same, or as tolerated, for the text allows it. What is listed there is not printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from autograder.course import lesson_ids, load_lesson
from tests.mutation.judge import Case, judge_all
from tests.mutation.operators import mutations
from tests.mutation.table import FIELDS, Mutant, mutated, table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", nargs="*", metavar="EXERCISE", help="such as 5.3, or a lesson, such as 05")
    parser.add_argument("--only", choices=("reference", "alternatives"), help="mutate these solutions alone")
    parser.add_argument(
        "--results", type=Path, help="keep each verdict there, and begin with those that are there"
    )
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    mutants = {
        Case(exercise_id, mutation.source): Mutant(exercise_id, name, mutation)
        for exercise_id in _chosen(arguments.which)
        for name, source in mutated(exercise_id).items()
        if arguments.only is None or (name == "reference") == (arguments.only == "reference")
        for mutation in mutations(source)
    }
    verdicts = judge_all([*mutants], results=arguments.results, processes=arguments.processes, named=False)
    survived = {mutants[case] for case, verdict in verdicts if verdict.is_full}
    print(table(mutants.values(), survived))
    unlisted = [mutant for mutant in mutants.values() if mutant in survived and mutant.kind is None]
    for mutant in unlisted:
        print(f"\n# {mutant.of}, {mutant.mutation.operator}\n[[survivor]]")
        for name, value in zip(FIELDS, (mutant.exercise_id, *mutant.mutation.key, "", ""), strict=True):
            print(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    sys.exit(1 if unlisted else 0)


def _chosen(which: list[str]) -> Iterable[str]:
    for lesson_id in lesson_ids():
        for exercise in load_lesson(lesson_id).exercises:
            if not which or exercise.id in which or lesson_id in which:
                yield exercise.id


if __name__ == "__main__":
    main()
