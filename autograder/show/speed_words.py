"""What a learner reads of a measurement that did not pass."""

from __future__ import annotations

from autograder.common import MAX_SPREAD, Reason, Speed


def too_slow(speed: Speed, likely: str, look: str, note: str = "") -> Reason:
    """The reason of a fail."""
    return Reason(
        note=note,
        expected=f"a speedup of {speed.bar:g}× over the baseline",
        got=f"{speed.estimate:.2f}× ({speed.low:.2f} to {speed.high:.2f}, {speed.blocks} blocks)",
        likely=likely,
        next=look,
    )


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
