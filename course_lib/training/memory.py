"""Less memory for more arithmetic (activation checkpointing), less Python for a wait (torch.compile)."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from course_lib.measuring import paired_speedup
from course_lib.training.losses import loss_sum
from course_lib.training.precision import FULL_PRECISION, Precision


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
    precision: Precision = FULL_PRECISION,
    blocks: int = 4,
    min_seconds: float = 0.25,
) -> tuple[nn.Module, dict[str, Any]]:
    """Compile the model in place for any batch size and width, and measure forward + backward on `batch`.

    Returns the model and a report: `is_compiled`, `reason`, `compile_seconds` (the first step; evaluation
    compiles once more when it first runs), `speedup` (eager time / compiled time, with its interval).
    Without a C++ compiler, or when the compiler fails, the model stays as it was and `reason` says why.
    Weights, names in the state_dict and random generators are left alone, gradients are cleared.
    """
    eager = model.forward
    compiled = torch.compile(eager, dynamic=True)

    def step(forward: Any) -> None:
        with precision.autocast():
            logits = forward(batch["input_ids"], batch["attention_mask"])
            loss = loss_sum(logits, batch["labels"])
        loss.backward()
        model.zero_grad(set_to_none=True)

    with torch.random.fork_rng():  # dropout draws numbers
        start = time.perf_counter()
        try:
            step(compiled)
        except torch._dynamo.exc.TorchDynamoException as error:
            why = str(error).partition("\n")[0].rstrip(".: ")
            fix = "install a C++ compiler (g++), or set compile=false"
            return model, {"is_compiled": False, "reason": f"not compiled: {why}; {fix}"}
        seconds = time.perf_counter() - start
        timing: dict[str, Any] = {"blocks": blocks, "min_seconds": min_seconds}
        speedup = paired_speedup(lambda: step(eager), lambda: step(compiled), **timing)
    model.forward = compiled  # an attribute: wrapped, all names in the state_dict would begin with _orig_mod
    reason = f"compiled in {seconds:.1f} s, then {speedup.estimate:.2f}× as fast as before"
    measured = {"compile_seconds": seconds, "speedup": speedup.to_dict()}
    return model, {"is_compiled": True, "reason": reason, **measured}
