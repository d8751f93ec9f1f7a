"""What the measured questions of the exam ask for. Nearly all are counts, the same on every machine; no clock runs.

Each is far inside the interval of its right option, so that another version of torch or Python changes no key.
"""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn


@functools.cache
def syncs_in_20_steps() -> float:
    """Values that Python waits for in the loop of the question."""
    import torch

    from course_lib.measuring import count_events

    batches = torch.rand(20, 8)

    def train_step(batch: Tensor) -> Tensor:
        return batch.square().mean()

    with count_events() as counts:
        best: Any = float("inf")
        total, history = 0.0, []
        for batch in batches.unbind():
            loss = train_step(batch)
            history.append(loss.detach())
            if loss < best:
                best = loss.detach()
            total += loss.item()
    return float(counts.num_syncs)


@functools.cache
def pad_fraction_of_torch_docs() -> float:
    """Share of padding when the documentation of each function in `torch` is padded to the longest. 0 … 1."""
    import torch

    functions = {id(found): found for name in dir(torch) if callable(found := getattr(torch, name))}
    lengths = [
        len(text.split())
        for found in functions.values()
        if not inspect.isclass(found) and (text := inspect.getdoc(found))
    ]
    return 1.0 - sum(lengths) / (len(lengths) * max(lengths))


@functools.cache
def fours_added_in_bf16() -> float:
    """What 1,000 additions of 4 come to in bf16."""
    import torch

    total = torch.zeros((), dtype=torch.bfloat16)
    for _ in range(1000):
        total += 4
    return float(total)


@functools.cache
def flops_ratio_of_checkpointing() -> float:
    """FLOPs of a training step with activation checkpointing over those without."""
    from course_lib.measuring import count_events
    from course_lib.training import apply_activation_checkpointing

    flops = []
    for prepare in (lambda model: model, apply_activation_checkpointing):
        model = prepare(_small_transformer())
        with count_events() as counts:
            _loss(model, 8).backward()
        flops.append(counts.total_flops)
    return flops[1] / flops[0]


@functools.cache
def peak_ratio_of_summed_losses() -> float:
    """Peak live bytes of 8 micro-batches with one backward for their sum over those with a backward after each."""
    import torch

    from course_lib.measuring import peak_bytes

    def summed() -> None:
        sum((_loss(model, 8) / 8 for _ in range(8)), start=torch.zeros(())).backward()

    def accumulated() -> None:
        for _ in range(8):
            (_loss(model, 8) / 8).backward()

    peaks = []
    for step in (summed, accumulated):
        model = _small_transformer()
        peaks.append(peak_bytes(step, torch.device("cpu")))
    return peaks[0] / peaks[1]


@functools.cache
def samples_missed_by_a_new_order() -> float:
    """Share of an epoch that is not seen when its second half comes from another shuffle. 0 … 1."""
    import numpy as np

    random, num_samples = np.random.default_rng(0), 100_000
    before, after = random.permutation(num_samples), random.permutation(num_samples)
    seen = np.union1d(before[: num_samples // 2], after[num_samples // 2 :])
    return 1.0 - len(seen) / num_samples


@functools.cache
def chance_of_a_top_tenth_in_20() -> float:
    """Share of searches of 20 random configs in which one lies in the best tenth of the space. 0 … 1."""
    import numpy as np

    return float((np.random.default_rng(0).random((20_000, 20)) < 0.1).any(axis=1).mean())


@functools.cache
def duplicates_of_a_distributed_sampler() -> float:
    """How many of 1,500 samples 64 ranks get twice."""
    import torch
    from torch.utils.data import DistributedSampler, TensorDataset

    samples = TensorDataset(torch.arange(1500))
    dealt: list[int] = []
    for rank in range(64):
        dealt += DistributedSampler(samples, num_replicas=64, rank=rank, shuffle=False)
    return float(len(dealt) - len(set(dealt)))


@functools.cache
def backward_flops_over_forward() -> float:
    """FLOPs of a backward pass over those of the forward pass before it."""
    from course_lib.measuring import count_events

    model = _small_transformer()
    with count_events() as counts:
        loss = _loss(model, 8)
        forward = counts.total_flops
        loss.backward()
    return (counts.total_flops - forward) / forward


@functools.cache
def flops_per_token_512_over_64() -> float:
    """FLOPs of a forward pass per token, in texts of 512 tokens over those in texts of 64."""
    import torch

    from course_lib.measuring import count_events

    per_token = []
    for width in (512, 64):
        model = _small_transformer()
        with count_events() as counts, torch.inference_mode():
            model(*_texts(rows=1, width=width))
        per_token.append(counts.total_flops / width)
    return per_token[0] / per_token[1]


@functools.cache
def orders_of_a_set() -> float:
    """How many different orders a set of words has in eight processes."""
    line = 'print(list({"adam", "sgd", "lamb", "lars", "lion", "adafactor", "rmsprop", "adagrad"}))'
    # -I: a PYTHONHASHSEED in the surroundings would make all the orders one.
    command = [sys.executable, "-I", "-S", "-c", line]
    return float(len({subprocess.run(command, capture_output=True, check=True).stdout for _ in range(8)}))


@functools.cache
def weights_moved_by_one_draw() -> float:
    """Share of a layer's weights that differ when one random number is drawn before it is built. 0 … 1."""
    import torch

    weights = []
    with torch.random.fork_rng(devices=[]):
        for num_draws in (0, 1):
            torch.manual_seed(0)
            torch.rand(num_draws)
            weights.append(torch.nn.Linear(256, 256).weight)
    return float((weights[0] != weights[1]).float().mean())


def _small_transformer() -> nn.Module:
    import torch

    from course_lib.models import ModelConfig, TextClassifier

    with torch.random.fork_rng(devices=[]):  # the learner's own stream stays where it is
        return TextClassifier(ModelConfig(vocab_size=512, num_classes=4, max_length=512, dropout=0.0))


def _texts(rows: int, width: int) -> tuple[Tensor, Tensor]:
    """Ids and mask [rows, width], nothing padded."""
    import torch

    return torch.ones(rows, width, dtype=torch.long), torch.ones(rows, width, dtype=torch.bool)


def _loss(model: nn.Module, rows: int) -> Tensor:
    import torch

    labels = torch.zeros(rows, dtype=torch.long)
    return torch.nn.functional.cross_entropy(model(*_texts(rows, width=64)), labels)


MEASUREMENTS: dict[str, Callable[[], float]] = {
    measurement.__name__: measurement
    for measurement in (
        syncs_in_20_steps,
        pad_fraction_of_torch_docs,
        fours_added_in_bf16,
        flops_ratio_of_checkpointing,
        peak_ratio_of_summed_losses,
        samples_missed_by_a_new_order,
        chance_of_a_top_tenth_in_20,
        duplicates_of_a_distributed_sampler,
        backward_flops_over_forward,
        flops_per_token_512_over_64,
        orders_of_a_set,
        weights_moved_by_one_draw,
    )
}
