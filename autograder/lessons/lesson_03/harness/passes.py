"""What is handed to the loops of 3.1 and 3.3, and what is seen of it meanwhile: micro-batches, memory, steps."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any, Self

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from autograder.lessons.checking.harness_counting import looking_on, see
from course_lib.measuring.counts import Counts
from course_lib.measuring.operators import Operators
from course_lib.measuring.reads import keys_of


class OnePass:
    """An iterator that knows whether somebody has gone through it."""

    num_looks = 1  # that begin anew

    def __init__(self, batches: list[dict[str, torch.Tensor]]) -> None:
        self.left, self.is_used_up = iter(batches), False

    def __iter__(self) -> OnePass:
        return self

    def __next__(self) -> dict[str, torch.Tensor]:
        for batch in self.left:
            return batch
        self.is_used_up = True
        raise StopIteration


class OneLook:
    """What can be iterated once and is no iterator itself: who asks for a second one finds it empty."""

    def __init__(self, batches: list[dict[str, torch.Tensor]]) -> None:
        self.only, self.num_looks = OnePass(batches), 0

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        self.num_looks += 1
        return self.only if self.num_looks == 1 else iter(())

    @property
    def is_used_up(self) -> bool:
        return self.only.is_used_up


class Outputs:
    """What the parts of a model gave, by micro-batch: whether it is still in memory when later ones are at work."""

    def __init__(self, model: Any) -> None:
        self._of_micro_batch: list[list[StorageWeakRef]] = [[]]
        self.most_kept = 0
        for module in model.modules():
            module.register_forward_hook(self._note)
        model.head.register_forward_hook(self._end)

    def _note(self, _module: Any, _inputs: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor):
            self._of_micro_batch[-1].append(StorageWeakRef(output.untyped_storage()))

    def _end(self, *_: Any) -> None:
        """The logits are there. A plain loop still holds those of the one before, under the same name."""
        if self._num_kept() > 0:
            gc.collect()  # what stands in a circle is freed then
            self.most_kept = max(self.most_kept, self._num_kept())
        self._of_micro_batch.append([])

    def _num_kept(self) -> int:
        early = self._of_micro_batch[:-3]
        return sum(any(not one.expired() for one in outputs) for outputs in early)


class OutsideOfTorch:
    """Tells of the bytes of arrays and of all else that is Python's, at each micro-batch."""

    def __init__(self, model: Any) -> None:
        self._looking = looking_on(
            model.blocks[0], lambda *_: see("outside", tracemalloc.get_traced_memory()[0])
        )

    def __enter__(self) -> Self:
        tracemalloc.start()
        self._looking.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._looking.__exit__(*error)
        tracemalloc.stop()


class KeptByForward:
    """Tells of the bytes of tensors that each forward of a model leaves behind, for backward or for whatever else."""

    def __init__(self, model: Any) -> None:
        self._operators, self._model, self._before = Operators(Counts().note), model, 0

    def __enter__(self) -> Self:
        self._hooks = [
            self._model.register_forward_pre_hook(self._begin),
            self._model.register_forward_hook(self._end),
        ]
        self._operators.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._operators.__exit__(*error)
        for hook in self._hooks:
            hook.remove()

    def _begin(self, *_: Any) -> None:
        self._before = self._operators.live + self._operators.old_bytes_written

    def _end(self, *_: Any) -> None:
        see("kept", self._operators.live + self._operators.old_bytes_written - self._before)


class StepNorms:
    """The length of the gradient that each step of an optimizer takes."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.norms: list[float] = []
        optimizer.register_step_post_hook(
            self._note
        )  # the first: what a solution hooks onto steps comes after it

    def _note(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        gradients = [
            p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        self.norms.append(float(torch.nn.utils.get_total_norm(gradients)))


class Held:
    """Tells of the bytes in memory whenever a micro-batch reaches a model: what grows from one to the next is kept."""

    def __init__(self, model: Any, *, collects: bool) -> None:
        own = frozenset(keys_of(model.parameters()))
        self._operators, self._collects = Operators(Counts().note, is_own=own.__contains__), collects
        self._looking = looking_on(model.blocks[0], self._note)

    def __enter__(self) -> Self:
        tracemalloc.start()
        self._looking.__enter__()
        self._operators.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._operators.__exit__(*error)
        self._looking.__exit__(*error)
        tracemalloc.stop()

    def _note(self, *_: Any) -> None:
        if self._collects:
            gc.collect()  # what stands in a circle is freed then
        operators = self._operators
        see("held", operators.live + operators.old_bytes_written + tracemalloc.get_traced_memory()[0])
