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
_WAIT = "        self.wait = max(self.max_lost_seconds, seconds / self.max_overhead)\n"
_SAVED_AT = "        self.saved_at = self.clock()\n"

# Right and too slow: it must never pass.
SLOW_CADENCE = edited(_CADENCE, (_DUE, "        sum(i * i for i in range(4_000))\n" + _DUE))

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "4.5": wrong(
        _CADENCE,
        {
            "saves at every step": ("at nearly every step", _DUE, "        return True\n"),
            "never saves": ("no save at all", _DUE, "        return False\n"),
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
            "the cost told before the first step not used": (
                "the call before the first step tells",
                _WAIT,
                "        is_first = not hasattr(self, 'wait')\n"
                + _WAIT
                + "        self.wait = self.max_lost_seconds if is_first else self.wait\n",
            ),
            "whole seconds of work for each of a save": (
                "more often than the cost of a save allows",
                "seconds / self.max_overhead)",
                "seconds * (int(1 / self.max_overhead) - 1))",
            ),
            "the nearest whole seconds of work": (
                "more often than the cost of a save allows",
                "seconds / self.max_overhead)",
                "seconds * (round(1 / self.max_overhead) - 1))",
            ),
            "never looks at what a save costs": (
                "the cost of a save is not looked at",
                "max(self.max_lost_seconds, seconds / self.max_overhead)",
                "self.max_lost_seconds",
            ),
            "5 % whatever is asked": (
                "`max_overhead` is not used",
                "seconds / self.max_overhead",
                "seconds / 0.05",
            ),
            "the cost of the first save for ever": (
                "the cost of an earlier save is kept for ever",
                _WAIT,
                '        self.cost = getattr(self, "cost", seconds)\n'
                + _WAIT.replace("seconds /", "self.cost /"),
            ),
            "the dearest save for ever": (
                "the cost of an earlier save is kept for ever",
                _WAIT,
                '        self.cost = max(getattr(self, "cost", 0.0), seconds)\n'
                + _WAIT.replace("seconds /", "self.cost /"),
            ),
            "the mean of all saves": (
                "the cost of an earlier save is kept for ever",
                _WAIT,
                '        self.costs = [*getattr(self, "costs", []), seconds]\n'
                + _WAIT.replace("seconds /", "1.1 * sum(self.costs) / len(self.costs) /"),
            ),
            "the least of the last saves": (
                "the cheap ones alone are looked at",
                _WAIT,
                '        self.costs = [*getattr(self, "costs", []), seconds][-5:]\n'
                + _WAIT.replace("seconds /", "min(self.costs) /"),
            ),
            "the median of the last saves": (
                "the cheap ones alone are looked at",
                _WAIT,
                '        self.costs = [*getattr(self, "costs", []), seconds][-5:]\n'
                + _WAIT.replace("seconds /", "sorted(self.costs)[len(self.costs) // 2] /"),
            ),
            "a save for nothing passed over": (
                "the cost of an earlier save is kept for ever",
                _WAIT,
                '        self.cost = seconds or getattr(self, "cost", 0.0)\n'
                + _WAIT.replace("seconds /", "self.cost /"),
            ),
            "a twentieth over the budget": (
                "more often than the cost of a save allows",
                "seconds / self.max_overhead",
                "0.95 * seconds * (1 / self.max_overhead - 1)",
            ),
            "due by a fixed grid": (
                "what counts is when `saved` was called",
                _SAVED_AT + _WAIT,
                _WAIT
                + '        self.saved_at = getattr(self, "due_at", self.clock())\n'
                + "        self.due_at = self.saved_at + self.wait\n",
            ),
            "a second at least": (
                "a second is taken for the shortest time",
                "self.wait = max(",
                "self.wait = max(1.0, ",
            ),
            "the dearer of the last save and the mean": (
                "the cost of an earlier save is kept for ever",
                _WAIT,
                '        self.costs = [*getattr(self, "costs", []), seconds]\n'
                "        cost = max(seconds, sum(self.costs[1:]) / max(1, len(self.costs) - 1))\n"
                + _WAIT.replace("seconds /", "cost /"),
            ),
            "the share of the work, not of all the time": (
                "more often than the cost of a save allows",
                "seconds / self.max_overhead)",
                "seconds / self.max_overhead - 2 * seconds)",
            ),
            "the limit even where the budget cannot": (
                "the cost of a save is not looked at",
                "max(self.max_lost_seconds, seconds",
                "min(self.max_lost_seconds, 20 * seconds",
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
            "a step ahead of the budget, too": (
                "it saves a step ahead",
                ("self.saved_at = self", "self.saved_at = self.last = self"),
                (
                    _DUE,
                    "        now = self.clock()\n"
                    "        step, self.last = now - self.last, now\n"
                    "        return now - self.saved_at + step > self.wait\n",
                ),
            ),
            "a step ahead where both limits hold": (
                "it saves a step ahead",
                ("self.saved_at = self", "self.saved_at = self.last = self"),
                (
                    _DUE,
                    "        now = self.clock()\n"
                    "        step, self.last = now - self.last, now\n"
                    "        ahead = step if self.wait == self.max_lost_seconds else 0.0\n"
                    "        return now - self.saved_at + ahead >= self.wait\n",
                ),
            ),
            "one step late": (
                "it saves one step too late",
                (_SAVED_AT, _SAVED_AT + "        self.passed = False\n"),
                (
                    _DUE,
                    "        passed, self.passed = self.passed, self.clock() - self.saved_at >= self.wait\n"
                    "        return passed\n",
                ),
            ),
            "half as often where both limits hold": (
                "where a save costs less than what the budget allows",
                "seconds / self.max_overhead",
                "2 * (seconds / self.max_overhead - seconds)",
            ),
            "asks far too long for a slow disk": (
                "it waits far longer than the budget asks for",
                "seconds / self.max_overhead",
                "4 * seconds / self.max_overhead",
            ),
            "forgets once it has said so": (
                "`is_due` forgets that a save is due",
                _DUE,
                "        is_due = self.clock() - self.saved_at >= self.wait\n"
                "        if is_due:\n"
                "            self.saved_at = self.clock()\n"
                "        return is_due\n",
            ),
            "no time for a clock at 0": (
                "0 seconds are taken for no time",
                _DUE,
                "        if not self.saved_at:\n            return False\n" + _DUE,
            ),
            "one state for all objects": (
                "where all objects share it",
                ("        self.saved_at =", "        Cadence.saved_at ="),
                ("        self.wait =", "        Cadence.wait ="),
            ),
        },
    )
    + wrong(
        _CADENCE,
        {
            "goes through all steps so far": (
                "each of the steps makes the next call dearer",
                ("clock\n\n", "clock\n        self.times = []\n\n"),
                (_DUE, "        self.times.append(self.clock())\n        max(self.times)\n" + _DUE),
            ),
            "goes through all saves so far": (
                "each of the saves makes the next call dearer",
                ("clock\n\n", "clock\n        self.costs = []\n\n"),
                (_SAVED_AT, _SAVED_AT + "        self.costs.append(seconds)\n"),
                (_DUE, "        sum(self.costs)\n" + _DUE),
            ),
        },
        is_timed=True,
    )
    + wrong(
        SLOW_CADENCE, {"asking costs more than saving": ("asking costs as much as saving",)}, is_timed=True
    )
}
