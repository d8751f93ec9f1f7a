"""Wrong solutions of 4.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

_CADENCE = """
import time

@exercise("4.5")
class Cadence:
    def __init__(self, max_lost_seconds, max_overhead, clock):
        self.max_lost_seconds, self.max_overhead, self.clock = max_lost_seconds, max_overhead, clock

    def saved(self, seconds):
        self.saved_at = self.clock()
        self.wait = max(self.max_lost_seconds, seconds / self.max_overhead)

    def is_due(self):
        return self.clock() - self.saved_at >= self.wait
"""
_DUE = "        return self.clock() - self.saved_at >= self.wait\n"

# Right and too slow: it must never pass.
SLOW_CADENCE = edited(_CADENCE, (_DUE, "        sum(i * i for i in range(4_000))\n" + _DUE))

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "4.5": wrong(
        _CADENCE,
        {
            "saves at every step": ("at nearly every step", _DUE, "        return True\n"),
            "counts steps, not seconds": (
                "it counts steps, not seconds",
                ("clock\n\n", "clock\n        self.every = None\n\n"),
                (
                    "        self.saved_at = self.clock()\n",
                    "        self.saved_at, self.count = self.clock(), 0\n",
                ),
                (
                    _DUE,
                    "        self.count += 1\n"
                    "        if self.every is None:\n"
                    "            self.every = int(self.wait / (self.clock() - self.saved_at) / 1.3)\n"
                    "        return self.count >= self.every\n",
                ),
            ),
            "never looks at what a save costs": (
                "the cost of a save is not looked at",
                "max(self.max_lost_seconds, seconds / self.max_overhead)",
                "self.max_lost_seconds",
            ),
            "reads a clock of its own": (
                "reads another clock",
                "= max_lost_seconds, max_overhead, clock",
                "= max_lost_seconds, max_overhead, time.time",
            ),
            "saves too late": (
                "it saves too late",
                "max(self.max_lost_seconds,",
                "max(3 * self.max_lost_seconds,",
            ),
        },
    )
    + wrong(
        SLOW_CADENCE, {"asking costs more than saving": ("asking costs as much as saving",)}, is_timed=True
    )
}
