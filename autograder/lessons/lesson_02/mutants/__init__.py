"""Wrong solutions of lesson 02. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_02.mutants import epochs, mixed, policy, steps

MUTANTS: dict[str, tuple[Mutant, ...]] = policy.MUTANTS | steps.MUTANTS | mixed.MUTANTS | epochs.MUTANTS
