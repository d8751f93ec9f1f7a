"""What an update costs: a sum over items and their number, by cross-entropy or the caller's function; its gradients.

An item is what is counted: a sample (classification) or a token whose label is not -100 (token classification,
language modelling, where labels are the ids shifted by one). Sums and counts, never means of means: uneven
micro-batches and ranks then weigh what their items weigh.
"""

from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.base import UserError
from course_lib.data import IGNORE as IGNORE
from course_lib.distributed import no_sync, sum_across_ranks, unwrap, world_size
from course_lib.measuring import stage
from course_lib.training.precision import Precision
from course_lib.training.window import MicroBatches

Loss = Callable[[nn.Module, Any], tuple[Tensor, Tensor | float]]
"""`loss(model, batch)` gives the sum of the loss over the batch's items, a 0-d tensor, and the number of items.

It calls `model` itself, not a method of it, for DDP works by that call. `batch` is on the model's device."""

GIVE_ONE = "give loss=, a function of model and batch that returns (sum over items, number of items)"
_LABELS = ("labels", "y")
_SMALLER_INTEGERS = (torch.int32, torch.int16, torch.int8, torch.uint8)


def loss_sum(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Sum of cross-entropy over items, in fp32: `logits` [B, C] with `labels` int64 [B], or [B, T, C] with
    [B, T]. Items labelled -100 count nothing."""
    return F.cross_entropy(
        logits.reshape(-1, logits.shape[-1]).float(),
        labels.reshape(-1),
        ignore_index=IGNORE,
        label_smoothing=label_smoothing,
        reduction="sum",
    )


def num_items(labels: Tensor) -> Tensor:
    """How many labels are not -100, as a 0-d int64 tensor: reading it would be a sync."""
    return (labels != IGNORE).sum()


class Example(NamedTuple):
    """A batch as the default loss sees it."""

    inputs: tuple[Any, ...]
    """What the model is given: one input, or `input_ids` and `attention_mask`."""
    labels: Tensor
    others: dict[str, Any]
    """What else a text brings, such as `token_type_ids`: for a model that asks for it by name."""


def as_example(batch: Any) -> Example:
    """Inputs and labels of `(x, y)`, of a mapping of one input and `labels` or `y`, or of one with `input_ids`,
    `attention_mask` and such labels. Raises UserError for another batch."""
    inputs: tuple[Any, ...] = ()
    labels: Any = None
    others: dict[str, Any] = {}
    if isinstance(batch, Mapping):
        label = next((name for name in _LABELS if name in batch), None)
        labels = None if label is None else batch[label]
        if "input_ids" in batch and "attention_mask" in batch:
            inputs = batch["input_ids"], batch["attention_mask"]
            if len(batch) > 3:
                known = ("input_ids", "attention_mask", label)
                others = {name: value for name, value in batch.items() if name not in known}
        elif len(batch) == 2:
            inputs = tuple(value for name, value in batch.items() if name != label)
    elif isinstance(batch, list | tuple) and len(batch) == 2:
        inputs, labels = (batch[0],), batch[1]
    if not inputs or not isinstance(labels, Tensor):
        named = f" of {', '.join(map(str, batch))}" if isinstance(batch, Mapping) else ""
        length = f" of {len(batch)}" if isinstance(batch, list | tuple) else named
        raise UserError(
            f"the default loss takes (x, y), or a mapping of one input and labels, "
            f"and got a {type(batch).__name__}{length}: {GIVE_ONE}"
        )
    return Example(inputs, labels.long() if labels.dtype in _SMALLER_INTEGERS else labels, others)


def logits_of(model: nn.Module, example: Example) -> Tensor:
    """The model's logits [..., C] for labels int64 [...]: its output, or `logits` in it, or the first of a tuple.

    Raises UserError when they do not belong together, or the model shifts labels itself.
    """
    inner: Any = unwrap(model)
    inner = getattr(inner, "_orig_mod", inner)  # of torch.compile
    generates = getattr(inner, "can_generate", None)  # Hugging Face's language models have it
    if callable(generates) and generates():
        raise UserError(
            f"{type(inner).__name__} predicts the next token from labels that it shifts itself, "
            f"the default loss takes them as they are: {GIVE_ONE}"
        )
    inputs, labels, others = example
    asked = _parameters(getattr(type(inner), "forward", None)) if len(inputs) == 2 else ()
    named = {name: value for name, value in others.items() if name in asked}
    if named or "attention_mask" in asked[2:]:  # a decoder's second argument may be its cache
        logits = _tensor_in(model(input_ids=inputs[0], attention_mask=inputs[1], **named))
    else:
        logits = _tensor_in(model(*inputs))
    is_class = labels.dtype == torch.int64 and labels.shape == logits.shape[:-1]
    # Of one class nothing can be learnt: elsewhere than in texts it is a number that was meant.
    if not is_class or (logits.shape[-1] < 2 and len(inputs) == 1):
        shapes = [f"{str(part.dtype).removeprefix('torch.')} {list(part.shape)}" for part in (logits, labels)]
        raise UserError(
            f"the default loss is cross-entropy of logits [..., classes] and integer labels [...], "
            f"here are logits {shapes[0]} and labels {shapes[1]}: {GIVE_ONE}"
        )
    return logits


def own_loss(loss: Loss, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
    """What the caller's function says, both as 0-d tensors on one device. Raises UserError for what is no such pair."""
    said = loss(model, batch)
    is_pair = isinstance(said, tuple | list) and len(said) == 2
    if not is_pair or not isinstance(said[0], Tensor) or said[0].ndim:
        shown = f"a tensor {list(said.shape)}" if isinstance(said, Tensor) else f"a {type(said).__name__}"
        raise UserError(
            f"loss= must return (sum over items as a 0-d tensor, number of items), and returned {shown}"
        )
    total, items = said
    if total.dtype in (torch.float16, torch.bfloat16):
        total = total.float()
    if not isinstance(items, Tensor):
        items = torch.full((), items, device=total.device)  # filled there: a copy would be a sync
    return total, items.detach().reshape(()).to(total.device)


def at_least_one(items: Tensor) -> Tensor:
    """A number to divide by: 1 instead of 0, where the sum is 0 as well. 0-d, of any dtype."""
    return items.masked_fill(items == 0, 1) if items.is_floating_point() else items.clamp(min=1)


def cross_entropy_gradients(
    model: nn.Module, batches: MicroBatches, precision: Precision, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Gradients of the default loss; its sum, and its number of items, which the labels tell beforehand."""
    examples = [as_example(micro_batch) for micro_batch in batches]
    items = num_items(examples[0].labels)
    for example in examples[1:]:
        items = items + num_items(example.labels)
    share, total = _share(items), None
    for number, example in enumerate(examples, start=1):
        with no_sync(model, is_last=number == len(examples)):
            with precision.autocast(), stage("forward"):
                cost = loss_sum(logits_of(model, example), example.labels, label_smoothing)
            _backward(cost * share, precision)
        total = cost.detach() if total is None else total + cost.detach()
    assert total is not None
    return total, items


def own_gradients(
    model: nn.Module,
    batches: MicroBatches,
    optimizer: torch.optim.Optimizer,
    precision: Precision,
    loss: Loss,
) -> tuple[Tensor, Tensor]:
    """Gradients of the caller's loss; its sum and its number of items, which each forward tells of its own.

    Of several micro-batches the first stands for all until all are known; then the gradients are put right. A
    divisor of about the right size matters to 16-bit gradients alone; where sizes are equal, it is the right one.
    """
    total = items = share = None
    for number, micro_batch in enumerate(batches, start=1):
        with no_sync(model, is_last=number == len(batches)):
            with precision.autocast(), stage("forward"):
                cost, count = own_loss(loss, model, micro_batch)
            if share is None:
                share = _share(count * len(batches), cost.dtype)
            _backward(cost * share, precision)
        total = cost.detach() if total is None else total + cost.detach()
        items = count if items is None else items + count
    assert total is not None and items is not None and share is not None
    if len(batches) > 1:
        with stage("backward"):
            _scale_gradients(model, optimizer, _share(items, total.dtype) / share)
    return total, items


def _share(items: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """What an item of this process weighs in the update. DDP averages gradients over processes; times their number,
    the average becomes the sum."""
    share = at_least_one(sum_across_ranks(items if dtype is None else items.to(dtype))).reciprocal()
    return share if world_size() == 1 else share * world_size()


def _backward(loss: Tensor, precision: Precision) -> None:
    with stage("backward"), precision.products():
        (loss if precision.scaler is None else precision.scaler.scale(loss)).backward()


def _scale_gradients(model: nn.Module, optimizer: torch.optim.Optimizer, factor: Tensor) -> None:
    """Multiply all gradients, in place: the model's, and those of a loss that learns, too."""
    learning = {parameter for group in optimizer.param_groups for parameter in group["params"]}
    gradients = defaultdict(list)
    for parameter in learning.union(model.parameters()):
        if parameter.grad is not None:
            gradient = parameter.grad.to_local() if hasattr(parameter.grad, "to_local") else parameter.grad
            gradients[gradient.device].append(gradient)
    for device, on_device in gradients.items():
        torch._foreach_mul_(on_device, factor.to(device))


@functools.cache
def _parameters(forward: Any) -> tuple[str, ...]:
    """The names of what a `forward` takes, without `self`; none for one that Python cannot look into."""
    return tuple(inspect.signature(forward).parameters)[1:] if callable(forward) else ()


def _tensor_in(output: Any) -> Tensor:
    found = output
    if isinstance(output, Mapping):
        found = output.get("logits")
    elif not isinstance(output, Tensor):
        found = getattr(output, "logits", output[0] if isinstance(output, list | tuple) and output else None)
    if not isinstance(found, Tensor):
        kind = type(output).__name__
        raise UserError(f"the default loss finds no logits in the model's output, a {kind}: {GIVE_ONE}")
    return found
