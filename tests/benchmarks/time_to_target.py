"""How long until a given macro F1 on the docstring corpus: the naive loop of lesson 1 against `course_lib`'s defaults.

    python -m tests.benchmarks.time_to_target [--target 0.65] [--seeds 0 1 2] [--optimizer auto] [--out FOLDER]

Both train the same model on the same split from the same initial weights, in one process on one thread. They take
turns, a segment of steps at a time: the one that is further from the target goes next, so that whatever else the
machine does meets both. Clocks run while one trains, data and logs included; evaluation is outside.

- naive: `course_lib.measuring.naive` (padded to 256, fp32, batches of 64 in random order, AdamW at a constant 3e-4, a
  sync per step);
- ours: what `course-lib train` does with `model=transformer`, its default config and `--max-steps`.

`--without-naive` trains ours alone, `--max-steps` long unless the target comes first: with `--target 2`, what an
optimizer comes to in so many steps. CPU seconds are told beside those of the clock: other programs on the machine
disturb them less. Writes `time_to_target.json` (curves, hardware, versions) and prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_lib.base.machine import hardware
from course_lib.data import TokenStore, docstring_store
from course_lib.data.batching import Batches, BucketBatchSampler, evaluation_batches
from course_lib.measuring.naive import naive_epoch
from course_lib.models.transformers import ModelConfig, make_model
from course_lib.runs.components import embedding_lr_ratio
from course_lib.runs.config import TrainConfig
from course_lib.training.callbacks import TrainState
from course_lib.training.evaluation import evaluate
from course_lib.training.loop import fit
from course_lib.training.optim import choose_optimizer, make_optimizer
from course_lib.training.precision import FULL_PRECISION, resolve_precision
from course_lib.training.schedules import make_schedule

CPU = torch.device("cpu")
NAIVE_BATCH, NAIVE_LEARNING_RATE = 64, 3e-4
COARSE, FINE, FINE_FROM = 100, 25, 0.95
"""Steps between evaluations, far from the target and from this share of it on."""


class System:
    """A model in training, with a clock, a curve and random numbers of its own."""

    def __init__(self, train: TokenStore, config: TrainConfig, seed: int) -> None:
        self.train, self.config, self.seed = train, config, seed
        torch.manual_seed(seed)
        names = ("max_length", "d_model", "num_layers", "num_heads", "dropout")
        sizes = {name: getattr(config, name) for name in names}
        self.model = make_model(
            ModelConfig(vocab_size=train.vocab_size, num_classes=len(train.label_names), **sizes)
        )
        torch.manual_seed(seed + 1)
        self.random_state = torch.get_rng_state()
        self.precision = FULL_PRECISION
        self.seconds, self.cpu_seconds, self.curve = 0.0, 0.0, [(0, 0.0, 0.0)]
        self.segment_steps = COARSE

    def advance(self, validation: TokenStore, target: float) -> float:
        """One segment, then the macro F1, which is not timed."""
        torch.set_rng_state(self.random_state)
        self.model.train()
        start, own_start = time.perf_counter(), time.process_time()
        step = self.segment()
        self.seconds += time.perf_counter() - start
        self.cpu_seconds += time.process_time() - own_start
        self.random_state = torch.get_rng_state()
        scores = evaluate(
            self.model, evaluation_batches(validation, 128, width_multiple=8), precision=self.precision
        )
        self.curve.append((step, self.seconds, scores["macro_f1"]))
        if scores["macro_f1"] >= FINE_FROM * target:
            self.segment_steps = FINE
        return scores["macro_f1"]

    def segment(self) -> int:
        """Train a little; the number of steps so far."""
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        return False


class Naive(System):
    def __init__(self, train: TokenStore, config: TrainConfig, seed: int) -> None:
        super().__init__(train, config, seed)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=NAIVE_LEARNING_RATE)
        self.epoch = self.position = self.step = 0

    def segment(self) -> int:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(len(self.train))
        part = order[self.position : self.position + self.segment_steps * NAIVE_BATCH]
        samples = [self.train[int(i)] for i in part]
        naive_epoch(
            self.model,
            samples,
            self.optimizer,
            pad_to=self.config.max_length,
            micro_batch_size=NAIVE_BATCH,
            seed=self.seed,
        )
        self.step += -(-len(part) // NAIVE_BATCH)
        self.position += len(part)
        if self.position >= len(order):
            self.epoch, self.position = self.epoch + 1, 0
        return self.step


class Ours(System):
    """`fit` with what `build_components` makes of a config, stopped and continued."""

    def __init__(self, train: TokenStore, config: TrainConfig, seed: int) -> None:
        super().__init__(train, config, seed)
        assert isinstance(config.micro_batch_size, int) and config.max_steps is not None
        self.precision = resolve_precision(config.precision, CPU, width=config.d_model)
        self.sampler = BucketBatchSampler(train.lengths, config.micro_batch_size, seed=seed)
        self.max_steps = config.max_steps
        name = config.optimizer
        self.optimizer = make_optimizer(
            self.model,
            choose_optimizer(self.model, is_fresh=True)[0] if name == "auto" else name,
            learning_rate=config.learning_rate,
            weight_decay=config.weight_decay,
            embedding_lr_ratio=embedding_lr_ratio(config),
        )
        self.scheduler = make_schedule(
            self.optimizer,
            config.schedule,
            max_steps=self.max_steps,
            warmup_steps=round(config.warmup_fraction * self.max_steps),
            final_ratio=config.final_learning_rate_ratio,
        )
        self.state = TrainState()
        self.windows: list[dict[str, Any]] = []

    def segment(self) -> int:
        self.sampler.load_state_dict(self.sampler.state_dict())  # go on where the last segment stopped
        config = self.config
        history = fit(
            self.model,
            Batches(self.train, self.sampler, width_multiple=self.precision.width_multiple),
            self.optimizer,
            scheduler=self.scheduler,
            max_epochs=sys.maxsize,
            max_steps=min(self.state.step + self.segment_steps, self.max_steps),
            max_norm=config.max_norm,
            precision=self.precision,
            label_smoothing=config.label_smoothing,
            log_every_steps=config.log_every_steps,
            state=self.state,
        )
        self.windows += [record for record in history if record["kind"] == "train"]
        return self.state.step

    @property
    def is_over(self) -> bool:
        return self.state.step >= self.max_steps

    def share(self, name: str) -> float:
        """Mean over the run of what the logs say."""
        total = sum(record["seconds"] for record in self.windows)
        return sum(record[name] * record["seconds"] for record in self.windows) / total


def race(
    arguments: argparse.Namespace, seed: int, train: TokenStore, validation: TokenStore
) -> dict[str, Any]:
    naive, ours = Naive(train, arguments.config, seed), Ours(train, arguments.config, seed)
    if arguments.quick:
        naive.segment_steps = ours.segment_steps = 3
    systems: dict[str, System] = {"naive": naive, "ours": ours}
    if arguments.without_naive:
        del systems["naive"]
    f1 = dict.fromkeys(systems, 0.0)
    while behind := [name for name in f1 if f1[name] < arguments.target and not systems[name].is_over]:
        name = min(behind, key=lambda name: f1[name])
        f1[name] = systems[name].advance(validation, arguments.target)
        print(f"seed {seed}, {name}: {systems[name].curve[-1]}", file=sys.stderr, flush=True)
        if naive.seconds > arguments.max_seconds:
            break
    return {
        "seed": seed,
        "precision": ours.precision.name,
        "seconds": {name: systems[name].seconds if f1[name] >= arguments.target else None for name in f1},
        "cpu_seconds": {name: systems[name].cpu_seconds for name in f1},
        "curve": {name: systems[name].curve for name in f1},
        "pad_fraction": ours.share("pad_fraction"),
        "data_wait_fraction": ours.share("data_wait_fraction"),
    }


def markdown(result: dict[str, Any]) -> str:
    if "naive" not in result["runs"][0]["curve"]:
        lines = ["| seed | optimizer | steps | CPU s | macro F1 |", "|---|---|---|---|---|"]
        for run in result["runs"]:
            (steps, _, f1), spent = run["curve"]["ours"][-1], run["cpu_seconds"]["ours"]
            lines.append(
                f"| {run['seed']} | {result['config']['optimizer']} | {steps} | {spent:.1f} | {f1:.4f} |"
            )
        return "\n".join(lines) + "\n"
    lines = [
        f"| seed | naive: steps, s | ours: steps, s | naive / ours at F1 {result['target']} | in CPU seconds |",
        "|---|---|---|---|---|",
    ]
    ratios, cpu_ratios = list[float](), list[float]()
    for run in result["runs"]:
        cells = []
        for name in ("naive", "ours"):
            seconds, steps = run["seconds"][name], run["curve"][name][-1][0]
            cells.append(f"{steps}, not reached" if seconds is None else f"{steps}, {seconds:.1f}")
        both = [run["seconds"][name] for name in ("naive", "ours")]
        if None not in both:
            ratios.append(both[0] / both[1])
            cpu_ratios.append(run["cpu_seconds"]["naive"] / run["cpu_seconds"]["ours"])
            cells += [f"{ratios[-1]:.2f}", f"{cpu_ratios[-1]:.2f}"]
        else:
            cells += ["", ""]
        lines.append(f"| {run['seed']} | {' | '.join(cells)} |")
    if ratios:
        medians = [
            f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"
            for found in (ratios, cpu_ratios)
        ]
        lines.append(f"| median (range) | | | {' | '.join(medians)} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", type=float, default=0.65, help="macro F1")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--max-steps", type=int, default=1000, help="of ours: its schedule ends there")
    parser.add_argument("--optimizer", default="auto", help="of ours, by its name")
    parser.add_argument("--without-naive", action="store_true", help="ours alone")
    parser.add_argument(
        "--max-seconds", type=float, default=900.0, help="of the naive loop, then it has lost"
    )
    parser.add_argument("--quick", action="store_true", help="tiny, to see that it works")
    parser.add_argument("--out", type=Path, help="folder for time_to_target.json")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    arguments.config = TrainConfig(
        data="docstrings",
        model="transformer",
        max_steps=arguments.max_steps,
        optimizer=arguments.optimizer,
    )
    if arguments.quick:
        arguments.target, arguments.seeds = 1e-6, arguments.seeds[:1]
    result: dict[str, Any] = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": hardware(),
        "versions": {name: version(name) for name in ("torch", "numpy")},
        "target": arguments.target,
        "config": arguments.config.to_dict(),
        "runs": [],
    }
    train, validation = docstring_store(max_length=arguments.config.max_length, progress=False)
    if arguments.quick:
        chosen = np.random.default_rng(0).permutation(len(train))[:600]
        train, validation = train.subset(chosen), validation.subset(np.arange(0, len(validation), 50))
    for seed in arguments.seeds:
        result["runs"].append(race(arguments, seed, train, validation))
        if arguments.out:  # after each seed: a run that is broken off keeps what it has
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / "time_to_target.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    print(markdown(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
