"""The check of 8.6: the method of a measurement, on machines whose truth is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_keys

MACHINES: dict[str, dict[str, float]] = {
    "quiet": {},
    "cold": {"cold_steps": 8},
    "heating": {"drift": 0.006},
    "cooling": {"drift": -0.004},
    "disturbed": {"spikes": 0.05},
}
EACH = 6
MAX_STEPS = 2000
# Of the log ratio's median error over the machines of a kind: 4 deviations for 5 pairs of one step.
TOLERANCE = 0.12
MIN_COVERED = 0.5  # of the 95 % intervals; those of a bootstrap over 8 blocks hold the truth in 85 % or more


def check_cost_of_determinism(job: Job) -> None:
    """8.6: measured warm, in pairs, in both orders, with an interval, and with the settings put back."""
    machines = [_machine(job, kind) for kind in MACHINES for _ in range(EACH)]
    measured = job.learner().call("measure_cost", machines=machines, seconds=60.0)
    for one in measured:
        require_keys(job, one["report"], ("ratio", "low", "high"))
        _require_both_sides(job, one)
    _require_interval(job, measured)
    _require_estimates(job, machines, measured)
    _require_alternating(job, measured)


def _machine(job: Job, kind: str) -> dict[str, Any]:
    rng = job.rng
    ratio = float(np.exp(rng.uniform(math.log(1.3), math.log(3.0))) ** rng.choice([1, 1, -1]))
    facts = {"cold_steps": 0, "drift": 0.0, "spikes": 0.0, "noise": 0.06, "max_steps": MAX_STEPS}
    was_deterministic = bool(rng.integers(2))
    own = {
        "kind": kind,
        "seed": job.seed(),
        "ratio": ratio,
        "seconds": float(rng.uniform(0.02, 0.2)),
        "was_deterministic": was_deterministic,
        "was_benchmark": not was_deterministic,
    }
    return facts | MACHINES[kind] | own


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
        likely="the setting is never switched, or switched by another name",
        look="`torch.are_deterministic_algorithms_enabled()` tells",
    )
    with_search = int((steps[:, 0] & steps[:, 1]).sum())
    job.require(
        with_search == 0,
        expected="`torch.backends.cudnn.benchmark` off while torch is deterministic",
        got=f"{with_search} steps with both on",
        likely="`benchmark=True` with determinism: cuDNN picks its kernels by the clock, so another run takes others",
        look="switch both, whatever they were before",
    )
    job.require(
        one["is_restored"],
        expected="both settings as they were before",
        got="a process that stays changed",
        likely="the settings are not put back: all that runs later pays, and nobody knows why",
        look="remember both first; `try … finally`",
    )


def _require_interval(job: Job, measured: list[dict[str, Any]]) -> None:
    for one in measured:
        report = one["report"]
        job.require(
            math.isfinite(report["low"]) and 0 < report["low"] < report["high"] < math.inf,
            expected="an interval: 0 < low < high",
            got=f"{report['low']:.4g} to {report['high']:.4g}",
            likely="a number without an interval: one pair, or low and high are the estimate itself",
            look="one log ratio per pair; the interval of their mean, then `exp`",
        )


def _require_estimates(job: Job, machines: list[dict[str, Any]], measured: list[dict[str, Any]]) -> None:
    truth = np.log([facts["ratio"] for facts in machines])
    got, low, high = (
        np.log([max(one["report"][name], 1e-9) for one in measured]) for name in ("ratio", "low", "high")
    )
    kinds = np.array([facts["kind"] for facts in machines])
    likely = {
        "quiet": "upside down: the cost is the time with determinism / the time without"
        if np.median(np.abs(got + truth)) < np.median(np.abs(got - truth))
        else "other steps are timed than are counted, or one side does more of them",
        "cold": "no warm-up: the first steps pay for imports, memory and kernels, and count like the others",
        "heating": "first one setting, then the other: two moments of a machine that gets slower are compared",
        "cooling": "first one setting, then the other: two moments of a machine that gets faster are compared",
    }
    for kind, reason in likely.items():
        error = float(np.median(np.abs(got - truth)[kinds == kind]))
        job.require(
            error <= TOLERANCE,
            expected=f"a ratio within {math.expm1(TOLERANCE):.0%} of the truth on most {kind} machines",
            got=f"off by {math.expm1(error):.0%}" if error < 5 else "off by more than a hundredfold",
            likely=reason,
            look="run a few steps of both untimed; then time them in turns, in pairs, and average the log ratios",
        )
    covered = float(((low <= truth) & (truth <= high)).mean())
    width = float(np.median((high - low)[kinds == "quiet"]))
    job.counts["truth_in_interval"] = round(covered, 2)
    job.require(
        covered >= MIN_COVERED,
        expected="intervals that hold the truth in about 95 % of the measurements",
        got=f"{covered:.0%} of {len(truth)}",
        likely="too narrow an interval: single steps are counted as if they were independent of machine and moment",
        look="one value per pair; the interval is that of the mean over pairs",
    )
    job.require(
        width <= math.log(1.5),
        expected="an interval no wider than a factor of 1.5 on quiet machines, where a step varies by 6 %",
        got=f"a factor of {math.exp(min(width, 9)):.2f}",
        likely="too few pairs, or the spread of single pairs where that of their mean belongs",
        look=f"more pairs: there is room for {MAX_STEPS} steps",
    )


def _require_alternating(job: Job, measured: list[dict[str, Any]]) -> None:
    """0 where each setting stands first as often as second; 1 where one always leads by the length of a segment."""
    leads = []
    for one in measured:
        steps = one["steps"]
        setting = steps[(steps[:, 2] > 0) & (steps[:, 2] < one["num_readings"]), 0]  # not the warm-up
        cuts = np.flatnonzero(np.diff(setting)) + 1
        lengths = np.diff(np.concatenate([[0], cuts, [len(setting)]]))
        position = np.arange(len(setting))
        if setting.min() == setting.max():
            continue
        lead = position[setting == 1].mean() - position[setting == 0].mean()
        leads.append(lead / np.median(lengths))
    lead = abs(float(np.mean(leads))) if leads else 0.0
    job.require(
        lead <= 0.75,
        expected="each setting first in about half of the pairs",
        got="one that nearly always goes first",
        likely="the order never alternates: whatever drifts favours the same side in each pair",
        look="ABBA: with, without, without, with; or draw the order of each pair",
    )
