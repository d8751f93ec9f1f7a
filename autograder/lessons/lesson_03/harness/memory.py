"""Harness of 3.5: activations that are computed again."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_counting import counted
from autograder.lessons.checking.harness_shared import (
    full_rows,
    generators,
    learner,
    plain_step,
    small_model,
    weights_of,
)
from autograder.lessons.lesson_03.harness.passes import KeptByForward
from course_lib.models import ModelConfig, TextClassifier

ON_CPU = torch.device("cpu")


def random_batch(seed: int, rows: int, width: int, words: int = 60) -> dict[str, torch.Tensor]:
    return full_rows(np.random.default_rng(seed), rows, width, words=words)


def padded_batch(seed: int, rows: int, width: int) -> dict[str, torch.Tensor]:
    """The same with padding in all rows but the first."""
    batch, rng = random_batch(seed, rows, width), np.random.default_rng(seed)
    lengths = torch.from_numpy(rng.integers(width // 4, width, size=rows))
    lengths[0] = width
    batch["attention_mask"] = torch.arange(width) < lengths[:, None]
    return batch


def checkpointed_all(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of one model after the other what a solution makes of it. All are changed before the first is used."""
    models = [_deep_model(case["seed"], case["dropout"], case["num_layers"]) for case in cases]
    for model, case in zip(models, cases, strict=True):
        model.train(case["is_training"])
        model.blocks[-1].train(not case["is_training"])
        for embedding in (model.token_embedding, model.position_embedding):
            embedding.requires_grad_(not case["is_frozen"])
    untouched = _deep_model(cases[0]["seed"], cases[0]["dropout"], cases[0]["num_layers"])
    given = [list(model.parameters()) for model in models]
    parts = [list(model.modules()) for model in models]  # those that wrap them have modes of their own
    block = next(models[-1].blocks[0].parameters()).requires_grad_(
        False
    )  # while it is changed, and no longer
    for parameter in given[0]:
        parameter.grad = torch.ones_like(parameter)
    before = [_state_of(*each) for each in zip(parts, given, strict=True)]
    drawn = generators()
    tracemalloc.start()  # before anything of theirs runs: what is kept in it later was there before
    changed = [learner(model) for model in models]
    is_drawn = generators() != drawn
    after = [_state_of(*each) for each in zip(parts, given, strict=True)]
    block.requires_grad_(True)
    found = [{"kind": type(model).__name__} for model in changed if not isinstance(model, torch.nn.Module)]
    if found:
        return found
    are_given = [
        [*map(id, model.parameters())] == [*map(id, one)] for model, one in zip(changed, given, strict=True)
    ]
    modes = [(model.training, case["is_training"]) for model, case in zip(changed, cases, strict=True)]
    answers = [
        _used(model, **case) | {"are_given": is_it}
        for model, case, is_it in zip(changed, cases, are_given, strict=True)
    ]
    for answer, old, new in zip(answers, before, after, strict=True):
        answer["state_changed"] = [name for name in old if old[name] != new[name]]
    for answer, (is_training, was_training) in zip(answers, modes, strict=True):
        answer["is_mode_kept"], answer["is_drawn"] = is_training == was_training, is_drawn
    tracemalloc.stop()
    _count_step(untouched, padded_batch(0, 4, 16))
    return answers


def _state_of(parts: list[Any], parameters: list[torch.Tensor]) -> dict[str, list[bool]]:
    """What a model has beside its weights, by the words for it."""
    return {
        "the mode of its parts": [part.training for part in parts],
        "which parameters are frozen": [p.requires_grad for p in parameters],
        "the gradients that were there": [
            p.grad is not None and bool((p.grad == 1).all()) for p in parameters
        ],
    }


def _deep_model(seed: int, dropout: float, num_layers: int) -> Any:
    return small_model(seed, dropout=dropout, d_model=64, num_layers=num_layers, num_heads=4, max_length=64)


def _used(model: Any, seed: int, rows: int, width: int, **_: Any) -> dict[str, Any]:
    """Logits and gradients of steps in training, one of three micro-batches at once, and of one in evaluation.

    With what is counted of the first, and the bytes that Python holds between the second's two passes.
    """
    before = weights_of(model)
    found: dict[str, Any] = {"kind": "model", "before": before}
    for name, is_training in (("first", True), ("second", True), ("both", True), ("evaluated", False)):
        batch = padded_batch(seed + len(name), rows, width)
        others = padded_batch(seed, rows - 1, width // 2), padded_batch(seed + 9, rows, width)
        model.train(is_training)
        model.zero_grad(set_to_none=True)
        logits: list[torch.Tensor] = []

        batches = (batch, *others) if name == "both" else (batch,)

        def step(batches: Any = batches, logits: list[torch.Tensor] = logits, name: str = name) -> None:
            losses = []
            for each in batches:
                output = model(each["input_ids"], each["attention_mask"])
                logits.append(output.detach())
                losses.append(F.cross_entropy(output, each["labels"]))
            if name == "second":
                found["held"] = tracemalloc.get_traced_memory()[0]
            if output.requires_grad:
                torch.stack(losses).sum().backward()

        if name == "first":  # the second draws on from where the first one ended
            torch.manual_seed(seed + 1)
            with counted(model):
                step()
        else:
            step()
        parameters = list(model.parameters())
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        found[name] = {
            "logits": torch.cat(logits),
            "gradients": torch.cat([g.flatten() for g in gradients]),
            "num_without": sum(p.grad is None for p in parameters),
        }
    with torch.no_grad():
        found["predicted"] = model(batch["input_ids"], batch["attention_mask"])
    return found


def _count_step(model: Any, batch: dict[str, torch.Tensor]) -> None:
    """Tells of a step of a model."""
    with counted(model):
        F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"]).backward()
    model.zero_grad(set_to_none=True)


_timed: dict[str, Any] = {}


def _timed_model() -> Any:
    """The learner's model of the timed segments. Wide, so that arithmetic decides, not Python; a real vocabulary."""
    if not _timed:
        torch.manual_seed(1)
        sizes: Any = {"vocab_size": 16_384, "d_model": 256, "num_layers": 3, "max_length": 32}
        _timed["model"] = learner(TextClassifier(ModelConfig(num_classes=5, dropout=0.0, **sizes)))
        _timed["start"] = [p.detach().clone() for p in _timed["model"].parameters()]
    return _timed["model"].train()


def checkpoint_segment(seed: int, num_steps: int, operators: bool = False) -> dict[str, Any]:
    """Training steps of the learner's model on secret batches, from the weights that the first segment began with.

    With `operators` its bytes are counted; the model is looked at in either case, so that it looks alike to itself.
    """
    model = _timed_model()
    with torch.no_grad():
        for parameter, start in zip(model.parameters(), _timed["start"], strict=True):
            parameter.copy_(start)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batches = [random_batch(seed + number, 4, 32, 16_384) for number in range(num_steps)]
    with counted(model, operators=operators):
        return {"losses": torch.stack([plain_step(model, optimizer, batch) for batch in batches])}


def checkpoint_counted(seed: int, num_steps: int) -> None:
    """Tells of a segment like those that are timed."""
    with KeptByForward(_timed_model()):
        checkpoint_segment(seed, num_steps, operators=True)
