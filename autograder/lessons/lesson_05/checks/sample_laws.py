"""The laws by which 5.1 draws: ranges, distributions, independence.

Each test rejects at a p-value of 1e-6 or less, and a check makes fewer than 80 of them: a right sampler fails by chance
in fewer than one check in 10,000.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from autograder.engine import Job, failure
from autograder.lessons.lesson_05.checks.sample_spaces import Space, is_wide, role_of

P_VALUE = 1e-6
P_VALUE_OF_ONE = 1e-8
"""Of a test in one space alone; there are more of these."""
_CUT = "`int(…)` cuts towards 0: below 0 that is up, so the low end is never drawn, and 0 too often"
Drawn = dict[str, Any]


def require_values(job: Job, space: Space, drawn: Drawn) -> None:
    for name, part in space.items():
        values = drawn["columns"][name][drawn["present"][name]]
        if part["kind"] in ("log", "float") or is_wide(part):
            _require_range(job, name, part, values)
        else:
            _require_each_value(job, name, part, values)


def _require_range(job: Job, name: str, part: dict[str, Any], values: np.ndarray) -> None:
    low, high = part["low"], part["high"]
    shown, room = f"{low:.3g} … {high:.3g}", 1e-9 * (high - low)
    at_ends = int(
        (np.isclose(values, low, rtol=1e-9, atol=0) | np.isclose(values, high, rtol=1e-9, atol=0)).sum()
    )
    job.require(
        at_ends <= 2 or bool((values == np.round(values)).all()),
        expected=f"{name} between its ends; an end itself almost never",
        got=f"{at_ends} of {len(values)} draws exactly on an end",
        likely="the search space is silently clipped: what falls outside is moved to the end, which is tried again "
        "and again",
        look="draw inside the range; do not draw wider and cut",
    )
    outside = int(((values < low - room) | (values > high + room) | ~np.isfinite(values)).sum())
    job.require(
        outside == 0,
        expected=f"{name} within {shown}",
        got=f"{outside} of {len(values)} outside",
        likely="values are rounded, and so leave the range"
        if len(np.unique(values)) < 0.9 * len(values) or _are_short(values)
        else "the ends are mixed up, or something is added to them, or powers of ten with the natural logarithm",
        look="exp goes with log, 10 ** … with log10",
    )


def _are_short(values: np.ndarray) -> bool:
    """Whether most have fewer digits than a float that was drawn."""
    short = [float(f"{value:.10g}") == value or float(np.float32(value)) == value for value in values]
    return float(np.mean(short)) > 0.5


def _scaled(part: dict[str, Any], values: np.ndarray) -> np.ndarray:
    """Where in its range each value is, 0 … 1, on the scale of its kind."""
    low, high = part["low"], part["high"]
    if part["kind"] == "log":
        return np.clip(np.log(values / low) / np.log(high / low), 0, 1)
    return np.clip((values - low) / (high - low), 0, 1)


def _fail_distribution(name: str, part: dict[str, Any], values: np.ndarray) -> None:
    is_log = part["kind"] == "log"
    linear = _scaled(part | {"kind": "float"}, values)
    is_linear = is_log and stats.kstest(linear, "uniform").pvalue >= P_VALUE_OF_ONE
    kind = "every decade as likely as the next" if is_log else "every part of the range equally likely"
    raise failure(
        expected=f"{name} in {part['low']:.3g} … {part['high']:.3g} with {kind}",
        got=f"{float(np.mean(values > part['high'] / 10)):.0%} of the draws in the top decade"
        if is_log
        else f"a mean of {values.mean():.3g}",
        likely="uniform where log-uniform is asked for: nearly all trials go to the largest values"
        if is_linear
        else "another distribution than asked for"
        + ("" if is_log else ": a log scale where a plain one is asked for?"),
        look="plot a histogram of 1,000 draws, on a log axis for kind log",
    )


def _wanted(part: dict[str, Any]) -> np.ndarray:
    """What a whole number can be, or a choice's places."""
    return (
        np.arange(part["low"], part["high"] + 1) if part["kind"] == "int" else np.arange(len(part["values"]))
    )


def _shown(part: dict[str, Any]) -> str:
    if part["kind"] == "int":
        return f"{part['low']} … {part['high']}, both ends among them"
    return ", ".join(map(str, part["values"]))


def _is_cut(part: dict[str, Any], values: np.ndarray) -> bool:
    """Whether a range that begins below 0 is drawn from without its low end, and with 0."""
    return bool(part["kind"] == "int" and part["low"] < 0 and 0 in values and part["low"] not in values)


def _require_each_value(job: Job, name: str, part: dict[str, Any], values: np.ndarray) -> None:
    counts = np.array([(values == one).sum() for one in _wanted(part)])
    job.require(
        int(counts.sum()) == len(values),
        expected=f"{name} from {_shown(part)}",
        got=f"{len(values) - int(counts.sum())} draws of something else",
        likely=_CUT
        if _is_cut(part, values)
        else "values outside the range, or of another type: `rng.choice` makes texts of mixed values, and rows "
        "of tuples",
        look="print the set of 1,000 draws",
    )


def require_distributions(job: Job, spaces: list[Space], drawn: list[Drawn]) -> None:
    """In each space, and over all together what one alone has too few draws to show."""
    roles: dict[str, list[tuple[dict[str, Any], np.ndarray]]] = {}
    for space, found in zip(spaces, drawn, strict=True):
        for name, part in space.items():
            values = found["columns"][name][found["present"][name]]
            roles.setdefault(role_of(name), []).append((part, values))
    for role, pairs in roles.items():
        if pairs[0][0]["kind"] in ("log", "float"):
            for part, values in pairs:
                _require_different(job, role, part, values)
                if stats.kstest(_scaled(part, values), "uniform").pvalue < P_VALUE_OF_ONE:
                    _fail_distribution(role, part, values)
            scaled = np.concatenate([_scaled(part, values) for part, values in pairs])
            if stats.kstest(scaled, "uniform").pvalue < P_VALUE:
                _fail_distribution(role, *pairs[0])
            _require_near_ends(job, role, scaled)
        else:
            for part, values in pairs:
                if is_wide(part) and stats.kstest(_scaled(part, values), "uniform").pvalue < P_VALUE_OF_ONE:
                    _fail_distribution(role, part, values)
            _require_even(job, role, [pair for pair in pairs if not is_wide(pair[0])])


def _require_different(job: Job, role: str, part: dict[str, Any], values: np.ndarray) -> None:
    """A float is as fine as floats are: none comes twice, and none has a few digits alone."""
    num_different = len(np.unique(values))
    job.require(
        num_different == len(values) and not _are_short(values),
        expected=f"{role} anywhere in {part['low']:.3g} … {part['high']:.3g}",
        got=f"{num_different} different values in {len(values)} draws, such as {values[0]:.17g}",
        likely="values are rounded, or drawn from a grid",
        look="hand on the number as it was drawn",
    )


def _require_near_ends(job: Job, role: str, scaled: np.ndarray) -> None:
    near = -math.log(P_VALUE_OF_ONE) / len(scaled)
    job.require(
        bool(scaled.min() < near and scaled.max() > 1 - near),
        expected=f"{role} anywhere between its ends: among {len(scaled)} draws some in the first and last {near:.1%}",
        got=f"none below {scaled.min():.1%} of the range, or none above {scaled.max():.1%}",
        likely="the range is narrowed: values near its ends are never drawn",
        look="draw from `low` to `high`, without a margin",
    )


def _require_even(job: Job, role: str, pairs: list[tuple[dict[str, Any], np.ndarray]]) -> None:
    counts = [np.array([(values == one).sum() for one in _wanted(part)]) for part, values in pairs]
    for (part, values), found in zip(pairs, counts, strict=True):
        job.require(
            bool(found.min() > 0),
            expected=f"{role} from {_shown(part)}",
            got=f"never the {int(found.argmin()) + 1}. of these in {len(values)} draws",
            likely=_CUT
            if _is_cut(part, values)
            else "an end that is left out: the upper bound of `rng.integers` and of `range` is excluded",
            look="`endpoint=True`, or one more",
        )
    far = sum(float(((n - n.mean()) ** 2 / n.mean()).sum()) for n in counts)
    worst = max(counts, key=lambda n: float(np.ptp(n) / n.mean()))
    long = [n for n in counts if pairs[0][0]["kind"] == "int" and len(n) > 2]
    ends, inner = (sum(float(n[part].mean()) for n in long) for part in ([0, -1], slice(1, -1)))
    ends_are_rare = ends < 0.75 * inner
    free = sum(len(n) - 1 for n in counts)
    job.require(
        not free or bool(stats.chi2.sf(far, free) >= P_VALUE),
        expected=f"each value of {role} equally often: about {worst.mean():.0f} times",
        got=f"between {worst.min()} and {worst.max()} times",
        likely="rounding a float gives the ends half a share each"
        if ends_are_rare
        else "values that are not equally likely: one has more ways to be drawn, or a weight",
        look="draw whole numbers as whole numbers",
    )
