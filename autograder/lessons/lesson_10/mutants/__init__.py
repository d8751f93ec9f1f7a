"""Wrong solutions of the mini project."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_10.mutants import decisions, tables, training

MUTANTS: dict[str, tuple[Mutant, ...]] = tables.MUTANTS | training.MUTANTS | decisions.MUTANTS
