"""What the exercises of lesson 07 say, and the wrong solutions that go against it."""

from autograder.lessons.checking import Claims
from autograder.lessons.lesson_07.claims.bills import COST, GUARD, TRACE
from autograder.lessons.lesson_07.claims.runs import LORA, TARGET, WARD

CLAIMS: dict[str, Claims] = {
    "7.1": TRACE,
    "7.2": COST,
    "7.3": GUARD,
    "7.4": WARD,
    "7.5": LORA,
    "7.6": TARGET,
}
