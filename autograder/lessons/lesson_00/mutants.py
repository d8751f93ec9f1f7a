"""Wrong solutions of the start page, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant

_REFUSE = "    if baseline_seconds <= 0 or candidate_seconds <= 0:\n        raise ValueError\n"


def _speedup(body: str) -> str:
    return f'@exercise("0.1")\ndef speedup(baseline_seconds, candidate_seconds):\n{body}'


MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "0.1": (
        Mutant(
            name="upside down",
            source=_speedup(_REFUSE + "    return candidate_seconds / baseline_seconds\n"),
            says="upside down",
        ),
        Mutant(
            name="share of time saved",
            source=_speedup(_REFUSE + "    return 1 - candidate_seconds / baseline_seconds\n"),
            says="share of time saved",
        ),
        Mutant(
            name="difference",
            source=_speedup(_REFUSE + "    return baseline_seconds - candidate_seconds\n"),
            says="difference in seconds",
        ),
        Mutant(
            name="zero is not refused",
            source=_speedup("    return baseline_seconds / max(candidate_seconds, 1e-9)\n"),
            says="not refused",
        ),
    )
}
