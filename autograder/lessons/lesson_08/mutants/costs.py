"""Wrong solutions of 8.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

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
            "pairs until the interval leaves out 1": (
                "pairs are added until the interval leaves out 1",
                (
                    "        for block in range(12):\n",
                    "        for block in range(150):\n"
                    "            logs = (np.log(seconds[True]) - np.log(seconds[False])).reshape(-1, 2).mean(axis=1)\n"
                    "            if block >= 8 and abs(logs.mean()) > 2.15 * logs.std(ddof=1) / np.sqrt(len(logs)):\n"
                    "                break\n",
                ),
                ("half = 2.2", "half = 2.15"),
            ),
            "the order never alternates": (
                "the order never alternates",
                "(False, True, True, False)",
                "(False, True, False, True)",
            ),
            "one setting first in four of five pairs": (
                "the order never alternates",
                (
                    "        for block in range(12):\n            for side in (False, True, True, False):\n",
                    "        for block in range(120):\n"
                    "            for side in (False, True) if block % 5 else (True, False):\n",
                ),
            ),
            "two looks at whether the interval leaves out 1": (
                "pairs are added until the interval leaves out 1",
                (
                    "        for block in range(12):\n",
                    "        for block in range(120):\n"
                    "            logs = (np.log(seconds[True]) - np.log(seconds[False])).reshape(-1, 2).mean(axis=1)\n"
                    "            error = logs.std(ddof=1) / np.sqrt(len(logs)) if block else 0.0\n"
                    "            if block in (30, 60) and abs(logs.mean()) > 2.0 * error:\n"
                    "                break\n",
                ),
                ("half = 2.2", "half = 2.0"),
            ),
            "no interval": ("a number without an interval", "half = 2.2", "half = 0.0"),
            "one standard error": ("too narrow an interval", "half = 2.2 ", "half = 1.0 "),
            "twice as many pairs counted as there are": (
                "too narrow an interval",
                "np.sqrt(len(costs))",
                "np.sqrt(2 * len(costs))",
            ),
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
                ("        for _ in range(3):\n            step()\n", "        step()\n"),
                (_WARM_UP, _WARM_UP.replace("range(3)", "range(6)")),
                ("half = 2.2", "half = 12.7"),
            ),
            "more steps than allowed": ("a loop that goes on", "range(12)", "range(200)"),
            "more steps than allowed where they are short": (
                "the number of steps hangs on how long one takes",
                "        for block in range(12):\n",
                "        for block in range(int(np.clip(4.0 / max(segment(False), segment(True)), 12, 200))):\n",
            ),
            "quantiles of 90 %": (
                "between the quantiles 0.05 and 0.95 of a bootstrap lie 90 %",
                (".reshape(-1, 2).mean(axis=1)", ""),
                (
                    "    half = 2.2",
                    "    means = np.random.default_rng(0).choice(costs, (10000, len(costs))).mean(axis=1)\n"
                    "    low, high = np.quantile(means, [0.05, 0.95])\n    half = 2.2",
                ),
                (
                    '"low": np.exp(middle - half), "high": np.exp(middle + half)',
                    '"low": np.exp(low), "high": np.exp(high)',
                ),
            ),
            "too short a warm-up": ("no warm-up", _WARM_UP, "        segment(False)\n"),
            "one setting alone is warmed up": (
                "no warm-up",
                _WARM_UP,
                "        for _ in range(6):\n            segment(False)\n",
            ),
            "the spread of each side": (
                "the spread of each side for itself",
                "half = 2.2 * costs.std(ddof=1) / np.sqrt(len(costs))",
                "half = 2.0 * np.hypot(*(np.log(s).std(ddof=1) for s in seconds.values())) / np.sqrt(24)",
            ),
            "warnings alone while it is deterministic": (
                "`warn_only=True` while it is measured",
                "use_deterministic_algorithms(is_deterministic)",
                "use_deterministic_algorithms(is_deterministic, warn_only=True)",
            ),
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
