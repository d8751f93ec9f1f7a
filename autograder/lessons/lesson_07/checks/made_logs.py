"""Logs for exercise 7.2, over sessions, and what a right or a mistaken reader finds paid in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

SECONDS_PER = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0}
Record = dict[str, Any]
Bill = dict[str, float] | None


@dataclass(frozen=True)
class Kind:
    """What a log is like."""

    unit: str
    is_high_good: bool
    reached_in: int | None
    """The session in which the target is reached first; in None of them."""
    num_sessions: int
    is_exact: bool
    """The first value that is good enough stands exactly at the target."""
    is_first: bool = False
    """It is the first validation of its session, and of all where the session is the first."""
    is_zero: bool = False
    """It is 0.0, a little better than the target."""
    is_open: bool = False
    """The last session still goes on: it has no "stop"."""
    is_whole: bool = False
    """Seconds, price and the first value that is good enough are whole numbers, without a point."""
    is_below_zero: bool = False
    """The target is."""


KINDS = (
    Kind("h", True, 0, 1, is_exact=False, is_whole=True),
    Kind("day", False, 1, 2, is_exact=False, is_zero=True),
    Kind("min", True, 1, 3, is_exact=False, is_zero=True, is_open=True),
    Kind("s", False, 2, 3, is_exact=True, is_below_zero=True),
    Kind("h", True, None, 2, is_exact=False),
    Kind("day", True, 0, 3, is_exact=True, is_below_zero=True),
    Kind("min", False, None, 3, is_exact=False, is_open=True),
    Kind("h", False, 0, 2, is_exact=True, is_first=True),
    Kind("s", True, 2, 4, is_exact=False, is_first=True, is_open=True),
)


def options(rng: np.random.Generator, kind: Kind) -> Record:
    """Arguments of the learner's function. What a metric is called says nothing about which way is better."""
    per_hour = round(float(rng.uniform(0.5, 9.0)), 2)
    amount = round(per_hour * SECONDS_PER[kind.unit] / 3600.0, 6)
    currency = str(rng.choice(["EUR", "USD", "CHF", "GBP", "SEK"]))
    targets = [1.0, float(rng.uniform(0.3, 0.9)), -float(rng.uniform(0.5, 3.0))]
    if not kind.is_exact:  # at a target of 0.0, two mistakes would look alike
        targets.append(0.0)
    if kind.is_zero:
        targets = [-0.01 if kind.is_high_good else 0.01]
    if kind.is_below_zero:
        targets = [-float(rng.uniform(0.5, 3.0))]
    price = f"{int(rng.integers(1, 9))}" if kind.is_whole else f"{amount:.6f}"
    return {
        "target": 0.99 if kind.is_whole else targets[int(rng.integers(len(targets)))],
        "monitor": str(rng.choice(["accuracy", "loss", "f1", "error", "reward"])),
        "higher_is_better": kind.is_high_good,
        "price": f"{price} {currency}/{kind.unit}",
        "num_devices": int(rng.integers(2, 9)),
    }


def log(rng: np.random.Generator, kind: Kind, given: Record) -> list[Record]:
    """Records in order. Validations that are none come before the target and after it."""
    target, sign = given["target"], 1.0 if given["higher_is_better"] else -1.0
    records: list[Record] = []
    is_reached = False
    for session in range(kind.num_sessions):
        records.append({"kind": "start", "seconds": float(rng.uniform(20.0, 400.0))})
        clock, reached_at = 0.0, 0 if kind.is_first else int(rng.integers(4, 6))
        nothing = [None, math.nan, -sign * math.inf][:: int(rng.choice([-1, 1]))]
        reaches = session == kind.reached_in
        # The next good one is not the best, and the best is not the last: else two mistakes would look alike.
        after = {1: 0.05, 3: 0.3, 4: float(rng.uniform(0.1, 0.2))} if reaches else {}
        for number in range(reached_at + 5 if reaches else int(rng.integers(4, 7))):
            clock += float(rng.uniform(30.0, 300.0))
            # Good enough all the time, and no validation.
            train = {given["monitor"]: target + sign}
            records.append({"kind": "train", "session_seconds": clock} | train)
            clock += float(rng.uniform(5.0, 30.0))
            value: Any = target - sign * float(rng.uniform(0.02, 0.2))
            if number == 3:  # a hair's breadth from the target
                value = math.nextafter(target - sign * float(rng.choice([0.0, 1e-12])), -sign * math.inf)
            if reaches and number == reached_at:
                value = target + sign * (0.0 if kind.is_exact else 0.01)
                is_reached = True
            elif reaches and number - reached_at in after:
                value = target + sign * after[number - reached_at]
            elif nothing and (number in (1, 2) or is_reached):
                value = nothing.pop()
            elif is_reached and rng.random() < 0.7:
                value = target + sign * float(rng.uniform(0.02, 0.2))
            # Good too early, from the second on, and there the first metric of the record.
            other = {"other": target + sign * (1.0 if number else -1.0)}
            own = {given["monitor"]: value}
            record = {"kind": "validation", "session_seconds": clock}
            records.append(record | (other | own if number % 2 else own | other))
        records.append({"kind": "stop", "session_seconds": clock + float(rng.uniform(10.0, 60.0))})
        if session < kind.num_sessions - 2:  # taken away again before its first record
            for seconds in (float(rng.uniform(5.0, 30.0)), 0.0):  # and while it still compiled
                records.append({"kind": "start", "seconds": float(rng.uniform(20.0, 400.0))})
                records.append({"kind": "stop", "session_seconds": seconds})
    records = [_whole(record) for record in records] if kind.is_whole else records
    return records[:-1] if kind.is_open else records


def _whole(record: Record) -> Record:
    return {
        key: math.ceil(value) if "seconds" in key else 1 if value == 1.0 else value
        for key, value in record.items()
    }


def at_once(given: Record) -> list[Record]:
    """The log of a run that is at its target before anything is paid: a pretrained model, on a machine that is up."""
    value = given["target"] + (0.01 if given["higher_is_better"] else -0.01)
    reached = {"kind": "validation", "session_seconds": 0.0, given["monitor"]: value, "other": None}
    return [{"kind": "start", "seconds": 0.0}, reached]


def bill(records: list[Record], given: Record, mistake: str = "") -> Bill:
    """Seconds, hours and cost up to the target, as 7.2 asks for them, or as one who makes this mistake finds them."""
    amount, _, unit = given["price"].partition("/")
    per_second = float(amount.split()[0]) / SECONDS_PER["h" if mistake == "always per hour" else unit]
    seconds = _paid(records, given, mistake)
    if seconds is None or (mistake == "nothing paid" and not seconds):
        return None
    devices = given["num_devices"]
    money = seconds * per_second * (1 if mistake == "one device" else devices)
    if mistake == "seconds of all devices":
        seconds *= devices
    hours = seconds / (60.0 if mistake == "minutes" else 3600.0)
    return {"seconds": seconds, "hours": hours, "cost": money}


def _paid(records: list[Record], given: Record, mistake: str) -> float | None:
    target, is_high_good = given["target"], given["higher_is_better"]
    if mistake == "the other way":
        is_high_good = not is_high_good
    paid, starts, found, best = 0.0, 0, None, math.nan
    clock = begun = 0.0  # of the record before, in its session; of its start-up
    kinds = ("validation", "train") if mistake == "training values" else ("validation",)
    for record in records:
        if record["kind"] == "start":
            starts += 1
            is_left_out = mistake == "no start-up" or (mistake == "first start-up" and starts > 1)
            paid += 0.0 if is_left_out else record["seconds"]
            paid, begun = record["seconds"] if mistake == "last session" else paid, record["seconds"]
        elif record["kind"] == "stop":
            ends = clock if mistake == "no stop" else record["session_seconds"]
            paid += 0.0 if mistake == "no lost work" else ends
            paid -= begun if mistake == "no first step" and not record["session_seconds"] else 0.0
        clock = record.get("session_seconds", 0.0)
        if record["kind"] not in kinds:
            continue
        value = record["other" if mistake == "another metric" else given["monitor"]]
        if mistake == "whole is none" and isinstance(value, int):
            continue
        if value is None or math.isnan(value):
            if value is None or mistake != "NaN is good":
                continue
            value = target
        if mistake == "zero is none" and not value:
            continue
        is_good = value >= target if is_high_good else value <= target
        if mistake == "better than the target" and value == target:
            is_good = False
        is_good |= mistake == "nearly" and abs(value - target) <= 1e-9
        if is_good:
            seconds = paid + record["session_seconds"]
            is_best = math.isnan(best) or (value > best if is_high_good else value < best)
            if found is None or mistake == "the last" or (mistake == "the best" and is_best):
                found, best = seconds, value
    ends = [r["session_seconds"] for r in records if r["kind"] == "stop"]
    begins = [r["seconds"] for r in records if r["kind"] == "start"]
    if records and records[-1]["kind"] != "stop":
        ends.append(records[-1]["session_seconds"])
    if mistake == "the whole run" or (mistake == "not reached" and found is None):
        return sum(begins) + sum(ends)
    if mistake == "all start-ups" and found is not None:
        return found + sum(begins[starts_before(records, given) :])
    return found


def starts_before(records: list[Record], given: Record) -> int:
    """How many sessions have begun when the target is reached."""
    starts, sign = 0, 1.0 if given["higher_is_better"] else -1.0
    for record in records:
        starts += record["kind"] == "start"
        value = record.get(given["monitor"]) if record["kind"] == "validation" else None
        if value is not None and sign * value >= sign * given["target"]:
            break
    return starts
