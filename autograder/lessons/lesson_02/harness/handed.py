"""What a call of the learner's leaves of the things that it was handed, and how the model was when it ran."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_counting import see
from autograder.lessons.checking.harness_shared import as_it_is, switches


class Watched:
    """Watches calls that train a model: what they change beside its weights, and in which mode it runs."""

    def __init__(self, model: Any, optimizer: torch.optim.Optimizer) -> None:
        self.changed: set[str] = set()
        self.is_evaluated = False
        self._name, self._num_calls = "", 0
        model.register_forward_pre_hook(self._before_forward)
        optimizer.register_step_post_hook(self._after_step)

    def tell_as(self, name: str) -> None:
        """From now on each forward and each step is told with the number of the call that it is of."""
        self._name, self._num_calls = name, 0

    def _tell(self, what: str) -> None:
        if self._name:
            see(f"{what} of {self._name}", self._num_calls - 1)

    def _after_step(self, *_: Any) -> None:
        self._tell("step")

    def _before_forward(self, model: Any, _inputs: Any) -> None:
        self._tell("forward")
        self.is_evaluated |= not all(part.training for part in model.modules())

    def call(self, function: Callable[..., Any], *arguments: Any, batches: list[dict[str, Any]]) -> Any:
        """What `function` gives. Its `arguments` are `batches` or have them inside."""
        before, caches = as_it_is(batches), torch.is_autocast_cache_enabled()
        self._num_calls += 1
        result = function(*arguments)
        if caches is not torch.is_autocast_cache_enabled():
            self.changed.add("autocast's own settings")
        if as_it_is(batches) != before:
            self.changed.add("the caller's batches")
        return result


def no_such_label(
    batch: dict[str, torch.Tensor],
    call: Callable[[dict[str, torch.Tensor]], Any],
) -> dict[str, Any]:
    """What is set before and after a call on a label that there is not, for which the loss raises an error."""
    before = switches()
    with contextlib.suppress(Exception):  # who makes a loss of it all the same has told nothing wrong
        call(batch | {"labels": torch.full_like(batch["labels"], 10**6)})
    return {"before": before, "after": switches()}


def kinds_of(report: Any) -> dict[str, str]:
    """What each value is, such as "0-d float32"."""
    return {
        str(key): f"{value.ndim}-d {str(value.dtype).removeprefix('torch.')}"
        if isinstance(value, torch.Tensor)
        else "number"
        if isinstance(value, int | float)
        else f"NumPy's {type(value).__name__}"
        if isinstance(value, np.number)
        else type(value).__name__
        for key, value in (report.items() if isinstance(report, dict) else ())
    }


def defaults_of(function: Any) -> dict[str, float]:
    """The numbers that stand as defaults in a signature."""
    found = inspect.signature(function).parameters.items()
    return {name: float(p.default) for name, p in found if isinstance(p.default, int | float)}


def rounded_parts(tensors: Mapping[str, torch.Tensor]) -> list[str]:
    """Of which tensors all numbers are bfloat16 numbers, or all float16 numbers, and not all of them alike."""
    return [
        name
        for name, tensor in tensors.items()
        if tensor.dtype is torch.float32
        and tensor.numel() > 4
        and bool((tensor != tensor.flatten()[0]).any())
        and any(torch.equal(tensor, tensor.to(dtype).float()) for dtype in (torch.bfloat16, torch.float16))
    ]
