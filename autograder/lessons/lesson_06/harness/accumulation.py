"""Harness of 6.4: one update from several micro-batches on ranks whose model is wrapped in DDP."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from autograder.lessons.checking.harness_counting import counted, see
from autograder.lessons.checking.harness_shared import (
    as_it_is,
    in_groups,
    learner,
    small_model,
    switches,
    weights_of,
)
from autograder.lessons.lesson_06.harness.shared import (
    gradients_of,
    loss_of,
    loss_without_large,
    make_loud,
    make_sick,
    on_ranks,
    shares,
    with_no_word,
)
from autograder.lessons.lesson_06.harness.watches import ModeWatch, frozen_of

NUM_WARM_UP = 2  # the first backward finds the order in which gradients come, and cuts the buckets anew
NUM_LABELS = 5
REPEATED = 2  # the step whose first micro-batch is its last once more: the same dict


class AllReduces(TorchDispatchMode):
    """Tells of messages of any tensor, and nothing else: `count_events` would take as long as the training.

    Of each the number of the call, whether it carries something, as a barrier does not, of how many elements it is
    where no backward runs, and of how many anywhere.
    """

    def __init__(self, rank: int, call: int) -> None:
        super().__init__()
        self.rank, self.call = rank, call

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "c10d":
            is_outside = torch._C._current_graph_task_id() < 0
            sent = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            num_elements = sum(tensor.numel() for tensor in sent)
            is_message = "barrier" not in func.name()
            see(f"rank {self.rank}", self.call, is_message, is_outside * num_elements, num_elements)
        return func(*args, **(kwargs or {}))


class BadBatch(IndexError, KeyError, ValueError, TypeError, RuntimeError, ArithmeticError):
    """What the model raises in a micro-batch that cannot be computed: of a kind that is often caught."""


class LateBatch(BadBatch):
    """The same in the forward of the last micro-batch; the one above comes in the backward of an earlier one."""


class Interrupted(KeyboardInterrupt):
    """What comes when somebody stops a cell: of a kind that `except Exception` does not see."""


# The last one is of the loss; each comes before a step of its own.
ERRORS = (BadBatch, LateBatch, Interrupted, IndexError)
IN_EVALUATION_MODE = 1  # the step for which the model comes in this mode, but for one part


def accumulated(seed: int, rows: list[list[list[int]]], optimizer: dict[str, Any]) -> dict[str, Any]:
    """The learner's steps, three after an error, the last without a loss: rows[step][rank][micro-batch]."""
    return on_ranks("accumulated_rank", len(rows[0]), seed=seed, rows=rows, optimizer=optimizer)


def accumulated_rank(
    rank: int, world_size: int, seed: int, rows: list[list[list[int]]], optimizer: dict[str, Any]
) -> dict[str, Any]:
    steps = [step[rank] for step in _micro_batches(seed, rows)]
    model = _odd_model(seed)
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.01)
    for _ in range(NUM_WARM_UP):  # these gradients are left over, as from an earlier pass
        with counted(ddp, operators=False, of=f"rank {rank}"):
            loss_of(ddp, steps[0][0]).backward()
    sgd = _two_rates(model, optimizer)
    apart = torch.nn.Parameter(torch.ones(3))  # learned elsewhere: the optimizer's, and not the model's
    sgd.param_groups[0]["params"].append(apart)
    rates: list[float] = []  # of the groups, in the optimizer's steps of one call
    sgd.register_step_pre_hook(lambda *_: rates.extend(group["lr"] for group in sgd.param_groups))
    found: dict[str, Any] = {"steps": [], "errors": []}
    frozen = as_it_is(frozen_of(model))
    before, watch = switches(), ModeWatch(model)
    for number, micro_batches in enumerate(steps):
        late = number - (len(steps) - 1 - len(ERRORS))
        if 0 <= late < len(ERRORS):
            found["errors"].append(_after_an_error(ddp, sgd, micro_batches, seed, ERRORS[late]))
        rates.clear()
        is_evaluating = number == IN_EVALUATION_MODE
        ddp.train(not is_evaluating)
        model.final_norm.train(is_evaluating)
        watch.begin_anew(model)
        as_given = [as_it_is(batch) for batch in micro_batches]
        apart.grad = torch.ones_like(apart)
        with (
            counted(model, operators=False, of=f"rank {rank}"),
            counted(ddp, operators=False, of=f"rank {rank}"),
            AllReduces(rank, number),
        ):
            learner(ddp, given := (tuple if number % 2 else list)(micro_batches), sgd)
        found["steps"].append(
            {
                "has_own_rate": rates
                not in ([], [group["lr"] for group in _two_rates(model, optimizer).param_groups]),
                "weights": weights_of(model).clone(),
                "is_apart_dropped": apart.grad is None or not apart.grad.any(),
                "is_nan": bool(model.head.bias.isnan().all()),
                "modes_left": watch.are_changed(model) or ddp.training == is_evaluating,
                "in_evaluation_mode": is_evaluating,
                "frozen_moved": as_it_is(frozen_of(model)) != frozen,
                "is_changed": as_given != [as_it_is(batch) for batch in given],
                "switches": (before, switches()),
            }
            | watch.report()
        )
        if found["steps"][-1]["is_changed"]:
            break  # with fewer micro-batches the ranks might wait for each other
        torch.set_grad_enabled(True)  # the next call would say less of what this one has left switched off
    return found


def _micro_batches(seed: int, rows: list[list[list[int]]]) -> list[list[list[dict[str, torch.Tensor]]]]:
    """Of each step and rank."""
    steps = [shares(seed + number, step) for number, step in enumerate(rows)]
    for batches in steps[REPEATED]:
        batches[0] = batches[-1]
    steps[-1][-1][0] = with_no_word(steps[-1][-1][0])
    return steps


def _odd_model(seed: int) -> Any:
    model = small_model(seed, num_layers=2)
    make_loud(model)
    make_sick(model)
    model.final_norm.eval()  # as a frozen part is often left
    model.position_embedding.weight.requires_grad_(False)
    model.position_embedding.weight.grad = torch.ones_like(model.position_embedding.weight)
    return model


def _two_rates(model: Any, optimizer: dict[str, Any]) -> torch.optim.SGD:
    groups = in_groups(model)
    groups[1]["lr"] = optimizer["lr"] / 2
    return torch.optim.SGD(groups, **optimizer)


def _after_an_error(
    ddp: Any,
    optimizer: Any,
    micro_batches: list[dict[str, torch.Tensor]],
    seed: int,
    kind: type[BaseException],
) -> dict[str, Any]:
    """What comes of a micro-batch that cannot be computed, and what a plain backward does after it."""
    place = int(np.random.default_rng(seed).integers(len(micro_batches) - 1))
    if kind is LateBatch:
        place = len(micro_batches) - 1
    broken, in_the_loss = list(micro_batches), kind is IndexError
    before, modes = weights_of(ddp.module).clone(), [module.training for module in ddp.modules()]
    if in_the_loss:
        labels = broken[-1]["labels"]
        broken[-1] = dict(broken[-1], labels=torch.full_like(labels, NUM_LABELS + 1))
    bad_ids, bad_batch = broken[place]["input_ids"], kind("a micro-batch that cannot be computed")

    def refuse(_: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        ids = inputs[0] if inputs else named["input_ids"]
        if not in_the_loss and ids.shape == bad_ids.shape and torch.equal(ids, bad_ids):
            raise bad_batch

    def refuse_later(_: Any, inputs: tuple[Any, ...], named: dict[str, Any], logits: torch.Tensor) -> None:
        if logits.requires_grad:
            logits.register_hook(lambda _: refuse(_, inputs, named))

    hook = (
        ddp.module.register_forward_hook(refuse_later, with_kwargs=True)
        if kind is BadBatch
        else ddp.module.register_forward_pre_hook(refuse, with_kwargs=True)
    )
    found: dict[str, Any] = {"raised": "", "said": "", "after": "", "gradients": torch.zeros(0)}
    found["right"], found["is_its_own"] = kind.__name__, True
    try:
        learner(ddp, broken, optimizer)
    except (Exception, KeyboardInterrupt) as error:
        found["raised"], found["said"] = type(error).__name__, " ".join(str(error).split())[:200]
        found["is_its_own"] = in_the_loss or error is bad_batch
        if in_the_loss and "out of bounds" in str(
            error
        ):  # as torch says it, whichever function works out the loss
            found["raised"] = found["right"]
    hook.remove()
    found["modes_left"] = [module.training for module in ddp.modules()] != modes
    found["kept"] = float((weights_of(ddp.module) - before).abs().max())
    ddp.zero_grad()
    try:
        loss_of(ddp, micro_batches[0]).backward()
        found["gradients"] = gradients_of(ddp.module).clone()
    except RuntimeError as error:
        found["after"] = " ".join(str(error).split())[:200]
    return found


def accumulated_alone(
    seed: int, rows: list[list[list[int]]], optimizer: dict[str, Any], mistake: str = "none"
) -> dict[str, Any]:
    """One process that takes all micro-batches of all ranks as one batch: weights after each step; plain gradients.

    With a mistake, the weights after the first step alone.
    """
    model = _odd_model(seed)
    sgd = _two_rates(model, optimizer)
    found: dict[str, Any] = {"weights": [], "plain": [], "start": weights_of(model).clone()}
    for parts in _micro_batches(seed, rows):
        found["plain"].append(_plain_gradients(model, [batches[0] for batches in parts]))
        sgd.zero_grad()
        if mistake == "old gradients":
            for weight in model.parameters():
                weight.grad = None if weight.requires_grad else torch.ones_like(weight)
            for _ in range(NUM_WARM_UP):
                for batches in parts:
                    (loss_of(model, batches[0]) / len(parts)).backward()
        _accumulate(model, parts, mistake)
        sgd.step()
        found["weights"].append(weights_of(model).clone())
        if mistake != "none":
            break
    return found


def _plain_gradients(model: Any, batches: list[dict[str, torch.Tensor]]) -> torch.Tensor:
    """As DDP makes them of one batch a rank: the mean of the ranks'."""
    model.zero_grad()
    for batch in batches:
        (loss_of(model, batch) / len(batches)).backward()
    return gradients_of(model).clone()


def _accumulate(model: Any, parts: list[list[dict[str, torch.Tensor]]], mistake: str) -> None:
    num_samples = sum(len(batch["labels"]) for batches in parts for batch in batches)
    for batches in parts:
        num_own, num_micro = sum(len(batch["labels"]) for batch in batches), len(batches)
        for batch in batches:
            size = len(batch["labels"])
            share = {
                "not divided by the ranks": size / num_samples / len(parts),
                "mean of micro-batch means": 1 / num_micro / len(parts),
                "mean of rank means": size / num_own / len(parts),
                "sum of rank means": size / num_own,
                "sum of micro-batch means": 1 / len(parts),
                "a sum over all samples": float(size),
                "a sum over all samples by ranks": size / len(parts),
                "the last micro-batch alone": size / num_samples * (batch is batches[-1]),
            }.get(mistake, size / num_samples)
            loss = (loss_without_large if mistake == "large losses left out" else loss_of)(model, batch)
            (share * loss).backward()
