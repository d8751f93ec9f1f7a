"""What the exercises of lesson 02 say, and the wrong solutions that go against it."""

from autograder.lessons.checking import Claims
from autograder.lessons.lesson_02.claims.policy import POLICY, ROUNDING, SCALER
from autograder.lessons.lesson_02.claims.steps import EPOCH, STEP

CLAIMS: dict[str, Claims] = {
    "2.1": POLICY,
    "2.2": SCALER,
    "2.3": STEP,
    "2.4": EPOCH,
    "2.5": ROUNDING,
}
