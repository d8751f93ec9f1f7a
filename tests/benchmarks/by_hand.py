"""`fit` against the loop that somebody who knows PyTorch writes by hand, fused AdamW included: texts and images.

    python -m tests.benchmarks.by_hand [--sizes 16 64] [--blocks 8] [--clock wall|cpu] [--out FOLDER] [--quick]

Both train the same model from the same weights on the same batches in one process on one thread, in interleaved
segments (`course_lib.measuring`). Texts: the hand-written loop has a `DataLoader` with dynamic padding over the
batches of our sampler. Images: both have the same `DataLoader` of `(x, y)`. Both clip, follow a schedule and read
their loss every 50 steps. The clock runs from the first step of a segment to the end of the last: with `cpu` it is the
process's own time, which other programs on the machine disturb less. Prints a Markdown table of time with `fit` / time
by hand, with the 95 % interval, and the load before and after; `by_hand.json` holds all segments.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from course_lib.base.machine import hardware
from course_lib.data.batching import Batches, BucketBatchSampler
from course_lib.measuring.bench import RunSegment, SpeedupEstimate, paired_segments
from course_lib.models.transformers import ModelConfig, make_model
from course_lib.training.callbacks import Callback, TrainState
from course_lib.training.loop import fit
from course_lib.training.optim import make_optimizer
from course_lib.training.schedules import make_schedule
from tests.benchmarks.peers_case import Case, Texts, pad_batch, stores

LOG_EVERY = 50
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
Loaders = Callable[[int, int], tuple[Iterable[Any], Iterable[Any]]]
"""`loaders(seed, num_batches)`: the same batches, for the loop by hand and for `fit`."""


class Timer(Callback):
    """The clock's reading after the first step and after the last."""

    def __init__(self, clock: Callable[[], float], num_steps: int) -> None:
        self.clock, self.num_steps, self.readings = clock, num_steps, list[float]()

    def on_step(self, state: TrainState) -> None:
        if state.step in (1, self.num_steps + 1):
            self.readings.append(self.clock())

    @property
    def seconds(self) -> float:
        first, last = self.readings
        return last - first


def by_hand(model: nn.Module, loaders: Loaders, clock: Callable[[], float]) -> RunSegment:
    initial = deepcopy(model.state_dict())
    decays = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]

    def run(seed: int, num_steps: int) -> float:
        model.load_state_dict(initial)
        optimizer = torch.optim.AdamW(
            [{"params": decays, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
            lr=1e-3,
            fused=True,
        )
        scheduler = make_schedule(optimizer, "linear", max_steps=1000, warmup_steps=100)
        timer, state, running_loss = Timer(clock, num_steps), TrainState(), torch.zeros(())
        model.train()
        for batch in loaders(seed, num_steps + 1)[0]:
            optimizer.zero_grad()
            if isinstance(batch, dict):
                logits, labels = model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
            else:
                logits, labels = model(batch[0]), batch[1]
            loss = F.cross_entropy(logits, labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            running_loss += loss.detach()
            state.step += 1
            if state.step % LOG_EVERY == 0:
                running_loss.item()
            timer.on_step(state)
        return timer.seconds

    return run


def with_fit(model: nn.Module, loaders: Loaders, clock: Callable[[], float]) -> RunSegment:
    initial = deepcopy(model.state_dict())

    def run(seed: int, num_steps: int) -> float:
        model.load_state_dict(initial)
        optimizer = make_optimizer(model, learning_rate=1e-3)
        timer = Timer(clock, num_steps)
        fit(
            model,
            loaders(seed, num_steps + 1)[1],
            optimizer,
            scheduler=make_schedule(optimizer, "linear", max_steps=1000, warmup_steps=100),
            max_steps=num_steps + 1,
            log_every_steps=LOG_EVERY,
            callbacks=[timer],
        )
        return timer.seconds

    return run


def of_texts(size: int, is_quick: bool) -> tuple[nn.Module, Loaders]:
    case = Case(**({"num_train": 400, "max_length": 32} if is_quick else {}))
    train, _ = stores(case)

    def loaders(seed: int, num_batches: int) -> tuple[Iterable[Any], Iterable[Any]]:
        sampler = BucketBatchSampler(train.lengths, size, seed=seed)
        order = [indices for _ in range(num_batches) for indices in islice(sampler, num_batches)][
            :num_batches
        ]
        return DataLoader(Texts(train), batch_sampler=order, collate_fn=pad_batch), Batches(train, order)

    names = ("max_length", "d_model", "num_layers", "num_heads", "dropout")
    sizes = {name: getattr(case, name) for name in names}
    num_classes = len(train.label_names)
    return make_model(ModelConfig(vocab_size=train.vocab_size, num_classes=num_classes, **sizes)), loaders


def of_images(size: int, is_quick: bool) -> tuple[nn.Module, Loaders]:
    """32 × 32 pixels in three colours, two convolutions."""
    rng = torch.Generator().manual_seed(0)
    count = 400 if is_quick else 8192
    images = TensorDataset(
        torch.randn(count, 3, 32, 32, generator=rng), torch.randint(10, (count,), generator=rng)
    )

    def loaders(seed: int, num_batches: int) -> tuple[Iterable[Any], Iterable[Any]]:
        order = np.random.default_rng(seed).integers(count, size=(num_batches, size)).tolist()
        return DataLoader(images, batch_sampler=order), DataLoader(images, batch_sampler=order)

    model = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Dropout(0.1), nn.Linear(32 * 8 * 8, 10)),
    )
    return model, loaders


KINDS = {"texts": of_texts, "images": of_images}


def measure(
    kind: str, size: int, *, clock: str, blocks: int, num_steps: int, is_quick: bool
) -> SpeedupEstimate:
    torch.manual_seed(0)
    model, loaders = KINDS[kind](size, is_quick)
    sides = [make(deepcopy(model), loaders, CLOCKS[clock]) for make in (by_hand, with_fit)]
    return paired_segments(sides[0], sides[1], blocks=blocks, min_seconds=0.0, min_steps=num_steps)


def markdown(result: dict[str, Any]) -> str:
    lines = [f"| what | micro-batch | ms by hand | `fit` / by hand, {result['clock']} | 95 % interval |"]
    lines.append("|---|---|---|---|---|")
    for row in result["rows"]:
        found = row["speedup"]
        times = [
            s
            for b in found["blocks"]
            for s, side in zip(b["seconds"], b["order"], strict=True)
            if side == "A"
        ]
        step = float(np.median(times)) / found["blocks"][0]["num_steps"]
        # A bound that so few blocks do not give is None.
        low, high = (f"{1 / found[name]:.3f}" if found[name] else "?" for name in ("high", "low"))
        ratio = f"{1 / found['estimate']:.3f} | {low} to {high}"
        lines.append(f"| {row['kind']} | {row['size']} | {step * 1e3:.1f} | {ratio} |")
    loads = " to ".join(f"{load:.1f}" for load in result["load"])
    return "\n".join([*lines, "", f"Load average {loads}; target ≤ 1.00."]) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", nargs="+", default=[*KINDS], choices=[*KINDS])
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 64], help="micro-batches")
    parser.add_argument("--blocks", type=int, default=8, help="of four segments each")
    parser.add_argument("--steps", type=int, default=LOG_EVERY, help="of a segment")
    parser.add_argument("--clock", default="wall", choices=[*CLOCKS])
    parser.add_argument("--quick", action="store_true", help="tiny, to see that it works")
    parser.add_argument("--out", type=Path, help="folder for by_hand.json")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    if arguments.quick:
        arguments.sizes, arguments.blocks, arguments.steps = [4], 1, 2
    result: dict[str, Any] = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": hardware(),
        "versions": {name: version(name) for name in ("torch", "numpy")},
        "clock": arguments.clock,
        "load": [os.getloadavg()[0]],
        "rows": [],
    }
    how = {"clock": arguments.clock, "blocks": arguments.blocks, "num_steps": arguments.steps}
    for kind in arguments.kinds:
        for size in arguments.sizes:
            found = measure(kind, size, is_quick=arguments.quick, **how)
            result["rows"].append({"kind": kind, "size": size, "speedup": found.to_dict()})
    result["load"].append(os.getloadavg()[0])
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "by_hand.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    print(markdown(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
