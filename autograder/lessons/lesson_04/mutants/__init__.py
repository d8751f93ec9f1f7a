"""Wrong solutions of lesson 04. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_04.mutants import atomic, budget, cadence, resume, resume_files, stopping

MUTANTS: dict[str, tuple[Mutant, ...]] = (
    {"4.1": resume.MUTANTS + resume_files.MUTANTS}
    | atomic.MUTANTS
    | stopping.MUTANTS
    | budget.MUTANTS
    | cadence.MUTANTS
)
