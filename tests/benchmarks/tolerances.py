"""How far right variants of equal training end from each other, and how far the nearest wrong ones.

    python -m tests.benchmarks.tolerances [--seeds 6] [--steps 4 24]

`TOLERANCES` in autograder/lessons/checking/quality.py rests on the table that it prints. A right variant does the
same mathematics in
another order: other padding, other order of rows, sums in parts, other threads, other kernels. A wrong one is a small
mistake, or a lower precision than was asked for.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from autograder.lessons.checking.quality import TOLERANCES, relative_difference
from course_lib.data import TokenStore, collate, docstring_store
from course_lib.models.transformers import ModelConfig, TextClassifier

Batch = dict[str, torch.Tensor]
FULL = ("float64", "float32")
DTYPES = (*FULL, "bfloat16", "float16")
RIGHT = (
    "wider",
    "reversed rows",
    "in two parts",
    "two threads",
    "foreach",
    "fused",
    "plain attention",
    "no oneDNN",
)
WRONG = (
    "learning rate 1 % off",
    "one label wrong",
    "padding attended to",
    "parts weighed alike",
    "half precision",
)
OPTIMIZERS = {
    "SGD": lambda parameters, lr, **how: torch.optim.SGD(parameters, lr=0.1 * lr, momentum=0.9, **how),
    "AdamW": lambda parameters, lr, **how: torch.optim.AdamW(parameters, lr=1e-3 * lr, **how),
}


def batches_of(store: TokenStore, seed: int, num_steps: int) -> list[Batch]:
    """Batches of 8 texts of the corpus, up to 256 tokens each."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(np.flatnonzero(np.asarray(store.lengths) <= 256), size=(num_steps, 8), replace=False)
    return [collate([store[int(index)] for index in chosen]) for chosen in rows]


def changed(batch: Batch, variant: str) -> list[Batch]:
    """The batch, or its parts, as a variant hands it to the model."""
    if variant == "wider":
        return [{k: F.pad(v, (0, 64)) if v.ndim == 2 else v for k, v in batch.items()}]
    if variant == "reversed rows":
        return [{k: v.flip(0) for k, v in batch.items()}]
    if variant in ("in two parts", "parts weighed alike"):
        return [{k: v[:3] for k, v in batch.items()}, {k: v[3:] for k, v in batch.items()}]
    if variant == "padding attended to":
        return [batch | {"attention_mask": torch.ones_like(batch["attention_mask"])}]
    return [batch]


@contextmanager
def surroundings(dtype: str, variant: str) -> Iterator[None]:
    """Autocast of the dtype, and threads and kernels of the variant."""
    low = "bfloat16" if variant == "half precision" else dtype
    with ExitStack() as stack:
        if low in ("bfloat16", "float16"):
            stack.enter_context(torch.autocast("cpu", getattr(torch, low)))
        if variant == "two threads":
            torch.set_num_threads(2)
            stack.callback(torch.set_num_threads, 1)
        if variant == "plain attention":
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        if variant == "no oneDNN":
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        yield


def train(batches: list[Batch], seed: int, dtype: str, optimizer: str, variant: str) -> dict[str, np.ndarray]:
    """Losses of the steps, and logits and weights at the end."""
    torch.manual_seed(seed)
    sizes = {"vocab_size": 8192, "num_classes": 16, "max_length": 1024, "d_model": 32, "num_heads": 2}
    model = TextClassifier(ModelConfig(**sizes, num_layers=1, dropout=0.0))
    model = model.double() if dtype == "float64" and variant != "half precision" else model
    how = {variant: True} if variant in ("foreach", "fused") else {"foreach": False}
    lr = 1.01 if variant == "learning rate 1 % off" else 1.0
    update = OPTIMIZERS[optimizer](model.parameters(), lr, **how)
    scale = 1024.0 if dtype == "float16" else 1.0  # a power of two: exact
    losses = []
    for number, batch in enumerate(batches):
        parts, total = changed(batch, variant), torch.zeros(())
        update.zero_grad()
        for part in parts:
            labels, share = part["labels"], len(part["labels"]) / len(batch["labels"])
            if variant == "one label wrong" and number == 1:
                labels = labels.clone()
                labels[0] = (labels[0] + 1) % 16
            share = 1 / len(parts) if variant == "parts weighed alike" else share
            with surroundings(dtype, variant):
                logits = model(part["input_ids"], part["attention_mask"])
                loss = F.cross_entropy(logits.float() if dtype != "float64" else logits, labels)
                (loss * share * scale).backward()
            total = total + loss.detach() * share
        for parameter in model.parameters():
            parameter.grad /= scale
        update.step()
        losses.append(total)
    with torch.no_grad(), surroundings(dtype, variant):
        logits = model(batches[0]["input_ids"], batches[0]["attention_mask"])
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    ended = {"losses": torch.stack(losses), "logits": logits, "weights": weights}
    return {name: value.double().numpy() for name, value in ended.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--steps", type=int, nargs="+", default=[4, 24])
    options = parser.parse_args()
    torch.set_num_threads(1)
    store = docstring_store(max_length=1024, progress=False)[0]
    right: dict[tuple[str, ...], list[tuple[float, str]]] = defaultdict(list)
    wrong: dict[tuple[str, str], list[float]] = defaultdict(list)
    for dtype, optimizer, num_steps, seed in product(DTYPES, OPTIMIZERS, options.steps, range(options.seeds)):
        batches = batches_of(store, seed, num_steps)
        expected = train(batches, seed, dtype, optimizer, "")
        for variant in RIGHT:
            for what, value in train(batches, seed, dtype, optimizer, variant).items():
                away = relative_difference(value, expected[what])
                right[dtype, what, optimizer, str(num_steps)].append((away, variant))
        for variant in WRONG[: len(WRONG) if dtype in FULL else -1]:
            got = train(batches, seed, dtype, optimizer, variant)
            wrong[dtype, variant].append(
                max(relative_difference(got[what], expected[what]) for what in ("losses", "logits"))
            )
    print("| dtype | what | optimizer | steps | 50 % | 95 % | most | by |")
    print("|---|---|---|---|---|---|---|---|")
    for (dtype, *names), found in right.items():
        quantiles = np.quantile([away for away, _ in found], [0.5, 0.95])
        most, variant = max(found)
        print("|", " | ".join([dtype, *names, *(f"{q:.1e}" for q in quantiles), f"{most:.1e}", variant]), "|")
    print("\n| dtype | wrong in | losses and logits differ by at least | at the median | caught |")
    print("|---|---|---|---|---|")
    for (dtype, variant), differences in wrong.items():
        caught = np.mean(np.array(differences) > TOLERANCES[dtype])
        least, median = np.min(differences), np.median(differences)
        print(f"| {dtype} | {variant} | {least:.1e} | {median:.1e} | {caught:.0%} |")


if __name__ == "__main__":
    main()
