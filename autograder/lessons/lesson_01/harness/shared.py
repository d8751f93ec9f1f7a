"""What the harness of the exercises of lesson 01 shares: the corpus, its model, secret samples."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from course_lib.data import TokenStore, collate, docstring_store
from course_lib.models import ModelConfig, TextClassifier

MICRO_BATCH_SIZE = 8
BATCHES_PER_STEP = {"1.1": 1, "1.2": 3, "1.6": 2}  # of a timed segment; bucketing needs a pool to choose from
VOCABULARY = 8192
MAX_LENGTH = 1024  # the longest text of the corpus, which the naive loop pads everything to


@functools.cache
def corpus() -> TokenStore:
    return docstring_store(max_length=MAX_LENGTH, progress=False)[0]


def new_model(seed: int) -> tuple[TextClassifier, torch.optim.Optimizer]:
    """A fresh classifier of the corpus, without dropout, so that equal inputs give equal losses."""
    torch.manual_seed(seed)
    store = corpus()
    model = TextClassifier(sizes(num_classes=len(store.label_names), max_length=MAX_LENGTH))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def sizes(num_classes: int, max_length: int) -> ModelConfig:
    own: dict[str, Any] = {"d_model": 32, "num_layers": 1, "num_heads": 2, "dropout": 0.0}
    return ModelConfig(vocab_size=VOCABULARY, num_classes=num_classes, max_length=max_length, **own)


def secret_samples(rng: np.random.Generator, number: int) -> np.ndarray:
    """Indices of `number` samples of the corpus: one of each quantile of length, in random order.

    Every draw so has its share of long texts, and the work of one segment is much like that of the next.
    """
    by_length = _by_length()
    quantiles = (np.arange(number) + rng.random(number)) / number
    return rng.permutation(by_length[(quantiles * len(by_length)).astype(np.int64)])


def renamed(store: TokenStore, indices: np.ndarray, rng: np.random.Generator) -> list[tuple[np.ndarray, Any]]:
    """These samples with every word called something else, so that what was kept of a text says nothing of it."""
    # 0 … 2 mean padding and the like.
    names = np.concatenate([np.arange(3), 3 + rng.permutation(VOCABULARY - 3)])
    samples = [store[int(index)] for index in indices]
    return [(names[ids].astype(ids.dtype), label) for ids, label in samples]


@functools.cache
def _by_length() -> np.ndarray:
    return np.argsort(corpus().lengths, kind="stable")


def probe(model: Any, store: TokenStore, rng: np.random.Generator) -> torch.Tensor:
    """Logits of the trained model on samples that were not named before the training was done."""
    batch = collate([store[int(index)] for index in rng.integers(len(store), size=4)])
    with torch.no_grad():
        return model(batch["input_ids"], batch["attention_mask"])
