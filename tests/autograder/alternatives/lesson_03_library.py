# Right solutions of some exercises of lesson 03 that leave the work to torch's or `course_lib`'s own parts.

# %%
import math

import torch

from autograder import exercise


def worst_case(fits, too_many, max_size):
    """Tries that doubling and halving need at most from here. `too_many` None: none has failed yet."""
    if too_many is not None:
        return (too_many - fits - 1).bit_length()
    if fits == max_size:
        return 0
    following = min(2 * fits, max_size)
    return 1 + max(worst_case(fits, following, max_size), worst_case(following, None, max_size))


@exercise("3.2")
def largest_micro_batch_size(try_step, budget_bytes, max_size):
    """Tries what a line through the last two peaks says, as long as doubling and halving can still follow."""
    tries_left = math.floor(2 * math.log2(max_size) + 3)
    known = []  # (size, peak) of those that fit, ascending

    def fits_in(size):
        nonlocal tries_left
        tries_left -= 1
        try:
            peak = try_step(size)
        except torch.OutOfMemoryError:
            return False
        if peak > budget_bytes:
            return False
        known.append((size, peak))
        return True

    if not fits_in(1):
        return 0
    fits, too_many = 1, None
    while fits < max_size and too_many != fits + 1:
        upper = min(2 * fits, max_size) if too_many is None else too_many - 1
        safe = upper if too_many is None else (fits + too_many) // 2
        guess = safe
        if len(known) >= 2:
            (first, first_peak), (second, second_peak) = known[-2:]
            slope = (second_peak - first_peak) / (second - first)
            if slope > 0:
                guess = second + int((budget_bytes - second_peak) / slope)
                guess = min(max(guess, fits + 1), upper)
        if guess != safe:
            most = max(worst_case(guess, too_many, max_size), worst_case(fits, guess, max_size))
            if 1 + most > tries_left:
                guess = safe
        if fits_in(guess):
            fits = guess
        else:
            too_many = guess
    return fits


# %%
from itertools import islice

import numpy as np
import torch

from autograder import exercise
from course_lib import loop
from course_lib.precision import Precision


@exercise("3.3")
def train_accumulated_mixed(model, micro_batches, optimizer, scheduler, scaler, grad_accum_steps, max_norm):
    """`train_step` with a Precision that carries the scaler; what it tells is kept in a record array."""
    precision = Precision("bf16-mixed", "the exercise", torch.bfloat16, "cpu", scaler)
    model.train()
    stream = iter(micro_batches)
    rows = []
    for window in iter(lambda: list(islice(stream, grad_accum_steps)), []):
        told = loop.train_step(
            model, window, optimizer, scheduler=scheduler, max_norm=max_norm, precision=precision
        )
        rows.append(tuple(float(told[name]) for name in ("loss", "num_items", "grad_norm")))
    log = np.rec.fromrecords(rows, names="loss,num_items,grad_norm")
    return {
        "loss": float(np.average(log.loss, weights=log.num_items)),
        "grad_norm": float(log.grad_norm.mean()),
        "num_updates": len(log),
    }


# %%
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    checkpoint_wrapper,
)

from autograder import exercise


@exercise("3.5")
def checkpoint_blocks(model):
    """torch's own wrapper in the place of each block."""
    for position, block in enumerate(model.blocks):
        model.blocks[position] = checkpoint_wrapper(
            block, checkpoint_impl=CheckpointImpl.NO_REENTRANT, determinism_check="none"
        )
    return model


# %%
import math

from autograder import exercise
from course_lib import data, loop


def halved(texts, fits):
    """`texts`, ascending by length, in pieces that fit."""
    if len(texts) == 1 or fits(texts):
        return [texts]
    middle = len(texts) // 2
    return halved(texts[:middle], fits) + halved(texts[middle:], fits)


def topped_up(pieces, fits):
    """Each piece filled up with the texts behind it, as far as they fit."""
    (current, *rest), filled = pieces, []
    for piece in rest:
        # The most texts of the next piece that still fit: it is short, so count down.
        taken = next(n for n in range(len(piece), -1, -1) if n == 0 or fits(current + piece[:n]))
        current, left = current + piece[:taken], piece[taken:]
        if left:
            filled.append(current)
            current = left
    return [*filled, current]


@exercise("3.6")
def train_in_budget(model, samples, optimizer, global_batch_size, budget_bytes, step_bytes):
    """Halves the sorted update until each piece fits, then fills the pieces up; `train_step` does the rest."""

    def fits(texts):
        return step_bytes(len(texts), len(texts[-1][0])) <= budget_bytes

    device = next(model.parameters()).device
    model.train()
    told = []
    for begin in range(0, len(samples), global_batch_size):
        texts = sorted(samples[begin : begin + global_batch_size], key=lambda text: len(text[0]))
        pieces = topped_up(halved(texts, fits), fits)
        window = [loop.to_device(data.collate(piece), device) for piece in pieces]
        told.append(loop.train_step(model, window, optimizer, max_norm=math.inf))
    loss = sum(one["loss"].item() * int(one["num_items"]) for one in told) / len(samples)
    return {"loss": loss, "num_updates": len(told)}
