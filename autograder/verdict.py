"""From blocks to a decision: a sign e-process, exact and valid at every stop. No clock and no torch in here.

Each block gives one log speedup `y`. Under the hypothesis "the true speedup is at most t" a block exceeds ln t with
probability at most 1/2, whatever the size and shape of the noise. Betting uniformly on every probability in
[1/2, 1] gives, after S of n blocks beyond the threshold, the wealth

    E(S, n) = sum_{k=0..S} C(n+1, k) / ((n+1) C(n, S)),

a non-negative supermartingale that starts at 1, so that by Ville's inequality it ever reaches 1/alpha with
probability at most alpha (Ramdas et al., "Game-theoretic statistics and safe anytime-valid inference", 2023).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

ALPHA_PASS = 0.02
ALPHA_FAIL = 0.01
MARGIN = 0.95  # a candidate is passed when "speedup <= MARGIN * bar" is rejected
MAX_BLOCKS = 40
MAX_SECONDS = 90.0
MAX_SPREAD = 0.15  # of the baseline against itself; above it the machine is unfit to time on

Outcome = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True)
class Decision:
    """What the blocks so far say. `outcome` is None while more blocks could decide."""

    outcome: Outcome | None
    wealth_pass: float
    wealth_fail: float
    blocks: int


def sign_wealth(successes: int, trials: int) -> float:
    """The e-process of the module's text: wealth after `successes` of `trials` beyond the threshold."""
    if not 0 <= successes <= trials:
        raise ValueError(f"successes must lie in 0..{trials}, not {successes}")
    numerator = sum(math.comb(trials + 1, k) for k in range(successes + 1))
    return numerator / ((trials + 1) * math.comb(trials, successes))


def decide(
    log_speedups: Sequence[float], bar: float, *, seconds: float = 0.0, max_blocks: int = MAX_BLOCKS
) -> Decision:
    """Decide on the blocks in the order in which they came.

    Args:
        log_speedups: one natural logarithm of baseline time over candidate time per block.
        bar: the speedup asked for.
        seconds: time spent so far; at `MAX_SECONDS` an open question becomes "inconclusive".
        max_blocks: the same for the number of blocks.

    A decision once reached stands: later blocks are not looked at, so adding blocks cannot undo it.
    """
    if not bar > 0:
        raise ValueError(f"bar must be a positive speedup, not {bar}")
    pass_threshold, fail_threshold = math.log(MARGIN * bar), math.log(bar)
    above = below = 0
    wealth_pass = wealth_fail = 1.0
    for count, value in enumerate(log_speedups, start=1):
        above += value > pass_threshold
        below += value < fail_threshold
        wealth_pass, wealth_fail = sign_wealth(above, count), sign_wealth(below, count)
        if wealth_pass >= 1 / ALPHA_PASS:
            return Decision("pass", wealth_pass, wealth_fail, count)
        if wealth_fail >= 1 / ALPHA_FAIL:
            return Decision("fail", wealth_pass, wealth_fail, count)
    spent = len(log_speedups) >= max_blocks or seconds >= MAX_SECONDS
    return Decision("inconclusive" if spent else None, wealth_pass, wealth_fail, len(log_speedups))
