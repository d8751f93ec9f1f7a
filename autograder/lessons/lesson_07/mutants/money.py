"""Wrong solutions of 7.2, each with the mistake that its check must name."""

from __future__ import annotations

from textwrap import indent

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
        if math.isnan(per_second):
            raise ValueError
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

_PARSED = """\
    try:
        amount, rest = price.split()
        currency, per = rest.split("/")
        per_second = float(amount) / SECONDS[per]
        if math.isnan(per_second):
            raise ValueError
    except (ValueError, KeyError):
        raise ValueError(f"price {price!r}: write it as '2.40 EUR/h'") from None
    if not currency:
        raise ValueError("no currency")
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "7.2": wrong(
        _COST,
        {
            "a start-up is free before the first step": (
                "taken away before its first step",
                (
                    '            paid += record["seconds"]\n',
                    '            begun = record["seconds"]\n            paid += begun\n',
                ),
                (
                    '            paid += record["session_seconds"]\n',
                    '            paid += record["session_seconds"] or -begun\n',
                ),
            ),
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
            "start-ups of later sessions too": (
                "compile time counted wrongly",
                (
                    "    paid = 0.0\n",
                    '    paid = sum(r["seconds"] for r in records if r["kind"] == "start")\n',
                ),
                ('paid += record["seconds"]', "pass"),
            ),
            "the work of ended sessions not paid": (
                "and all start-ups",
                'paid += record["session_seconds"]',
                "pass",
            ),
            "a session up to its last record": (
                "counts up to its stop",
                ("    paid = 0.0\n", "    paid = clock = 0.0\n"),
                (
                    'elif record["kind"] == "stop":\n            paid += record["session_seconds"]',
                    'elif record["kind"] == "stop":\n            paid += clock',
                ),
                (
                    '        if record["kind"] == "start":\n',
                    '        clock = record.get("session_seconds", 0.0) if record["kind"] != "stop" else clock\n'
                    '        if record["kind"] == "start":\n',
                ),
            ),
            "the log used up": (
                "the log is changed",
                "    for record in records:\n",
                "    while records:\n        record = records.pop(0)\n",
            ),
            "a metric filled in for None": (
                "the log is changed",
                "            value = record[monitor]\n",
                "            value = record[monitor] = math.nan if record[monitor] is None else record[monitor]\n",
            ),
            "an unknown unit billed as hours": (
                "a unit that is none of the four",
                "SECONDS[per]",
                "SECONDS.get(per, 3600)",
            ),
            "a unit by its beginning": (
                "only begins like one of the four",
                "SECONDS[per]",
                "SECONDS[next((name for name in SECONDS if per.startswith(name)), per)]",
            ),
            "a table's KeyError for an unknown unit": (
                "KeyError of a table",
                "except (ValueError, KeyError)",
                "except ValueError",
            ),
            "no unit billed as hours": (
                "after the stroke stands nothing",
                "SECONDS[per]",
                'SECONDS[per or "h"]',
            ),
            "a price refused only where the target is reached": (
                "read only where the target is reached",
                (_PARSED, ""),
                (
                    "                seconds = paid",
                    indent(_PARSED, 12 * " ") + "                seconds = paid",
                ),
            ),
            "a price of nothing refused": (
                "a price is refused that has an amount",
                "    if not currency:",
                "    if not currency or not per_second:",
            ),
            "a currency of one's own": (
                "the one of the price",
                '"currency": currency}',
                '"currency": "EUR"}',
            ),
            "the currency with its unit": (
                "the one of the price",
                '"currency": currency}',
                '"currency": rest}',
            ),
            "the best value": (
                "a later validation than the first at the target: the best",
                (
                    "value = record[monitor]\n            if value is None or math.isnan(value):\n",
                    "value = record[monitor]\n            if value is None or value != best:\n",
                ),
                (
                    "    paid = 0.0\n",
                    "    paid, sign = 0.0, 1 if higher_is_better else -1\n"
                    '    known = [r[monitor] for r in records if r["kind"] == "validation" and r[monitor]]\n'
                    "    best = max((v for v in known if v == v), key=lambda v: sign * v, default=0)\n",
                ),
            ),
            "better than the target": (
                "a value at the target itself",
                "(value >= target) if higher_is_better else (value <= target)",
                "(value > target) if higher_is_better else (value < target)",
            ),
            "a loss at the target is not enough": (
                "a value at the target itself",
                "else (value <= target)",
                "else (value < target)",
            ),
            "the direction ignored": (
                "which way is better",
                "(value >= target) if higher_is_better else (value <= target)",
                "value >= target",
            ),
            "the direction by the metric's name": (
                "which way is better",
                " if higher_is_better else ",
                ' if "loss" not in monitor and monitor != "error" else ',
            ),
            "nearly the target": (
                "worse than the target, by next to nothing",
                "(value >= target) if higher_is_better else (value <= target)",
                "math.isclose(value, target, abs_tol=1e-9) or (value >= target) == higher_is_better",
            ),
            "a price found somewhere in a text": (
                "found somewhere in a text",
                (
                    "        amount, rest = price.split()\n",
                    '        amount, rest = re.search(r"[0-9.]+ [^ ]*$", price)[0].split()\n',
                ),
                ("(ValueError, KeyError)", "(ValueError, KeyError, TypeError)"),
                ("import math\n", "import math\nimport re\n"),
            ),
            "units by their other names": (
                "a unit that is none of the four",
                '"h": 3600,',
                '"h": 3600, "hour": 3600, "H": 3600,',
            ),
            "money rounded": (
                "a rounded number",
                '"cost": cost',
                '"cost": round(cost, 4)',
            ),
            "NaN taken for a value": (
                "NaN taken for a value",
                (
                    "value is None or math.isnan(value)",
                    "value is None",
                ),
                (
                    "(value >= target) if higher_is_better else (value <= target)",
                    "not ((value < target) if higher_is_better else (value > target))",
                ),
            ),
            "None compared": (
                "a value or a shape there that the code does not expect",
                "value is None or math.isnan(value)",
                "value != value",
            ),
            "0.0 taken for no value": (
                "a value of 0.0",
                "value is None or math.isnan(value)",
                "not value or math.isnan(value)",
            ),
            "values of training": (
                "values of training",
                'record["kind"] == "validation"',
                "monitor in record",
            ),
            "another metric": (
                "another metric than the one",
                "record[monitor]",
                'record["other"]',
            ),
            "the whole run where the target is never reached": (
                "where the target was not reached",
                "    return None\n",
                '    return {"seconds": paid, "hours": paid / 3600, "cost": paid * per_second * num_devices,\n'
                '            "currency": currency}\n',
            ),
            "the first metric of a validation": (
                "another metric than the one",
                "record[monitor]",
                'next(record[name] for name in record if name not in ("kind", "session_seconds"))',
            ),
            "whole numbers taken for none": (
                "a value that is a whole number",
                "value is None or math.isnan(value)",
                "not isinstance(value, float) or math.isnan(value)",
            ),
            "a bill of 0 taken for none": (
                "a bill of 0",
                "                cost = ",
                "                if not seconds:\n                    return None\n                cost = ",
            ),
            "one result for all calls": (
                "the dict that is returned is the same each time",
                ("SECONDS = {", "BILL = {}\nSECONDS = {"),
                (
                    'return {"seconds": seconds, "hours": seconds / 3600, "cost": cost, "currency": currency}',
                    'BILL.update({"seconds": seconds, "hours": seconds / 3600, "cost": cost, "currency": currency})\n'
                    "                return BILL",
                ),
            ),
            "a bill kept by the address of its log": (
                "what belongs to the call before is kept",
                (
                    "def cost_to_target(records, *, target, monitor, higher_is_better, price, num_devices):\n",
                    "def cost_to_target(records, **options):\n    if id(records) not in KNOWN:\n"
                    "        KNOWN[id(records)] = cost_of_it(records, **options)\n    return KNOWN[id(records)]\n\n"
                    "def cost_of_it(records, *, target, monitor, higher_is_better, price, num_devices):\n",
                ),
                ("SECONDS = {", "KNOWN = {}\nSECONDS = {"),
            ),
            "a share of the target": (
                "a validation at the target is not seen",
                "else (value <= target)",
                "else (abs(value) <= target)",
            ),
            "a price without a point refused": (
                "a price is refused that has an amount",
                "    if not currency:",
                '    if not currency or "." not in amount:',
            ),
            "NaN for an amount": ("NaN is no number", "if math.isnan(per_second):", "if False:"),
            "no price billed as nothing": (
                "a price without anything",
                "    try:\n        amount, rest",
                '    price = price or "0 EUR/h"\n    try:\n        amount, rest',
            ),
            "one more name of a unit": (
                "a unit that is none of the four",
                '"min": 60,',
                '"min": 60, "minute": 60,',
            ),
            "hours of sixty seconds": ("something else than 3600", "seconds / 3600,", "seconds / 60,"),
        },
    ),
}
