"""Harness of 1.4: an evaluation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from autograder.lessons.checking.harness_counting import looking_on, see
from autograder.lessons.checking.harness_shared import (
    as_it_is,
    generators,
    learner,
    small_model,
    switches,
    weights_of,
)
from autograder.lessons.lesson_01.harness.loops import (
    IMPOSSIBLE,
    Tiny,
    agree,
    broken_off,
    drawn_batches,
    make_impossible,
    make_sick,
    many_batches,
    numbers_of,
    tell_modes,
    tells_of,
)


def evaluate_broken_off(seed: int, training: bool, where: str) -> dict[str, Any]:
    """Whether an error reaches the caller of the learner's evaluation, and what it leaves.

    `where`: "first batch" or "last batch", which cannot be read, or "loader", of which none can be had; "model" or
    "loss", which cannot be computed; or "mean", of no batch at all: that need not be an error.
    """
    model = small_model(seed, dropout=0.5)
    model.train(training)
    batches = drawn_batches(seed, [4, 4, 4])
    if where == "model":
        batches[1]["input_ids"][0, 0] = 10**6  # no word has this number
    elif where == "loss":
        batches[1]["labels"][0] = 99
    num_read = {"first batch": 0, "last batch": 2}.get(where)
    given: Any = iter(batches) if num_read is None else broken_off(batches, num_read)
    if where in ("loader", "mean"):
        given = _Unreadable() if where == "loader" else iter(())
    before, is_told = _state_of(model) | {"grad_mode": True}, False
    with torch.enable_grad(), _matmul_precision("high"):
        set_before = switches()
        try:
            learner(model, given)
            is_told = where == "mean"
        except Exception as error:
            is_told = (num_read is None and where != "loader") or tells_of(error)
        set_after = switches()
        after = _state_of(model) | {"grad_mode": torch.is_grad_enabled()}
    left = {name: value == before[name] for name, value in after.items()}
    return {"is_told": is_told, "left": left, "switches": [set_before, set_after]}


class _Unreadable:
    """Batches of which not even the first can be asked for."""

    def __iter__(self) -> Iterator[Any]:
        raise OSError("the batches cannot be read")  # a TypeError would say that nothing can be iterated


def evaluate_many(seed: int, num_batches: int) -> dict[str, Any]:
    """The report of the learner's evaluation over many batches, of which some are wide."""
    torch.manual_seed(seed)
    model = Tiny()
    with torch.no_grad():
        model.classes.weight.mul_(0.1)  # so that no class is sure in the widest
    return numbers_of(learner(model, many_batches(seed, num_batches)))


def evaluate_once(
    seed: int,
    rows: list[int],
    training: bool,
    records: bool,
    matmul: str,
    infinite: bool,
    scale: float,
    sure: bool,
) -> dict[str, Any]:
    """The learner's evaluation of a small model with dropout, and the traces that it left.

    `infinite`: a sample of the first batch is of a class that the model takes for impossible. `scale`: of all logits.
    `sure`: the model takes every label for right.
    """
    model = small_model(seed, dropout=0.5)
    with torch.no_grad():
        model.head.weight.mul_(scale)
    model.final_norm.weight.requires_grad_(False)  # as in a model of which a part is frozen
    batches = drawn_batches(seed, rows)
    if infinite:
        # No other sample is of it: a batch without losses would have no mean.
        for batch in batches:
            batch["labels"][batch["labels"] == IMPOSSIBLE] = 0
        batches[0]["labels"][0] = IMPOSSIBLE
        make_impossible(model)
    agree(model, batches if sure else batches[-1:])  # else its accuracy there is far from that of the others
    given = as_it_is(batches)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(
            parameter, 0.3
        )  # gradients that somebody gathers over several batches
    model.train(training)

    def tell_recorded(*called: Any) -> None:
        see("recorded", called[-1].requires_grad)

    # The head, too: its logits can be had without a call of the model.
    recorded = [looking_on(each, tell_recorded, after=True) for each in (model, model.head)]
    with tell_modes(model), recorded[0], recorded[1]:
        before = _state_of(model)
        with torch.set_grad_enabled(records), _matmul_precision(matmul):
            set_before = switches()
            report = learner(model, iter(batches))
            after = _state_of(model) | {"grad_mode": records == torch.is_grad_enabled()}
            set_after = switches()
    return {
        **numbers_of(report),
        "switches": [set_before, set_after],
        "batches_kept": as_it_is(batches) == given,
        "left": {name: value == before.get(name, True) for name, value in after.items()},
        "weights": weights_of(model),
        "kept_gradients": torch.cat([_gradient_of(p) for p in model.parameters()]),
    }


def evaluate_sick(seed: int) -> dict[str, Any]:
    """The report of the learner's evaluation where the loss of one sample is no number."""
    model, batches = small_model(seed), drawn_batches(seed, [4, 6, 5])
    make_sick(model, batches)
    return numbers_of(learner(model, iter(batches)))


class _Table(torch.nn.Module):
    """A model that looks its logits up: what it returns are its weights."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(rows, 5))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.table[: len(input_ids)]


def evaluate_table(seed: int) -> bool:
    """Whether a model whose logits are its weights has them afterwards."""
    torch.manual_seed(seed)
    model = _Table(6)
    before = model.table.detach().clone()
    learner(model, iter(drawn_batches(seed, [4, 6])))
    return torch.equal(model.table.detach(), before)


@contextlib.contextmanager
def _matmul_precision(precision: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _state_of(model: Any) -> dict[str, Any]:
    """All that an evaluation could leave otherwise, but for weights and gradients; compared here, as it is large."""
    modules = list(model.modules())
    return {
        "training": [module.training for module in modules],
        "frozen": [p.requires_grad for p in model.parameters()],
        "parts": [{name: _plain(value) for name, value in vars(module).items()} for module in modules],
        "buffers": [(name, id(buffer)) for name, buffer in model.named_buffers()],
        "weights": [(name, id(p), str(p.dtype)) for name, p in model.state_dict(keep_vars=True).items()],
        "hooks": [len(value) for m in modules for name, value in vars(m).items() if name.endswith("_hooks")],
        "generators": generators(),
    }


def _gradient_of(parameter: torch.Tensor) -> torch.Tensor:
    return torch.zeros(parameter.numel()) if parameter.grad is None else parameter.grad.flatten()


def _plain(value: Any) -> Any:
    """A setting, such as the share that is dropped; of what else a module has, that it is there."""
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
