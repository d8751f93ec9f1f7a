"""How much faster two processes train than one, a thread each, and what the rest is lost to.

    python -m tests.benchmarks.scaling [--rounds 7] [--pin] [--out FILE]

Each round trains, in turn, on the same model and texts (lengths with the long tail of docstrings):

- one: one process alone;
- apart: two processes at the same time that know nothing of each other. What they lose against twice `one` they lose to
  what the cores share: clock, memory, the machine's other guests;
- two: two processes under torchrun. What they lose against `apart` is waiting for each other and DDP's own work.

Each process takes micro-batches of the same size; steps before the clock starts warm up. Beside them three probes, on
one core and on both at once, tell the cores' shares apart: additions in registers (clock, or two threads of one core),
a product of matrices that fit the L2 cache (the vector units' clock), a copy of 256 MiB (memory). `--pin` keeps each
process on a core of its own. `core` is the share of its time in which a process ran: below 1 it waited, for its peer
or for a core. Prints JSON: of every round samples per second and per second of CPU, their medians, the ratio, whose
target is 1.8, and its two factors.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MEDIAN_LENGTH, SPREAD, MAX_LENGTH, VOCAB_SIZE, NUM_CLASSES = 37, 1.4, 256, 8192, 8
TARGET = 1.8
WAYS = ("one", "apart", "two")
ROOT = Path(__file__).resolve().parents[2]


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
    number = ranks.rank if options.apart is None else options.number
    if options.pin:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[number]})
    texts = Texts(options.samples)
    config = ModelConfig(
        vocab_size=VOCAB_SIZE, num_classes=NUM_CLASSES, max_length=MAX_LENGTH, d_model=options.d_model
    )
    model = make_model(config)
    sampler = BucketBatchSampler(texts.lengths, options.micro_batch_size)

    class Clock(Callback):
        start = own_start = 0.0

        def on_step(self, state: TrainState) -> None:
            if state.step == options.warmup:
                distributed.gather_objects(None)  # all are here
                if options.apart is not None:
                    wait_for_both(options.apart, number)
                self.start, self.own_start = time.perf_counter(), time.process_time()

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
    own = time.process_time() - clock.own_start
    distributed.gather_objects(None)
    seconds = time.perf_counter() - clock.start
    own_seconds = distributed.gather_objects(own)
    if ranks.is_main_process:
        num_samples = options.steps * options.micro_batch_size * ranks.world_size
        found = {
            "samples_per_sec": num_samples / seconds,
            "samples_per_cpu_sec": num_samples / sum(own_seconds),
            "core": min(own_seconds) / seconds,
        }
        print(json.dumps(found))
    distributed.cleanup()


def wait_for_both(folder: Path, number: int) -> None:
    (folder / f"ready{number}").touch()
    while not (folder / f"ready{1 - number}").exists():
        time.sleep(0.001)


def probe(options: argparse.Namespace) -> None:
    """Rates of this process per second of its own time, so that waiting for a core is not in them."""
    import torch

    torch.set_num_threads(1)
    if options.pin:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[options.number]})
    small = torch.rand(256, 256)
    large, other = torch.rand(2**26), torch.empty(2**26)

    def additions() -> None:
        total = 0
        for value in range(100_000):
            total += value

    works: dict[str, Callable[[], object]] = {
        "additions": additions,
        "matrices in L2": lambda: [small @ small for _ in range(20)],
        "copies of 256 MiB": lambda: other.copy_(large),
    }
    for work in works.values():
        work()
    if options.apart is not None:
        wait_for_both(options.apart, options.number)
    rates = {}
    for name, work in works.items():
        count, start, begun = 0, time.process_time(), time.perf_counter()
        while time.perf_counter() - begun < options.probe_seconds:
            work()
            count += 1
        rates[name] = count / (time.process_time() - start)
    print(json.dumps(rates))


def together(role: str, number: int, passed_on: list[str]) -> list[dict[str, Any]]:
    """What so many processes print that run at the same time and know nothing of each other."""
    with tempfile.TemporaryDirectory() as folder:
        meeting = ["--apart", folder] if number == 2 else []
        started = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.benchmarks.scaling",
                    role,
                    *meeting,
                    "--number",
                    str(one),
                    *passed_on,
                ],
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                text=True,
            )
            for one in range(number)
        ]
        return [json.loads(process.communicate()[0]) for process in started]


def compare(options: argparse.Namespace, passed_on: list[str]) -> dict[str, Any]:
    from course_lib.base.machine import hardware
    from tests.course_lib.scripts.small import torchrun

    load = [os.getloadavg()[0]]
    rounds: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    probes: dict[str, list[float]] = {}
    for number in range(options.rounds):
        for way in WAYS if number % 2 == 0 else WAYS[::-1]:
            if way == "apart":
                found = together("--measure", 2, passed_on)
                rates = ("samples_per_sec", sum), ("samples_per_cpu_sec", statistics.mean), ("core", min)
                rounds[way].append({name: join(one[name] for one in found) for name, join in rates})
            else:
                processes = 2 if way == "two" else 1
                done = torchrun(Path(__file__), "--measure", *passed_on, processes=processes, timeout=3600)
                rounds[way].append(json.loads(done.stdout))
        alone, both = together("--probe", 1, passed_on)[0], together("--probe", 2, passed_on)
        for name in alone:
            probes.setdefault(name, []).append(statistics.mean(one[name] for one in both) / alone[name])
    medians = {
        way: {name: statistics.median(one[name] for one in found) for name in found[0]}
        for way, found in rounds.items()
    }
    one, apart, two = (medians[way]["samples_per_sec"] for way in WAYS)
    return {
        "rounds": rounds,
        "medians": medians,
        "ratio": two / one,
        "of which": {"what the cores share": apart / (2 * one), "waiting and DDP": two / apart},
        "a core beside a busy one / alone": {
            name: statistics.median(found) for name, found in probes.items()
        },
        "target": TARGET,
        "load": [*load, os.getloadavg()[0]],
        "options": {name: str(value) for name, value in vars(options).items()},
        "hardware": hardware(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for role in ("--measure", "--probe"):
        parser.add_argument(role, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--apart", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--pin", action="store_true", help="each process stays on a core of its own")
    parser.add_argument("--probe-seconds", type=float, default=2.0, help="of each probe")
    parser.add_argument("--out", type=Path, help="file for the JSON")
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
    if options.probe:
        probe(options)
        return 0
    text = json.dumps(result := compare(options, sys.argv[1:]), indent=2)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0 if result["ratio"] >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
