"""What exercise 0.1 says, and the wrong solutions that go against it."""

from autograder.lessons.checking import EXPLAINS, Claims

CLAIMS: dict[str, Claims] = {
    "0.1": {
        "How many times faster the candidate is than the baseline": ("upside down", "difference"),
        "baseline_seconds": ("only the candidate's duration is looked at",),
        "candidate_seconds": ("only the baseline's duration is looked at",),
        "Takes two durations of the same work, in seconds": EXPLAINS,
        "2.0 when the candidate needs half the baseline's time": ("share of time saved",),
        "1.0 when it needs the same": ("difference", "rounded"),
        "ValueError": ("nothing is refused", "an assert refuses"),
        "when a duration is zero": ("zero is not refused", "short durations are refused"),
        "or negative": ("negative durations pass", "two negative durations pass"),
    },
}
