"""No grade by chance: every right and every named wrong solution judged many times, each time on other secret inputs.

    python -m tests.mutation.repeated [5.3 …] [05 …] [--times 20]
    python -m tests.mutation.repeated --results FILE        # a second run goes on where the first was ended

The clock aside: what only the clock shows is left out. Prints a table, and each solution that was not judged the same
every time, with what the check said when it was wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from autograder.course import lesson_ids, load_lesson
from autograder.lessons.checking.mutants import load_mutants
from tests.mutation.judge import Case, Verdict, judge_all
from tests.mutation.table import judged_by, solutions


@dataclass(frozen=True)
class Solution:
    """A right solution, or one that the check has to refuse with certain words."""

    exercise_id: str
    name: str
    source: str
    says: str | None = None

    def is_due(self, verdict: Verdict) -> bool:
        """Whether a verdict is the one that this solution should have."""
        if self.says is None:
            return verdict.is_full and not verdict.review
        return verdict.verdict == "fail" and self.says in verdict.reason


def known_solutions(exercise_id: str) -> list[Solution]:
    """Reference, alternatives and named wrong solutions of an exercise, but those that only the clock shows."""
    lesson_id = exercise_id.partition(".")[0].zfill(2)
    right = [Solution(exercise_id, name, source) for name, source in solutions(exercise_id).items()]
    wrong = load_mutants(lesson_id)[exercise_id]
    return right + [Solution(exercise_id, m.name, m.source, m.says) for m in wrong if not m.is_timed]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", nargs="*", metavar="EXERCISE", help="such as 5.3, or a lesson, such as 05")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument(
        "--results", type=Path, help="keep each verdict there, and begin with those that are there"
    )
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    exercises = [
        exercise.id
        for lesson_id in lesson_ids()
        for exercise in load_lesson(lesson_id).exercises
        if not arguments.which or {exercise.id, lesson_id} & set(arguments.which)
    ]
    known = {exercise_id: known_solutions(exercise_id) for exercise_id in exercises}
    asked = {
        Case(solution.exercise_id, solution.source, time): solution
        for some in known.values()
        for solution in some
        for time in range(arguments.times)
    }
    wrong: Counter[Solution] = Counter()
    said: dict[Solution, Verdict] = {}
    for case, verdict in judge_all([*asked], results=arguments.results, processes=arguments.processes):
        if not asked[case].is_due(verdict):
            wrong[asked[case]] += 1
            said[asked[case]] = verdict
    known["all"] = [solution for some in known.values() for solution in some]
    print(
        "| | times | right | refused or flagged at least once | wrong | passed or misnamed at least once | judged by |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, some in known.items():
        counts = [[s for s in some if (s.says is None) == is_right] for is_right in (True, False)]
        row = [arguments.times, *(number for c in counts for number in (len(c), sum(s in wrong for s in c)))]
        print(f"| {name} | {' | '.join(map(str, row))} | {'' if name == 'all' else judged_by(name)} |")
    for solution, number in wrong.items():
        verdict = said[solution]
        print(
            f"\n{solution.exercise_id} {solution.name}: {number} of {arguments.times} times {verdict.verdict}"
        )
        print(verdict.reason, *verdict.review, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
