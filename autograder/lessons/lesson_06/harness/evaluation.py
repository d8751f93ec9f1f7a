"""Harness of 6.5: an evaluation over ranks whose shards are uneven."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any

import torch

from autograder.lessons.checking.harness_counting import looking_on
from autograder.lessons.checking.harness_shared import as_it_is, learner, numbers, small_model, switches
from autograder.lessons.lesson_06.harness.shared import (
    LARGE,
    Watch,
    loss_of,
    make_loud,
    make_sick,
    on_ranks,
    shares,
    with_no_word,
)


class Once:
    """Batches that come when they are asked for, and by no other way."""

    def __init__(self, batches: list[dict[str, torch.Tensor]]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        return iter(self._batches)


class Halved(torch.nn.Module):
    """A model whose weights are kept as bfloat16; it computes in float32, and so come its logits."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner.bfloat16()

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        weights = {name: weight.float() for name, weight in self.inner.named_parameters()}
        logits: torch.Tensor = torch.func.functional_call(self.inner, weights, (input_ids, attention_mask))
        return logits


KINDS: tuple[Callable[[Any], Iterable[Any]], ...] = (iter, list, Once)


def evaluated(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """The learner's evaluations, one after the other in the same processes: a list for each rank."""
    return on_ranks("evaluated_rank", len(cases[0]["rows"]), cases=cases)


def evaluated_rank(rank: int, world_size: int, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [_evaluated(rank, number, **case) for number, case in enumerate(cases)]


def _evaluated(
    rank: int, number: int, seed: int, rows: list[list[int]], training: bool, with_gradients: bool, kind: str
) -> dict[str, Any]:
    """Of as many ranks as `rows` has; a rank may have no batch at all."""
    model, of_ranks = _model_and_shares(seed, rows, kind)
    batches = of_ranks[rank]
    given = [as_it_is(batch) for batch in batches]
    copies = [{name: tensor.clone() for name, tensor in batch.items()} for batch in batches]
    model.train(training)
    found: dict[str, Any] = {"num_training": 0, "num_recorded": 0, "num_forwards": 0}

    def note(module: torch.nn.Module, _: Any, __: Any, logits: Any) -> None:
        found["num_forwards"] += 1
        found["num_training"] += module.training
        note_recorded(module, _, __, logits)

    def note_recorded(_: torch.nn.Module, __: Any, ___: Any, logits: Any) -> None:
        found["num_recorded"] += isinstance(logits, torch.Tensor) and logits.requires_grad

    watch = Watch(model)
    for name, weight in model.named_parameters():
        weight.requires_grad_("position_embedding" not in name)
        weight.grad = torch.ones_like(weight) if weight.requires_grad else None
    as_it_came = _state(model)
    head = (
        getattr(model, "head", None) or model.inner.head
    )  # its logits can be had without a call of the model
    with (
        looking_on(model, note, after=True),
        looking_on(head, note_recorded, after=True),
        torch.set_grad_enabled(with_gradients),
    ):
        before = switches()
        report = learner(model, KINDS[number % len(KINDS)](batches))
        found["left_with_gradients"] = torch.is_grad_enabled()
        found["switches"] = (before, switches())
    found["num_foreign"] = watch.num_foreign(copies)
    found["left_training"] = model.training
    found["parts_left"] = sum(module.training != model.training for module in model.modules())
    found["num_changed"] = sum(old != new for old, new in zip_longest(given, map(as_it_is, batches)))
    found["model_changed"] = [
        name for name, (was, now) in _both(as_it_came, _state(model)).items() if was != now
    ]
    found["again"] = _again(model.train(training), copies, with_gradients)
    types = (
        {str(key): type(value).__name__ for key, value in report.items()} if isinstance(report, dict) else {}
    )
    found["types"] = types
    return (
        found
        | watch.report()
        | {"first": _as_text(report)}
        | {"type": type(report).__name__, "report": numbers(report) if types else {}}
    )


def _again(model: torch.nn.Module, batches: list[dict[str, torch.Tensor]], with_gradients: bool) -> str:
    """What a second evaluation of the same model on the same batches gives, as it reads."""
    with torch.set_grad_enabled(with_gradients):
        report = learner(model, iter(batches))
    return _as_text(report)


def _as_text(report: Any) -> str:
    return repr(sorted(numbers(report).items())) if isinstance(report, dict) else ""


def _state(model: torch.nn.Module) -> dict[str, Any]:
    """What an evaluation leaves as it is, by the names that a reason gives it."""
    parameters = list(model.parameters())
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    return {
        "weights": as_it_is(model.state_dict()),
        "`requires_grad` of parameters": [p.requires_grad for p in parameters],
        "gradients": as_it_is([p.grad for p in parameters]),
        "hooks": hooks,
    }


def _both(old: dict[str, Any], new: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (value, new[name]) for name, value in old.items()}


def _model_and_shares(
    seed: int, rows: list[list[int]], kind: str
) -> tuple[Any, list[list[dict[str, torch.Tensor]]]]:
    """Labels of which the model is right about a half, a third and a quarter on ranks 0, 1 and 2.

    A `kind` of model is "loud", with losses of 50 and all logits so large that a sigmoid of each is 1 or next to 0,
    "sick", with none for one row of rank 0's second batch, or "halved", with weights in bfloat16.
    """
    model: Any = small_model(seed, dropout=0.5)
    of_ranks = shares(seed, rows)
    _hit_all_classes(model.eval(), [batch for batches in of_ranks for batch in batches])
    if kind == "loud":
        make_loud(model)
        model.head.register_forward_hook(lambda _, inputs, logits: logits + 25.0)
    elif kind == "sick":
        make_sick(model)
        of_ranks[0][1] = with_no_word(of_ranks[0][1])
    elif kind == "halved":
        model = Halved(model)
    model.eval()
    with torch.no_grad():
        for rank, batches in enumerate(of_ranks):
            for batch in batches:
                found = model(batch["input_ids"], batch["attention_mask"]).argmax(-1)
                places = torch.arange(len(found))
                hits = (places + rank) % (2 + rank) == 0
                batch["labels"] = torch.where(hits, found, (found + 1 + places // 2 % 4) % 5)
    return model, of_ranks


def _hit_all_classes(model: Any, batches: list[dict[str, torch.Tensor]]) -> None:
    """No class is ahead in all texts, as one of a fresh model would be."""
    with torch.no_grad():
        logits = torch.cat([model(batch["input_ids"], batch["attention_mask"]) for batch in batches])
        model.head.bias -= logits.mean(0)


def evaluated_alone(seed: int, rows: list[list[int]], kind: str) -> dict[str, Any]:
    """The same over all samples in one process, and what mistakes give."""
    model, of_ranks = _model_and_shares(seed, rows, kind)
    losses, corrects, sizes, batch_means = [], [], [], []
    large = {"sum_of_others": 0.0, "number": 0}
    with torch.no_grad():
        for batches in of_ranks:
            for batch in batches:
                each = loss_of(model, batch, "none")
                large["sum_of_others"] += float(each[each < LARGE].sum())
                large["number"] += int((each >= LARGE).sum())
            losses.append(sum(float(loss_of(model, batch, "sum")) for batch in batches))
            batch_means += [float(loss_of(model, batch)) for batch in batches]
            right = [model(b["input_ids"], b["attention_mask"]).argmax(-1) == b["labels"] for b in batches]
            corrects.append(sum(int(found.sum()) for found in right))
            sizes.append(sum(len(batch["labels"]) for batch in batches))
    own = [
        {"loss": loss / size, "accuracy": correct / size, "num_samples": size}
        for loss, correct, size in zip(losses, corrects, sizes, strict=True)
        if size
    ]
    return {
        "right": {
            "loss": sum(losses) / sum(sizes),
            "accuracy": sum(corrects) / sum(sizes),
            "num_samples": sum(sizes),
        },
        "own": own,
        "large": large,
        "mean_of_rank_means": {key: sum(one[key] for one in own) / len(own) for key in ("loss", "accuracy")},
        "mean_of_batch_means": {"loss": sum(batch_means) / len(batch_means)},
        "sums": {"loss": sum(losses), "accuracy": sum(corrects)},
    }
