"""Wrong solutions of lesson 03. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_03.mutants import accumulation, budget, memory, mixed, scaling, search

MUTANTS: dict[str, tuple[Mutant, ...]] = (
    accumulation.MUTANTS | mixed.MUTANTS | search.MUTANTS | memory.MUTANTS | scaling.MUTANTS | budget.MUTANTS
)
