"""Why early stopping stops when it must not, in a learner's words, for exercise 4.3."""

from __future__ import annotations

from autograder.lessons.lesson_04.checks.stopping_cases import DEFAULTS

PLAIN = {
    "mode inverted": "`mode` is inverted: the metric that gets worse counts as the better one",
    "mode ignored": "`mode` is not used: an accuracy is treated like a loss",
    "counter not reset": "the counter is not reset: bad validations add up over the whole run, not in a row",
    "min_delta ignored": "`min_delta` is not used: a change smaller than it counts as an improvement",
    "min_delta reached": "an improvement by exactly `min_delta` counts, where it must be by more",
    "tolerance": "a difference that is very small does not count: a tolerance is taken on top of `min_delta`",
    "equal": "an equal value counts: the comparison is not strict, and exactly `min_delta` is taken for more",
    "one late": "`patience` is off by one: it stops one validation late",
    "one early": "`patience` is off by one: it stops one validation early",
    "best creeps": "the best follows each value that is a little better, by less than `min_delta` too: slow progress "
    "never adds up to an improvement",
    "train loss": "it watches `train_loss`, and not the metric called `monitor`",
    "loss": "it watches `loss`, and not the metric called `monitor`",
}
# A best may be 0.0 in any sequence; those called "zero" make sure of it.
ZERO = {"zero is none": "a best of 0.0 is taken for none: `if not self.best` is true for None and for 0.0"}
LIKELY: dict[str, dict[str, str]] = {
    "plain": PLAIN | ZERO,
    "default": ZERO,
    "zero": ZERO,
    "NaN": {
        "NaN is best": "a NaN becomes the best: nothing compares as better than NaN, so nothing ever improves on it",
        "NaN is skipped at first": "a NaN before the first best is skipped, and does not count as a validation without "
        "improvement",
        "NaN is skipped": "a NaN is skipped, and does not count as a validation without improvement",
    },
    "long": {},
    "infinite": {
        "begins at infinity": "the best begins at an infinity, and not at None: a first value that is infinite does "
        "not improve on it"
    },
}
SHARED = {"taken": "`state_dict` gave", "given": "was loaded"}
ELSE = {
    "plain": "a comparison or the counting is off",
    "default": "a default of `__init__` is another: they are "
    + ", ".join(f"{k}={v!r}" for k, v in DEFAULTS.items()),
    "zero": "0 is a value like any other: something takes it for False, or for the end of a range",
    "NaN": "something that is only so with NaN: no comparison with it is True",
    "long": "it goes wrong late in a run alone: the best is forgotten, or the count ends, after so many validations",
    "infinite": "something that is only so with infinity: an infinite value is one, and inf - inf is NaN",
}
