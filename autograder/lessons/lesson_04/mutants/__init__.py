"""Wrong solutions of lesson 04. Most are one edit away from a right one, as learners' mistakes are."""

from autograder.lessons.checking import Mutant
from autograder.lessons.lesson_04.mutants import (
    atomic,
    atomic_errors,
    budget,
    cadence,
    resume,
    resume_files,
    resume_traces,
    stopping,
    stopping_states,
)

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "4.1": resume.MUTANTS + resume_files.MUTANTS + resume_traces.MUTANTS,
    "4.2": atomic.MUTANTS["4.2"] + atomic_errors.MUTANTS,
    "4.3": stopping.MUTANTS["4.3"] + stopping_states.MUTANTS,
    "4.4": budget.MUTANTS["4.4"],
    "4.5": cadence.MUTANTS["4.5"],
}
