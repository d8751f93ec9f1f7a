"""Harness of 3.2 and 3.5: how many rows fit, and activations that are computed again."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import full_rows, learner, plain_step, small_model
from course_lib.measuring import count_events, peak_bytes
from course_lib.models import ModelConfig, TextClassifier

ON_CPU = torch.device("cpu")
MAX_TRIES = 300  # a search that never ends


def random_batch(seed: int, rows: int, width: int, words: int = 60) -> dict[str, torch.Tensor]:
    return full_rows(np.random.default_rng(seed), rows, width, words=words)


def step_peak(seed: int, d_model: int, width: int, rows: int) -> int:
    """The peak of training a fresh model with AdamW: activations, gradients, the optimizer's state."""
    model = small_model(seed, d_model=d_model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = random_batch(seed, rows, width)
    # Two steps: the activations of the second meet the state that the first one made.
    return peak_bytes(lambda: [plain_step(model, optimizer, batch) for _ in range(2)], ON_CPU)


def search_once(
    seed: int, d_model: int, width: int, budget_bytes: int, max_size: int, most_rows: int
) -> dict[str, Any]:
    """The learner's search on a device that runs out of memory above `most_rows`; and every size that it tried."""
    tried: list[int] = []
    failed: list[str] = []

    def try_step(size: int) -> int:
        tried.append(int(size))
        if len(tried) > MAX_TRIES:
            raise StopIteration
        if not 1 <= size <= max_size:
            failed.append("range")
            raise StopIteration
        if size > most_rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate more than the device has.")
        return step_peak(seed, d_model, width, int(size))

    answer = -1
    try:
        answer = int(learner(try_step, budget_bytes, max_size))
    except torch.OutOfMemoryError:
        failed.append("out of memory")
    except StopIteration:
        pass
    return {"answer": answer, "tried": tried, "failed": failed[:1]}


def _deep_model(seed: int, dropout: float) -> Any:
    return small_model(seed, dropout=dropout, d_model=64, num_layers=4, num_heads=4, max_length=64).train()


def checkpointed_once(seed: int, dropout: float) -> dict[str, Any]:
    """Logits, gradients and peak of a training step of the learner's model, and its logits in evaluation."""
    model = _deep_model(seed, dropout)
    batch = random_batch(seed, 16, 48)
    wrapped = learner(model)
    wrapped = model if wrapped is None else wrapped
    logits: list[torch.Tensor] = []

    def step() -> None:
        torch.manual_seed(seed + 1)
        output = wrapped(batch["input_ids"], batch["attention_mask"])
        logits.append(output.detach())
        F.cross_entropy(output, batch["labels"]).backward()

    wrapped.train()
    peak = peak_bytes(step, ON_CPU)
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in wrapped.parameters()]
    wrapped.eval()
    with torch.no_grad():
        evaluated = wrapped(batch["input_ids"], batch["attention_mask"])
    return {
        "logits": logits[0],
        "gradients": torch.cat([g.flatten() for g in gradients]),
        "num_without": sum(p.grad is None for p in wrapped.parameters()),
        "peak": peak,
        "evaluated": evaluated,
    }


_timed: dict[str, Any] = {}


def _timed_model() -> Any:
    """The learner's model of the timed segments. Wide, so that arithmetic decides, not Python; a real vocabulary."""
    if not _timed:
        torch.manual_seed(1)
        sizes: Any = {"vocab_size": 16_384, "d_model": 256, "num_layers": 3, "max_length": 32}
        model = TextClassifier(ModelConfig(num_classes=5, dropout=0.0, **sizes))
        wrapped = learner(model)
        _timed["model"] = model if wrapped is None else wrapped
        _timed["start"] = [p.detach().clone() for p in _timed["model"].parameters()]
    return _timed["model"].train()


def checkpoint_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """Training steps of the learner's model on secret batches, from the weights that the first segment began with."""
    model = _timed_model()
    with torch.no_grad():
        for parameter, start in zip(model.parameters(), _timed["start"], strict=True):
            parameter.copy_(start)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batches = [random_batch(seed + number, 4, 32, 16_384) for number in range(num_steps)]
    return {"losses": torch.stack([plain_step(model, optimizer, batch) for batch in batches])}


def timed_saved_bytes(seed: int) -> int:
    """What the timed model keeps for backward."""
    model = _timed_model()
    batch = random_batch(seed, 4, 32, 16_384)
    with count_events(model) as counts:
        F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"]).backward()
    model.zero_grad(set_to_none=True)
    return counts.peak_saved_bytes
