"""The check of 8.6: the method of a measurement, on machines whose truth is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_keys
from autograder.lessons.lesson_08.checks.intervals import (
    CALM,
    require_errors_of_pairs,
    require_errors_resampled,
    require_estimates,
    require_interval,
    require_paired,
    require_spread,
)

MACHINES: dict[str, dict[str, float]] = {
    "quiet": {},
    "cold": {"cold_steps": 5},
    "heating": {"drift": 0.006},
    "cooling": {"drift": -0.004},
    "disturbed": {"spikes": 0.05},
}
EACH = 6
MORE = 40  # of each calm kind, where thirty machines leave open how far its intervals reach
EVEN, MAX_MISSES = (8, 112), 0.2
"""Machines on which the two take the same, and the share of them whose intervals may leave that out. Simulated: who
waits for a narrow interval leaves it out in 5 to 10 %, and in more than 24 of 120 in fewer than 2 of 10,000 checks."""
FEW = 3  # measurements that all end early and all leave out 1 are no chance
MAX_STEPS = 2000
AT_ONCE = 20  # machines: so much can be told of one call
SHORT = 1e-5  # seconds of a step, where others take 0.02 and more
DRAWN, MOST_LEAD = 3.0, (0.4, 0.75)
"""How far one setting may lead, where 1 is always: three deviations where each pair's order is drawn."""
COLD = 1e-6  # of the log ratio: what the clock rounds


def check_cost_of_determinism(job: Job) -> None:
    """8.6: measured warm, in pairs, in both orders, with an interval, and with the settings put back."""
    machines = [_machine(job, kind) for kind in MACHINES for _ in range(EACH)]
    measured = _measured(job, machines)
    for one in measured:
        _require_both_sides(job, one)
    _measured(job, [_machine(job, "quiet") | {"seconds": SHORT}])
    likely = "the settings are not put back: all that runs later pays, and nobody knows why"
    for one in sorted(measured, key=_lost_warn_only):  # last, where it is lost among others
        _require_restored(job, one, "both settings as they were before", likely)
    for one in measured:
        require_interval(job, one["report"])
    _require_restored_after_errors(job)
    cold = [(facts, one) for facts, one in zip(machines, measured, strict=True) if facts["cold_steps"]]
    _require_warm(
        job, [one for _, one in cold], _measured(job, [facts | {"cold_steps": 0} for facts, _ in cold])
    )
    require_estimates(job, machines, measured)
    _require_alternating(job, measured)

    def more() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        others = [_machine(job, kind) for kind in CALM for _ in range(MORE)]
        return others, _measured(job, others)

    require_spread(job, machines, measured, more)
    require_paired(job, machines, measured)
    require_errors_of_pairs(job, measured)
    require_errors_resampled(job, machines, measured)
    _require_no_peeking(job, measured)


def _require_no_peeking(job: Job, ordinary: list[dict[str, Any]]) -> None:
    """Fail where steps are added until an interval leaves out 1, on machines where determinism costs nothing.

    Who does so takes the fewest steps on all ordinary machines, where the cost is plain; and on the others ends early
    only where the interval leaves out 1. Who waits for a narrow interval does neither.
    """
    numbers = {len(one["steps"]) for one in ordinary}
    even: list[dict[str, Any]] = []
    measured: list[dict[str, Any]] = []
    for number in EVEN:
        if measured and len(numbers | {len(one["steps"]) for one in measured}) == 1:
            return  # the same number of steps on all asks nobody's advice
        some = [_machine(job, "quiet") | {"ratio": 1.0} for _ in range(number)]
        even, measured = even + some, measured + _measured(job, some)
    missed = [not one["report"]["low"] <= 1.0 <= one["report"]["high"] for one in measured]
    misses, steps = sum(missed), [len(one["steps"]) for one in measured]
    early = [miss for miss, number in zip(missed, steps, strict=True) if number < max(steps)]
    is_sure = len(numbers) == 1 and max(steps) > max(numbers)
    job.require(
        misses <= MAX_MISSES * len(even) and not (all(early) and len(early) >= (1 if is_sure else FEW)),
        expected="intervals that hold the truth in about 95 % of measurements, also where determinism costs nothing",
        got=f"{1 - misses / len(even):.0%} of {len(even)}, and {sum(early)} of {len(early)} that end early leave out 1",
        likely="pairs are added until the interval leaves out 1: who looks after each pair sees a difference sooner or "
        "later, where there is none",
        look="decide on the number of pairs before the first one",
    )


def _machine(job: Job, kind: str) -> dict[str, Any]:
    rng = job.rng
    ratio = float(np.exp(rng.uniform(math.log(1.3), math.log(3.0))) ** rng.choice([1, 1, -1]))
    facts = {"cold_steps": 0, "drift": 0.0, "spikes": 0.0, "noise": 0.06, "max_steps": MAX_STEPS}
    own = {
        "kind": kind,
        "seed": job.seed(),
        "ratio": ratio,
        "seconds": float(rng.uniform(0.02, 0.2)),
        "starts_at": float(rng.choice([0.0, rng.uniform(0, 1000)])),
        "was_deterministic": bool(rng.integers(2)),
        "was_warn_only": bool(rng.integers(2)),
        "was_benchmark": bool(rng.integers(2)),
        "breaks": "",
        "breaks_at": 2,
    }
    return facts | MACHINES[kind] | own


def _measured(job: Job, machines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reports, and what was told of each machine's steps as they were taken."""
    measured: list[dict[str, Any]] = []
    for start in range(0, len(machines), AT_ONCE):
        some = job.learner().call("measure_cost", machines=machines[start : start + AT_ONCE], seconds=60.0)
        seen = job.learner().told.call.seen
        for number, one in enumerate(some):
            told = {name: [row[1:] for row in rows if row[0] == number] for name, rows in seen.items()}
            steps = np.array(told.get("step", [])).reshape(-1, 5)
            one |= {"steps": steps[:, :4].astype(np.int64), "step_seconds": steps[:, 4]}
            one |= {"num_readings": len(told.get("reading", []))}
            one |= {"is_over": bool(told.get("over")), "has_broken": bool(told.get("broken"))}
        measured += some
    for facts, one in zip(machines, measured, strict=True):
        is_short = facts["seconds"] == SHORT  # others have passed already
        job.require(
            not one["is_over"],
            expected=f"a measurement of at most {MAX_STEPS:,} steps" + ", also of short ones" * is_short,
            got="one more",
            likely="the number of steps hangs on how long one takes: of short ones it takes more than are allowed"
            if is_short
            else "too many pairs, or steps in a pair; a loop that goes on until it likes the interval",
            look="count the steps: pairs times steps of a pair, and the warm-up",
        )
        if not any(facts["breaks"] for facts in machines):
            require_keys(job, one["report"], ("ratio", "low", "high"))
    return measured


def _require_restored_after_errors(job: Job) -> None:
    machines = [
        _machine(job, "quiet")
        | {"breaks": breaks, "was_deterministic": was, "was_warn_only": warns, "was_benchmark": not was}
        | {"breaks_at": at}
        for breaks, was, warns, at in (
            ("torch's", False, False, 2),
            ("of a list", False, True, 2),
            ("stopped by hand", True, False, 2),
            ("its own", True, True, 2),
            ("its own", False, True, 25),
        )
    ]
    for one in _measured(job, machines):
        if not one["has_broken"]:  # so few steps
            continue
        _require_restored(
            job,
            one,
            "both settings as they were before, also when `step` raises an error",
            "the settings are put back at the end alone, or a part of the steps lies outside the `try`: an error on "
            "the way leaves them as they are",
        )
        job.require(
            one["raised"] == "the error",
            expected="the error of `step` to reach the caller, whatever it is",
            got=f"another one, {one['raised']}"[:160]
            if one["raised"]
            else "a return, as if nothing had happened",
            likely="another error is raised in its place"
            if one["raised"]
            else "the error is swallowed: `return` in `finally`, or an `except` without `raise`",
            look="`try … finally` needs no `except`",
        )


def _require_restored(job: Job, one: dict[str, Any], expected: str, likely: str) -> None:
    was, left = one["was"], one["left"]
    job.require(
        was == left,
        expected=f"{expected}: {', '.join(was)}",
        got=f"a process that stays changed: {', '.join(left)}",
        likely="`warn_only` is not put back: who wanted warnings alone gets errors, now or when determinism is on again"
        if _lost_warn_only(one)
        else likely,
        look="remember both first, and `torch.is_deterministic_algorithms_warn_only_enabled()`; `try … finally`",
    )


def _lost_warn_only(one: dict[str, Any]) -> bool:
    """Whether `warn_only` is another than before, and nothing else."""
    return [a == b for a, b in zip(one["was"], one["left"], strict=True)] == [True, False, True]


def _require_both_sides(job: Job, one: dict[str, Any]) -> None:
    steps = one["steps"]
    job.require(
        one["num_readings"] >= 2,
        expected="a measurement by the clock that is given",
        got=f"{one['num_readings']} readings of it",
        likely="another clock: `time.perf_counter` knows nothing of what `step` takes here",
        look="`clock()` returns seconds; call it before and after the steps to time",
    )
    seen = {bool(setting) for setting in steps[:, 0]} if len(steps) else set()
    job.require(
        len(seen) == 2,
        expected="steps with and without `torch.use_deterministic_algorithms`",
        got="one setting alone",
        likely="the setting is never switched, or by another name, or one of the two is the setting that was found",
        look="`torch.are_deterministic_algorithms_enabled()` tells",
    )
    with_warnings = int((steps[:, 0] & steps[:, 3]).sum())
    job.require(
        with_warnings == 0 or one["was"][1] == "warn_only True",
        expected="steps under `torch.use_deterministic_algorithms(True)`",
        got=f"{with_warnings} steps with warn_only=True, where it was not set before",
        likely="`warn_only=True` while it is measured: what has no deterministic version goes on as before, and costs "
        "nothing",
        look="what is asked for is the cost of True, with its errors",
    )
    with_search = int((steps[:, 0] & steps[:, 1]).sum())
    job.require(
        with_search == 0,
        expected="`torch.backends.cudnn.benchmark` off while torch is deterministic",
        got=f"{with_search} steps with both on",
        likely="`benchmark=True` with determinism: cuDNN picks its kernels by the clock, so another run takes others",
        look="switch both, whatever they were before",
    )


def _require_warm(job: Job, measured: list[dict[str, Any]], warm: list[dict[str, Any]]) -> None:
    """Fail where the same steps give another ratio on the same machine, but that its first steps are not slow."""
    off = [
        abs(math.log(max(one["report"]["ratio"], 1e-9) / max(other["report"]["ratio"], 1e-9)))
        for one, other in zip(measured, warm, strict=True)
        if np.array_equal(one["steps"], other["steps"])
    ]
    job.require(
        max(off, default=0.0) <= COLD,
        expected="a ratio that does not hang on the first 5 steps with each setting",
        got=f"one that moves by {math.expm1(min(max(off, default=0.0), 9)):.1%} when they are slow",
        likely="no warm-up, one that is too short, or of one setting alone: the first steps pay for imports, memory "
        "and kernels, and count like the others",
        look="run a few steps of both settings, and do not look at what they take",
    )


def _balanced(setting: np.ndarray) -> np.ndarray:
    """Steps, counted from the last, from which on each setting has as many: what is before may be a warm-up that is
    timed. At least three quarters of all."""
    ahead = np.cumsum(2 * setting[::-1] - 1)
    even = np.flatnonzero(ahead == 0)
    long = even[even >= 0.75 * len(setting)]
    return long if long.size else even[-1:] if even.size else np.array([len(setting) - 1])


def _lead_of(setting: np.ndarray) -> tuple[float, float] | None:
    """How many segments one setting stands before the other, and how many pairs of segments there are."""
    if setting.min() == setting.max():
        return None
    cuts = np.flatnonzero(np.diff(setting)) + 1
    length = np.median(np.diff(np.concatenate([[0], cuts, [len(setting)]])))
    position = np.arange(len(setting))
    lead = position[setting == 1].mean() - position[setting == 0].mean()
    return float(lead / length), float(len(setting) / length / 2)


def _require_alternating(job: Job, measured: list[dict[str, Any]]) -> None:
    """0 where each setting stands first as often as second; 1 where one always leads by the length of a segment."""
    leads, pairs = [], []
    for one in measured:
        steps = one["steps"]
        setting = steps[(steps[:, 2] > 0) & (steps[:, 2] < one["num_readings"]), 0]
        found = [_lead_of(setting[-1 - start :]) for start in _balanced(setting)]
        if any(each is not None for each in found):
            lead, num_pairs = min((each for each in found if each is not None), key=lambda each: abs(each[0]))
            leads.append(lead)
            pairs.append(num_pairs)
    lead = abs(float(np.mean(leads))) if leads else 0.0
    job.require(
        lead <= (np.clip(DRAWN / math.sqrt(np.median(pairs)), *MOST_LEAD) if pairs else 1.0),
        expected="each setting first in about half of the pairs",
        got="one that nearly always goes first",
        likely="the order never alternates: whatever drifts favours the same side in each pair",
        look="ABBA: with, without, without, with; or draw the order of each pair",
    )
