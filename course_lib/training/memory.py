"""Less memory for more arithmetic (activation checkpointing); less Python for a wait (torch.compile), and less often:
the micro-batch that fills a device."""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from course_lib.base import on_device, reset_peak_memory
from course_lib.distributed import device_of, from_main_process, rehearsal, unwrap, wrap_ddp
from course_lib.measuring import paired_speedup, synchronize
from course_lib.training.loop import train_step
from course_lib.training.losses import Loss, loss_sum
from course_lib.training.micro_batch import give_back_memory, is_no_memory
from course_lib.training.optim import make_optimizer
from course_lib.training.precision import FULL_PRECISION, Precision
from course_lib.training.reproducibility import kept_rng_state
from course_lib.training.window import Batch, to_device

MIN_COMPILE_SECONDS = 30.0
"""What compiling takes at least, forward, backward and evaluation together: two runs' worth of it must be there."""
ENOUGH = 0.9
"""Of the most samples per second that were seen: from this share on a size fills the device."""
NUM_STEPS = 3


def apply_activation_checkpointing(model: Any) -> Any:
    """Keep only the input of each block and compute the rest again in backward, in place; returns the model.

    About a third more arithmetic; activations of one block at a time instead of all (Chen et al., 2016).
    The gradients are the same to the bit, dropout included. Evaluation is left as it was.
    """
    if hasattr(model, "network"):  # Hugging Face models bring their own
        network = model.network
        enable = getattr(network, "activation_checkpointing_enable", None)  # its name since version 5
        (enable or network.gradient_checkpointing_enable)({"use_reentrant": False})
        return model
    for block in model.blocks:
        # As an attribute of the block, not a module around it: names in the state_dict stay.
        block.forward = functools.partial(_checkpointed, block, block.forward)
    return model


def _checkpointed(block: nn.Module, forward: Any, *inputs: Any) -> Any:
    return checkpoint(forward, *inputs, use_reentrant=False) if block.training else forward(*inputs)


def compile_model(
    model: nn.Module,
    batch: Mapping[str, Tensor],
    *,
    loss: Loss | None = None,
    precision: Precision = FULL_PRECISION,
    num_micro_steps: int | None = None,
    blocks: int = 4,
    min_seconds: float = 0.25,
) -> tuple[nn.Module, dict[str, Any]]:
    """Compile the model in place for any batch size and width, and measure forward + backward on `batch`.

    With `num_micro_steps`, those of the whole run, of which `batch` is a typical one, it stays compiled only if it
    is measured to be faster, and saves more time than it took; a run too short for that is not compiled at all. All
    processes do as the first one.

    Returns the model and a report: `is_compiled`, `reason`, `compile_seconds` (the first step; evaluation
    compiles once more when it first runs), `speedup` (eager time / compiled time, with its interval).
    Without a C++ compiler, or when the compiler fails, the model stays as it was and `reason` says why.
    Weights, names in the state_dict and random generators are left alone, gradients are cleared.
    """
    eager, run_seconds = model.forward, None

    def step(forward: Any, batch: Mapping[str, Tensor] = batch) -> None:
        with precision.autocast():
            if loss is None:
                cost = loss_sum(forward(batch["input_ids"], batch["attention_mask"]), batch["labels"])
            else:
                cost, _ = loss(forward, batch)
        with precision.products():
            cost.backward()
        model.zero_grad(set_to_none=True)

    with on_device(device_of(model)), kept_rng_state():  # dropout draws numbers
        if num_micro_steps is not None:
            run_seconds = num_micro_steps * min(_seconds(lambda: step(eager)) for _ in range(3))
            if not from_main_process(run_seconds / 2 > MIN_COMPILE_SECONDS):
                reason = (
                    f"not compiled: the steps take about {run_seconds:.0f} s, too few to bring in the "
                    f"{MIN_COMPILE_SECONDS:.0f} s or more that compiling takes"
                )
                return model, {"is_compiled": False, "reason": reason}
        start = time.perf_counter()
        compiled = torch.compile(eager, dynamic=True)  # what it imports takes seconds, too
        try:
            step(compiled, _unlike(batch))
        except torch._dynamo.exc.TorchDynamoException as error:
            why = str(error).partition("\n")[0].rstrip(".: ")
            fix = "install a C++ compiler (g++), or set compile=off"
            _pays_on_main_process(run_seconds, False)
            return model, {"is_compiled": False, "reason": f"not compiled: {why}; {fix}"}
        seconds = time.perf_counter() - start
        timing: dict[str, Any] = {"blocks": blocks, "min_seconds": min_seconds}
        speedup = paired_speedup(lambda: step(eager), lambda: step(compiled), **timing)
    reason = f"compiled in {seconds:.1f} s, then {speedup.estimate:.2f}× as fast as before"
    measured = {"compile_seconds": seconds, "speedup": speedup.to_dict()}
    if run_seconds is not None:
        saved = run_seconds * (1.0 - 1.0 / speedup.estimate)
        is_kept = _pays_on_main_process(run_seconds, speedup.low > 1.0 and saved > seconds)
        reason += (
            f", which saves {saved:.0f} of the steps' {run_seconds:.0f} s: {'kept' if is_kept else 'dropped'}"
        )
        if not is_kept:
            return model, {"is_compiled": False, "reason": reason, **measured}
    model.forward = compiled  # an attribute: wrapped, all names in the state_dict would begin with _orig_mod
    return model, {"is_compiled": True, "reason": reason, **measured}


def _unlike(batch: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The batch, a row less where it has as many as columns: two sizes that are alike at first are compiled as one, and
    the next batch would be compiled anew. So would it after a view, whose base is looked at, too."""
    rows, width = batch["input_ids"].shape
    return {name: part[1:].clone() for name, part in batch.items()} if rows == width > 2 else batch


def _seconds(work: Callable[[], None]) -> float:
    synchronize()
    start = time.perf_counter()
    work()
    synchronize()
    return time.perf_counter() - start


def _pays_on_main_process(run_seconds: float | None, pays: bool) -> bool:
    """What the first process found; all ask, also one whose compiler failed."""
    return pays if run_seconds is None else from_main_process(pays)


def filling_micro_batch_size(
    model: nn.Module,
    make_batch: Callable[[int], Batch],
    largest: int,
    *,
    loss: Loss | None = None,
    optimizer: str = "adamw",
    precision: Precision = FULL_PRECISION,
    place: Callable[[nn.Module], nn.Module] | None = None,
) -> tuple[int, str]:
    """The smallest size up to `largest`, which fits, that trains at `ENOUGH` of the best rate; and why.

    `make_batch(size)` gives a batch of `size` samples as they mostly come; the rest is as in
    `largest_micro_batch_size`, and like there the model, the random state and the peak of memory are afterwards as if
    nothing had been. It is timed, so two runs may choose differently: the record says what was chosen, and a resumed
    run keeps it.
    """
    home = next(model.parameters()).device
    place = place or (lambda copied: wrap_ddp(copied.to(home)))
    precision = replace(precision, scaler=None)

    def tried() -> tuple[int, str]:
        trial = place(copy.deepcopy(model)).train()
        device, update = device_of(trial), make_optimizer(unwrap(trial), optimizer)

        def seconds_of(size: int) -> float:
            try:
                batch = to_device(make_batch(size), device)
                for is_warm in (False, True):
                    synchronize()
                    start = time.perf_counter()
                    for _ in range(NUM_STEPS if is_warm else 1):
                        train_step(trial, batch, update, loss=loss, precision=precision)
                    synchronize()
                return (time.perf_counter() - start) / NUM_STEPS
            except (MemoryError, RuntimeError) as error:  # another program may have taken some meanwhile
                if not is_no_memory(error) or size == 1:
                    raise
                return float("inf")

        with on_device(device):
            found = smallest_filling(seconds_of, largest)
        reset_peak_memory(device)
        return found

    model.cpu()
    try:
        with rehearsal(), kept_rng_state():
            found = tried()
    finally:
        give_back_memory()
        model.to(home)
    return from_main_process(found)


def smallest_filling(seconds_of: Callable[[int], float], largest: int) -> tuple[int, str]:
    """Sizes are doubled from 1 up to `largest` until two doublings have brought less than a doubling should, a tenth;
    `seconds_of(size)` is what a step of that many samples takes."""
    rates: dict[int, float] = {}
    size = 1
    while True:
        rates[size] = size / seconds_of(size)
        before = list(rates.values())[:-2]
        if size == largest or (before and max(rates.values()) * ENOUGH < max(before)):
            break
        size = min(2 * size, largest)
    best = max(rates, key=lambda size: rates[size])
    found = next(size for size, rate in rates.items() if rate >= ENOUGH * rates[best])
    return found, (
        f"auto: {found} samples fill the device: {rates[found]:,.0f} samples/s; "
        f"the most were {rates[best]:,.0f}, with {best}"
    )
