"""The check of exercise 7.2: what a run has cost when it reached its target."""

from __future__ import annotations

import math
from typing import Any

from autograder.engine import Job
from autograder.lessons.checking import name_the_mistake, require_keys
from autograder.lessons.lesson_07.checks.made_logs import (
    KINDS,
    Bill,
    Record,
    at_once,
    bill,
    log,
    options,
)

LIKELY = {
    "no start-up": "compile time hidden: loading and compiling are paid for, before the first step of each session",
    "first start-up": "compile time counted wrongly: once, but every session compiles again",
    "all start-ups": "compile time counted wrongly: also of sessions that begin after the target",
    "no first step": "the start-up of a session that was taken away before its first step is left out: it was paid too",
    "not reached": "the whole run, or its best value, is taken where the target was not reached",
    "the whole run": "the whole run, where the time to the target is asked for",
    "last session": "only the last session: what the sessions before it took was paid too, also the work that was lost",
    "no lost work": "only the last session, and all start-ups: sessions that have ended were paid too",
    "no stop": "a session that ended counts up to its stop: what lies between its last record and that was paid too",
    "one device": "one device is paid for, and there are several",
    "seconds of all devices": "seconds of all devices: `seconds` and `hours` are the run's, the devices multiply the "
    "cost alone",
    "always per hour": "the price's unit: a price per day is not one per hour",
    "minutes": "seconds divided by something else than 3600",
    "the best": "a later validation than the first at the target: the best",
    "the last": "a later validation than the first at the target: the last",
    "better than the target": "a value at the target itself is good enough",
    "zero is none": "a value of 0.0 is a value: only None and NaN are none",
    "NaN is good": "NaN taken for a value: `not value > target` is true of it",
    "whole is none": "a value that is a whole number, such as 1, is a value: only None and NaN are none",
    "nothing paid": "a bill of 0 taken for none: the target is reached before anything was paid",
    "training values": "values of training taken for validations: `kind` tells them apart",
    "another metric": "another metric than the one whose name is `monitor`",
    "the other way": "`higher_is_better` says which way is better; the metric's name says nothing",
    "nearly": "a value that is worse than the target, by next to nothing: at the target, or better, is exact",
}
FORM = "a price without unit: 2.40 of what, for how long?"
NO_UNIT = "a unit that is none of the four is taken for one of them"
UNKNOWN = ("hour", "days", "m", "H", "sec", "d", "hr", "minute", "month", "Min")
BAD_PRICES = {
    "": "a price without anything: no amount, no currency, no unit",
    "2.40": FORM,
    "2.40 EUR": FORM,
    "2.40/h": FORM,
    "EUR/h": FORM,
    "2.40 /h": "a price without its currency: 2.40 of what?",
    "some EUR/h": "a price without an amount: what stands before the currency is no number",
    "nan EUR/h": "a price without an amount: NaN is no number, and `float` reads it",
    "2.40 EUR/week": NO_UNIT,
    "2.40 EUR/second": "a unit that only begins like one of the four is taken for it",
    "2.40 EUR/half-day": "a unit that only begins like one of the four is taken for it",
    **{f"2.40 EUR/{unit}": NO_UNIT for unit in UNKNOWN},
    "2.40 EUR/h/GPU": "something stands behind the unit: that is another price",
    "2.40 EUR per h": "a price without a stroke before its unit",
    "about 2.40 EUR/h": "a price found somewhere in a text: an amount stands first, and nothing before it",
    "2.40 EUR/": "a price without unit: after the stroke stands nothing",
}


def check_cost_to_target(job: Job) -> None:
    """7.2: seconds, hours and money up to the first validation at the target, over all sessions and devices."""
    cases = []
    for number, kind in enumerate(KINDS):
        given = options(job.rng, kind)
        if number == 0:
            given["num_devices"] = 1
        cases.append((log(job.rng, kind, given), given))
    empty, free = options(job.rng, KINDS[4]), options(job.rng, KINDS[0])
    free["price"] = "0 EUR/h"
    cases += [([], empty), (log(job.rng, KINDS[0], free), free), (at_once(empty), empty)]
    for records, given in cases:
        answer = job.learner().call("cost_of", records=_sent(records), options=given)
        _require_cost(job, answer, records, given)
    _require_units(job)


def _sent(records: list[Record]) -> list[Record]:
    """With texts for NaN and infinities, which are no JSON."""
    return [
        {key: str(v) if isinstance(v, float) and not math.isfinite(v) else v for key, v in record.items()}
        for record in records
    ]


def _require_cost(job: Job, answer: Record, records: list[Record], given: Record) -> None:
    right = bill(records, given)
    job.require(
        answer["is_unchanged"],
        expected="the records as they were",
        got="changed ones",
        likely="the log is changed by reading it: records are taken out of it, sorted or edited",
        look="`for record in records` takes nothing away",
    )
    job.require(
        answer["is_own"],
        expected="a result of its own from each call",
        got="one that a later call changes",
        likely="what belongs to the call before is kept: the dict that is returned is the same each time",
        look="make the dict within the function",
    )
    likely = name_the_mistake(
        LIKELY,
        twin=lambda mistake: (bill(records, given, mistake),),
        is_same=lambda wrong: wrong[0] != right and _is_same(answer, wrong[0]),
    )
    if not likely and not _is_same(answer, right) and _is_same(_alone(job, records, given), right):
        likely = "what belongs to the call before is kept: the list of records is the same, and what is in it is not"
    job.require(
        answer["outcome"] in ("cost", "none"),
        expected=f"a dict, or None: the price is {given['price']!r}",
        got=f"{answer['outcome']}: {answer.get('message', '')}"[:200],
        likely="a price is refused that has an amount, a currency and a unit"
        if answer["outcome"] == "ValueError"
        else "another kind of result than the docstring says",
        look="print what your function reads and compares, for each validation",
    )
    if right is None:
        job.require(
            answer["outcome"] == "none",
            expected="None: the target is never reached",
            got="a cost",
            likely=likely or LIKELY["not reached"],
            look="what does it cost to reach what was not reached?",
        )
        return
    job.require(
        answer["outcome"] == "cost",
        expected=f"the cost of reaching {given['monitor']} {given['target']:.4g} at {given['price']}",
        got="None",
        likely=likely or "a validation at the target is not seen, or ends the search before it",
        look="print what your function compares, for each validation",
    )
    found = answer["numbers"]
    require_keys(job, found, right)
    for name, value in right.items():
        generic = "another record than the first validation at the target, or sessions left out"
        if name != "seconds":
            generic = "seconds divided by something else than 3600"
        if name == "cost":
            generic = "the price of a second, times the seconds, times the devices"
        look = given["price"] if name == "cost" else "the records in their order"
        if math.isclose(found[name], value, abs_tol=0.005):
            generic = "a rounded number: a cent is not the least that is paid"
        job.require(
            math.isclose(found[name], value, rel_tol=1e-9),
            expected=f"{name} = {value:.9g}",
            got=f"{found[name]:.9g}",
            likely=likely or generic,
            look=look,
        )
    currency = given["price"].split()[1].partition("/")[0]
    job.require(
        answer["currency"] == currency,
        expected=f"currency {currency!r}",
        got=repr(answer["currency"])[:40],
        likely="a price without unit: a sum of money has a currency, the one of the price",
        look="the text of the price",
    )


def _alone(job: Job, records: list[Record], given: Record) -> Record:
    """The answer in a process that has seen no other log."""
    request: Record = {"records": _sent(records), "options": given}
    answer: Record = job.worker("alone", job.source).call("cost_of", **request)
    return answer


def _is_same(answer: Record, wrong: Bill) -> bool:
    if wrong is None or answer["outcome"] != "cost":
        return wrong is None and answer["outcome"] == "none"
    return all(
        math.isclose(answer["numbers"].get(name, math.nan), value, rel_tol=1e-4)
        for name, value in wrong.items()
    )


def _require_units(job: Job) -> None:
    """Refused, whatever is in the log: the target reached, not reached, or nothing at all."""
    reached, never = options(job.rng, KINDS[0]), options(job.rng, KINDS[4])
    logs: tuple[tuple[list[Any], Record], ...] = (
        (log(job.rng, KINDS[0], reached), reached),
        ([], never),
    )
    for records, given in logs:
        answers = job.learner().call(
            "refused", records=_sent(records), options=given, prices=list(BAD_PRICES)
        )
        for (price, likely), outcome in zip(BAD_PRICES.items(), answers, strict=True):
            if outcome not in ("cost", "none", "ValueError"):
                likely = f"a {outcome} of a table or a conversion reaches the caller"
            elif not records and outcome == "none":
                likely = "the price is read only where the target is reached: a price without unit is refused at once"
            job.require(
                outcome == "ValueError",
                expected=f"a ValueError for the price {price!r}",
                got={"cost": "a cost", "none": "None"}.get(outcome, outcome),
                likely=likely,
                look="refuse what is not `amount currency/unit`, with the right form in the message",
            )
