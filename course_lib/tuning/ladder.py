"""The ladder from the naive loop to an efficient one, one change at a time, measured on the user's own data."""

from __future__ import annotations

import functools
import sys
import time
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from course_lib.base import UserError, progress_bar, resolve_device
from course_lib.data import Batches, BucketBatchSampler, TokenStore
from course_lib.measuring import RunSegment, naive_epoch, paired_segments, synchronize
from course_lib.runs import TrainConfig, build_model
from course_lib.training import (
    FULL_PRECISION,
    Precision,
    compile_model,
    make_optimizer,
    resolve_precision,
    to_device,
    train_step,
)

STORED, DYNAMIC, BUCKETS = "tokens stored once", "dynamic padding", "length buckets"
LEAN, FUSED = "no sync per step, lean batches", "fused optimizer"
LOW, COMPILED = "16-bit matmuls", "torch.compile"
CHANGES = (STORED, DYNAMIC, BUCKETS, LEAN, FUSED, LOW, COMPILED)
"""In the order in which they are tried. The last two depend on hardware and size: they stay if they pay."""
NAIVE, TOGETHER = "naive loop", "all that helped, against the naive loop"
MIN_STEPS = 8  # fewer batches leave buckets too little to sort


def training(
    config: TrainConfig, store: TokenStore, precision: Precision, changes: frozenset[str]
) -> RunSegment:
    """The naive loop with `changes`, ready to be timed: `run(seed, num_steps)` trains from the same initial
    weights, after one untimed step, on the same `num_steps` batches' worth of texts for each way to train."""
    torch.manual_seed(config.seed)
    device, size = resolve_device(config.device)[0], int(config.micro_batch_size or 32)
    model = build_model(config, vocab_size=store.vocab_size, num_classes=len(store.label_names)).to(device)
    initial, tokenizer = deepcopy(model.state_dict()), store.load_tokenizer()
    widest = int(store.lengths.max())
    precision = precision if LOW in changes else FULL_PRECISION
    if COMPILED in changes:
        batch = dict(to_device(store.batch(np.arange(min(size, len(store)))), device))
        _, report = compile_model(model.train(), batch, precision=precision, blocks=1, min_seconds=0.0)
        if not report["is_compiled"]:
            raise UserError(report["reason"])

    def run(seed: int, num_steps: int) -> float:
        order = np.random.default_rng(seed).permutation(len(store))
        order = np.resize(order, (num_steps + 1) * size)  # a small table is gone through again and again
        texts = {i: tokenizer.decode(store[i][0].tolist()) for i in order.tolist()}
        model.load_state_dict(initial)
        model.train()
        optimizer: Any = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
        if FUSED in changes:
            optimizer = make_optimizer(model, learning_rate=config.learning_rate)

        def step(indices: np.ndarray) -> None:
            if LEAN in changes:
                (batch,) = Batches(store, [indices], width_multiple=precision.width_multiple)
                train_step(model, to_device(batch, device), optimizer, precision=precision)
                return
            samples: list[Any] = [store[i] for i in indices.tolist()]
            if STORED not in changes:
                ids = [tokenizer.encode(texts[i]).ids[:widest] for i in indices.tolist()]
                samples = [(new, label) for new, (_, label) in zip(ids, samples, strict=True)]
            width = max(len(ids) for ids, _ in samples) if DYNAMIC in changes else widest
            naive_epoch(model, samples, optimizer, pad_to=width, micro_batch_size=size)

        step(order[:size])
        synchronize()
        start, rest = time.perf_counter(), order[size:]
        sampler = BucketBatchSampler(store.lengths[rest], size, seed=seed)
        for positions in sampler if BUCKETS in changes else np.arange(len(rest)).reshape(-1, size):
            step(rest[positions])
        synchronize()
        return time.perf_counter() - start

    return run


def climb(
    config: TrainConfig, store: TokenStore, *, blocks: int = 5, progress: bool = True, **options: Any
) -> list[dict[str, Any]]:
    """Measure each change against the way to train before it; `options` are those of `paired_segments`.

    A row has `change` and either `obstacle` (why it is not measured) or `samples_per_sec`, `speedup` (over the
    way before), `over_naive` and `is_kept`. `over_naive` multiplies the speedups of what was kept; the last row
    measures the same directly.
    """
    device, naive, kept = resolve_device(config.device)[0], frozenset[str](), frozenset[str]()
    precision = resolve_precision(config.precision, device, width=config.d_model)
    obstacles = {}
    if precision.name == FULL_PRECISION.name:
        obstacles[LOW] = f"{precision.name}: {precision.reason}"
    if device.type == "cpu" and config.compile == "off":
        obstacles[COMPILED] = "on a CPU compiling takes a minute: --set compile=on tries it"
    way = functools.cache(functools.partial(training, config, store, precision))
    over_naive, rows = 1.0, list[dict[str, Any]]()
    bar = progress_bar(total=blocks * (len(CHANGES) + 1), unit="block", file=sys.stderr, disable=not progress)
    options |= {"blocks": blocks, "min_steps": MIN_STEPS, "on_block": lambda _block: bar.update()}
    for change in (*CHANGES, TOGETHER):
        bar.set_description(change)
        before, after = (naive, kept) if change == TOGETHER else (kept, kept | {change})
        try:
            if change in obstacles:
                raise UserError(obstacles[change])
            speedup = paired_segments(way(before), way(after), **options)
        except UserError as obstacle:
            rows.append({"change": change, "obstacle": str(obstacle)})
            bar.update(blocks)
            continue
        is_kept = speedup.estimate > 1 or change not in (LOW, COMPILED)
        row = {"change": change, "speedup": speedup.to_dict(), "is_kept": is_kept}
        num_samples = (
            2 * sum(block.num_steps for block in speedup.blocks) * int(config.micro_batch_size or 32)
        )
        if not rows:
            rate = num_samples / sum(sum(block.baseline_seconds) for block in speedup.blocks)
            rows = [{"change": NAIVE, "samples_per_sec": rate, "over_naive": 1.0, "is_kept": True}]
        if is_kept and change != TOGETHER:
            kept, over_naive = after, over_naive * speedup.estimate
        row["over_naive"] = speedup.estimate if change == TOGETHER else over_naive
        row["samples_per_sec"] = num_samples / sum(sum(block.candidate_seconds) for block in speedup.blocks)
        rows.append(row)
    bar.close()
    return rows
