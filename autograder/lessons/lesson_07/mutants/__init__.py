"""Wrong solutions of lesson 07. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_07.mutants import adapters, budget, money, target, trace, ward, ward_updates

MUTANTS: dict[str, tuple[Mutant, ...]] = (
    trace.MUTANTS
    | money.MUTANTS
    | budget.MUTANTS
    | {"7.4": ward.MUTANTS["7.4"] + ward_updates.MUTANTS["7.4"]}
    | adapters.MUTANTS
    | target.MUTANTS
)
