"""Wrong solutions of 7.2 and 7.3, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_COST = """
import math

SECONDS = {"s": 1, "min": 60, "h": 3600, "day": 86400}

@exercise("7.2")
def cost_to_target(records, *, target, monitor, higher_is_better, price, num_devices):
    try:
        amount, rest = price.split()
        currency, per = rest.split("/")
        per_second = float(amount) / SECONDS[per]
    except (ValueError, KeyError):
        raise ValueError(f"price {price!r}: write it as '2.40 EUR/h'") from None
    if not currency:
        raise ValueError("no currency")
    paid = 0.0
    for record in records:
        if record["kind"] == "start":
            paid += record["seconds"]
        elif record["kind"] == "stop":
            paid += record["session_seconds"]
        elif record["kind"] == "validation":
            value = record[monitor]
            if value is None or math.isnan(value):
                continue
            if (value >= target) if higher_is_better else (value <= target):
                seconds = paid + record["session_seconds"]
                cost = seconds * per_second * num_devices
                return {"seconds": seconds, "hours": seconds / 3600, "cost": cost, "currency": currency}
    return None
"""

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
        return {"spent": self.spent, "longest": self.longest, "alarms": self.alarms}

    def load_state_dict(self, state):
        self.spent, self.longest, self.alarms = state["spent"], state["longest"], state["alarms"]
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "7.2": wrong(
        _COST,
        {
            "compile time hidden": ("compile time hidden", 'paid += record["seconds"]', "pass"),
            "compile time counted once for all sessions": (
                "compile time counted wrongly",
                'paid += record["seconds"]',
                'paid += record["seconds"] if paid == 0.0 else 0',
            ),
            "price without unit": (
                "a price without unit",
                '        amount, rest = price.split()\n        currency, per = rest.split("/")\n',
                '        amount, _, rest = price.partition(" ")\n'
                '        currency, _, per = (rest or "EUR/h").partition("/")\n        per = per or "h"\n',
            ),
            "every price taken for one per hour": (
                "the price's unit",
                "float(amount) / SECONDS[per]",
                "float(amount) / 3600 + 0 * SECONDS[per]",
            ),
            "the whole run, as one who optimises epoch time would report it": (
                "the whole run",
                'seconds = paid + record["session_seconds"]',
                'seconds = sum(r["seconds"] if r["kind"] == "start" else r["session_seconds"]\n'
                '                              for r in records if r["kind"] in ("start", "stop"))',
            ),
            "only the last session": (
                "only the last session",
                'paid += record["session_seconds"]',
                "paid = 0.0",
            ),
            "one device of several": ("one device is paid for", " * num_devices", ""),
            "seconds of all devices": (
                "seconds of all devices",
                (
                    'seconds = paid + record["session_seconds"]',
                    'seconds = (paid + record["session_seconds"]) * num_devices',
                ),
                (" per_second * num_devices", " per_second"),
            ),
        },
    ),
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
        },
    ),
}
