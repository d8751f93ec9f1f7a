"""Harness of 2.5: a model that must stand fp16."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_counting import counted
from autograder.lessons.checking.harness_products import see_what_hangs
from autograder.lessons.checking.harness_shared import learner, switches, weights_of
from autograder.lessons.lesson_02.harness.fragile import FragileClassifier
from autograder.lessons.lesson_02.harness.shared import with_padding_ids
from course_lib.data import TokenStore, collate, docstring_store
from course_lib.training import resolve_precision, train_step

# The notebook has this name: a cell may inherit from it, and import it as the notebook does.
sys.modules["autograder.lessons.lesson_02.fragile"] = _offered = types.ModuleType("fragile")
for _module in (_offered, sys.modules.get("__learner__", _offered)):
    _module.__dict__["FragileClassifier"] = FragileClassifier


def _made(seed: int, loudness: str, sizes: tuple[int, ...]) -> torch.nn.Module:
    """The learner's classifier with hidden values that are loud, quiet, or loud for half of the words; or
    far beyond fp16, or as large as fp16 can hold, to the "brim". Those of "long" are loud."""
    torch.manual_seed(seed)
    torch.rand(3)  # who seeds anew in `__init__` gets other weights
    names = "vocab_size", "num_classes", "d_model"
    model: Any = learner(**dict(zip(names, sizes, strict=False)))
    vocabulary = sizes[0]
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding):
                quiet = vocabulary // 2 if loudness == "mixed" else vocabulary
                module.weight[quiet:].mul_(1e-7)
                if loudness == "still":
                    module.weight[1] = 0.0  # a text of this word alone has no features at all
                if loudness == "deafening":
                    module.weight.mul_(2.0**12)
                if loudness == "usual":
                    module.weight.mul_(1.0 / 1000)
                if loudness == "mixed":
                    module.weight[0].mul_(1e-7)  # the padding's, which is in texts of both kinds
            elif (
                isinstance(module, torch.nn.Linear) and loudness == "still" and module.out_features > sizes[1]
            ):
                module.weight.mul_(1e-5)  # mean squares near 1e-6, the epsilon
                module.bias.zero_()
        if loudness == "brim":
            _fill(model)
        for parameter in model.parameters():
            if (
                parameter == 1
            ).all():  # a gain that does nothing would not be missed, nor one without its sign
                parameter.add_(0.3 * torch.randn(parameter.shape))
                parameter[::3].neg_()
    return model


def _fill(model: torch.nn.Module) -> None:
    """Make the largest hidden value one that fp16 just holds; the length of a text's row it does not hold."""
    words = next(part for part in model.modules() if isinstance(part, torch.nn.Embedding))
    hidden = next(part for part in model.modules() if isinstance(part, torch.nn.Linear))
    words.weight.mul_(50_000 / (words.weight @ hidden.weight.T).max())


def _loudest(model: Any) -> int:
    """The word with the largest hidden value."""
    words = next(part for part in model.modules() if isinstance(part, torch.nn.Embedding))
    hidden = next(part for part in model.modules() if isinstance(part, torch.nn.Linear))
    return int((words.weight @ hidden.weight.T).amax(dim=-1).argmax())


def _texts(
    rng: np.random.Generator, rows: int, sizes: tuple[int, ...], longest: int
) -> dict[str, torch.Tensor]:
    """Each text of words of one half of the vocabulary, of uneven lengths, with holes in the mask and padding ids."""
    vocabulary, classes, *_ = sizes
    samples = []
    for row in range(rows):
        low = 3 if row % 2 else vocabulary // 2
        ids = rng.integers(low, low + vocabulary // 2 - 3, size=rng.integers(max(1, longest - 99), longest))
        samples.append((ids, int(rng.integers(classes))))
    batch = with_padding_ids(rng, collate(samples))
    holes = torch.from_numpy(rng.random(batch["attention_mask"].shape) < 0.1)
    holes[:, 0] = False
    return batch | {"attention_mask": batch["attention_mask"] & ~holes}


def fragile_cases(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Logits and gradients of the learner's classifier, once in each case; tells what its products are for."""
    return [_fragile_once(number, **case) for number, case in enumerate(cases)]


def _fragile_once(
    number: int,
    seed: int,
    loudness: str,
    scale: float,
    sizes: tuple[int, ...],
    rows: int,
    is_training: bool,
    precision: str,
) -> dict[str, Any]:
    """On secret texts; the loss times `scale`, so that gradients are neither too small nor too large for fp16."""
    rng = np.random.default_rng(seed)
    model = _made(seed, loudness, tuple(sizes)).train(is_training)
    batch = _texts(rng, rows, tuple(sizes), 400 if loudness == "long" else 40)
    if loudness == "still":
        batch["input_ids"][0] = 1
    if loudness == "brim":
        batch["input_ids"][0] = _loudest(model)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    with torch.no_grad(), resolve_precision(precision, torch.device("cpu")).autocast():
        # Before the others one text of one word, and then as many others: nothing of them is to be kept.
        model(attention_mask=mask[:1, :1], input_ids=ids[:1, :1])
        model(ids.roll(1, 0), torch.ones_like(mask))
    weights, before = weights_of(model), {name: value.clone() for name, value in batch.items()}
    with counted(model) as counts:
        with resolve_precision(precision, torch.device("cpu")).autocast():
            set_before = switches()
            logits = model(batch["input_ids"], batch["attention_mask"])
            set_after = switches()
            loss = F.cross_entropy(logits, batch["labels"])
        (loss * scale).backward()

    def forward() -> torch.Tensor:
        with resolve_precision(precision, torch.device("cpu")).autocast():
            again: torch.Tensor = model(ids, mask)
        return again

    if precision != "32-true":
        see_what_hangs(forward, "products", number)
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return {
        "logits": logits.float(),
        "gradients": torch.cat([g.flatten() / scale for g in gradients]),
        "is_left": all(torch.equal(batch[name], value) for name, value in before.items()),
        "names": list(model.state_dict()),
        "num_weights": [p.numel() for p in model.parameters()],
        "weights": weights,
        "set_before": set_before,
        "set_after": set_after,
        "flops": counts.flops,
        # Forward, and backward to the features: `hidden` makes twice as many of them as a word has.
        "flops_of_the_mean": 2 * 2 * ids.numel() * 2 * (sizes[2] if len(sizes) > 2 else 32),
    }


@functools.cache
def _short_texts() -> tuple[TokenStore, TokenStore, list[np.ndarray]]:
    train, validation = docstring_store(progress=False)
    return train, validation, [np.flatnonzero(np.asarray(s.lengths) <= 48) for s in (train, validation)]


def quality(seed: int, num_samples: int, num_epochs: int, precision: str) -> float:
    """Validation accuracy, in points of 100, after training on short texts of the corpus in this precision."""
    train, validation, short = _short_texts()
    rng = np.random.default_rng(seed)
    samples = train.subset(rng.choice(short[0], size=num_samples, replace=False))
    held_out = validation.subset(rng.permutation(short[1])[:600])
    torch.manual_seed(seed)
    model: torch.nn.Module = learner(train.vocab_size, len(train.label_names))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    resolved = resolve_precision(precision, torch.device("cpu"))
    for _ in range(num_epochs):
        order = rng.permutation(num_samples)
        for start in range(0, num_samples, 16):
            batch = collate([samples[int(index)] for index in order[start : start + 16]])
            train_step(model, batch, optimizer, precision=resolved)
    model.eval()
    correct = 0
    for start in range(0, len(held_out), 250):
        batch = collate([held_out[i] for i in range(start, min(start + 250, len(held_out)))])
        with torch.no_grad(), resolved.autocast():
            logits = model(batch["input_ids"], batch["attention_mask"])
        correct += int((logits.argmax(-1) == batch["labels"]).sum())
    return 100.0 * correct / len(held_out)
