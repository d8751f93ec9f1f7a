"""Wrong solutions of 4.3 that go wrong late, beside others or right after a state is put back, each with its words."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong
from autograder.lessons.lesson_04.mutants.stopping import STOPPING

_LOADS = 'self.best, self.best_step, self.num_bad = state["best"], state["best_step"], state["num_bad"]'
_VALUE = "        value = metrics"

MUTANTS: tuple[Mutant, ...] = wrong(
    STOPPING,
    {
        "put back at the next update": (
            "not in the attributes at once",
            (_LOADS, "self.waiting = dict(state)"),
            (
                _VALUE,
                '        vars(self).update(self.__dict__.pop("waiting", {}))\n' + _VALUE,
            ),
        ),
        "the count cut off in the state": (
            "the count is cut off at `patience`",
            '"num_bad": self.num_bad}',
            '"num_bad": min(self.num_bad, self.patience)}',
        ),
        "patience of 100 at most": (
            "it goes wrong late in a run alone",
            "self.num_bad >= self.patience",
            "self.num_bad >= min(100, self.patience)",
        ),
        "the best of the last 30 validations": (
            "it goes wrong late in a run alone",
            ("        self.num_bad = 0\n\n", "        self.num_bad = self.age = 0\n\n"),
            (
                _VALUE,
                "        self.age += 1\n        self.best = None if self.age > 30 else self.best\n" + _VALUE,
            ),
            ("= value, step, 0\n", "= value, step, 0\n            self.age = 0\n"),
        ),
        "any metric whose name ends so": (
            "a comparison or the counting is off",
            "metrics[self.monitor]",
            "next(value for name, value in metrics.items() if name.endswith(self.monitor))",
        ),
    },
)
