"""Wrong solutions of lesson 05. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_05.mutants import searches, trials

MUTANTS: dict[str, tuple[Mutant, ...]] = trials.MUTANTS | searches.MUTANTS
