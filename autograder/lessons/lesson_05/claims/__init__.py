"""What the exercises of lesson 05 say, and the wrong solutions that go against it."""

from autograder.lessons.checking import Claims
from autograder.lessons.lesson_05.claims.searches import BUDGET, HALVING, SAMPLES
from autograder.lessons.lesson_05.claims.trials import DECISIONS, TRIALS

CLAIMS: dict[str, Claims] = {
    "5.1": SAMPLES,
    "5.2": TRIALS,
    "5.3": HALVING,
    "5.4": DECISIONS,
    "5.5": BUDGET,
}
