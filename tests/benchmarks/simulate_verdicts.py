"""The verdict's rule on made-up blocks, 100,000 verdicts a case: how often it is right, and how many blocks it takes.

    python -m tests.benchmarks.simulate_verdicts [--verdicts 100000] [--measured FILE.jsonl[.gz]] [--plot FILE.png]

A verdict's blocks are log(true speedup / bar) plus noise. The sizes of noise are robust standard deviations of a
block's log speedup (1.4826 × the median distance from the median), as a check reports its `spread`:

- `gaussian`;
- `heavy tails`: Student's t with 3 degrees of freedom;
- `bursts`: 1 block in 5 has 6 times the noise, in stretches of 5 blocks on average;
- `autocorrelated`: AR(1) with 0.5 or 0.9 between neighbours: what favours a side now still does a while later.

`--measured` takes the verdicts of `known_ratios`: it prints the noise in them, and judges the three cases of that
benchmark on noise drawn from them, stretch by stretch, so that what hangs together in time stays together.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from autograder.engine.timing.verdict import ALPHA_FAIL, ALPHA_PASS, MARGIN, MAX_BLOCKS, successes_needed

Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
TRUTHS = (0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 1.0, 1.025, 1.05, 1.1, 1.2, 1.3, 1.5)  # speedup / bar
SIZES = (0.02, 0.05, 0.1, 0.2)
STRETCH = 8  # blocks, of measured noise that are kept together


def outcomes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`verdict.decide` on many verdicts at once, by its own table.

    Takes log(speedup / bar) of shape [verdicts, blocks]. Returns +1 (pass), -1 (fail) or 0 (inconclusive), and the
    number of blocks used, each of shape [verdicts].
    """
    trials = np.arange(1, y.shape[1] + 1)
    reached = []
    for beyond, alpha in ((y > math.log(MARGIN), ALPHA_PASS), (y < 0.0, ALPHA_FAIL)):
        needed = np.array([successes_needed(int(n), alpha) for n in trials])
        hit = beyond.cumsum(axis=1) >= needed
        reached.append(np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, len(trials) + 1))
    first_pass, first_fail = reached
    outcome = np.where(first_pass <= first_fail, 1, -1)
    blocks = np.minimum(first_pass, first_fail)
    return np.where(blocks > len(trials), 0, outcome), np.minimum(blocks, len(trials))


def gaussian(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.standard_normal(shape)


def heavy_tails(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.standard_t(3, shape) / (1.4826 * 0.7649)  # 0.7649: the median of |t₃|


def bursts(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Two states in turn: a burst ends with probability 1/5 at each block, and begins with 1/20."""
    draws = rng.random(shape)
    in_burst = draws[:, 0] < 0.2
    values = rng.standard_normal(shape)
    for block in range(shape[1]):
        values[in_burst, block] *= 6
        in_burst = np.where(in_burst, draws[:, block] >= 1 / 5, draws[:, block] < 1 / 20)
    return values


def autocorrelated(correlation: float) -> Noise:
    """AR(1) with a standard deviation of 1 from the first block on."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        values = rng.standard_normal(shape)
        values[:, 1:] *= math.sqrt(1 - correlation**2)
        from scipy import signal

        return signal.lfilter([1.0], [1.0, -correlation], values, axis=1)

    return draw


KINDS: dict[str, Noise] = {
    "gaussian": gaussian,
    "heavy tails": heavy_tails,
    "bursts": bursts,
    "autocorrelated 0.5": autocorrelated(0.5),
    "autocorrelated 0.9": autocorrelated(0.9),
}


def rates(y: np.ndarray) -> dict[str, float]:
    """Shares of the three outcomes, and the median and 95th percentile of blocks used."""
    outcome, blocks = outcomes(y)
    return {
        "pass": float((outcome == 1).mean()),
        "fail": float((outcome == -1).mean()),
        "inconclusive": float((outcome == 0).mean()),
        "blocks": float(np.median(blocks)),
        "blocks_95": float(np.quantile(blocks, 0.95)),
    }


def simulate(verdicts: int) -> list[dict[str, Any]]:
    """A row for each kind and size of noise and each true speedup / bar."""
    rng = np.random.default_rng(0)
    rows = []
    for kind, draw in KINDS.items():
        noise = draw(rng, (verdicts, MAX_BLOCKS))
        for size in SIZES:
            for truth in TRUTHS:
                found = rates(math.log(truth) + size * noise)
                rows.append({"kind": kind, "size": size, "truth": truth} | found)
    return rows


def wrong(row: dict[str, Any]) -> float:
    """Share of wrong verdicts: passes at or below 0.95 × the bar, fails at or above the bar."""
    return float(row["pass"] if row["truth"] <= MARGIN else row["fail"] if row["truth"] >= 1 else 0.0)


def table(rows: list[dict[str, Any]]) -> str:
    """Per kind and size of noise: what becomes of 0.8, 0.95, 1 and 1.2 times the bar, and the worst of all truths."""
    lines = [
        "| noise | size | 0.8 × bar: pass / fail / inconclusive, blocks | 1.2 × bar: the same "
        "| passes at 0.95 × bar | fails at the bar | most wrong at any other truth |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        for size in SIZES:
            chosen = {row["truth"]: row for row in rows if (row["kind"], row["size"]) == (kind, size)}
            elsewhere = max(wrong(row) for truth, row in chosen.items() if truth not in (MARGIN, 1.0))
            lines.append(
                f"| {kind} | {size:.0%} | {_line(chosen[0.8])} | {_line(chosen[1.2])} "
                f"| {chosen[MARGIN]['pass']:.2%} | {chosen[1.0]['fail']:.2%} | {elsewhere:.2%} |"
            )
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    shares = " / ".join(f"{row[name]:.2%}" for name in ("pass", "fail", "inconclusive"))
    return f"{shares}, {row['blocks']:.0f} ({row['blocks_95']:.0f})"


def measured_noise(path: Path) -> dict[str, list[np.ndarray]]:
    """By load: for each verdict of `known_ratios`, its blocks' log speedups less that of the truth."""
    from tests.benchmarks.known_ratios import CASES, log_speedups, read

    found: dict[str, list[np.ndarray]] = {}
    for row in read(path):
        a, b = CASES[row["case"]]
        if y := log_speedups(row):
            found.setdefault(row["load"], []).append(np.array(y) - math.log(a / b))
    return found


def on_measured_noise(noise: list[np.ndarray], bar: float, truth: float, verdicts: int) -> dict[str, float]:
    """Verdicts on noise drawn from what was measured, in stretches of up to `STRETCH` blocks of one verdict."""
    rng = np.random.default_rng(0)
    stretches = np.stack([values[:STRETCH] for values in noise if len(values) >= STRETCH])
    picks = rng.integers(len(stretches), size=(verdicts, math.ceil(MAX_BLOCKS / STRETCH)))
    y = stretches[picks].reshape(verdicts, -1)[:, :MAX_BLOCKS]
    return rates(y + math.log(truth / bar))


def describe(noise: list[np.ndarray]) -> dict[str, float]:
    """Size and shape of measured noise: of each block, of each verdict's mean, and from one block to the next."""
    values = np.concatenate(noise)
    centred = [v - v.mean() for v in noise if len(v) > 2]
    products = sum(float((v[1:] * v[:-1]).sum()) for v in centred)
    return {
        "robust_sd": 1.4826 * float(np.median(np.abs(values - np.median(values)))),
        "sd": float(values.std()),
        "bias": float(np.median(values)),
        "sd_of_verdict_means": float(np.std([v.mean() for v in noise])),
        "lag_1_within_verdicts": products / sum(float((v**2).sum()) for v in centred),
        "largest": float(np.abs(values).max()),
        "blocks": len(values),
    }


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Shares of the outcomes and blocks used over the true speedup, a column for each kind of noise."""
    from matplotlib.figure import Figure

    size = 0.1
    figure = Figure(figsize=(12, 5.2), layout="constrained")
    axes = figure.subplots(2, len(KINDS), sharex=True, sharey="row", height_ratios=[3, 2])
    colours = {"fail": "#d1495b", "inconclusive": "#c9c9c9", "pass": "#2a9d8f"}
    for column, kind in enumerate(KINDS):
        chosen = [row for row in rows if (row["kind"], row["size"]) == (kind, size)]
        truths = [row["truth"] for row in chosen]
        above, below = axes[0, column], axes[1, column]
        above.stackplot(
            truths,
            [[row[name] for row in chosen] for name in colours],
            colors=list(colours.values()),
            labels=list(colours),
        )
        below.plot(truths, [row["blocks_95"] for row in chosen], color="#999999", label="95th percentile")
        below.plot(truths, [row["blocks"] for row in chosen], color="#264653", label="median")
        for axis in (above, below):
            axis.axvline(1.0, color="black", linewidth=0.8)
            axis.axvline(MARGIN, color="black", linewidth=0.8, linestyle=":")
            axis.margins(x=0)
        above.set_title(kind, fontsize=10)
        below.set_xlabel("true speedup / bar")
    axes[0, 0].set_ylabel("share of verdicts")
    axes[1, 0].set_ylabel("blocks used")
    axes[0, 0].legend(loc="center left", fontsize=8)
    axes[1, 0].legend(loc="upper right", fontsize=8)
    figure.suptitle(f"Verdicts by true speedup, at a noise of {size:.0%} a block", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--verdicts", type=int, default=100_000, help="of each case")
    parser.add_argument("--measured", type=Path, help="verdicts of known_ratios")
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    rows = simulate(arguments.verdicts)
    print(table(rows))
    if arguments.plot:
        plot(rows, arguments.plot)
    if arguments.measured:
        report_measured(measured_noise(arguments.measured), arguments.verdicts)


def report_measured(noise: dict[str, list[np.ndarray]], verdicts: int) -> None:
    """The noise of real blocks, and the benchmark's three cases judged on it."""
    from tests.benchmarks.known_ratios import BAR, CASES

    for load, values in noise.items():
        print(f"\n{load}: " + ", ".join(f"{k} {v:.3g}" for k, v in describe(values).items()))
        for case, (a, b) in CASES.items():
            print(f"  {case}: {_line(on_measured_noise(values, BAR, a / b, verdicts))}")


if __name__ == "__main__":
    main()
