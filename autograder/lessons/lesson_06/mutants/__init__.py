"""Wrong solutions of lesson 06. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_06.mutants import accumulation, evaluation, plain_ddp, scaling, scripts, shards

MUTANTS: dict[str, tuple[Mutant, ...]] = (
    shards.MUTANTS
    | plain_ddp.MUTANTS
    | scripts.MUTANTS
    | accumulation.MUTANTS
    | evaluation.MUTANTS
    | scaling.MUTANTS
)
