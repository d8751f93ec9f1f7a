"""What the exercises of lesson 08 say, and the wrong solutions that go against it."""

from autograder.lessons.checking import Claims
from autograder.lessons.lesson_08.claims.configs import CONFIG, RECORD
from autograder.lessons.lesson_08.claims.runs import COST, HELPED, RUN, SEEDING

CLAIMS: dict[str, Claims] = {
    "8.1": SEEDING,
    "8.2": CONFIG,
    "8.3": RECORD,
    "8.4": RUN,
    "8.5": HELPED,
    "8.6": COST,
}
