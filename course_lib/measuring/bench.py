"""Paired timing: is the candidate faster than the baseline, and by how much?

Two timings taken minutes apart compare two moments of a machine, not two programs. So the two are
interleaved in *blocks* of four segments, in the order ABBA or BAAB: whatever drifts steadily during a
block (heat, another process) weighs on both alike and cancels. The estimate over blocks is the
Hodges-Lehmann estimate, which a single disturbed block hardly moves.

Notebooks, the command line and the grader all measure with this module. It needs NumPy alone.

Source: Hodges and Lehmann, "Estimates of location based on rank tests", Ann. Math. Statist. 34 (1963).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

RunSegment = Callable[[int, int], float]
"""`run(seed, num_steps)` does one untimed washout step, then `num_steps` steps on inputs made from `seed`,
and returns the seconds those `num_steps` took. Equal arguments mean equal work for both sides."""

MIN_SEGMENT_SECONDS = 0.25
MIN_SEGMENT_STEPS = 3
MAX_SEGMENT_STEPS = 1_000_000
MAX_WARM_UPS = 8
WARM_ENOUGH = 0.8  # of the run before: less than that, and the next run is likely to be faster still
CONFIDENCE = 0.95
ORDERS = ("ABBA", "BAAB")
SHORT_ORDERS = ("AB", "BA")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Four timed segments, or two of a short block. A is the baseline, B the candidate."""

    order: str
    """`"ABBA"` or `"BAAB"`; `"AB"` or `"BA"` of a short one."""
    seconds: tuple[float, ...]
    """Elapsed seconds of the segments, in the order they ran."""
    num_steps: int
    """Steps in each segment."""
    seeds: tuple[int, ...]
    """Each pair of segments (one A, one B) ran on a seed of its own."""

    def __post_init__(self) -> None:
        if self.order not in (*ORDERS, *SHORT_ORDERS):
            raise ValueError(f"order must be one of {(*ORDERS, *SHORT_ORDERS)}, got {self.order!r}")
        if len(self.seconds) != len(self.order) or not all(math.isfinite(s) and s > 0 for s in self.seconds):
            raise ValueError(
                f"a block {self.order} needs {len(self.order)} positive, finite times in seconds, got {self.seconds}"
            )

    @property
    def baseline_seconds(self) -> tuple[float, ...]:
        return self._of("A")

    @property
    def candidate_seconds(self) -> tuple[float, ...]:
        return self._of("B")

    def _of(self, side: str) -> tuple[float, ...]:
        return tuple(s for name, s in zip(self.order, self.seconds, strict=True) if name == side)

    @property
    def y(self) -> float:
        """Log speedup of this block: ½(ln tA₁ + ln tA₂) − ½(ln tB₁ + ln tB₂), or ln tA − ln tB."""
        baseline, candidate = self.baseline_seconds, self.candidate_seconds
        return (sum(map(math.log, baseline)) - sum(map(math.log, candidate))) / len(baseline)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, for evidence files."""
        return {**asdict(self), "seconds": list(self.seconds), "seeds": list(self.seeds), "y": self.y}


@dataclass(frozen=True, kw_only=True)
class SpeedupEstimate:
    """Baseline time / candidate time: 2.0 means that the candidate needs half the time."""

    estimate: float
    low: float
    high: float
    blocks: tuple[Block, ...]

    def __str__(self) -> str:
        return (
            f"{self.estimate:.2f}× ({CONFIDENCE:.0%} interval {self.low:.2f} to {self.high:.2f}, "
            f"{len(self.blocks)} blocks)"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values; a bound that the data do not give (a single block) is None."""
        return {
            "estimate": self.estimate,
            "low": self.low if self.low > 0 else None,
            "high": self.high if math.isfinite(self.high) else None,
            "confidence": CONFIDENCE,
            "blocks": [block.to_dict() for block in self.blocks],
        }


def measure_block(
    run_baseline: RunSegment,
    run_candidate: RunSegment,
    rng: np.random.Generator,
    seeds: Iterator[int],
    *,
    num_steps: int,
    orders: Sequence[str] = ORDERS,
) -> Block:
    """Run one block in one of the `orders`, drawn from `rng`, on fresh seeds taken from `seeds`.

    Both sides see each seed once, so that uneven inputs (short texts, long texts) cost both the same.
    """
    order = orders[int(rng.integers(len(orders)))]
    pairs = tuple(next(seeds) for _ in range(len(order) // 2))
    runs = {"A": run_baseline, "B": run_candidate}
    seconds = tuple(float(runs[side](pairs[at // 2], num_steps)) for at, side in enumerate(order))
    return Block(order=order, seconds=seconds, num_steps=num_steps, seeds=pairs)


def choose_num_steps(
    run_baseline: RunSegment,
    run_candidate: RunSegment,
    seeds: Iterator[int],
    *,
    min_seconds: float = MIN_SEGMENT_SECONDS,
    min_steps: int = MIN_SEGMENT_STEPS,
) -> int:
    """Smallest convenient number of steps for which even the faster side runs `min_seconds`.

    It is also the warm-up: both sides run until neither gets faster (the first run pays for imports, allocator and
    compilation, and with inputs of uneven shapes later ones may too), and then every number of steps that is tried,
    on seeds not used again.
    """

    def run_both(num_steps: int) -> tuple[float, float]:
        seed = next(seeds)
        return run_baseline(seed, num_steps), run_candidate(seed, num_steps)

    num_steps = min_steps
    seconds = run_both(num_steps)
    for _ in range(MAX_WARM_UPS - 1):
        before, seconds = seconds, run_both(num_steps)
        if all(new > WARM_ENOUGH * old for new, old in zip(seconds, before, strict=True)):
            break
    while min(seconds) < min_seconds and num_steps < MAX_SEGMENT_STEPS:
        # 1.2: room for noise. 10: a first reading of almost nothing must not order a million steps.
        growth = min(10.0, 1.2 * min_seconds / max(min(seconds), 1e-9))
        num_steps = min(MAX_SEGMENT_STEPS, max(num_steps + 1, math.ceil(num_steps * growth)))
        seconds = run_both(num_steps)
    return num_steps


def hodges_lehmann(y: Sequence[float] | np.ndarray, *, axis: int = -1) -> Any:
    """Median of the means of all pairs (each value with itself included), along `axis`.

    Returns a float for one-dimensional `y`, else an array without `axis`.
    """
    values = np.moveaxis(np.asarray(y, dtype=np.float64), axis, -1)
    if values.shape[-1] == 0:
        raise ValueError("the Hodges-Lehmann estimate needs at least one value")
    i, j = np.triu_indices(values.shape[-1])
    result = np.median(0.5 * (values[..., i] + values[..., j]), axis=-1)
    return float(result) if result.ndim == 0 else result


def bootstrap_interval(
    y: Sequence[float] | np.ndarray, *, num_resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """95% percentile bootstrap interval of the Hodges-Lehmann estimate of `y`.

    Below five values a bootstrap promises more than it holds: then the smallest and largest value are
    given, and for a single value nothing is known, so the interval is infinite.
    """
    values = np.asarray(y, dtype=np.float64)
    if len(values) < 2:
        return -math.inf, math.inf
    if len(values) < 5 or np.ptp(values) == 0:
        return float(values.min()), float(values.max())
    # The percentile bootstrap itself: `scipy.stats.bootstrap` gives the same and takes a second to import.
    picks = np.random.default_rng(seed).integers(len(values), size=(num_resamples, len(values)))
    low, high = np.quantile(hodges_lehmann(values[picks]), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def estimate_speedup(blocks: Sequence[Block]) -> SpeedupEstimate:
    """Speedup over all `blocks`, with its bootstrap interval."""
    y = [block.y for block in blocks]
    low, high = bootstrap_interval(y)
    centre = math.exp(hodges_lehmann(y))
    return SpeedupEstimate(estimate=centre, low=math.exp(low), high=math.exp(high), blocks=tuple(blocks))


def paired_segments(
    run_baseline: RunSegment,
    run_candidate: RunSegment,
    *,
    blocks: int = 8,
    min_seconds: float = MIN_SEGMENT_SECONDS,
    min_steps: int = MIN_SEGMENT_STEPS,
    seed: int = 0,
    on_block: Callable[[Block], object] | None = None,
) -> SpeedupEstimate:
    """Warm both sides up, choose a number of steps, and measure `blocks` blocks.

    Takes about `4 * blocks * min_seconds` when they are equally fast, more when the baseline is slower.
    """
    if blocks < 1:
        raise ValueError(f"blocks must be at least 1, got {blocks}")
    seeds = iter(range(sys.maxsize))
    num_steps = choose_num_steps(
        run_baseline, run_candidate, seeds, min_seconds=min_seconds, min_steps=min_steps
    )
    rng = np.random.default_rng(seed)
    measured = []
    for _ in range(blocks):
        measured.append(measure_block(run_baseline, run_candidate, rng, seeds, num_steps=num_steps))
        if on_block is not None:
            on_block(measured[-1])
    return estimate_speedup(measured)


def paired_speedup(
    baseline: Callable[[], object], candidate: Callable[[], object], **options: Any
) -> SpeedupEstimate:
    """Time two plain functions against each other, in this process; `options` as for `paired_segments`.

    Each call is one step; both are warmed up first, and the work of one call must be the same for both.
    Work on a GPU is waited for when torch is in use.
    """
    return paired_segments(_timed(baseline), _timed(candidate), **options)


def _timed(step: Callable[[], object]) -> RunSegment:
    def run(_seed: int, num_steps: int) -> float:
        step()  # washout: caches and allocator forget the other side
        synchronize()
        start = time.perf_counter()
        for _ in range(num_steps):
            step()
        synchronize()
        return max(time.perf_counter() - start, 1e-9)

    return run


def synchronize() -> None:
    """Wait for the GPU, if torch has been loaded and one is in use: kernels run behind the clock's back."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    elif torch is not None and torch.backends.mps.is_available():
        torch.mps.synchronize()
