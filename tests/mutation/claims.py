"""What every exercise claims, beside the wrong solutions that go against it, as a table to paste into RESULTS.md.

    python -m tests.mutation.claims

The claims themselves, sentence by sentence, stand in `claims` of each lesson; a test holds them against the texts.
"""

from __future__ import annotations

from autograder.course import lesson_ids, load_lesson
from autograder.lessons.checking.mutants import EXPLAINS, load_claims, load_mutants


def main() -> None:
    print("| | sentences that claim something | that explain | wrong solutions, each with its words |")
    print("|---|---|---|---|")
    sums = [0, 0, 0]
    for lesson_id in lesson_ids():
        for exercise in load_lesson(lesson_id).exercises:
            claims, wrong = load_claims(lesson_id)[exercise.id], load_mutants(lesson_id)[exercise.id]
            explaining = sum(what == EXPLAINS for what in claims.values())
            row = [len(claims) - explaining, explaining, len(wrong)]
            print(f"| {exercise.id} | " + " | ".join(map(str, row)) + " |")
            sums = [one + other for one, other in zip(sums, row, strict=True)]
    print("| all | " + " | ".join(f"{number:,}" for number in sums) + " |")


if __name__ == "__main__":
    main()
