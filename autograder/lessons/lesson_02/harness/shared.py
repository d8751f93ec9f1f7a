"""What the harness of the exercises of lesson 02 shares: a model that is all matrix products, and what a step used."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import full_rows, switches
from autograder.lessons.lesson_02.harness.handed import rounded_parts
from course_lib.models import masked_mean

VOCABULARY, CLASSES = 500, 7


class Block(torch.nn.Module):
    """A feed-forward layer behind a LayerNorm."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(d_model)
        self.grow = torch.nn.Linear(d_model, 4 * d_model)
        self.shrink = torch.nn.Linear(4 * d_model, d_model)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden + self.shrink(F.gelu(self.grow(self.norm(hidden))))


class DeepClassifier(torch.nn.Module):
    """Feed-forward blocks over the words, their mean, a head. No attention, which CPUs do in fp32 all the same."""

    def __init__(self, d_model: int, num_blocks: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, d_model)
        self.blocks = torch.nn.ModuleList(Block(d_model) for _ in range(num_blocks))
        self.head = torch.nn.Linear(d_model, CLASSES)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(input_ids)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(masked_mean(hidden, attention_mask.bool()))


def deep_model(seed: int, *, d_model: int = 64, num_blocks: int = 2) -> DeepClassifier:
    torch.manual_seed(seed)
    return DeepClassifier(d_model, num_blocks)


def full_batch(rng: np.random.Generator, rows: int, width: int) -> dict[str, torch.Tensor]:
    """Random texts of this lesson's words that all fill the width."""
    return full_rows(rng, rows, width, words=VOCABULARY, classes=CLASSES)


def ragged_batch(rng: np.random.Generator, rows: int, width: int) -> dict[str, torch.Tensor]:
    """The same with texts of uneven lengths, the longest of which fills the width; one text has all of it."""
    batch = full_batch(rng, rows, width)
    lengths = np.append(rng.integers(1, width + 1, size=rows - 1), width)
    batch["attention_mask"] &= torch.from_numpy(np.arange(width)[None] < rng.permutation(lengths)[:, None])
    return with_padding_ids(rng, batch)


def uncountable(error: RuntimeError) -> bool:
    """Whether torch says that what is counted here cannot be counted of `torch.func`."""
    return "saved tensor hooks" in str(error)


def with_padding_ids(rng: np.random.Generator, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The batch with the padding's id inside some texts, too: the mask alone says what is padding."""
    inside = batch["attention_mask"] & torch.from_numpy(rng.random(batch["input_ids"].shape) < 0.2)
    return batch | {"input_ids": batch["input_ids"].masked_fill(inside, 0)}


class Recorder:
    """What each step of an optimizer really used: gradients as it leaves them, for hooks and closures change them."""

    def __init__(self, model: Any, optimizer: torch.optim.Optimizer) -> None:
        self.parameters = dict(model.named_parameters())
        self.gradients: list[dict[str, torch.Tensor]] = []
        self.each: list[dict[str, torch.Tensor]] = []
        self.weight_dtypes: set[str] = set()
        self.autocast_in_backward = self.autocast_at_step = False
        optimizer.register_step_pre_hook(self._before_step)
        optimizer.register_step_post_hook(self._after_step)
        for parameter in self.parameters.values():
            parameter.register_hook(self._in_backward)

    def _before_step(self, *_: Any) -> None:
        self.autocast_at_step |= torch.is_autocast_enabled("cpu")
        self.weight_dtypes |= {str(p.dtype).removeprefix("torch.") for p in self.parameters.values()}

    def _after_step(self, *_: Any) -> None:
        # Head and body apart: the body's gradients are far smaller, and beside the head's no error in them would show.
        self.gradients.append({"head": self._rows(True), "body": self._rows(False)})
        used = {name: p.grad.clone() for name, p in self.parameters.items() if p.grad is not None}
        self.each.append(used)  # looked at later: it would be a sync of the learner's

    @property
    def rounded(self) -> list[list[str]]:
        """Of each step the parameters whose gradients are all bfloat16 numbers."""
        return [rounded_parts(used) for used in self.each]

    def _rows(self, of_head: bool) -> torch.Tensor:
        found = [p for name, p in self.parameters.items() if name.startswith("head") == of_head]
        rows = [torch.zeros_like(p) if p.grad is None else p.grad.detach() for p in found]
        return torch.cat([row.float().flatten() for row in rows])

    def _in_backward(self, _: torch.Tensor) -> None:
        self.autocast_in_backward |= torch.is_autocast_enabled("cpu")


class Stumble(RuntimeError, IndexError, KeyError, ValueError, TypeError, ArithmeticError, AssertionError):
    """What a model raises here that cannot go on: whatever kind of error is caught, it is one."""


def stumble(model: Any, call: Callable[[], Any], *, at: int = 1) -> dict[str, Any]:
    """Whether an error in forward number `at` reaches the caller, and what was set around it before and after."""
    forwards: list[int] = []

    def fall(*_: Any) -> None:
        forwards.append(1)
        if len(forwards) == at:
            raise Stumble("the model raised this error")

    handle, is_told = model.register_forward_pre_hook(fall), False
    before = switches()
    try:
        call()
    except Stumble:
        is_told = True
    handle.remove()
    return {"is_told": is_told, "before": before, "after": switches()}


def beside_a_gpu(source: str, entry: str, use: Callable[[Any], float]) -> dict[str, Any]:
    """What `use` says of the cell's `entry`, on a machine that has a GPU as far as torch is asked.

    The cell is run again, for it may ask when it is run. `use` says which share of the products is in 16 bits.
    """
    here = sys.modules["autograder"].__dict__
    cell = types.ModuleType("__learner__")
    cell.__dict__.update({name: value for name, value in here.items() if not name.startswith("__")})
    with (
        mock.patch.object(torch.cuda, "is_available", lambda: True),
        mock.patch.object(torch.cuda, "is_bf16_supported", lambda *_, **__: True),
        mock.patch.object(torch.accelerator, "is_available", lambda *_, **__: True),
        mock.patch.object(torch.accelerator, "current_accelerator", lambda *_, **__: torch.device("cuda")),
    ):
        try:
            exec(compile(source, "<your cell>", "exec", dont_inherit=True), cell.__dict__)
            return {"share": use(cell.__dict__[entry]), "said": ""}
        except (RuntimeError, AssertionError) as error:
            if "CUDA" not in str(error) and "NVIDIA" not in str(error):
                raise
            return {"share": 0.0, "said": str(error).splitlines()[0][:200]}


def leave_gradients(model: Any, value: float) -> None:
    """Gradients as somebody's backward may have left them: who never clears them, or afterwards, adds to these."""
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, value)


def dtypes_of(model: Any) -> list[str]:
    return sorted({str(p.dtype).removeprefix("torch.") for p in model.parameters()})
