"""Whether the numbers of 8.6 are true: the ratio, and how far its interval reaches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.engine import Job

# Of the log ratio's median error over the machines of a kind: 4 deviations for 5 pairs of one step.
TOLERANCE = 0.12
CALM = (
    "quiet",
    "cold",
    "disturbed",
)  # where long pairs do not widen an interval, as they do where all drifts
# The error of the log ratio over half its interval, root mean square: 0.51 where each holds the truth in 95 %. Of right
# methods, 0.27 with the median of 8 pairs, 0.75 with a bootstrap of 5; twice the deviation of single pairs gives 0.2
# and less from 9 pairs on, one standard error 0.96 and more. What is far from both is clear after the first machines.
# After 120 more, right ones cross a limit in fewer than one check in 100, mostly in none of 1,000.
CLEAR, LIMITS = (0.3, 0.6), (0.2, 0.87)
WIDER = 4.0  # right ones reach 1.6, and without pairs 7 and more
FEW = 8  # pairs: of fewer, Student's t reaches far
FAR = 2.0  # halves of an interval: farther off counts as this
NARROWEST = 1.9  # standard errors: 1.96 for very many pairs
# Of a bootstrap over 20 pairs and more 1.85 to 1.96, of one that holds 90 % 1.6 to 1.65. One over a few long blocks
# varies from machine to machine, and is not judged.
NARROWEST_RESAMPLED, RESAMPLED_PAIRS = 1.75, 20
VARIES = 0.35  # between quiet machines: 0.2 where single pairs are drawn, 0.8 and more where 12 blocks or fewer are
ONE_SIDED = 0.5  # halves by which estimates are off on average: 0.1 and less where only luck moves them


def require_interval(job: Job, report: dict[str, float]) -> None:
    """Fail unless low and high are numbers around the ratio."""
    low, ratio, high = (report[name] for name in ("low", "ratio", "high"))
    job.require(
        math.isfinite(low) and 0 < low < high < math.inf,
        expected="an interval: 0 < low < high",
        got=f"{low:.4g} to {high:.4g}",
        likely="low and high are confused"
        if low > high
        else "a number without an interval: one pair, or low and high are the estimate itself",
        look="one log ratio per pair; the interval of their mean, then `exp`",
    )
    job.require(
        low <= ratio <= high,
        expected="a ratio inside its interval",
        got=f"{ratio:.4g}, and {low:.4g} to {high:.4g}",
        likely="the interval is that of something else: of logs, of differences, or of the other ratio",
        look="`exp` of all three",
    )


def _logs(measured: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    got, low, high = (
        np.log([max(one["report"][name], 1e-9) for one in measured]) for name in ("ratio", "low", "high")
    )
    return got, low, high


def require_estimates(job: Job, machines: list[dict[str, Any]], measured: list[dict[str, Any]]) -> None:
    """Fail unless the ratio is near the truth on most machines of each kind."""
    truth = np.log([facts["ratio"] for facts in machines])
    got, *_ = _logs(measured)
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


def require_paired(job: Job, machines: list[dict[str, Any]], measured: list[dict[str, Any]]) -> None:
    """Fail where the drift over a whole measurement widens the interval: pairs know only of their own."""
    shares, pairs = [], []
    for facts, one in zip(machines, measured, strict=True):
        if not facts["drift"]:
            continue
        setting = one["steps"][one["steps"][:, 2] > 0, 0]
        cuts = np.flatnonzero(np.diff(setting)) + 1
        length = float(np.median(np.diff([0, *cuts, len(setting)])))
        num_pairs = max(1.0, len(setting) / length / 2)
        pairs.append(num_pairs)
        spread = math.hypot(facts["drift"] * length, facts["noise"] * math.sqrt(2 / length))
        half = math.log(one["report"]["high"] / one["report"]["low"]) / 2
        shares.append(half / (2 * spread / math.sqrt(num_pairs)))
    share = float(np.median(shares))
    job.require(
        share <= WIDER,
        expected="intervals about as wide on machines that get slower or faster as pairs make them",
        got=f"{share:.0f} times as wide",
        likely="too few pairs"
        if np.median(pairs) < FEW
        else "the spread of each side for itself, without its pairs: all that the machine drifts counts as noise",
        look="one log ratio per pair, and the interval of their mean",
    )


def require_spread(
    job: Job,
    machines: list[dict[str, Any]],
    measured: list[dict[str, Any]],
    more: Callable[[], tuple[list[dict[str, Any]], list[dict[str, Any]]]],
) -> None:
    """Fail unless the intervals reach about as far as the estimates are off. `more` measures other, calm machines."""
    calm, all_ = _over_half(machines, measured)
    if not (CLEAR[0] <= calm and all_ <= CLEAR[1]):
        others, found = more()
        machines, measured = machines + others, measured + found
        calm, all_ = _over_half(machines, measured)
    truth = np.log([facts["ratio"] for facts in machines])
    _, low, high = _logs(measured)
    covered = float(((low <= truth) & (truth <= high)).mean())
    job.counts["truth_in_interval"] = round(covered, 2)
    job.require(
        all_ <= LIMITS[1],
        expected="intervals that hold the truth in about 95 % of the measurements",
        got=f"{covered:.0%} of {len(truth)}",
        likely="an arithmetic mean of ratios, which noise in the divisor pushes up: all three numbers come out too high"
        if float(np.mean(_off(machines, measured))) > ONE_SIDED
        else "too narrow an interval: one standard error instead of two, or single steps are counted as if they were "
        "independent of machine and moment",
        look="one value per pair; the interval is that of the mean over pairs, ± 2 standard errors",
    )
    quiet = np.array([facts["kind"] in ("quiet", "cold") for facts in machines])  # the same, behind a warm-up
    width = float(np.mean((high - low)[quiet]))
    job.require(
        calm >= LIMITS[0],
        expected="intervals about four times as wide as the estimates are off, as those of 95 % are",
        got=f"{2 / max(calm, 1e-3):.0f} times as wide",
        likely="too wide an interval: the spread of single pairs where that of their mean belongs, or of single steps",
        look="the standard error of a mean of n is the deviation / √n",
    )
    job.require(
        width <= math.log(1.5),
        expected="an interval no wider than a factor of 1.5 on quiet machines, where a step varies by 6 %",
        got=f"a factor of {math.exp(min(width, 9)):.2f}",
        likely="too few pairs",
        look="more pairs: there is room for 2,000 steps",
    )


def require_errors_of_pairs(job: Job, measured: list[dict[str, Any]]) -> None:
    """Fail where an interval is plainly the mean over pairs ± so many standard errors, and these are too few."""
    found = [number for one in measured if (number := _standard_errors(one, 3)) is not None]
    # Of many means of so many last pairs one is like another estimate by chance, on a few machines.
    number = float(np.median(found)) if len(found) > len(measured) / 2 else NARROWEST
    job.require(
        number >= NARROWEST,
        expected="an interval of 95 %: the mean over the pairs ± 2 standard errors, of few pairs more",
        got=f"± {number:.2f} standard errors",
        likely="too narrow an interval: one standard error, or that of a mean over more values than there are pairs",
        look="one value per pair: their standard deviation / √pairs is the standard error",
    )


def require_errors_resampled(
    job: Job, machines: list[dict[str, Any]], measured: list[dict[str, Any]]
) -> None:
    """Fail where a bootstrap around the mean over many pairs is too narrow on each of the quiet machines."""
    quiet = [one for facts, one in zip(machines, measured, strict=True) if facts["kind"] in ("quiet", "cold")]
    found = [n for one in quiet if (n := _standard_errors(one, RESAMPLED_PAIRS, is_even=False)) is not None]
    is_plain = len(found) > len(quiet) * 0.8 and max(found) - min(found) <= VARIES
    number = max(found) if is_plain else NARROWEST
    job.require(
        number >= NARROWEST_RESAMPLED,
        expected="an interval of 95 %: about ± 2 standard errors, also where it comes from a bootstrap",
        got=f"± {number:.2f} standard errors or less on each quiet machine",
        likely="too narrow an interval: between the quantiles 0.05 and 0.95 of a bootstrap lie 90 %, for 5 % are left "
        "out on each side",
        look="leave out 2.5 % on each side: `np.quantile(means, [0.025, 0.975])`",
    )


def _standard_errors(one: dict[str, Any], fewest: int, is_even: bool = True) -> float | None:
    """Half the interval in standard errors of the mean log ratio of the last pairs, where it is that of such a mean.

    `fewest`: of so many pairs at least. `is_even`: whether it must reach as far below the mean as above it.
    """
    low, middle, high = (math.log(one["report"][name]) for name in ("low", "ratio", "high"))
    logs = _logs_of_pairs(one["steps"], one["step_seconds"])
    for number in range(len(logs), fewest - 1, -1):  # the first pairs may have been a warm-up
        mean, spread = float(np.mean(logs[-number:])), float(np.std(logs[-number:], ddof=1))
        is_middle = not is_even or math.isclose(low + high, 2 * middle, abs_tol=1e-7)
        if math.isclose(mean, middle, abs_tol=1e-7) and is_middle:
            return (high - low) / 2 / (spread / math.sqrt(number))
    return None


def _logs_of_pairs(steps: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Log ratios of pairs of timed sides, in their order; a side is all steps between two readings of the clock."""
    sides = [(steps[:, 2] == reading).nonzero()[0] for reading in np.unique(steps[:, 2])]
    one_sided = [side for side in sides if len(set(steps[side, 0])) == 1]
    logs = []
    for first, second in zip(one_sided[-2::-2], one_sided[::-2], strict=False):
        if steps[first[0], 0] == steps[second[0], 0]:
            break
        log = math.log(seconds[first].mean() / seconds[second].mean())
        logs.append(log if steps[first[0], 0] else -log)
    return np.array(logs[::-1])


def _over_half(machines: list[dict[str, Any]], measured: list[dict[str, Any]]) -> tuple[float, float]:
    """How far off the estimates are, in halves of their interval: on calm machines, and on all."""
    off = _off(machines, measured)
    calm = np.array([facts["kind"] in CALM for facts in machines])
    return float(np.sqrt(np.mean(off[calm] ** 2))), float(np.sqrt(np.mean(off**2)))


def _off(machines: list[dict[str, Any]], measured: list[dict[str, Any]]) -> np.ndarray:
    truth = np.log([facts["ratio"] for facts in machines])
    got, low, high = _logs(measured)
    return np.clip((got - truth) / ((high - low) / 2), -FAR, FAR)
