"""What a run of `course-lib train` spends on other things than steps: padding, waiting for data, logs, checkpoints.

    python -m tests.benchmarks.overheads [--seconds 120] [--data docstrings] [--out FOLDER] [--quick]

One run with the default config, a checkpoint every 30 s, metrics.jsonl, TensorBoard and the progress bar. Every method
of their callbacks is timed from outside, and the sum is compared with the time of the steps; what the loop itself
does for its logs is inside the steps. Writes `overheads.json` and prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from course_lib.base.machine import hardware
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.record import ProgressBar, RecordWriter
from course_lib.runs.train import run_training
from course_lib.runs.watching.cost import CostMeter
from course_lib.training.callbacks import Callback, TrainState
from course_lib.training.checkpoint import Checkpointer

TIMED = {"logs": RecordWriter, "checkpoints": Checkpointer, "progress bar": ProgressBar, "cost": CostMeter}
METHODS = ("on_step", "on_record", "on_safe_point")
TARGETS = {"pad_fraction": 0.05, "data_wait": 0.03, "logs and checkpoints": 0.01}


class StopAfter(Callback):
    """Ends the run after so many seconds of training steps."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def on_safe_point(self, state: TrainState) -> None:
        if state.train_seconds > self.seconds:
            state.stop("measured long enough")


def timed(method: Callable[..., None], name: str, seconds: dict[str, list[float]]) -> Callable[..., None]:
    def measured(*arguments: Any) -> None:
        start = time.perf_counter()
        method(*arguments)
        seconds[name].append(time.perf_counter() - start)

    return measured


def measure(config: TrainConfig, seconds: float) -> dict[str, Any]:
    spent: dict[str, list[float]] = defaultdict(list)
    originals = {(kind, method): getattr(kind, method) for kind in TIMED.values() for method in METHODS}
    for name, kind in TIMED.items():
        for method in METHODS:
            setattr(kind, method, timed(originals[kind, method], name, spent))
    try:
        with tempfile.TemporaryDirectory() as folder:
            stop = StopAfter(seconds)
            record = run_training(config, Path(folder) / "run", progress=False, callbacks=[stop])
            records = RunFolder(Path(folder) / "run").read_metrics()
    finally:
        for (kind, method), original in originals.items():
            setattr(kind, method, original)
    steps = [found for found in records if found["kind"] == "train"]
    train_seconds = sum(found["seconds"] for found in steps)
    real = sum(found["num_tokens"] for found in steps)
    padded = sum(found["num_tokens"] / (1.0 - found["pad_fraction"]) for found in steps)
    callbacks = {name: sum(values) / train_seconds for name, values in spent.items()}
    return {
        "steps": record["step"],
        "train_seconds": train_seconds,
        "step_time": statistics.median(found["step_time"] for found in steps),
        "checkpoints": sum(value > 1e-3 for value in spent["checkpoints"]),
        "pad_fraction": 1.0 - real / padded,
        "data_wait": sum(found["data_wait_fraction"] * found["seconds"] for found in steps) / train_seconds,
        "logs and checkpoints": sum(callbacks.values()),
        "of which": callbacks,
        "resolved": record["resolved"],
    }


def markdown(found: dict[str, Any]) -> str:
    lines = ["| share of the step time | measured | target |", "|---|---|---|"]
    for name, target in TARGETS.items():
        lines.append(f"| {name} | {found[name]:.2%} | ≤ {target:.0%} |")
    lines += [f"| … {name} | {share:.3%} | |" for name, share in found["of which"].items()]
    seconds, median = found["train_seconds"], found["step_time"] * 1e3
    lines += ["", f"{found['steps']} steps in {seconds:.0f} s, {median:.1f} ms at the median;"]
    lines[-1] += f" {found['checkpoints']} checkpoints written."
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--data", default="docstrings")
    parser.add_argument("--quick", action="store_true", help="tiny, to see that it works")
    parser.add_argument("--out", type=Path, help="folder for overheads.json")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    small = (
        {"max_steps": 6, "d_model": 16, "vocab_size": 300, "log_every_steps": 2} if arguments.quick else {}
    )
    config = TrainConfig(
        data=arguments.data,
        model="transformer",
        checkpoint_every_seconds=30.0,
        **{"max_epochs": 1000, **small},
    )
    result = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": hardware(),
        "versions": {name: version(name) for name in ("torch", "numpy", "tensorboard")},
        **measure(config, arguments.seconds),
    }
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "overheads.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    print(markdown(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
