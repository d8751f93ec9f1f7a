"""How much faster two processes train than one, a thread each: `python -m tests.benchmarks.scaling`.

Each round starts torchrun with one process and with two, in turn, on the same model and texts (lengths with the
long tail of docstrings). Each process takes micro-batches of the same size; steps before the clock starts warm up.
Prints JSON: samples per second of every round, their medians, and the ratio, whose target is 1.8.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

MEDIAN_LENGTH, SPREAD, MAX_LENGTH, VOCAB_SIZE, NUM_CLASSES = 37, 1.4, 256, 8192, 8
TARGET = 1.8


class Texts:
    """Random tokens in the lengths of docstrings; as a `TokenStore`, samples by index."""

    def __init__(self, num_samples: int) -> None:
        rng = np.random.default_rng(0)
        lengths = rng.lognormal(math.log(MEDIAN_LENGTH), SPREAD, num_samples).astype(int)
        self.lengths = np.clip(lengths, 3, MAX_LENGTH)
        self.ids = rng.integers(0, VOCAB_SIZE, (num_samples, MAX_LENGTH))
        self.labels = rng.integers(0, NUM_CLASSES, num_samples)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return self.ids[index, : self.lengths[index]], int(self.labels[index])


def measure(options: argparse.Namespace) -> None:
    """In each process that torchrun starts: train, and print samples per second of all of them."""
    import torch

    from course_lib.data.batching import Batches, BucketBatchSampler
    from course_lib.data.sharding import ShardedOrder
    from course_lib.distributed import ranks as distributed
    from course_lib.models.transformers import ModelConfig, make_model
    from course_lib.training.callbacks import Callback, TrainState
    from course_lib.training.loop import fit

    torch.manual_seed(0)
    torch.set_num_threads(1)
    ranks = distributed.setup("cpu")
    texts = Texts(options.samples)
    config = ModelConfig(
        vocab_size=VOCAB_SIZE, num_classes=NUM_CLASSES, max_length=MAX_LENGTH, d_model=options.d_model
    )
    model = make_model(config)
    sampler = BucketBatchSampler(texts.lengths, options.micro_batch_size)

    class Clock(Callback):
        start = 0.0

        def on_step(self, state: TrainState) -> None:
            if state.step == options.warmup:
                distributed.gather_objects(None)  # all are here
                self.start = time.perf_counter()

    clock = Clock()
    state = TrainState()
    fit(
        distributed.wrap_ddp(model),
        Batches(texts, ShardedOrder(sampler, ranks)),
        torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True),
        max_epochs=1_000_000,
        max_steps=options.warmup + options.steps,
        log_every_steps=options.warmup + options.steps,
        callbacks=[clock],
        state=state,
    )
    distributed.gather_objects(None)
    seconds = time.perf_counter() - clock.start
    if ranks.is_main_process:
        num_samples = options.steps * options.micro_batch_size * ranks.world_size
        print(json.dumps({"samples_per_sec": num_samples / seconds}))
    distributed.cleanup()


def compare(options: argparse.Namespace, passed_on: list[str]) -> dict[str, Any]:
    from course_lib.base.machine import hardware
    from tests.course_lib.scripts.small import torchrun

    speeds: dict[int, list[float]] = {1: [], 2: []}
    for number in range(options.rounds):
        for processes in (1, 2) if number % 2 == 0 else (2, 1):
            done = torchrun(Path(__file__), "--measure", *passed_on, processes=processes, timeout=3600)
            speeds[processes].append(json.loads(done.stdout)["samples_per_sec"])
    medians = {processes: statistics.median(values) for processes, values in speeds.items()}
    return {
        "samples_per_sec": speeds,
        "medians": medians,
        "ratio": medians[2] / medians[1],
        "target": TARGET,
        "options": vars(options),
        "hardware": hardware(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--samples", type=int, default=25_600)
    parser.add_argument("--micro-batch-size", type=int, default=64)
    parser.add_argument("--d-model", type=int, default=64)
    options = parser.parse_args()
    if options.measure:
        measure(options)
        return 0
    result = compare(options, sys.argv[1:])
    print(json.dumps(result, indent=2))
    return 0 if result["ratio"] >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
