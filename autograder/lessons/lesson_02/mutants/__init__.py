"""Wrong solutions of lesson 02. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_02.mutants import epochs, mixed, policy, steps, steps_by_hand, sturdy

MUTANTS: dict[str, tuple[Mutant, ...]] = (
    policy.MUTANTS
    | {"2.2": steps.MUTANTS["2.2"] + steps_by_hand.MUTANTS["2.2"]}
    | mixed.MUTANTS
    | epochs.MUTANTS
    | sturdy.MUTANTS
)
