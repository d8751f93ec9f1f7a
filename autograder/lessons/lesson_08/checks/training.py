"""What AdamW makes of a model of 8.4 that reads certain samples: followed with NumPy, right or with one mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

LEARNING_RATE, BETAS, EPS, DECAY = 1e-2, (0.9, 0.999), 1e-8, 0.01
BATCH = 4
Parameters = Mapping[str, np.ndarray]
"""`embedding` [words, D], `weight` [C, D] and `bias` [C]."""


def followed(
    first: Parameters, batches: Sequence[np.ndarray], mistake: str = "", loud: float = 1.0
) -> dict[str, np.ndarray]:
    """The parameters after a step on each batch, rows of (place, label, words, -1, …), without dropout.

    Args:
        mistake: "no decay", "decay in the gradient", "kept gradients", "shares of four", "summed", "clipped", or that
            of no one.
        loud: what the logits are multiplied by.
    """
    now = {name: value.astype(np.float64) for name, value in first.items()}
    moments = {name: (np.zeros_like(value), np.zeros_like(value)) for name, value in now.items()}
    kept = {name: np.zeros_like(value) for name, value in now.items()}
    for step, batch in enumerate(batches, start=1):
        gradients = _gradients(now, batch[:, 1], batch[:, 2:], mistake, loud)
        if mistake == "clipped":
            norm = np.sqrt(sum(float(np.sum(value**2)) for value in gradients.values()))
            gradients = {name: value / max(1.0, norm) for name, value in gradients.items()}
        for name, gradient in gradients.items():
            kept[name] = kept[name] * (mistake == "kept gradients") + gradient
            used = kept[name] + DECAY * now[name] * (mistake == "decay in the gradient")
            one, two = moments[name]
            one += (1 - BETAS[0]) * (used - one)
            two += (1 - BETAS[1]) * (used**2 - two)
            if mistake not in ("no decay", "decay in the gradient"):
                now[name] *= 1 - LEARNING_RATE * DECAY
            spread = np.sqrt(two / (1 - BETAS[1] ** step)) + EPS
            now[name] -= LEARNING_RATE * one / (1 - BETAS[0] ** step) / spread
    return now


def _gradients(
    now: Parameters, labels: np.ndarray, texts: np.ndarray, mistake: str, loud: float
) -> dict[str, np.ndarray]:
    mask = texts >= 0
    lengths = mask.sum(axis=1, keepdims=True)
    words = np.where(mask, texts, 0)
    means = (now["embedding"][words] * mask[..., None]).sum(axis=1) / lengths
    logits = loud * (means @ now["weight"].T + now["bias"])
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= 1.0
    shares *= loud / {"shares of four": BATCH, "summed": 1}.get(mistake, len(labels))
    embedding = np.zeros_like(now["embedding"])
    of_words = (shares @ now["weight"] / lengths)[:, None, :] * mask[..., None]
    np.add.at(embedding, words, of_words)
    return {"embedding": embedding, "weight": shares.T @ means, "bias": shares.sum(axis=0)}
