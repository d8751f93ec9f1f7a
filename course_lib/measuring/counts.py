"""What is counted while a program runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a program that only reads counts need not load torch
    from torch import Tensor

OnEvent = Callable[[str, int], None]
"""Told of each event: the name of a number of `Counts`, or `"flops.float32"`, and by how much it grew; of a largest
number so far (`peak_…`, `max_…`), what it is now."""


@dataclass(eq=False)
class Counts:
    """What happened inside `count_events`. Readable while it runs."""

    num_forwards: int = 0
    """Calls of the model that was given to `count_events`; this and the rest of its paragraph are 0 without one."""
    num_rows: int = 0
    """Rows of all its inputs."""
    max_rows: int = 0
    """Of the largest input."""
    num_positions: int = 0
    """Rows × width, real or padded, of inputs that came with an `attention_mask`."""
    num_gradient_all_reduces: int = 0
    """Buckets of gradients that DDP reduced across processes, counted by a communication hook."""

    num_optimizer_steps: int = 0
    """Of optimizers that hold a parameter of the model; of all without a model. One that GradScaler skips is none."""
    num_syncs: int = 0
    """Values that Python waited for: `.item()`, `float()`, `if tensor`, `.tolist()`, `.numpy()`, `x[mask]`, …"""
    num_all_reduces: int = 0
    """All-reduces of any tensor, DDP's buckets among them."""
    flops: dict[str, int] = field(default_factory=dict)
    """Floating-point operations of matrix products, convolutions and attention by the dtype of their inputs
    (`"float32"`, `"bfloat16"`, …), a multiply-add being 2; with what activation checkpointing computes twice."""
    peak_live_bytes: int = 0
    """The most bytes that were live at one time in tensors made since the start; see `peak_bytes`."""
    peak_saved_bytes: int = 0
    """The most bytes that autograd kept for backward at one time, each storage once, parameters of the model not
    counted. Their copies in a lower precision are: they take memory too."""
    old_bytes_written: int = 0
    """Bytes that were written into memory that was there before, each place of it once, other than weights of the model
    and their gradients. What is kept there is in no peak."""
    num_unwatched: int = 0
    """Forwards and optimizer steps that ran where operators are not seen (another thread, modes switched off):
    above 0, the counts of this paragraph are lower bounds."""

    _real_tokens: Tensor | int = 0

    def note(self, name: str, amount: int | Tensor = 1) -> None:
        """Take in one event, named as `OnEvent` names it. Raises ValueError where no number has this name."""
        kind, _, dtype = name.partition(".")
        if kind == "flops":
            self.flops[dtype] = self.flops.get(dtype, 0) + int(amount)
        elif name == "num_tokens":
            self._real_tokens = self._real_tokens + amount  # a tensor stays on its device: no sync
        elif name not in _NUMBERS:
            raise ValueError(f"nothing counted is called {name!r}; there are: {', '.join(sorted(_NUMBERS))}")
        elif name.startswith(("peak_", "max_")):
            setattr(self, name, max(getattr(self, name), amount))
        else:
            setattr(self, name, getattr(self, name) + amount)

    @property
    def num_tokens(self) -> int:
        """Real tokens among `num_positions`. Reading it is a sync."""
        return int(self._real_tokens)

    @property
    def num_padded_tokens(self) -> int:
        return self.num_positions - self.num_tokens

    @property
    def pad_fraction(self) -> float:
        """Padded tokens as a share of the positions; 0 … 1, and 0 without positions."""
        return self.num_padded_tokens / max(1, self.num_positions)

    @property
    def total_flops(self) -> int:
        return sum(self.flops.values())

    def share_of_flops(self, *dtypes: str) -> float:
        """Share of the floating-point operations that ran in these dtypes, such as `"bfloat16"`; 0 … 1."""
        return sum(self.flops.get(dtype, 0) for dtype in dtypes) / max(1, self.total_flops)


_NUMBERS = frozenset(field.name for field in fields(Counts) if field.type == "int")
