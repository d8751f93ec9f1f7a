"""From blocks to a decision: a sign e-process, exact and valid at every stop. No clock and no torch in here.

Each block gives one log speedup `y`. Under the hypothesis "the true speedup is at most t" a block exceeds ln t with
probability at most 1/2, whatever the size and shape of the noise. Betting on every probability in [1/2, 1] by the half
of Jeffreys' prior that lies there, as Krichevsky and Trofimov do, gives, after S of n blocks beyond the threshold, with
a = S + 1/2 and b = n - S + 1/2, the wealth

    E(S, n) = 2^(n+1) B(a, b) (1 - I_1/2(a, b)) / pi,

B and I being the beta function and its regularized incomplete form. It is a non-negative supermartingale that starts at
1, so that by Ville's inequality it ever reaches 1/alpha with probability at most alpha (Ramdas et al., "Game-theoretic
statistics and safe anytime-valid inference", 2023). A uniform bet needs a block more where all blocks agree.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from scipy.special import betaincc, betaln

ALPHA_PASS = 0.02
ALPHA_FAIL = 0.01
MARGIN = 0.95  # a candidate is passed when "speedup <= MARGIN * bar" is rejected
MAX_BLOCKS = 40
MAX_SECONDS = 90.0

Outcome = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True)
class Decision:
    """What the blocks so far say. `outcome` is None while more blocks could decide."""

    outcome: Outcome | None
    wealth_pass: float
    blocks: int


def sign_wealth(successes: int, trials: int) -> float:
    """The e-process of the module's text: wealth after `successes` of `trials` beyond the threshold."""
    if not 0 <= successes <= trials:
        raise ValueError(f"successes must lie in 0..{trials}, not {successes}")
    a, b = successes + 0.5, trials - successes + 0.5
    return math.exp((trials + 1) * math.log(2) + betaln(a, b)) / math.pi * float(betaincc(a, b, 0.5))


@functools.cache
def successes_needed(trials: int, alpha: float) -> int:
    """Fewest of `trials` blocks beyond the threshold that reject at `alpha`; `trials + 1` where none would do."""
    return next((s for s in range(trials + 1) if sign_wealth(s, trials) >= 1 / alpha), trials + 1)


def is_surely_below(log_speedups: Sequence[float], speedup: float, *, are_short: Sequence[bool] = ()) -> bool:
    """Whether "the true speedup is at least this one" is rejected at `ALPHA_FAIL`, at whichever block.

    Arguments as of `decide`.
    """
    threshold, below = math.log(speedup), 0
    for count, (value, is_short) in enumerate(zip_longest(log_speedups, are_short, fillvalue=False), start=1):
        below += value < (min(0.0, threshold) if is_short else threshold)
        if below >= successes_needed(count, ALPHA_FAIL):
            return True
    return False


def decide(
    log_speedups: Sequence[float],
    bar: float,
    *,
    are_short: Sequence[bool] = (),
    seconds: float = 0.0,
    max_blocks: int = MAX_BLOCKS,
) -> Decision:
    """Decide on the blocks in the order in which they came.

    Args:
        log_speedups: one natural logarithm of baseline time over candidate time per block.
        bar: the speedup asked for.
        are_short: which blocks were of segments too short to tell a speedup by. What each call costs brings a short
            segment's speedup nearer to 1×, never to the other side of it. So a short block is a vote for the fail
            where the candidate was slower than the baseline (and than a bar below 1×), and never one for the pass.
        seconds: time spent so far; at `MAX_SECONDS` an open question becomes "inconclusive".
        max_blocks: the same for the number of blocks.

    A decision once reached stands: later blocks are not looked at, so adding blocks cannot undo it.
    """
    if not bar > 0:
        raise ValueError(f"bar must be a positive speedup, not {bar}")
    pass_threshold, fail_threshold = math.log(MARGIN * bar), math.log(bar)
    above = below = count = 0
    outcome: Outcome | None = None
    for count, (value, is_short) in enumerate(zip_longest(log_speedups, are_short, fillvalue=False), start=1):
        above += value > pass_threshold and not is_short
        below += value < (min(0.0, fail_threshold) if is_short else fail_threshold)
        if above >= successes_needed(count, ALPHA_PASS):
            outcome = "pass"
        elif below >= successes_needed(count, ALPHA_FAIL):
            outcome = "fail"
        if outcome:
            break
    if outcome is None and (count >= max_blocks or seconds >= MAX_SECONDS):
        outcome = "inconclusive"
    return Decision(outcome, sign_wealth(above, count), count)
