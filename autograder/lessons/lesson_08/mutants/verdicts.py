"""Wrong solutions of 8.5 and 8.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

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
    is_on = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    searches = torch.backends.cudnn.benchmark

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
        torch.use_deterministic_algorithms(is_on, warn_only=warn_only)
        torch.backends.cudnn.benchmark = searches
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
    "8.5": wrong(
        _HELPED,
        {
            "comparing single seeds": (
                "comparing single seeds",
                "    difference = candidate",
                '    return "better" if candidate[0] > baseline[0] else "worse"\n    difference = candidate',
            ),
            "one seed is enough": (
                "so few say nothing",
                '        return "undecided"\n    difference',
                '        return "better" if candidate.mean() > baseline.mean() else "worse"\n    difference',
            ),
            "means without an interval": ("without asking what luck alone does", _HALF, "half = 0.0"),
            "the pairs are not used": (
                "the pairs are not used",
                "error = difference.std(ddof=1) / np.sqrt(len(difference))",
                "error = np.sqrt((candidate.var(ddof=1) + baseline.var(ddof=1)) / len(difference))",
            ),
            "no proof of harm taken for proof of none": (
                "no proof that it is worse",
                "if low > -margin",
                "if not high < 0",
            ),
            "only the mean is held against the margin": (
                "only the mean is held against the margin",
                "if low > -margin",
                "if difference.mean() > -margin",
            ),
            "the margin is not used": (
                "the margin is not used",
                '    if low > -margin:\n        return "no worse"\n',
                "",
            ),
            "worse is asked before no worse": (
                "'worse' is asked before 'no worse'",
                '    if low > -margin:\n        return "no worse"\n    if high < 0:\n        return "worse"\n',
                '    if high < 0:\n        return "worse"\n    if low > -margin:\n        return "no worse"\n',
            ),
            "what is not better is worse": (
                "what is not better is called worse",
                '        return "worse"\n    return "undecided"\n',
                '        return "worse"\n    return "worse"\n',
            ),
            "one standard error": (
                "too narrow an interval",
                "stats.t.ppf(0.975, len(difference) - 1)",
                "1.0",
            ),
            "the spread of single pairs": (
                "the spread of single seeds",
                " / np.sqrt(len(difference))",
                "",
            ),
            "twelve pairs are too few": (
                "more pairs are asked for",
                "len(baseline) < 5",
                "len(baseline) < 12",
            ),
            "five pairs are too few": (
                "more pairs are asked for than five",
                "len(baseline) < 5",
                "len(baseline) <= 5",
            ),
            "a deviation over n": ("the deviation divides by n", "std(ddof=1)", "std()"),
            "a 90 % interval": ("another confidence than 95 %", "0.975", "0.95"),
            "a 99 % interval": ("another confidence than 95 %", "0.975", "0.995"),
            "normal quantiles": (
                "normal quantiles",
                "stats.t.ppf(0.975, len(difference) - 1)",
                "stats.norm.ppf(0.975)",
            ),
            "two standard errors": (
                "1.96 or 2 standard errors",
                "stats.t.ppf(0.975, len(difference) - 1)",
                "2.0",
            ),
            "n degrees of freedom": (
                "another number of degrees of freedom",
                "len(difference) - 1)",
                "len(difference))",
            ),
            "ties are left out": (
                "pairs whose scores are equal are left out",
                "    difference = candidate - baseline\n",
                "    difference = candidate - baseline\n    difference = difference[difference != 0]\n"
                '    if len(difference) < 5:\n        return "undecided"\n',
            ),
            "no spread says nothing": (
                "have no spread",
                "error = difference.std(ddof=1) / np.sqrt(len(difference))",
                "error = difference.std(ddof=1) / np.sqrt(len(difference)) or np.nan",
            ),
            "an interval that touches 0": ("only touches 0", "if low > 0", "if low >= 0"),
            "an interval that touches the margin": (
                "ends exactly at -margin",
                "if low > -margin",
                "if low >= -margin",
            ),
            "the sign of equal differences": (
                "held against 0 and the margin like any other",
                "    error = difference.std",
                '    if np.ptp(difference) == 0:\n        return ["undecided", "better", "worse"]'
                "[int(np.sign(difference[0]))]\n    error = difference.std",
            ),
            "a one-sided bound": (
                "judged by a one-sided bound",
                "if low > -margin",
                "if difference.mean() - stats.t.ppf(0.95, len(difference) - 1) * error > -margin",
            ),
            "degrees of two samples": (
                "2n - 2 are those of two samples",
                "len(difference) - 1)",
                "2 * len(difference) - 2)",
            ),
            "better by more than the margin": ("and not above the margin", "if low > 0", "if low > margin"),
            "worse by more than the margin": (
                "and not below minus the margin",
                "if high < 0",
                "if high < -margin",
            ),
            "another method": (
                "another interval than Student's",
                "low, high = difference.mean() - half, difference.mean() + half",
                "draws = np.random.default_rng(0).choice(difference, (2000, len(difference)))\n"
                "    low, high = np.quantile(draws.mean(axis=1), [0.025, 0.975])",
            ),
            "four pairs are enough": ("so few say nothing", "len(baseline) < 5", "len(baseline) < 4"),
            "a margin of its own": ("the margin is not used", "if low > -margin", "if low > -margin / 10"),
            "other words": ("another word", 'return "no worse"', 'return "not worse"'),
            "lower scores taken for better ones": (
                "the wrong sign: higher scores",
                "candidate - baseline",
                "baseline - candidate",
            ),
        },
    ),
    "8.6": wrong(
        _COST,
        {
            "no warm-up": (
                "no warm-up",
                (_WARM_UP, ""),
                ("costs.mean()", "np.log(np.mean(seconds[True]) / np.mean(seconds[False]))"),
            ),
            "first one setting, then the other": (
                "first one setting, then the other",
                _TURNS,
                "        for side in (False, True):\n"
                "            seconds[side] = [segment(side) for _ in range(24)]\n",
            ),
            "the order never alternates": (
                "the order never alternates",
                "(False, True, True, False)",
                "(False, True, False, True)",
            ),
            "no interval": ("a number without an interval", "half = 2.2", "half = 0.0"),
            "one standard error": ("too narrow an interval", "half = 2.2 ", "half = 1.0 "),
            "an interval ten times too wide": ("too wide an interval", "half = 2.2", "half = 22.0"),
            "the spread of single pairs": ("too wide an interval", " / np.sqrt(len(costs))", ""),
            "low and high are confused": (
                "low and high are confused",
                '{"ratio": np.exp(middle), "low": np.exp(middle - half), "high": np.exp(middle + half)}',
                '{"ratio": np.exp(middle), "high": np.exp(middle - half), "low": np.exp(middle + half)}',
            ),
            "the interval of the logs": (
                "of logs",
                '"low": np.exp(middle - half), "high": np.exp(middle + half)',
                '"low": 2.0 + middle - half, "high": 2.0 + middle + half',
            ),
            "too few pairs": (
                "too few pairs",
                ("range(12)", "range(2)"),
                ("half = 2.2", "half = 12.7"),
            ),
            "more steps than allowed": ("a loop that goes on", "range(12)", "range(200)"),
            "too short a warm-up": ("no warm-up", _WARM_UP, "        segment(False)\n"),
            "settings not put back after an error": (
                "an error on the way leaves them",
                ("    finally:\n", "    except ZeroDivisionError:\n        pass\n    if True:\n"),
            ),
            "the error is swallowed": (
                "the error is swallowed",
                "    finally:\n",
                '    except Exception:\n        return {"ratio": 1.0, "low": 0.9, "high": 1.1}\n    finally:\n',
            ),
            "benchmark not put back": (
                "the settings are not put back",
                "torch.backends.cudnn.benchmark = searches",
                "pass",
            ),
            "the setting is never switched": (
                "the setting is never switched",
                "torch.use_deterministic_algorithms(is_deterministic)",
                "torch.backends.cudnn.deterministic = is_deterministic",
            ),
            "benchmark=True with determinism": (
                "`benchmark=True` with determinism",
                "benchmark = False",
                "benchmark = True",
            ),
            "settings not put back": (
                "the settings are not put back",
                "torch.use_deterministic_algorithms(is_on, warn_only=warn_only)",
                "pass",
            ),
            "warn_only not put back": (
                "`warn_only` is not put back",
                ", warn_only=warn_only)",
                ")",
            ),
            "warn_only of a process that is not deterministic": (
                "`warn_only` is not put back",
                "warn_only=warn_only",
                "warn_only=is_on and warn_only",
            ),
            "no number where torch has no such version": (
                "the error is swallowed",
                "    finally:\n",
                "    except RuntimeError as error:\n"
                '        if "deterministic" not in str(error):\n            raise\n'
                '        return {"ratio": np.nan, "low": np.nan, "high": np.nan}\n    finally:\n',
            ),
            "another error in its place": (
                "another error is raised in its place",
                "    finally:\n",
                '    except Exception as error:\n        raise ValueError("a step failed") from error\n    finally:\n',
            ),
            "an arithmetic mean of ratios": (
                "an arithmetic mean of ratios",
                ("        for _ in range(3):\n            step()\n", "        step()\n"),
                ("for _ in range(3)", "for _ in range(20)"),
                ("range(12)", "range(450)"),
                (
                    "costs = (np.log(seconds[True]) - np.log(seconds[False])).reshape(-1, 2).mean(axis=1)",
                    "costs = np.array(seconds[True]) / np.array(seconds[False])",
                ),
                (
                    '{"ratio": np.exp(middle), "low": np.exp(middle - half), "high": np.exp(middle + half)}',
                    '{"ratio": middle, "low": middle - half, "high": middle + half}',
                ),
            ),
            "another clock": (
                "another clock",
                "    is_on = torch",
                "    from time import perf_counter as clock\n    is_on = torch",
            ),
            "upside down": (
                "upside down",
                "np.log(seconds[True]) - np.log(seconds[False])",
                "np.log(seconds[False]) - np.log(seconds[True])",
            ),
        },
    ),
}
