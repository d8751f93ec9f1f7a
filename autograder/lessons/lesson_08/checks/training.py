"""What a run of 8.4 reads, and what its steps make of it: AdamW followed with NumPy, right or with one mistake."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import name_the_mistake, relative_difference

LEARNING_RATE, BETAS, EPS, DECAY = 1e-2, (0.9, 0.999), 1e-8, 0.01
BATCH = 4
MANY_EPOCHS = 7  # of so many no sample keeps its place by chance
Parameters = Mapping[str, np.ndarray]
"""`embedding` [words, D], `weight` [C, D] and `bias` [C]."""


def followed(
    first: Parameters, batches: Sequence[np.ndarray], mistake: str = "", loud: float = 1.0
) -> dict[str, np.ndarray]:
    """The parameters after a step on each batch, rows of (place, label, words, -1, …), without dropout.

    Args:
        mistake: "no decay", "decay in the gradient", "kept gradients", "shares of four", "summed", "clipped", or that
            of no one; "float32" is none, and takes the loss in float32.
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
    logits = logits.astype(np.float32 if mistake == "float32" else np.float64)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= 1.0
    shares *= loud / {"shares of four": BATCH, "summed": 1}.get(mistake, len(labels))
    embedding = np.zeros_like(now["embedding"])
    of_words = (shares @ now["weight"] / lengths)[:, None, :] * mask[..., None]
    np.add.at(embedding, words, of_words)
    return {"embedding": embedding, "weight": shares.T @ means, "bias": shares.sum(axis=0)}


def require_training(job: Job, run: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Fail unless every epoch has each sample once, in a random order of its own, and each step its share."""
    size, num_steps = arguments["size"], arguments["num_steps"]
    read = run["read"][:, 0]
    per_epoch = -(-size // BATCH)
    num_epochs, rest = divmod(num_steps, per_epoch)
    wanted = num_epochs * size + min(rest * BATCH, size)
    epochs = [read[i * size : (i + 1) * size] for i in range(num_epochs)]
    job.require(
        len(read) == wanted and all(np.array_equal(np.sort(epoch), np.arange(size)) for epoch in epochs),
        expected=f"{num_steps} steps of {BATCH} samples, the last of each epoch of {size - BATCH * (per_epoch - 1)}: "
        f"{wanted} readings, each of {size} samples once an epoch",
        got=f"{len(read)} readings, {len(np.unique(read[:size]))} different ones in the first epoch",
        likely="samples are dropped, repeated, or read ahead of their step",
        look="read a sample when its step is due: what was read ahead has drawn its noise already",
    )
    job.require(
        run["ahead"] <= BATCH,
        expected=f"samples read when their step is due: {BATCH} at most that the model has not seen yet",
        got=f"{run['ahead']} of them",
        likely="samples are read ahead of their step, those of the whole call or epoch before its first one",
        look="read the samples of a step between the step before and the forward pass",
    )
    job.require(
        len({*map(bytes, epochs)}) > 2 or num_epochs < MANY_EPOCHS,
        expected="a new random order each epoch, also where the seed is 0",
        got=f"{len({*map(bytes, epochs)})} different ones in {num_epochs} epochs of {size} samples",
        likely="the order depends on the seed alone, not on the epoch; or on seed times epoch, which is 0 for a seed "
        "of 0",
        look="`np.random.default_rng([seed, epoch])`",
    )
    if size < 2 * BATCH:
        return
    in_turn = [int((np.abs(np.diff(epoch)) == 1).sum()) for epoch in epochs]
    neighbours = [{frozenset(pair) for pair in itertools.pairwise(epoch.tolist())} for epoch in epochs]
    kept = max(len(one & two) for one, two in itertools.combinations(neighbours, 2))
    is_same = any(
        np.array_equal(one, two) for one, two in itertools.combinations([*epochs, np.arange(size)], 2)
    )
    in_blocks = any(size // 2 < number < size - 1 for number in in_turn)
    job.require(
        in_blocks or not is_same,
        expected="a new random order each epoch",
        got="the same order in two epochs, or that of the data",
        likely="the order depends on the seed alone, not on the epoch",
        look="`np.random.default_rng([seed, epoch])`",
    )
    most = max(kept, *in_turn)
    job.require(
        most < size // BATCH * (BATCH - 1),  # so many stay together where whole batches move
        expected="a new random order each epoch",
        got=f"{most} of {size - 1} samples that follow the same one as before",
        likely="batches are shuffled, or the order is turned round or moved on: the samples of a batch stay together",
        look="a permutation of all samples",
    )
    _require_all_shuffled(job, epochs)
    job.require(
        all(
            np.isfinite(value).all() and not np.array_equal(value, run["begin"][name])
            for name, value in run["parameters"].items()
        ),
        expected="weights that training has changed",
        got="the first weights, or NaN",
        likely="no step is taken, or it works on another model than `self.model`",
        look="`optimizer.step()` on the parameters of `self.model`",
    )


def _require_all_shuffled(job: Job, epochs: list[np.ndarray]) -> None:
    """Fail where a part of the order is none: batches that are sorted, samples that keep their place or their half."""
    full = [epoch[at : at + BATCH] for epoch in epochs for at in range(0, len(epoch) - BATCH + 1, BATCH)]
    is_sorted = all((np.diff(some) > 0).all() for some in full) or all(
        (np.diff(some) < 0).all() for some in full
    )
    job.require(
        not is_sorted,
        expected="samples in a random order, also within a batch",
        got=f"{len(full)} batches that are sorted, each in itself",
        likely="the samples of a batch are sorted before they are read",
        look="read them in the order in which they were drawn",
    )
    if len(epochs) < MANY_EPOCHS:
        return
    half = len(epochs[0]) // 2
    num_places = int((np.ptp(epochs, axis=0) == 0).sum())
    halves = {frozenset(epoch[:half].tolist()) for epoch in epochs}
    job.require(
        num_places == 0 and len(halves) > 1,
        expected="a new random order of all samples each epoch",
        got=f"the same sample at {num_places} places in each of {len(epochs)} epochs"
        if num_places
        else f"the same {half} samples in the first half of each of {len(epochs)} epochs",
        likely="only a part of the samples is shuffled, or parts of them apart from each other",
        look="a permutation of all samples",
    )


_NO_MEAN = "no mean over the samples of a batch, short or not: the loss is summed, or always divided by 4"
_LIKELY = {
    "kept gradients": "gradients of earlier steps are added: `zero_grad` is forgotten",
    "shares of four": _NO_MEAN,
    "summed": _NO_MEAN,
    "no decay": "Adam, or AdamW without its weight decay: torch's default is 0.01",
    "decay in the gradient": "Adam with weight decay: AdamW decays the weights apart from the gradient",
    "clipped": "gradients are clipped, which the text does not ask for",
}
NEAR = 1e-6  # all is computed in float64
CAST = 10.0  # times as far as a loss cast to float32 leads: Adam makes long steps of what is left of tiny gradients


def require_steps(job: Job, run: dict[str, Any], loud: float = 1.0) -> None:
    """Fail unless the weights are those that AdamW at 1e-2 gives on the samples that were read. Without dropout."""
    size = len({*run["read"][:, 0].tolist()})
    batches, at = [], 0
    while at < len(run["read"]):
        batches.append(run["read"][at : at + min(BATCH, size - at % size)])
        at += len(batches[-1])
    first = run["begin"]
    if loud == 1.0:
        _require_first_step(job, first, run["once"])

    def away(mistake: str, found: Parameters = run["parameters"]) -> float:
        wanted = followed(first, batches, mistake, loud)
        return max(relative_difference(found[name], wanted[name]) for name in wanted)

    if away("") <= NEAR:
        return
    allowed = max(NEAR, CAST * away("", followed(first, batches, "float32", loud)))
    if away("") <= allowed:
        return
    likely = name_the_mistake(_LIKELY, twin=away, is_same=lambda found: found <= allowed)
    job.require(
        False,
        expected="the weights that AdamW at 1e-2 gives, with the mean cross-entropy of each batch",
        got=f"weights that differ by up to {away(''):.2g}, after a first step of the right length",
        likely=likely
        or "another loss, another optimizer than AdamW, or settings that are not torch's defaults",
        look="`torch.optim.AdamW(self.model.parameters(), lr=1e-2)`, and `F.cross_entropy` of a batch",
    )


def _require_first_step(job: Job, first: dict[str, np.ndarray], once: dict[str, np.ndarray]) -> None:
    """The first step of Adam moves each number that has a gradient by the learning rate."""
    moved = np.abs((once["weight"] - first["weight"] * (1 - LEARNING_RATE * 0.01)).ravel())
    rate = float(np.median(moved))
    is_even = float(np.quantile(moved, 0.9)) < 1.2 * float(np.quantile(moved, 0.1))
    job.require(
        abs(rate - LEARNING_RATE) <= 0.005 * LEARNING_RATE and is_even,
        expected=f"a first step that moves the weights by {LEARNING_RATE:g} each, as AdamW's does",
        got=f"by {np.min(moved):.2g} to {np.max(moved):.2g}",
        likely=f"another learning rate, of about {rate:.2g}"
        if is_even
        else "another optimizer than AdamW, such as SGD: its steps are as long as the gradients",
        look="`torch.optim.AdamW(self.model.parameters(), lr=1e-2)`",
    )
