"""Wrong solutions of 7.3, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_GUARD = """
@exercise("7.3")
class BudgetGuard:
    def __init__(self, *, budget, price_per_hour, save, save_seconds, clock, notify, alarms=(0.5, 0.8)):
        self.budget, self.rate, self.save, self.clock = budget, price_per_hour / 3600, save, clock
        self.save_seconds, self.notify, self.alarms = save_seconds, notify, list(alarms)
        self.spent, self.longest, self.last = 0.0, 0.0, clock()

    def after_step(self):
        now = self.clock()
        self.longest, self.spent = max(self.longest, now - self.last), self.spent + (now - self.last) * self.rate
        self.last = now
        while self.alarms and self.spent >= self.alarms[0] * self.budget:
            self.notify(self.alarms.pop(0))
        if self.spent + (self.longest + self.save_seconds) * self.rate <= self.budget:
            return False
        self.save()
        return True

    def state_dict(self):
        return {"spent": self.spent, "longest": self.longest, "alarms": list(self.alarms)}

    def load_state_dict(self, state):
        self.spent, self.longest, self.alarms = state["spent"], state["longest"], list(state["alarms"])
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "7.3": wrong(
        _GUARD,
        {
            "stops when the money is gone": (
                "it stops when the money is gone",
                "self.spent + (self.longest + self.save_seconds) * self.rate <= self.budget",
                "self.spent < self.budget",
            ),
            "no checkpoint before the stop": ("without a checkpoint", "        self.save()\n", ""),
            "seconds taken for hours": ("seconds taken for hours", "price_per_hour / 3600", "price_per_hour"),
            "earlier sessions forgotten": (
                "earlier sessions are forgotten",
                'self.spent, self.longest, self.alarms = state["spent"], ',
                "self.longest, self.alarms = ",
            ),
            "seconds kept in place of money": (
                "seconds are kept and not money",
                ('return {"spent": self.spent,', 'return {"spent": self.spent / self.rate,'),
                ('= state["spent"], state["longest"]', '= state["spent"] * self.rate, state["longest"]'),
            ),
            "money rounded to cents": (
                "the money is rounded in the state",
                'return {"spent": self.spent,',
                'return {"spent": round(self.spent, 2),',
            ),
            "an alarm at every step": (
                "an alarm at every step",
                "while self.alarms and self.spent >= self.alarms[0] * self.budget:\n"
                "            self.notify(self.alarms.pop(0))",
                "for share in self.alarms:\n            if self.spent >= share * self.budget:\n"
                "                self.notify(share)",
            ),
            "the save is not in the reserve": (
                "not paid for",
                "(self.longest + self.save_seconds)",
                "self.longest",
            ),
            "the next step is not in the reserve": (
                "the next step is not paid for",
                "(self.longest + self.save_seconds)",
                "self.save_seconds",
            ),
            "two steps in reserve": (
                "a larger reserve than one step",
                "(self.longest + self.save_seconds)",
                "(2 * self.longest + self.save_seconds)",
            ),
            "a fit that is exact refused": ("what fits exactly fits", "<= self.budget", "< self.budget"),
            "the last step for the longest": (
                "not the last one",
                "self.longest, self.spent = max(self.longest, now - self.last), ",
                "self.longest, self.spent = now - self.last, ",
            ),
            "the slowest step of earlier sessions forgotten": (
                "the slowest of earlier sessions is forgotten",
                '"longest": self.longest',
                '"longest": 0.0',
            ),
            "time before the first step not paid": (
                "the first step of a session is not paid for",
                (", self.last = 0.0, 0.0, clock()", ", self.last = 0.0, 0.0, None"),
                (
                    "        now = self.clock()\n",
                    "        now = self.clock()\n        self.last = now if self.last is "
                    "None else self.last\n",
                ),
            ),
            "a clock that reads 0 taken for none": (
                "a clock that reads 0",
                "        now = self.clock()\n",
                "        now = self.clock()\n        self.last = self.last or now\n",
            ),
            "clocks that go on from session to session": (
                "the clock of the session before",
                (
                    '"alarms": list(self.alarms)}',
                    '"alarms": list(self.alarms), "last": self.last}',
                ),
                (
                    'self.longest, self.alarms = state["spent"], state["longest"], ',
                    'self.longest, self.last, self.alarms = state["spent"], state["longest"], state["last"], ',
                ),
            ),
            "no checkpoint where all is spent": (
                "where more is spent than the budget",
                "        self.save()\n",
                "        if self.spent < self.budget:\n            self.save()\n",
            ),
            "no alarm above the whole budget": (
                "an alarm above 1",
                "self.spent >= self.alarms[0] * self.budget",
                "min(self.spent, self.budget) >= self.alarms[0] * self.budget",
            ),
            "alarms at shares that are rounded": (
                "an alarm missing, at the wrong share",
                "self.spent >= self.alarms[0] * self.budget",
                "round(self.spent / self.budget, 3) >= self.alarms[0]",
            ),
            "no state before the first step of all": (
                "a value or a shape there that the code does not expect",
                ("0.0, 0.0, clock()\n", "0.0, 0.0, clock()\n        self.state = {}\n"),
                (
                    "            self.notify(self.alarms.pop(0))\n",
                    "            self.notify(self.alarms.pop(0))\n        self.state = {\n"
                    '            "spent": self.spent, "longest": self.longest, "alarms": self.alarms[:]}\n',
                ),
                (
                    '{"spent": self.spent, "longest": self.longest, "alarms": list(self.alarms)}\n\n',
                    "self.state\n\n",
                ),
                ('list(state["alarms"])\n', 'list(state["alarms"])\n        self.state = dict(state)\n'),
            ),
            "a step that the clock does not see": (
                "the clock stands still",
                "        now = self.clock()\n",
                "        now = self.clock()\n        if now == self.last:\n            return False\n",
            ),
            "two checkpoints": (
                "more than once",
                "        self.save()\n",
                "        self.save()\n        self.save()\n",
            ),
            "a checkpoint at every step": (
                "saves at every step",
                (
                    "        if self.spent + (",
                    "        self.save()\n        if self.spent + (",
                ),
                ("        self.save()\n        return True", "        return True"),
            ),
            "one alarm a step": (
                "one alarm a step",
                "while self.alarms and",
                "if self.alarms and",
            ),
            "the highest alarm alone": (
                "the highest alarm alone",
                "            self.notify(self.alarms.pop(0))",
                "            share = self.alarms.pop(0)\n            if not self.alarms or self.spent < "
                "self.alarms[0] * self.budget:\n                self.notify(share)",
            ),
            "alarms above their share alone": (
                "above its share alone",
                "self.spent >= self.alarms[0]",
                "self.spent > self.alarms[0]",
            ),
            "alarms in money": (
                "a share and no sum",
                "self.notify(self.alarms.pop(0))",
                "self.notify(self.alarms.pop(0) * self.budget)",
            ),
            "alarms again after a resume": (
                "an alarm again after a resume",
                'state["longest"], list(state["alarms"])',
                'state["longest"], self.alarms',
            ),
            "no alarm after the last step": (
                "no alarm after the step at which the run ends",
                "        while self.alarms and self.spent",
                "        fits = self.spent + (self.longest + self.save_seconds) * self.rate <= self.budget\n"
                "        while fits and self.alarms and self.spent",
            ),
            "alarms at 0.5 and 0.8, whatever is asked for": (
                "an alarm missing, at the wrong share",
                "list(alarms)",
                "[0.5, 0.8]",
            ),
            "other alarms where none are given": (
                "an alarm missing, at the wrong share",
                "alarms=(0.5, 0.8)",
                "alarms=(0.5, 0.9)",
            ),
            "the caller's list used up": (
                "the list of alarms that the guard was given",
                "list(alarms)",
                "alarms if isinstance(alarms, list) else list(alarms)",
            ),
            "money kept by the class": (
                "guards share what each must keep",
                (
                    "    def __init__",
                    "    spent = [0.0]\n\n    def __init__",
                ),
                (
                    "self.spent, self.longest, self.last = 0.0, 0.0, clock()",
                    "self.longest, self.last = 0.0, clock()",
                ),
                (
                    "self.spent + (now - self.last) * self.rate\n",
                    "self.spent\n        self.spent[0] += (now - self.last) * self.rate\n",
                ),
                ("self.spent >= ", "self.spent[0] >= "),
                ("if self.spent + (", "if self.spent[0] + ("),
                ('{"spent": self.spent', '{"spent": self.spent[0]'),
                (
                    "self.spent, self.longest, self.alarms = state",
                    "self.spent[0], self.longest, self.alarms = state",
                ),
            ),
            "a state that JSON cannot hold": (
                "a state of plain values",
                '"alarms": list(self.alarms)}',
                '"alarms": set(self.alarms)}',
            ),
            "a state that goes on with its guard": (
                "guard and state share a list",
                '"alarms": list(self.alarms)}',
                '"alarms": self.alarms}',
            ),
            "a guard that goes on in the state it was handed": (
                "guard and state share a list",
                'list(state["alarms"])',
                'state["alarms"]',
            ),
            "the clock read for the state": (
                "the clock is read again for the state",
                'return {"spent": self.spent,',
                'return {"spent": self.spent + (self.clock() - self.last) * self.rate,',
            ),
            "what an alarm takes not paid": (
                "what `notify` takes is not paid for",
                (
                    "            self.notify(self.alarms.pop(0))\n",
                    "            self.notify(self.alarms.pop(0))\n            self.last = self.clock()\n",
                ),
            ),
            "saved before the alarms of this step": (
                "saved before the alarms",
                (
                    "        while self.alarms",
                    "        fits = self.spent + (self.longest + self.save_seconds) * self.rate <= self.budget\n"
                    "        if not fits:\n            self.save()\n        while self.alarms",
                ),
                (
                    "        if self.spent + (self.longest + self.save_seconds) * self.rate <= self.budget:\n"
                    "            return False\n        self.save()\n        return True",
                    "        return not fits",
                ),
            ),
            "saved before this step is paid": (
                "saved before this step is paid",
                ("        now = self.clock()\n", "        now, before = self.clock(), self.spent\n"),
                (
                    "        self.save()\n",
                    "        self.spent, spent = before, self.spent\n        self.save()\n"
                    "        self.spent = spent\n",
                ),
            ),
            "the longest step kept as money": (
                "the longest step is kept as money",
                (
                    "max(self.longest, now - self.last), ",
                    "max(self.longest, (now - self.last) * self.rate), ",
                ),
                (
                    "(self.longest + self.save_seconds) * self.rate",
                    "self.longest + self.save_seconds * self.rate",
                ),
            ),
            "the clock read anew when the state is loaded": (
                "when the state is loaded",
                'list(state["alarms"])\n',
                'list(state["alarms"])\n        self.last = self.clock()\n',
            ),
            "nothing known before the first step": (
                "before the first step knows nothing",
                ("0.0, 0.0, clock()\n", "0.0, 0.0, clock()\n        self.has_begun = False\n"),
                ("        now = self.clock()\n", "        now, self.has_begun = self.clock(), True\n"),
                (
                    '        return {"spent"',
                    "        if not self.has_begun:\n"
                    '            return {"spent": 0.0, "longest": 0.0, "alarms": self.all}\n'
                    '        return {"spent"',
                ),
                ("list(alarms)\n", "list(alarms)\n        self.all = list(alarms)\n"),
            ),
            "the save of the session before": (
                "each guard is told its own",
                ('return {"spent": self.spent,', 'return {"save": self.save_seconds, "spent": self.spent,'),
                (
                    'list(state["alarms"])\n',
                    'list(state["alarms"])\n        self.save_seconds = state["save"]\n',
                ),
            ),
            "nothing said where the run goes on": (
                "another value than True or False",
                "            return False\n",
                "            return\n",
            ),
            "the error of a save swallowed": (
                "the error of `save` is swallowed",
                "        self.save()\n",
                "        try:\n            self.save()\n        except OSError:\n            pass\n",
            ),
        },
    ),
}
