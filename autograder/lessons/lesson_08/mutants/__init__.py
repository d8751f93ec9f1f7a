"""Wrong solutions of lesson 08. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_08.mutants import configs, costs, records, runs, seeding, verdicts

MUTANTS: dict[str, tuple[Mutant, ...]] = (
    seeding.MUTANTS | configs.MUTANTS | records.MUTANTS | runs.MUTANTS | verdicts.MUTANTS | costs.MUTANTS
)
