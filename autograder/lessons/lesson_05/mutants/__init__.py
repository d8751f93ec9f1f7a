"""Wrong solutions of lesson 05. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_05.mutants import (
    budget,
    decisions,
    halving,
    halving_reports,
    runs,
    runs_odd,
    samples,
    samples_odd,
)

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "5.1": samples.MUTANTS + samples_odd.MUTANTS,
    "5.2": runs.MUTANTS + runs_odd.MUTANTS,
    "5.3": halving.MUTANTS + halving_reports.MUTANTS,
    "5.4": decisions.MUTANTS,
    "5.5": budget.MUTANTS,
}
