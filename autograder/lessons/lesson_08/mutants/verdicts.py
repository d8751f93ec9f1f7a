"""Wrong solutions of 8.5 and 8.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

_HELPED = """
import numpy as np
from scipy import stats

@exercise("8.5")
def did_it_help(baseline, candidate, margin):
    if len(baseline) < 5:
        return "undecided"
    difference = candidate - baseline
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    half = stats.t.ppf(0.975, len(difference) - 1) * error
    low, high = difference.mean() - half, difference.mean() + half
    if low > 0:
        return "better"
    if low > -margin:
        return "no worse"
    if high < 0:
        return "worse"
    return "undecided"
"""
_HALF = "half = stats.t.ppf(0.975, len(difference) - 1) * error"

_COST = """
import numpy as np
import torch

@exercise("8.6")
def cost_of_determinism(step, clock):
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark

    def segment(is_deterministic):
        torch.use_deterministic_algorithms(is_deterministic)
        torch.backends.cudnn.benchmark = False
        start = clock()
        for _ in range(3):
            step()
        return clock() - start

    try:
        for _ in range(3):
            segment(False)
            segment(True)
        seconds = {False: [], True: []}
        for block in range(12):
            for side in (False, True, True, False):
                seconds[side].append(segment(side))
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.backends.cudnn.benchmark = before[1]
    costs = (np.log(seconds[True]) - np.log(seconds[False])).reshape(-1, 2).mean(axis=1)
    middle = costs.mean()
    half = 2.2 * costs.std(ddof=1) / np.sqrt(len(costs))
    return {"ratio": np.exp(middle), "low": np.exp(middle - half), "high": np.exp(middle + half)}
"""
_WARM_UP = "        for _ in range(3):\n            segment(False)\n            segment(True)\n"
_TURNS = (
    "        for block in range(12):\n            for side in (False, True, True, False):\n"
    "                seconds[side].append(segment(side))\n"
)

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "8.5": (
        Mutant(
            name="comparing single seeds",
            source=edited(
                _HELPED,
                (
                    "    difference = candidate",
                    '    return "better" if candidate[0] > baseline[0] else "worse"\n    difference = candidate',
                ),
            ),
            says="comparing single seeds",
        ),
        Mutant(
            name="one seed is enough",
            source=edited(
                _HELPED,
                (
                    '        return "undecided"\n    difference',
                    '        return "better" if candidate.mean() > baseline.mean() else "worse"\n    difference',
                ),
            ),
            says="so few say nothing",
        ),
        Mutant(
            name="means without an interval",
            source=edited(_HELPED, (_HALF, "half = 0.0")),
            says="without asking what luck alone does",
        ),
        Mutant(
            name="the pairs are not used",
            source=edited(
                _HELPED,
                (
                    "error = difference.std(ddof=1) / np.sqrt(len(difference))",
                    "error = np.sqrt((candidate.var(ddof=1) + baseline.var(ddof=1)) / len(difference))",
                ),
            ),
            says="the pairs are not used",
        ),
        Mutant(
            name="no proof of harm taken for proof of none",
            source=edited(_HELPED, ("if low > -margin", "if not high < 0")),
            says="no proof that it is worse",
        ),
        Mutant(
            name="only the mean is held against the margin",
            source=edited(_HELPED, ("if low > -margin", "if difference.mean() > -margin")),
            says="only the mean is held against the margin",
        ),
        Mutant(
            name="the margin is not used",
            source=edited(_HELPED, ('    if low > -margin:\n        return "no worse"\n', "")),
            says="the margin is not used",
        ),
        Mutant(
            name="worse is asked before no worse",
            source=edited(
                _HELPED,
                (
                    '    if low > -margin:\n        return "no worse"\n    if high < 0:\n        return "worse"\n',
                    '    if high < 0:\n        return "worse"\n    if low > -margin:\n        return "no worse"\n',
                ),
            ),
            says="'worse' is asked before 'no worse'",
        ),
        Mutant(
            name="lower scores taken for better ones",
            source=edited(_HELPED, ("candidate - baseline", "baseline - candidate")),
            says="the wrong sign: higher scores",
        ),
    ),
    "8.6": (
        Mutant(
            name="no warm-up",
            source=edited(
                _COST,
                (_WARM_UP, ""),
                ("costs.mean()", "np.log(np.mean(seconds[True]) / np.mean(seconds[False]))"),
            ),
            says="no warm-up",
        ),
        Mutant(
            name="first one setting, then the other",
            source=edited(
                _COST,
                (
                    _TURNS,
                    "        for side in (False, True):\n"
                    "            seconds[side] = [segment(side) for _ in range(24)]\n",
                ),
            ),
            says="first one setting, then the other",
        ),
        Mutant(
            name="the order never alternates",
            source=edited(_COST, ("(False, True, True, False)", "(False, True, False, True)")),
            says="the order never alternates",
        ),
        Mutant(
            name="no interval",
            source=edited(_COST, ("half = 2.2", "half = 0.0")),
            says="a number without an interval",
        ),
        Mutant(
            name="benchmark=True with determinism",
            source=edited(
                _COST,
                ("benchmark = False", "benchmark = True"),
            ),
            says="`benchmark=True` with determinism",
        ),
        Mutant(
            name="settings not put back",
            source=edited(_COST, ("torch.use_deterministic_algorithms(before[0])", "pass")),
            says="the settings are not put back",
        ),
        Mutant(
            name="another clock",
            source=edited(
                _COST,
                ("    before = torch", "    from time import perf_counter as clock\n    before = torch"),
            ),
            says="another clock",
        ),
        Mutant(
            name="upside down",
            source=edited(
                _COST,
                (
                    "np.log(seconds[True]) - np.log(seconds[False])",
                    "np.log(seconds[False]) - np.log(seconds[True])",
                ),
            ),
            says="upside down",
        ),
    ),
}
