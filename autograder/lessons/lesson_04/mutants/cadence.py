"""Wrong solutions of 4.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "4.5": (
        Mutant(
            name="saves at every step",
            source=edited(_CADENCE, (_DUE, "        return True\n")),
            says="at nearly every step",
        ),
        Mutant(
            name="counts steps, not seconds",
            source=edited(
                _CADENCE,
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
            says="it counts steps, not seconds",
        ),
        Mutant(
            name="never looks at what a save costs",
            source=edited(
                _CADENCE, ("max(self.max_lost_seconds, seconds / self.max_overhead)", "self.max_lost_seconds")
            ),
            says="the cost of a save is not looked at",
        ),
        Mutant(
            name="reads a clock of its own",
            source=edited(
                _CADENCE,
                ("= max_lost_seconds, max_overhead, clock", "= max_lost_seconds, max_overhead, time.time"),
            ),
            says="reads another clock",
        ),
        Mutant(
            name="saves too late",
            source=edited(_CADENCE, ("max(self.max_lost_seconds,", "max(3 * self.max_lost_seconds,")),
            says="it saves too late",
        ),
        Mutant(
            name="asking costs more than saving",
            source=edited(_CADENCE, (_DUE, "        sum(i * i for i in range(4_000))\n" + _DUE)),
            says="asking costs as much as saving",
            is_timed=True,
        ),
    ),
}

# Right and too slow: these must never pass.
SLOW: dict[str, str] = {
    "4.5": edited(_CADENCE, (_DUE, "        sum(i * i for i in range(4_000))\n" + _DUE)),
}
