"""Sequences of validations for exercise 4.3, and when early stopping must end them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

METRICS = ("loss", "accuracy", "macro_f1", "train_loss")
DEFAULTS = {"monitor": "loss", "mode": "min", "patience": 3, "min_delta": 0.0}
KINDS = ("plain",) * 30 + ("default",) * 4 + ("zero",) * 8 + ("NaN",) * 10 + ("infinite",) * 8 + ("long",) * 2
_LENGTH, _LONG = 24, 160
_HAIR = 2.0**-40
Start = tuple[float | None, int | None, int]
FRESH: Start = (None, None, 0)


def simulate(
    case: Mapping[str, Any], mistake: str = "", start: Start = FRESH, first: int = 0
) -> dict[str, Any]:
    """When early stopping must stop, its best and its count; with `mistake`, when one with that mistake does.

    Args:
        start: best, its step and the count of bad ones before the validation number `first`.
    """
    settings = DEFAULTS | case["settings"]
    mode = settings["mode"] if mistake != "mode ignored" else "min"
    sign = -1.0 if (mode == "min") != (mistake == "mode inverted") else 1.0
    min_delta = 0.0 if mistake == "min_delta ignored" else settings["min_delta"]
    min_delta += 1e-9 if mistake == "tolerance" else 0.0
    patience = settings["patience"] + {"one late": 1, "one early": -1}.get(mistake, 0)
    name = {"train loss": "train_loss", "loss": "loss"}.get(mistake, settings["monitor"])
    best, best_step, bad = start
    for number, (values, step) in enumerate(zip(case["metrics"], case["steps"], strict=True)):
        value = values.get(name, math.nan)
        is_skipped = mistake == "NaN is skipped" or (mistake == "NaN is skipped at first" and best is None)
        if number < first or (math.isnan(value) and is_skipped):
            continue
        is_first = best is None or (mistake == "zero is none" and best == 0.0)
        gain = math.inf if is_first else sign * (value - best)
        if is_first and mistake == "begins at infinity" and value == -sign * math.inf:
            gain = 0.0
        is_usable = not math.isnan(value) or (mistake == "NaN is best" and best is None)
        reached = gain >= min_delta and (
            mistake == "equal" or (mistake == "min_delta reached" and min_delta > 0)
        )
        if is_usable and (gain > min_delta or reached):
            best, best_step = value, step
            bad = bad if mistake == "counter not reset" else 0
            continue
        if mistake == "best creeps" and gain > 0.0:
            best, best_step = value, step
        bad += 1
        if bad >= patience:
            return {"stop": number + 1, "best": best, "best_step": best_step, "bad": bad}
    return {"stop": None, "best": best, "best_step": best_step, "bad": bad}


def draw_cases(rng: np.random.Generator) -> list[dict[str, Any]]:
    """A case of each of `KINDS`, in that order."""
    return [_case(rng, kind, number) for number, kind in enumerate(KINDS)]


def no_better(case: Mapping[str, Any]) -> dict[str, float]:
    """A validation that improves on nothing."""
    return dict.fromkeys({*METRICS, (DEFAULTS | case["settings"])["monitor"]}, math.nan)


def better(case: Mapping[str, Any], best: float | None) -> dict[str, float] | None:
    """A validation that improves on this best; None where nothing can."""
    whole = DEFAULTS | case["settings"]
    sign = -1.0 if whole["mode"] == "min" else 1.0
    if best == sign * math.inf:
        return None
    start = best if best is not None and math.isfinite(best) else 0.0
    return dict.fromkeys({*METRICS, whole["monitor"]}, start + sign * 100.0)


def where_infinity_counts(case: Mapping[str, Any], length: int) -> list[int]:
    """After how many of the first `length` validations the best so far is infinite, and matters to what comes."""
    found = []
    for cut in range(1, length):
        had = simulate({**case, "metrics": case["metrics"][:cut], "steps": case["steps"][:cut]})
        if had["best"] is not None and math.isinf(had["best"]):
            starts = [(best, had["best_step"], had["bad"]) for best in (had["best"], None)]
            right, forgetful = (simulate(case, start=start, first=cut) for start in starts)
            found += [cut] * (right["stop"] != forgetful["stop"] or right["best"] != forgetful["best"])
    return found


def with_nothing_else(case: Mapping[str, Any]) -> dict[str, Any]:
    """The same case, in which the monitored metric is the only one."""
    monitor = (DEFAULTS | case["settings"])["monitor"]
    return {**case, "metrics": [{monitor: values[monitor]} for values in case["metrics"]]}


def _case(rng: np.random.Generator, kind: str, number: int) -> dict[str, Any]:
    settings = {
        "monitor": str(rng.choice(["loss", "accuracy", "macro_f1", "val/loss"])),
        "mode": ("min", "max")[number % 2],
        "patience": int(rng.integers(1, 6)) if number % 10 else 2 * _LENGTH,
        "min_delta": (0.0, 0.25, 0.5, 2.0**-10)[int(rng.integers(4))],
    }
    if kind == "default":
        settings = {}
    whole = DEFAULTS | settings
    sign = -1.0 if whole["mode"] == "min" else 1.0
    # Eighths, so that differences are exact; a drift to the better, so that runs are of several lengths.
    watched = float(rng.choice([8.0, 0.5, -3.0])) + sign * np.cumsum(rng.integers(-3, 6, size=_LENGTH) / 8)
    if kind == "default" and number % 4 == 3:  # small steps to a best, and nothing more
        watched = 8.0 - np.minimum(np.arange(_LENGTH), 7) / 8
        watched[8:] += 0.125
    if kind == "plain" and number % 10 in (4, 7):  # better by exactly `min_delta`, and by no more
        min_delta = (0.25, 0.5, 0.0)[number // 10]
        settings |= {"min_delta": min_delta, "patience": int(rng.integers(2, 5))}
        watched[1] = watched[0] + sign * min_delta
        watched[2:] = watched[0] - sign * rng.integers(0, 4, size=_LENGTH - 2) / 8
    if kind == "plain" and number % 10 in (1, 8):  # better by hardly more than `min_delta`, again and again
        min_delta = (0.0, 0.25, 0.0)[number // 10]
        settings |= {"min_delta": min_delta, "patience": int(rng.integers(1, 4))}
        climb = np.minimum(np.arange(_LENGTH), int(rng.integers(4, 9)))
        watched = watched[0] + sign * (min_delta + _HAIR) * climb
    if kind == "long":  # the first is the best, longer than anyone would keep them all
        settings["patience"] = int(rng.integers(110, 130))
        watched = watched[0] - sign * np.append(0, rng.integers(1, 9, size=_LONG - 1)) / 8
    if kind == "zero":  # it is the best for a while, then something better or worse comes
        settings |= {"patience": int(rng.integers(2, 5)), "min_delta": (0.0, 0.25)[number // 2 % 2]}
        small = np.array([-2.0, -1.0, 0.0, -1.0 if number // 4 % 2 else 0.125, -0.5, -0.25])
        watched[: len(small)] = sign * small
        watched[len(small) :] = sign * rng.choice([-0.25, 0.125, 0.25], size=_LENGTH - len(small))
    if kind == "NaN":
        watched[rng.random(_LENGTH) < 0.15] = math.nan
        watched[: (0, 1, 2, 0, _LENGTH)[number // 2 % 5]] = math.nan
        if number // 2 % 5 == 4:
            settings["patience"] = int(rng.integers(_LENGTH - 2, _LENGTH + 1))
        if number // 2 % 5 == 3:  # among the bad ones that end it
            watched = sign * np.where(np.arange(_LENGTH) < 5, np.arange(_LENGTH), -1.0)
            watched[6] = math.nan
            settings["patience"] = int(rng.integers(2, 5))
    if kind == "infinite":
        worst, at = -sign * math.inf, int(rng.integers(6, 12))
        if number // 2 % 2:  # nothing ends it before the best that can be
            watched[:at] = watched[0] + sign * np.arange(at)
        watched[(0, 0, 3, 5)[number // 2 % 4]] = worst
        watched[at] = -worst if number // 2 % 2 else worst
        watched[at + 1] = watched[at]  # no better: their difference is NaN
        settings["patience"] = 1 if number // 2 % 4 == 0 else 2
        if number // 2 % 4 == 1:  # twice, so that patience would end before the first finite one
            watched[1] = worst
    if kind != "zero":  # more digits than anyone would print, and sums that are exact all the same
        watched += (2 * int(rng.integers(2**10, 2**21)) + 1) * _HAIR
    length = len(watched)
    columns = {name: 8.0 + np.cumsum(rng.integers(-4, 5, size=length)) / 8 for name in METRICS}
    columns[str(whole["monitor"])] = watched
    order = [
        str(name) for name in rng.permutation([*columns])
    ]  # no place among the others is the monitored one's
    metrics = [{name: float(columns[name][at]) for name in order} for at in range(length)]
    steps = np.cumsum(rng.integers(number % 2, 40, size=length)) - (1 if number % 4 else 0)
    steps[0] = 0 if number % 2 else steps[0]
    return {"kind": kind, "settings": settings, "metrics": metrics, "steps": steps.tolist()}
