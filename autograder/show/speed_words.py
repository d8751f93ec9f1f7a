"""What a learner reads of a measurement that did not pass."""

from __future__ import annotations

from autograder.common import MAX_SPREAD, Reason, Speed

NOT_SHOWN = "Right, surely below the bar, and no count shows that the idea was used: no points."
RIGHT_BUT_SLOW = "Right, and surely below the bar: the points that need no clock are yours."


def too_slow(speed: Speed, likely: str, look: str, note: str = "") -> Reason:
    """The reason of a fail."""
    if not note and speed.high < min(1.0, speed.bar):
        note = f"Slower than the baseline: the same work takes {1 / speed.estimate:.1f} times as long."
    return Reason(
        note=note,
        expected=f"a speedup of {speed.bar:g}× over the baseline",
        got=f"{_two_digits(speed.estimate)}× ({_two_digits(speed.low)} to {_two_digits(speed.high)}, "
        f"{speed.blocks} blocks)",
        likely=likely,
        next=look,
    )


def out_of_time(bar: float, seconds: float, baseline: float) -> Reason:
    """The reason of a fail by a clock that was not waited for to the end.

    seconds, baseline: what the solution had, or took at least, and what the baseline took for the same steps.
    """
    return Reason(
        expected=f"a speedup of {bar:g}× over the baseline",
        got=f"not done after {seconds:.0f} s with what the baseline did in {baseline:.2g} s: less than "
        f"{_two_digits(baseline / seconds)}× of its speed",
        likely="a wait or a loop that never ends, or work that grows with the whole data set at every step",
        next="time one step in a cell of your own, then its parts: which of them takes the time?",
    )


def _two_digits(speedup: float) -> str:
    return f"{speedup:.2f}" if speedup >= 0.01 else f"{speedup:.1g}"


def undecided(speed: Speed, disturbance: str) -> Reason:
    """The reason of an inconclusive verdict: whose doing it is, and what to do.

    disturbance: what kept the measurement from being steady, in a sentence.
    """
    again = f"run the check again: it goes on from these {speed.blocks} blocks"
    if speed.spread > MAX_SPREAD:
        likely = (
            f"this machine is too restless to time on now, which is not your mistake: equal work differed by "
            f"{speed.spread:.0%} from one moment to the next, and {MAX_SPREAD:.0%} is the limit. "
            + disturbance
        )
        look = f"close other programs and notebooks, plug a laptop in, then {again}"
    elif speed.low > speed.bar or speed.high < speed.bar:
        likely = (
            f"{speed.blocks} blocks are too few to be sure of it, and the time for a measurement was over: each "
            "takes long here. " + disturbance
        )
        look = again
    else:
        likely = f"{speed.estimate:.2f}× is too close to {speed.bar:g}× to tell apart in that many blocks"
        look = f"{again}. Or make the solution a little faster"
    note = "Not wrong, and not decided: the points that need no clock are yours."
    return too_slow(speed, likely, look, note)
