"""Wrong solutions of lesson 03. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_03.mutants import accumulation, budget, memory, mixed, scaling, search, unseen

_FIRST = (
    accumulation.MUTANTS | mixed.MUTANTS | search.MUTANTS | memory.MUTANTS | scaling.MUTANTS | budget.MUTANTS
)
MUTANTS: dict[str, tuple[Mutant, ...]] = {
    number: _FIRST[number] + unseen.MUTANTS[number] for number in _FIRST
}
