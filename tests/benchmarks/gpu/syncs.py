"""Whether a step waits for the GPU: torch raises at the first sync of 50 steps, and warns at those of a log and of a
validation, which are counted. On the CPU the library's own count stands for torch's word."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from course_lib import (
    Callback,
    TrainState,
    count_events,
    evaluate,
    fit,
    make_optimizer,
    make_schedule,
    resolve_precision,
    train_step,
)
from course_lib.training import to_device
from course_lib.training.window import Window
from tests.benchmarks.gpu.correctness import mean_over_rows
from tests.benchmarks.gpu.lines import Found, Line
from tests.benchmarks.gpu.setting import Setting, small_model, texts

WARM_UP = 5
CASES: dict[str, dict[str, Any]] = {
    "32-true": {},
    "bf16-mixed": {},
    "16-mixed": {},
    "32-true, two micro-batches and loss=": {"loss": mean_over_rows, "grad_accum_steps": 2},
}
"""What is given to `fit`, by precision and what else."""


def lines(setting: Setting) -> Iterator[Line]:
    num_steps = setting.steps(50)
    for case in CASES:
        yield Line(
            f"{num_steps} steps of `fit` in {case}",
            "0 syncs",
            partial(_steps, setting, case, num_steps),
        )
    # On a CPU the count cannot know that the numbers of tokens were never on a device.
    yield Line("reading a log of 10 steps", "1 sync", partial(_window, setting), needs=setting.needs_cuda)
    yield Line("`evaluate` on 5 batches", "1 sync", partial(_evaluation, setting))


class Between(Callback):
    """Holds `watch()` open from the end of one step to the end of another."""

    def __init__(self, watch: Callable[[], AbstractContextManager[object]], first: int, last: int) -> None:
        self.watch, self.first, self.last, self.stack = watch, first, last, ExitStack()

    def on_step(self, state: TrainState) -> None:
        if state.step == self.first:
            self.stack.enter_context(self.watch())
        elif state.step == self.last:
            self.stack.close()

    def on_end(self, state: TrainState) -> None:
        self.stack.close()


@contextmanager
def no_syncs() -> Iterator[None]:
    """On CUDA: the first one raises RuntimeError, where it happens."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@contextmanager
def counted(setting: Setting, model: nn.Module) -> Iterator[list[int]]:
    """A list that holds the number of syncs when the block has ended."""
    found: list[int] = []
    if not setting.is_cuda:
        with count_events(model) as counts:
            yield found
        found.append(counts.num_syncs)
        return
    torch.cuda.synchronize(setting.device)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")
    found.append(sum("called a synchronizing CUDA operation" in str(one.message) for one in told))


def _steps(setting: Setting, case: str, num_steps: int) -> Found:
    precision = resolve_precision(case.partition(",")[0], setting.device)
    model = small_model(setting.device, dropout=0.1)
    optimizer = make_optimizer(model)
    steps = WARM_UP + num_steps + 1
    accumulates = CASES[case].get("grad_accum_steps", 1)
    counts: list[int] = []
    # On a GPU gradients of embeddings are sorted from 3,072 tokens on; where every operator is looked at, few must do.
    rows, width = (64, 64) if setting.is_cuda else (8, 32)

    @contextmanager
    def watch() -> Iterator[None]:
        if setting.is_cuda:
            with no_syncs():
                yield
            counts.append(0)
        else:
            with counted(setting, model) as found:
                yield
            counts.extend(found)

    history = fit(
        model,
        texts(steps * accumulates, rows, width),
        optimizer,
        scheduler=make_schedule(optimizer, "cosine", max_steps=steps, warmup_steps=WARM_UP),
        precision=precision,
        log_every_steps=10 * steps,
        callbacks=[Between(watch, WARM_UP, WARM_UP + num_steps)],
        **CASES[case],
    )
    assert history[0]["num_steps"] == steps
    return Found(counts == [0], f"{counts[0]}", {"num_syncs": counts[0]})


def _window(setting: Setting) -> Found:
    model, window = small_model(setting.device), Window()
    optimizer = make_optimizer(model)
    for batch in texts(10, rows=8, width=32):
        window.add(batch, train_step(model, to_device(batch, setting.device), optimizer))
    with counted(setting, model) as found:
        window.read()
    return Found(found == [1], f"{found[0]}", {"num_syncs": found[0]})


def _evaluation(setting: Setting) -> Found:
    model, batches = small_model(setting.device), texts(5, rows=8, width=32)
    evaluate(model, batches)
    with counted(setting, model) as found:
        evaluate(model, batches)
    return Found(found == [1], f"{found[0]}", {"num_syncs": found[0]})
