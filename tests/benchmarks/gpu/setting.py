"""Where the lines run, and the models and texts that they train on: small ones, made from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.base import resolve_device
from course_lib.models import Encoder, ModelConfig, make_model
from course_lib.training import Precision, resolve_precision

NUM_CLASSES, VOCAB_SIZE, SEED = 4, 1000, 0
TextBatch = dict[str, Tensor]


@dataclass(frozen=True)
class Setting:
    device: torch.device
    is_quick: bool = False

    @classmethod
    def of(cls, requested: str, is_quick: bool) -> Setting:
        """Raises UserError for a device that is not there."""
        device, _ = resolve_device(requested)
        if device.type == "cuda":
            device = torch.device("cuda", device.index or 0)
            torch.cuda.set_device(device)
        return cls(device, is_quick)

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def needs_cuda(self) -> str:
        """For a line that has nothing to do without."""
        return "" if self.is_cuda else "needs CUDA"

    def steps(self, number: int) -> int:
        """So many, or about a tenth of them to see that it works."""
        return 2 + number // 10 if self.is_quick else number

    def fastest_precision(self) -> Precision:
        """What `auto` takes on a GPU; fp32 on a CPU, where `auto` would measure first."""
        return resolve_precision("auto" if self.is_cuda else "32-true", self.device)


def small_model(device: torch.device, **changes: Any) -> Encoder:
    """A transformer whose weights are the same on every device."""
    sizes = {"vocab_size": VOCAB_SIZE, "num_classes": NUM_CLASSES, "max_length": 64, "dropout": 0.0} | changes
    torch.manual_seed(SEED)
    return make_model(ModelConfig(**sizes)).to(device)


def texts(
    num_batches: int, rows: int, width: int, *, shortest: float = 0.5, is_language: bool = False
) -> list[TextBatch]:
    """Batches on the CPU, [rows, width]; the texts have from `shortest` × `width` to `width` tokens.

    Their class is that of their first token, so that there is something to learn. `is_language`: labels are the next
    tokens, [rows, width].
    """
    rng = np.random.default_rng(SEED)
    made = []
    for _ in range(num_batches):
        lengths = rng.integers(max(2, int(shortest * width)), width + 1, size=rows)
        lengths[0] = width
        mask = np.arange(width) < lengths[:, None]
        ids = np.where(mask, rng.integers(1, VOCAB_SIZE, size=(rows, width)), 0)
        following = np.where(np.roll(mask, -1, axis=1) & mask, np.roll(ids, -1, axis=1), -100)
        following[:, -1] = -100
        labels = following if is_language else ids[:, 0] % NUM_CLASSES
        named = {"input_ids": ids, "attention_mask": mask, "labels": labels}
        made.append({name: torch.from_numpy(part) for name, part in named.items()})
    return made
