"""What the exercises of lesson 06 say, and the wrong solutions that go against it."""

from autograder.lessons.checking import Claims
from autograder.lessons.lesson_06.claims.processes import EVALUATION, SCRIPT, SHARDS
from autograder.lessons.lesson_06.claims.updates import ACCUMULATION, REPLICA, SCALING

CLAIMS: dict[str, Claims] = {
    "6.1": SHARDS,
    "6.2": REPLICA,
    "6.3": SCRIPT,
    "6.4": ACCUMULATION,
    "6.5": EVALUATION,
    "6.6": SCALING,
}
