"""What the exercises of lesson 03 say, and the wrong solutions that go against it."""

from autograder.lessons.checking import Claims
from autograder.lessons.lesson_03.claims.accumulation import ACCUMULATION, BUDGET, MIXED
from autograder.lessons.lesson_03.claims.sizes import MEMORY, SCALING, SEARCH

CLAIMS: dict[str, Claims] = {
    "3.1": ACCUMULATION,
    "3.2": SCALING,
    "3.3": MIXED,
    "3.4": SEARCH,
    "3.5": MEMORY,
    "3.6": BUDGET,
}
