"""What the exercises of lesson 01 say, and the wrong solutions that go against it."""

from autograder.lessons.checking import Claims
from autograder.lessons.lesson_01.claims.batches import COLLATED, EPOCHS, LOADING, ORDER
from autograder.lessons.lesson_01.claims.loops import EVALUATION, TRAINING

CLAIMS: dict[str, Claims] = {
    "1.1": COLLATED,
    "1.2": EPOCHS,
    "1.3": TRAINING,
    "1.4": EVALUATION,
    "1.5": LOADING,
    "1.6": ORDER,
}
