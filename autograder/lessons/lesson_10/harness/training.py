"""Harness of 10.2: a whole training, from texts to predictions."""

from __future__ import annotations

from typing import Any

from autograder.lessons.checking.harness_shared import learner, small
from autograder.lessons.lesson_10.harness.tables import secret_table

TEXTS_PER_STEP = 32
NUM_PROBES = 48


def predictions(
    texts: list[str], labels: list[str], unseen: list[str], num_epochs: int, seed: int
) -> list[str]:
    """Labels that a fresh training on `texts` gives to `unseen`."""
    predict = learner(texts, labels, num_epochs=num_epochs, seed=seed)
    return [str(label) for label in predict(unseen)]


def segment(seed: int, num_steps: int) -> dict[str, Any]:
    """One training of two epochs on secret texts, and what it says of texts that it was trained on and not."""
    num_texts = num_steps * TEXTS_PER_STEP
    texts, labels = secret_table(seed, num_texts + NUM_PROBES)
    predict = learner(texts[:num_texts], labels[:num_texts], num_epochs=2, seed=small(seed))
    probes = texts[num_texts // 2 :]
    return {"predictions": [str(label) for label in predict(probes)], "seed": seed, "num_steps": num_steps}


def answers(seed: int, num_steps: int) -> list[str]:
    """The right labels of that segment's probes. Asked of the baseline's process alone."""
    num_texts = num_steps * TEXTS_PER_STEP
    return secret_table(seed, num_texts + NUM_PROBES)[1][num_texts // 2 :]
