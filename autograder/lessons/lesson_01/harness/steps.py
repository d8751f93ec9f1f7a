"""Harness of 1.6: what goes through the model in one short epoch, step by step."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_counting import counted, see
from autograder.lessons.checking.harness_shared import (
    answer_here,
    as_it_is,
    in_groups,
    learner,
    numbers,
    same_everywhere,
    weights_of,
)
from autograder.lessons.lesson_01.harness.loops import (
    IMPOSSIBLE,
    Unreadable,
    make_impossible,
    numbers_of,
    scaled_model,
    tells_of,
)
from course_lib.data import collate
from course_lib.training import NonFiniteError


class _Texts:
    """Samples in memory, with what a store has besides: a batch of them."""

    def __init__(self, ids: list[np.ndarray], labels: list[int], lost: int = -1) -> None:
        self.lost = lost
        self.ids, self.labels = [row.astype(np.int64) for row in ids], np.array(labels, dtype=np.int64)
        self.lengths = np.array([len(row) for row in ids], dtype=np.int64)
        self.max_length = max(32, *self.lengths.tolist())

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        if index == self.lost:
            raise Unreadable("a sample cannot be read")
        return self.ids[index].copy(), int(self.labels[index])

    def batch(self, indices: Any, *, pad_to: int | None = None) -> dict[str, torch.Tensor]:
        return collate([self[int(index)] for index in indices], pad_to=pad_to)


def epoch_once(
    seed: int,
    scales: list[float],
    ids: list[np.ndarray],
    labels: list[int],
    micro_batch_size: int,
    order_seed: int,
    operators: bool,
    groups: bool,
) -> dict[str, Any]:
    """One pass of the learner's loop over these samples, with the rows of each optimizer step."""
    model, optimizer = _fresh(seed, scales, ids, groups)
    model.train(operators)
    model.blocks[-1].eval()  # as an evaluation before it may have left it, or a part of it
    steps: list[list[dict[str, Any]]] = [[]]

    def note(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensors = [*args, *(kwargs[name] for name in ("input_ids", "attention_mask") if name in kwargs)]
        names = ("input_ids", "attention_mask")
        seen = {name: tensor.detach().clone() for name, tensor in zip(names, tensors, strict=False)}
        steps[-1].append(seen | {"training": all(module.training for module in model.modules())})

    model.register_forward_pre_hook(note, with_kwargs=True)
    optimizer.register_step_post_hook(lambda *_: steps.append([]))
    torch.seed()  # whose numbers are drawn without a seed are others each time
    before, files, samples, settings = (
        weights_of(model).clone(),
        _files(),
        _Texts(ids, labels),
        _settings(optimizer),
    )
    with _saves_told(), counted(model, operators=operators):
        report = learner(model, samples, optimizer, micro_batch_size, order_seed)
    return {
        **numbers_of(report),
        "samples_kept": as_it_is(vars(samples)) == as_it_is(vars(_Texts(ids, labels))),
        "optimizer_kept": settings == _settings(optimizer) and bool(optimizer.state),
        "steps": steps[:-1],
        "new_files": len(_files() - files),
        "changed": not torch.equal(before, weights_of(model)),
        "weights": weights_of(model),
    }


def _settings(optimizer: torch.optim.Optimizer) -> list[dict[str, str]]:
    """All that the groups of parameters are told, such as the rate; and which parameters they are."""
    return [
        {name: str([*map(id, value)] if name == "params" else value) for name, value in group.items()}
        for group in optimizer.param_groups
    ]


def epochs_of(order_seeds: list[int], **arguments: Any) -> list[dict[str, Any]]:
    """`epoch_once` with one seed of the order after the other."""
    return [epoch_once(**arguments, order_seed=order_seed) for order_seed in order_seeds]


def epoch_broken_off(seed: int, ids: list[np.ndarray], labels: list[int], lost: int) -> dict[str, bool]:
    """Whether the error of a sample that cannot be read reaches the caller of the learner's loop."""
    model, optimizer = _fresh(seed, [1.0, 1.0], ids, groups=False)
    try:
        learner(model, _Texts(ids, labels, lost), optimizer, 2, 1)
    except Exception as error:
        return {"is_told": tells_of(error)}
    return {"is_told": False}


def epoch_infinite(seed: int, ids: list[np.ndarray], labels: list[int]) -> dict[str, float]:
    """The report of the learner's loop where the loss of one sample is infinite."""
    model, optimizer = _fresh(seed, [1.0, 1.0], ids, groups=False)
    make_impossible(model)
    possible = [0 if label == IMPOSSIBLE else label for label in labels]
    try:
        return numbers(learner(model, _Texts(ids, [IMPOSSIBLE, *possible[1:]]), optimizer, 2, 1))
    except NonFiniteError:  # who trains by `course_lib` says it so
        return {"loss": math.inf}


_ROWS = """
import numpy, torch
class Texts:
    lengths = numpy.array([len(ids) for ids in request["ids"]])
    max_length = int(lengths.max())
    def __len__(self):
        return len(self.lengths)
    def __getitem__(self, index):
        return numpy.array(request["ids"][index]), 0
class Model(torch.nn.Module):
    config = types.SimpleNamespace(max_length=Texts.max_length)
    def __init__(self):
        super().__init__()
        self.embedding, self.rows = torch.nn.Embedding(100, 5), []
    def forward(self, input_ids, attention_mask):
        mask = attention_mask.bool()
        self.rows.append([ids[real].tolist() for ids, real in zip(input_ids, mask)])
        return (self.embedding(input_ids) * mask[..., None]).sum(1)
model = Model()
learner(model, Texts(), torch.optim.SGD(model.parameters(), lr=0.1), request["rows"], request["seed"])
say(model.rows)
"""


def orders_elsewhere(
    source: str, entry: str, ids: list[list[int]], rows: int, seed: int, hash_seeds: list[int]
) -> dict[str, bool]:
    """Whether fresh interpreters, where texts have other hashes, take the samples in the same order.

    Where a loop cannot do with so little of a model and of samples, here neither, nothing is told.
    """
    request = {"ids": ids, "rows": rows, "seed": seed}
    with contextlib.suppress(Exception):
        answer_here(_ROWS, request)
        return {"is_same": bool(same_everywhere(_ROWS, source, entry, request, hash_seeds)["is_same"])}
    return {"is_same": True}


def epoch_replay(
    seed: int,
    scales: list[float],
    ids: list[np.ndarray],
    labels: list[int],
    batches: list[list[int]],
    groups: bool,
) -> dict[str, Any]:
    """The same epoch by a loop of ours, which `learner` is here, over these batches of indices."""
    model, optimizer = _fresh(seed, scales, ids, groups)
    constant = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    samples = _Texts(ids, labels)
    report = learner(model, [samples.batch(batch) for batch in batches], optimizer, constant, 1.0)
    return {"report": numbers(report), "weights": weights_of(model)}


def _fresh(
    seed: int, scales: list[float], ids: list[np.ndarray], groups: bool
) -> tuple[Any, torch.optim.Optimizer]:
    """A small model for texts of these lengths, with momentum and gradients left over from an earlier pass."""
    model = scaled_model(seed, *scales, max_length=max(32, *map(len, ids)))
    optimizer = torch.optim.SGD(in_groups(model) if groups else model.parameters(), lr=0.05, momentum=0.9)
    for parameter in model.parameters():
        parameter.grad = 0.01 * torch.randn_like(parameter)
    optimizer.step()
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.3)
    return model, optimizer


@contextlib.contextmanager
def _saves_told() -> Iterator[None]:
    torch_save = torch.save

    def counted_save(thing: Any, file: Any, *arguments: Any, **options: Any) -> None:
        if not isinstance(file, io.BytesIO):
            see("save")
        torch_save(thing, file, *arguments, **options)

    torch.save = counted_save  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.save = torch_save


def _files() -> set[tuple[str, int, int]]:
    """What lies in the solution's folder, but for what torch's compiler keeps for itself."""
    files = [path for path in Path.cwd().rglob("*") if path.is_file() and "torchinductor" not in str(path)]
    return {(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files}
