"""Real verdicts on speedups that are known: how often are they right, and how long do they take?

    python -m tests.benchmarks.known_ratios [--case …] [--load idle busy] [--runs 100] [--out FILE.jsonl]

Both sides train the same small network, one step after the other, in the engine's own workers; the baseline repeats
the work of a step `a` times and the candidate `b` times, so that the true speedup is a / b, which a count of FLOPs
confirms. Nothing but the repeated work is under the clock, save the call itself. The bar is 1.3:

- `faster`: 39 / 25 = 1.2 × the bar, which must not fail;
- `slower`: 26 / 25 = 0.8 × the bar, which must not pass;
- `same`: 25 / 25, the baseline against itself, which must not pass.

`busy`: every core is kept occupied by another process. A verdict's seconds hold everything, the workers' start too.
Each verdict is appended to `--out` as it comes, and one that is there already is not made again, so the command can
be stopped and started at will. Prints a table of all that the file holds.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from autograder.engine.evidence import hardware
from autograder.engine.job import CheckFailed, Job, WorkerFailed
from autograder.engine.measure import Inconclusive, measure_speedup
from autograder.engine.timing.verdict import MAX_BLOCKS, decide
from course_lib.measuring.bench import Block
from tests.benchmarks.verdict_runs import busy_cores

BAR = 1.3
CASES = {"faster": (39, 25), "slower": (26, 25), "same": (25, 25)}
LOADS = ("idle", "busy")
ENTRY = "train_step"

HARNESS = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
# At a rate of zero the step does all of its work and changes nothing: repeated, it gives the same loss again.
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)


def segment(seed, num_steps):
    return {"losses": torch.stack([learner(model, optimizer, seed + step) for step in range(num_steps)])}


def flops():
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        segment(0, 3)
    return counter.get_total_flops()
"""

SOURCE = """
import torch


def train_step(model, optimizer, seed):
    for _ in range({repeats}):
        generator = torch.Generator().manual_seed(seed)
        inputs = torch.randn(32, 64, generator=generator)
        loss = (model(inputs) - inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.detach()
"""


def new_job(repeats: int, baseline: int = 0) -> Job:
    """A job whose candidate repeats its work so often, and its baseline so often."""
    source, rng = SOURCE.format(repeats=repeats), np.random.default_rng()
    return Job("known", ENTRY, source, HARNESS, rng, bar=BAR, baseline=SOURCE.format(repeats=baseline))


def flops(repeats: int) -> int:
    """Floating-point operations of a segment, as counted in a worker."""
    with contextlib.closing(new_job(repeats)) as job:
        return int(job.learner().call("flops"))


def require_same_losses(baseline: dict[str, Any], candidate: dict[str, Any]) -> None:
    """The comparison that each block makes, as a lesson's check would."""
    if not np.array_equal(baseline["losses"], candidate["losses"]):
        raise AssertionError("equal work gave different losses")


def one_verdict(case: str, load: str) -> dict[str, Any]:
    """One verdict from nothing, as the engine would come to it."""
    baseline, candidate = CASES[case]
    load_average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    start = time.monotonic()
    verdict, reason = "pass", ""
    with contextlib.closing(new_job(candidate, baseline)) as job:
        try:
            measure_speedup(
                job,
                compare=require_same_losses,
                function="segment",
                likely="it is as slow as it was made",
                look="nowhere",
            )
        except CheckFailed as error:
            verdict, reason = "fail", str(error)
        except Inconclusive as error:
            verdict, reason = "inconclusive", str(error)
        except WorkerFailed as error:
            verdict, reason = "error", str(error)
    return {
        "case": case,
        "load": load,
        "verdict": verdict,
        "reason": reason,
        "seconds": round(time.monotonic() - start, 3),
        "blocks": len(job.raw_blocks),
        "estimate": job.speed and job.speed.estimate,
        "spread": job.speed and job.speed.spread,
        "num_steps": job.raw_blocks[0].num_steps if job.raw_blocks else None,
        "order": [block.order for block in job.raw_blocks],
        "segments": [[round(s, 5) for s in block.seconds] for block in job.raw_blocks],
        "conditions": getattr(job, "conditions", {}),
        "load_average": load_average,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def table(rows: Iterable[dict[str, Any]]) -> str:
    """One line per case and load; seconds as median and 95th percentile."""
    rows = list(rows)
    lines = [
        "| true speedup | cores | verdicts | pass | fail | inconclusive | error | blocks, median (max) "
        "| seconds, median (95th percentile) | spread of a block, median |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case, (a, b) in CASES.items():
        for load in LOADS:
            chosen = [row for row in rows if (row["case"], row["load"]) == (case, load)]
            if not chosen:
                continue
            kinds = ("pass", "fail", "inconclusive", "error")
            counts = " | ".join(str(sum(row["verdict"] == kind for row in chosen)) for kind in kinds)
            blocks = [row["blocks"] for row in chosen]
            seconds = [row["seconds"] for row in chosen]
            spreads = [row["spread"] for row in chosen if row["spread"] is not None]
            lines.append(
                f"| {a / b:.2f} ({case}) | {load} | {len(chosen)} | {counts} "
                f"| {statistics.median(blocks):.0f} ({max(blocks)}) "
                f"| {statistics.median(seconds):.1f} ({np.quantile(seconds, 0.95):.1f}) "
                f"| {statistics.median(spreads or [0.0]):.1%} |"
            )
    return "\n".join(lines)


def log_speedups(row: dict[str, Any]) -> list[float]:
    """That of each block of a verdict."""
    return [
        Block(order=order, seconds=tuple(seconds), num_steps=row["num_steps"], seeds=(0, 0)).y
        for order, seconds in zip(row["order"], row["segments"], strict=True)
    ]


def judged_again(rows: list[dict[str, Any]]) -> str:
    """The same blocks by the rule as it stands now; "open" where it asks for more than were measured."""
    lines = [
        "| true speedup | cores | pass | fail | open | blocks, median (max) |",
        "|---|---|---|---|---|---|",
    ]
    for case, (a, b) in CASES.items():
        for load in LOADS:
            chosen = [row for row in rows if (row["case"], row["load"]) == (case, load)]
            decisions = [decide(log_speedups(row), BAR, max_blocks=MAX_BLOCKS + 1) for row in chosen]
            counts = " | ".join(
                str(sum(d.outcome == kind for d in decisions)) for kind in ("pass", "fail", None)
            )
            blocks = [decision.blocks for decision in decisions] or [0]
            lines.append(
                f"| {a / b:.2f} ({case}) | {load} | {counts} | {statistics.median(blocks):.0f} ({max(blocks)}) |"
            )
    return "\n".join(lines)


def read(path: Path | None) -> list[dict[str, Any]]:
    """The verdicts that an earlier run left; half a line, left by one that was killed, is passed over."""
    rows = []
    content = path.read_bytes() if path and path.exists() else b""
    text = (gzip.decompress(content) if path and path.suffix == ".gz" else content).decode()
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--load", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument("--runs", type=int, default=100, help="verdicts of each case under each load")
    parser.add_argument("--out", type=Path, help="JSON lines, .gz or not; read first, then added to")
    arguments = parser.parse_args()
    for case, (a, b) in CASES.items():
        assert flops(a) * b == flops(b) * a, f"{case}: the FLOPs are not as {a} to {b}"
    rows = read(arguments.out)
    print(json.dumps(hardware() | {"verdicts_before": len(rows)}), flush=True)
    for load in arguments.load:
        with busy_cores(load == "busy"):
            # Case after case in turn, so that whatever else the machine does weighs on each alike.
            for number in range(arguments.runs):
                for case in arguments.case:
                    if sum((row["case"], row["load"]) == (case, load) for row in rows) <= number:
                        rows.append(one_verdict(case, load))
                        keep(arguments.out, rows[-1])
    print(table(rows) + "\n\n" + judged_again(rows))


def keep(path: Path | None, row: dict[str, Any]) -> None:
    """Add one verdict to the file, and say it."""
    shown = ("case", "load", "verdict", "blocks", "seconds", "estimate")
    print({key: row[key] for key in shown}, flush=True)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (gzip.open if path.suffix == ".gz" else open)(path, "at", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
