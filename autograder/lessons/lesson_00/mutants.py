"""Wrong solutions of the start page, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_SPEEDUP = """@exercise("0.1")
def speedup(baseline_seconds, candidate_seconds):
    if baseline_seconds <= 0 or candidate_seconds <= 0:
        raise ValueError
    return baseline_seconds / candidate_seconds
"""
_REFUSE = "    if baseline_seconds <= 0 or candidate_seconds <= 0:\n        raise ValueError\n"
_RATIO = "baseline_seconds / candidate_seconds"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "0.1": wrong(
        _SPEEDUP,
        {
            "upside down": ("upside down", _RATIO, "candidate_seconds / baseline_seconds"),
            "share of time saved": (
                "share of time saved",
                _RATIO,
                "1 - candidate_seconds / baseline_seconds",
            ),
            "difference": ("difference in seconds", _RATIO, "baseline_seconds - candidate_seconds"),
            "zero is not refused": (
                "not refused",
                (_REFUSE, ""),
                (_RATIO, "baseline_seconds / max(candidate_seconds, 1e-300)"),
            ),
            "only the candidate's duration is looked at": ("not refused", "baseline_seconds <= 0 or ", ""),
            "only the baseline's duration is looked at": (
                "Python itself stumbles",
                " or candidate_seconds <= 0",
                "",
            ),
            "negative durations pass": ("not refused", "<= 0", "== 0"),
            "two negative durations pass": (
                "not refused",
                "baseline_seconds <= 0 or candidate_seconds <= 0",
                "baseline_seconds * candidate_seconds <= 0",
            ),
            "short durations are refused": ("refused as if it were zero", "<= 0", "< 1e-6"),
            "an assert refuses": (
                "leaves it out",
                _REFUSE,
                "    assert baseline_seconds > 0 and candidate_seconds > 0\n",
            ),
            "nothing is refused": ("not refused", _REFUSE, ""),
            "rounded": ("rounded", _RATIO, "round(baseline_seconds / candidate_seconds, 1)"),
        },
    )
}
