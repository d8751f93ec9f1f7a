"""Harness of 3.1 and 3.3: several micro-batches, one update."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_counting import counted, looking_on
from autograder.lessons.checking.harness_shared import in_groups, learner, small_model, switches, weights_of
from autograder.lessons.lesson_03.harness.passes import (
    Held,
    OneLook,
    OnePass,
    Outputs,
    OutsideOfTorch,
    StepNorms,
)
from autograder.lessons.lesson_03.harness.shared import (
    Frozen,
    Handed,
    leave,
    set_mode,
    told,
    watched_calls,
)
from course_lib.data import collate
from course_lib.models import ModelConfig, TokenClassifier

WORDS, WIDEST = 60, 24
# What torch's scaler says of calls in another order.
_SCALER = re.compile(r"unscale_\(\)|step\(\) has already|No inf checks|_scale is None")


def token_model(seed: int, num_classes: int = 5) -> TokenClassifier:
    """A tagger of 5 tags and 60 words, without dropout, so that equal inputs give equal gradients."""
    torch.manual_seed(seed)
    sizes: Any = {"d_model": 16, "num_layers": 1, "num_heads": 2, "max_length": 32}
    return TokenClassifier(ModelConfig(vocab_size=WORDS, num_classes=num_classes, dropout=0.0, **sizes))


def padded_left(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same texts backwards, and with their padding before them."""
    return {name: t.flip(1).contiguous() if t.ndim > 1 else t for name, t in batch.items()}


def token_batches(
    rng: np.random.Generator, num_micro_batches: int, grad_accum_steps: int, empty: list[int]
) -> list[dict[str, torch.Tensor]]:
    """Micro-batches whose numbers of labels differ widely; those at `empty` have none.

    The first two of a window are the largest and alike: two of them at a time take twice the memory of one. The last
    of all is a lone row with one label. Some are one token wide. The id of padding comes inside of texts, too, and
    padding may stand before them.
    """
    batches = []
    for index in range(num_micro_batches):
        share = (1.0, 0.15, 0.5)[index % 3]  # of the real tokens that have a label
        is_large = index % grad_accum_steps < 2
        is_narrow = index % 5 == 2 and not is_large
        rows = 1 if index == num_micro_batches - 1 else 6 if is_large else rng.integers(1 + is_narrow, 5)
        lengths = rng.integers(4, WIDEST, size=rows)
        lengths[0] = WIDEST if is_large else lengths[0]
        if is_narrow:
            lengths[:], share = 1, 1.0
        samples = []
        for length in lengths:
            tags = rng.integers(5, size=length)
            tags[rng.random(length) >= share] = -100
            samples.append((rng.integers(0, WORDS, size=length), tags))
        if index == num_micro_batches - 1:
            samples[0][1][:] = -100
        samples[0][1][-1] = rng.integers(5)
        if index in empty:
            for _, tags in samples:
                tags[:] = -100
        batch = collate(samples)
        batches.append(padded_left(batch) if index % 2 else batch)
    return batches


def accumulated_all(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Passes of the learner's loop, one after the other in one process, each on a small tagger of its own."""
    return [accumulated_once(**case) for case in cases]


def accumulated_once(
    seed: int,
    num_micro_batches: int,
    grad_accum_steps: int,
    empty: list[int],
    learning_rate: float,
    left: float | None,
    is_frozen: bool,
    is_in_groups: bool,
    is_training: bool,
    is_counted: bool,
    is_sure: bool,
    is_steep: bool,
    is_again: bool,
) -> dict[str, Any]:
    """One pass of the learner's loop; where it `is_again`, the second one over this model and with this optimizer.

    A tagger that `is_sure` of one tag has a loss of 20 where it is another; one that `is_steep` has gradients longer
    than anybody clips.
    """
    model = token_model(seed)
    set_mode(model, is_training=is_training)
    with torch.no_grad():
        model.head.weight.mul_(4)  # gradients longer than 1: a loop that clips them shows
        model.head.bias[0] += 25.0 * is_sure
        model.final_norm.weight.mul_(100.0 if is_steep else 1.0)
    before = weights_of(model)
    parameters = in_groups(model) if is_in_groups else model.parameters()
    # A gradient of zeros moves what has weight decay; none does not.
    optimizer = torch.optim.SGD(parameters, lr=learning_rate, momentum=0.5, weight_decay=0.05 * is_frozen)
    leave(model, left, is_frozen=is_frozen)
    frozen = Frozen(model)
    if is_again:
        earlier = token_batches(np.random.default_rng(seed + 1), num_micro_batches, grad_accum_steps, empty)
        learner(model, OnePass(earlier), optimizer, grad_accum_steps)
    batches = token_batches(np.random.default_rng(seed), num_micro_batches, grad_accum_steps, empty)
    passes = (OnePass, OneLook)[is_training](batches)
    report, outputs, set_before = {}, Outputs(model), switches()
    handed = Handed(batches)
    outside = OutsideOfTorch(model) if is_counted else contextlib.nullcontext()
    with watched_calls(model) as calls, outside, counted(model, operators=is_counted) as counts:
        try:
            report = learner(model, passes, optimizer, grad_accum_steps)
        except (ZeroDivisionError, UnboundLocalError):
            if calls or not passes.is_used_up:  # else no micro-batch was left, which says more
                raise
    return told(report) | {
        "moved": weights_of(model) - before,
        "frozen": frozen.changed(),
        "optimizer_steps": counts.num_optimizer_steps,
        "calls": calls,
        "saved_bytes": counts.peak_saved_bytes,
        "live_bytes": counts.peak_live_bytes,
        "num_kept": outputs.most_kept,
        "num_looks": passes.num_looks,
        "is_changed": handed.is_changed(),
        "set_before": set_before,
        "set_after": switches(),
    }


def held_by_micro_batch(seed: int, num_micro_batches: int, num_classes: int, collects: bool) -> None:
    """Tells of the bytes that a window holds at each micro-batch: of tensors, arrays and what else is Python's.

    Where it `collects`, without those that wait for the garbage collector, which takes long.
    """
    model = token_model(seed, num_classes)
    rng = np.random.default_rng(seed)
    batches = [
        collate(
            [(rng.integers(0, WORDS, size=WIDEST), rng.integers(num_classes, size=WIDEST)) for _ in range(6)]
        )
        for _ in range(num_micro_batches)
    ]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Held(model, collects=collects):
        learner(model, OnePass(batches), optimizer, num_micro_batches)


def text_batches(rng: np.random.Generator, rows: list[int], easy: list[int]) -> list[dict[str, torch.Tensor]]:
    """Micro-batches of so many texts: a mean of their means is no mean over texts. Those at `easy` are of class 0."""
    batches = []
    for index, number in enumerate(rows):
        lengths = rng.integers(3, 20, size=number)
        labels = rng.integers(1 if easy else 0, 5, size=number) * (index not in easy)
        batch = collate(
            [(rng.integers(0, WORDS, size=n), int(k)) for n, k in zip(lengths, labels, strict=True)]
        )
        batches.append(padded_left(batch) if index % 2 else batch)
    return batches


def mixed_all(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Passes of the learner's loop in low precision, one after the other in one process."""
    return [mixed_once(**case) for case in cases]


def mixed_once(
    seed: int,
    rows: list[int],
    grad_accum_steps: int,
    max_norm: float,
    gradient_scale: float,
    learning_rate: float,
    init_scale: float,
    growth_interval: int,
    left: float | None,
    momentum: float,
    easy: list[int],
    is_frozen: bool,
    is_in_groups: bool,
    is_training: bool,
    is_counted: bool,
    is_sure: bool,
    is_again: bool,
) -> dict[str, Any]:
    """One pass with a scaler whose scale doubles every `growth_interval` updates, and a rate that falls fast.

    Where it `is_again`, the second one with all of these. A model that `is_sure` of one class has a loss of 20 where
    it is another.
    """
    model = small_model(seed)
    set_mode(model, is_training=is_training)
    with torch.no_grad():
        model.head.weight.mul_(gradient_scale)  # gradient norms well above and below `max_norm`
        model.head.bias[0] += 25.0 * is_sure
    before = weights_of(model)
    # Vectors first: of the gradient's length they are a part that is too small for the whole.
    parameters = in_groups(model)[::-1] if is_in_groups else model.parameters()
    optimizer = torch.optim.SGD(
        parameters, lr=learning_rate, momentum=momentum, weight_decay=0.05 * is_frozen
    )
    leave(model, left, is_frozen=is_frozen)
    frozen = Frozen(model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 / (1 + step))
    scaler = torch.amp.GradScaler("cpu", init_scale=init_scale, growth_interval=growth_interval)
    if is_again:
        earlier = text_batches(np.random.default_rng(seed + 1), rows, easy)
        learner(model, OnePass(earlier), optimizer, scheduler, scaler, grad_accum_steps, max_norm)
    scaler_says, report, set_before = "", {}, switches()
    batches = text_batches(np.random.default_rng(seed), rows, easy)
    passes, handed, steps = (OnePass, OneLook)[is_training](batches), Handed(batches), StepNorms(optimizer)
    autocast: list[str] = []
    looking = looking_on(model.blocks[0], lambda *_: autocast.append(_autocast()))
    with watched_calls(model) as calls, looking, counted(model, operators=is_counted) as counts:
        try:
            report = learner(model, passes, optimizer, scheduler, scaler, grad_accum_steps, max_norm)
        except (ZeroDivisionError, UnboundLocalError):
            if calls or not passes.is_used_up:
                raise
        except (RuntimeError, AssertionError) as error:
            scaler_says = str(error)
            if not _SCALER.search(scaler_says):
                raise
    return told(report) | {
        "moved": weights_of(model) - before,
        "frozen": frozen.changed(),
        "is_changed": handed.is_changed(),
        "scaler_says": scaler_says,
        "set_before": set_before,
        "set_after": switches(),
        "is_scaler_used": scaler._scale is not None,
        "num_looks": passes.num_looks,
        "step_norms": steps.norms,
        "autocast": sorted(set(autocast)),
        "optimizer_steps": counts.num_optimizer_steps,
        "scheduler_steps": scheduler.last_epoch,
        "calls": calls,
        "scale": float(scaler.get_scale()),
        "flops": counts.flops,
        "bfloat16": counts.share_of_flops("bfloat16"),
        "float16": counts.share_of_flops("float16"),
        "dtypes": sorted({str(p.dtype) for p in model.parameters()}),
    }


def _autocast() -> str:
    return str(torch.get_autocast_dtype("cpu")) if torch.is_autocast_enabled("cpu") else "none"
