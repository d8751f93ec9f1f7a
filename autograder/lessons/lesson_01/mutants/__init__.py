"""Wrong solutions of lesson 01. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_01.mutants import batches, epochs, evaluation, loading, loops, samplers

MUTANTS: dict[str, tuple[Mutant, ...]] = (
    batches.MUTANTS | samplers.MUTANTS | loops.MUTANTS | evaluation.MUTANTS | loading.MUTANTS | epochs.MUTANTS
)
