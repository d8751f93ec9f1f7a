"""Makes `real_seeds.json`: what real training runs reach, seed by seed, for the check of 8.5.

    python -m autograder.lessons.lesson_08.measure_seeds

A seed chooses the texts, the first weights, the order and the dropout. Three runs each: `base`; `same`, which differs
from it in nothing but the numbers that order and dropout draw; `better`, which trains twice as long. Validation
accuracy in points of 100, on 400 held-out docstrings of at most 32 tokens, after training on 480 others.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from course_lib.data import TokenStore, collate, docstring_store
from course_lib.models import ModelConfig, TextClassifier
from course_lib.training import evaluate, make_optimizer, train_step, warmup_cosine

NUM_SEEDS = 60
PATH = Path(__file__).with_name("real_seeds.json")
EPOCHS = {"base": (2, 0), "same": (2, 1), "better": (4, 0)}


def accuracy(train: TokenStore, validation: TokenStore, seed: int, num_epochs: int, stream: int) -> float:
    """Points of 100 after `num_epochs`; `stream` is another draw of order and dropout at the same seed."""
    rng = np.random.default_rng(seed)
    own, held_out = (
        store.subset(rng.permutation(np.flatnonzero(np.asarray(store.lengths) <= 32))[:number])
        for store, number in ((train, 480), (validation, 400))
    )
    torch.manual_seed(seed)
    model = TextClassifier(
        ModelConfig(
            vocab_size=train.vocab_size,
            num_classes=len(train.label_names),
            max_length=32,
            d_model=32,
            num_layers=1,
            num_heads=2,
        )
    )
    optimizer = make_optimizer(model, learning_rate=3e-3, embedding_lr_ratio=10.0)
    num_steps = num_epochs * 20
    scheduler = warmup_cosine(optimizer, warmup_steps=num_steps // 10, max_steps=num_steps)
    torch.manual_seed(seed + 1_000_000 * stream)
    model.train()
    for epoch in range(num_epochs):
        order = np.random.default_rng([seed, stream, epoch]).permutation(len(own))
        for start in range(0, len(order), 24):
            batch = collate([own[int(i)] for i in order[start : start + 24]])
            train_step(model, batch, optimizer, scheduler=scheduler)
    batches = [collate([held_out[i] for i in range(start, start + 100)]) for start in range(0, 400, 100)]
    return 100.0 * evaluate(model, batches)["accuracy"]


def main() -> None:
    """Train all runs and write the table. One thread."""
    torch.set_num_threads(1)
    train, validation = docstring_store(max_length=1024)
    table: dict[str, list[float]] = {name: [] for name in EPOCHS}
    for seed in range(NUM_SEEDS):
        for name, (num_epochs, stream) in EPOCHS.items():
            table[name].append(round(accuracy(train, validation, seed, num_epochs, stream), 2))
    PATH.write_text(json.dumps(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
