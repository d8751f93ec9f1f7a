"""Mutation testing of the checks.

    python -m tests.mutation 5.3 [5.4 …]
    python -m tests.mutation 05
    python -m tests.mutation --results FILE        # all exercises; a second run goes on where the first was ended

Changes the reference and the alternatives of an exercise a little, one change at a time, and has the real check judge
each, the clock aside. What the check lets pass is printed, in the form in which `survivors/` lists it: as equivalent,
for it does the same, or as tolerated, for the text allows it. What is listed there is not printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from tqdm.auto import tqdm

from autograder.course import lesson_ids, load_lesson
from tests.mutation.judge import judge_all
from tests.mutation.operators import mutations
from tests.mutation.table import FIELDS, Case, solutions, table


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
    cases = [
        Case(exercise_id, name, mutation)
        for exercise_id in _chosen(arguments.which)
        for name, source in solutions(exercise_id).items()
        if arguments.only is None or (name == "reference") == (arguments.only == "reference")
        for mutation in mutations(source)
    ]
    survived = _judged(cases, arguments.results, arguments.processes)
    print(table(cases, survived))
    unlisted = [case for case in cases if case in survived and case.kind is None]
    for case in unlisted:
        print(f"\n# {case.of}, {case.mutation.operator}\n[[survivor]]")
        for name, value in zip(FIELDS, (case.exercise_id, *case.mutation.key, "", ""), strict=True):
            print(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    sys.exit(1 if unlisted else 0)


def _chosen(which: list[str]) -> Iterable[str]:
    for lesson_id in lesson_ids():
        for exercise in load_lesson(lesson_id).exercises:
            if not which or exercise.id in which or lesson_id in which:
                yield exercise.id


def _judged(cases: list[Case], results: Path | None, processes: int) -> set[Case]:
    """The cases that the check let pass."""
    known = {}
    digests = {
        case: case.digest for case in cases
    }  # once: what judges may change while the mutants are judged
    if results and results.exists():
        known = {
            entry["case"]: entry["passed"] for entry in map(json.loads, results.read_text().splitlines())
        }
    open_ = [case for case in cases if digests[case] not in known]
    verdicts = judge_all([(case.exercise_id, case.mutation.source) for case in open_], processes)
    for case, verdict in zip(tqdm(open_, unit="mutant", disable=None), verdicts, strict=True):
        known[digests[case]] = verdict.is_full
        if results:
            with results.open("a") as file:
                print(json.dumps({"case": digests[case], "passed": verdict.is_full}), file=file)
    return {case for case in cases if known[digests[case]]}


if __name__ == "__main__":
    main()
