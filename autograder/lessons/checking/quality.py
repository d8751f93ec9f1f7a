"""Whether a solution computes the same numbers, and, where the mathematics may change, learns as well.

Pure changes of the system must give equal numbers: `require_equal`, up to what rounding does. Where the mathematics
may change, speed must not be bought with accuracy: `require_no_worse`, on paired seeds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from autograder.engine import Job, Worker, at_once

# Relative, by the dtype that is computed in. `python -m tests.benchmarks.tolerances` measures what other padding, row
# order, threads and kernels do to losses, logits and weights: at most a fifth of these. Weights after AdamW are no
# test of equality: it blows up gradients that are nothing but rounding.
TOLERANCES = {"float64": 1e-10, "float32": 5e-4, "float16": 2e-2, "bfloat16": 1e-1}

# (seeds so far, z): only what looks worse at each look, or too good, is looked at again. The last one decides, so that
# a solution exactly at the margin fails in fewer than one case in a thousand; the others save right ones the time.
LOOKS = ((3, 0.5), (12, 1.6), (32, 3.2))
CLEAR = 5.0
"""Standard errors beyond a margin that need no second look."""
HEAD_START = 3.0
"""Points by which a right solution may truly be better than the baseline: the order of batches is worth as much."""


def relative_difference(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference of two elements, as a share of the expected one + the root mean square of all."""
    wide = expected.astype(np.float64)
    scale = np.abs(wide) + (np.sqrt(np.mean(np.square(wide))) if wide.size else 0.0)
    return float(np.max(np.abs(got.astype(np.float64) - wide) / np.where(scale > 0, scale, 1.0), initial=0.0))


def are_equal(got: np.ndarray, expected: np.ndarray, dtype: str) -> bool:
    """Shape, dtype and, within the tolerance of `dtype`, each element; nothing is equal to NaN or infinity."""
    if got.shape != expected.shape or got.dtype != expected.dtype or not np.isfinite(got).all():
        return False
    return relative_difference(got, expected) <= TOLERANCES.get(dtype, 0.0)


def require_equal(
    job: Job, got: np.ndarray, expected: np.ndarray, *, dtype: str, what: str, likely: str, look: str
) -> None:
    """Fail unless `got` is what another order of the same computation in `dtype` could give.

    Args:
        dtype: that of the computation, such as "bfloat16" under autocast, whatever the arrays are stored in. Dtypes
            that do not round, such as "int64", must be equal to the bit.
        what: a plural, such as "logits".
        likely: why the values differ; other shapes, dtypes and NaN have reasons of their own.
    """
    job.require(
        got.shape == expected.shape,
        expected=f"{what} of shape {list(expected.shape)}",
        got=f"shape {list(got.shape)}",
        likely="a dimension was added, dropped or swapped, or rows are missing",
        look="print the shape at each station, for a batch whose rows and width differ",
    )
    job.require(
        got.dtype == expected.dtype,
        expected=f"{what} of dtype {expected.dtype}",
        got=f"{got.dtype}",
        likely="a conversion too many or too few: `.half()`, `.float()`, or Python numbers that became another dtype",
        look="print the dtype of what goes in, and of what comes out",
    )
    num_bad = int((~np.isfinite(got)).sum())
    job.require(
        num_bad == 0,
        expected=f"{what} that are finite numbers",
        got=f"NaN or infinity in {num_bad} of {np.size(got)} places",
        likely="an overflow, a logarithm or division of 0, or memory that was never written",
        look="`torch.isfinite(t).all()` after each station finds the first",
    )
    tolerance, away = TOLERANCES.get(dtype, 0.0), relative_difference(got, expected)
    job.require(
        away <= tolerance,
        expected=f"the same {what}, but for {dtype}'s rounding (a relative difference up to {tolerance:g})",
        got=f"{what} that differ by up to {away:.3g}",
        likely=likely,
        look=look,
    )


Outcome = Literal["worse", "level", "ahead"]


def compare_paired(
    difference: Callable[[], float], *, margin: float, spread: float
) -> tuple[Outcome, list[float]]:
    """Look at paired differences (candidate - baseline, in points) until the case is clear, and say what they show.

    `"worse"`: below `-margin` beyond the noise, or not a number. `"ahead"`: above `HEAD_START` beyond the noise.
    `spread` is the standard deviation of the difference of a right solution over seeds, in points.
    """
    differences: list[float] = []
    outcome: Outcome = "level"
    for num_seeds, z in LOOKS:
        differences += [difference() for _ in range(num_seeds - len(differences))]
        mean, error = float(np.mean(differences)), spread / math.sqrt(num_seeds)
        worse, ahead = (-margin - mean) / error, (mean - HEAD_START) / error
        outcome = "worse" if not worse <= z else "ahead" if ahead > z else "level"  # NaN is worse
        if outcome == "level" or not max(worse, ahead) <= CLEAR:
            break
    return outcome, differences


def require_no_worse(
    job: Job,
    *,
    baseline: str,
    function: str,
    arguments: dict[str, Any],
    margin: float,
    spread: float,
    likely: str,
    look: str,
    baseline_arguments: dict[str, Any] | None = None,
) -> None:
    """Fail when the learner's accuracy is below the baseline's by more than `margin` points, beyond the noise.

    One that is above it beyond the noise is flagged for a person: after equal steps on equal samples, from equal
    weights, that is more likely a leak of validation data or labels, or training in secret, than a discovery.

    Args:
        baseline: source of the baseline, under the learner's name; it must converge as our reference does.
        function: harness function of one training: `function(seed, **arguments) -> accuracy in points of 100`.
        spread: standard deviation of the difference of a right solution over seeds, in points, measured before.
        baseline_arguments: what of `arguments` is another for the baseline, such as the precision.

    Both train on the same secret seeds. With few seeds only a clear loss is told from noise; the reason says how
    much noise was allowed.
    """
    workers, trained = (job.learner(), job.worker("baseline", baseline)), itertools.count()

    def difference() -> float:
        job.progress("Comparing validation accuracy with the baseline's", next(trained) / LOOKS[-1][0])
        own, theirs = _train_both(
            workers, function, job.seed(), (arguments, arguments | (baseline_arguments or {}))
        )
        return own - theirs

    outcome, differences = compare_paired(difference, margin=margin, spread=spread)
    mean, num_seeds = float(np.mean(differences)), len(differences)
    noise = dict(LOOKS)[num_seeds] * spread / math.sqrt(num_seeds)
    if math.isfinite(mean):
        job.counts["accuracy_difference_points"] = round(mean, 2)
    if outcome == "ahead":
        job.flag(
            f"after equal steps at {num_seeds} equal seeds its validation accuracy is {mean:+.1f} points from the "
            f"baseline's, where {HEAD_START + noise:.1f} are luck: does it see validation data, or train in secret?"
        )
    job.require(
        outcome != "worse",
        expected=f"a validation accuracy within {margin:g} points of the baseline's "
        f"({num_seeds} paired seeds, whose noise allows {noise:.1f} more)",
        got=f"{mean:+.1f} points",
        likely=likely,
        look=look,
    )


def _train_both(
    workers: tuple[Worker, Worker],
    function: str,
    seed: int,
    arguments: tuple[dict[str, Any], dict[str, Any]],
) -> tuple[float, float]:
    """Accuracies of both workers on one seed. Nothing is timed, so both train at once."""

    own, theirs = at_once(
        *(
            partial(worker.call, function, seed=seed, seconds=120.0, **of_its_own)
            for worker, of_its_own in zip(workers, arguments, strict=True)
        )
    )
    return float(own), float(theirs)
