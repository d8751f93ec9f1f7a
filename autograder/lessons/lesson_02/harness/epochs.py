"""Harness of 2.4: an epoch in the precision that is asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_counting import counted
from autograder.lessons.checking.harness_shared import in_groups, learner, numbers, switches, weights_of
from autograder.lessons.lesson_02.harness.handed import Watched, kinds_of, no_such_label
from autograder.lessons.lesson_02.harness.shared import (
    VOCABULARY,
    DeepClassifier,
    Recorder,
    Stumble,
    beside_a_gpu,
    deep_model,
    dtypes_of,
    full_batch,
    leave_gradients,
    ragged_batch,
    stumble,
    uncountable,
)

EPOCH_WIDTH = 16  # of each batch of an epoch that is counted
ROWS, WIDTH, D_MODEL = 16, 64, 256  # of a timed step: wide enough for 16-bit units to show


def work_of_a_row(seed: int) -> dict[str, int]:
    """FLOPs by dtype of a plain step on one text, forward and backward: those of an epoch go by its rows."""
    model, rng = deep_model(seed), np.random.default_rng(seed)
    batch = ragged_batch(rng, 1, EPOCH_WIDTH)
    with counted(model) as counts:
        loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        loss.backward()
    return counts.flops


def _uneven_batches(
    model: DeepClassifier, rng: np.random.Generator, rows: list[int]
) -> list[dict[str, torch.Tensor]]:
    """Likely labels, but for a short last batch of unlikely ones: a mean of batch means is 4 % too high or more."""
    batches = [ragged_batch(rng, number, EPOCH_WIDTH) for number in rows]
    for batch in batches:
        with torch.no_grad():
            logits = model(batch["input_ids"], batch["attention_mask"])
        batch["labels"] = logits.argmin(-1) if batch is batches[-1] else logits.argmax(-1)
    return batches


def epochs(cases: list[dict[str, Any]], is_counted: bool = True) -> dict[str, Any]:
    """Epochs of the learner's loop in one process: for each case one after the other on a small model of its own.

    Without `is_counted` nothing is counted, and they take half the time.
    """
    set_before = switches()
    try:
        found = [epoch for case in cases for epoch in _epochs_of(**case, is_counted=is_counted)]
        return {"uncountable": "", "epochs": found, "set_before": set_before, "set_after": switches()}
    except RuntimeError as error:
        if not uncountable(error):
            raise
        return {"uncountable": str(error)}


def _epochs_of(
    seed: int,
    rows: list[int],
    precisions: list[str],
    max_norm: float | None,
    is_in_groups: bool,
    is_sure: bool,
    is_counted: bool,
) -> list[dict[str, Any]]:
    """Epochs in these precisions on one model: weights before and after, report, and what was counted.

    Without `max_norm`, that of the signature. In groups, each has settings of its own, and the batches are a list.
    """
    rng = np.random.default_rng(seed)
    model = deep_model(seed)
    with torch.no_grad():
        model.head.weight.mul_(3.0)  # else all labels are about as likely
        model.head.bias[0] += 25.0 * is_sure  # another label costs 20 and more
    groups: Any = in_groups(model) if is_in_groups else list(model.parameters())
    if is_in_groups:
        groups[0] |= {"weight_decay": 1e-4, "lr": 0.03}
    optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.5 * is_in_groups)
    recorder, handed = Recorder(model, optimizer), Watched(model, optimizer)
    batches = _uneven_batches(model, rng, rows)
    seen: set[tuple[bool, str]] = set()

    def note(called: torch.nn.Module, _: Any) -> None:
        is_in_training = all(part.training for part in called.modules())  # of a copy, where one is called
        seen.add((is_in_training, torch.get_float32_matmul_precision()))

    model.register_forward_pre_hook(note)
    found = []
    for precision in precisions:
        leave_gradients(model, 0.1)
        model.train(is_in_groups)
        model.blocks[-1].eval()  # as an evaluation before it may have left it, or a part of it
        seen.clear()
        handed.changed.clear()
        before, num_before = weights_of(model), len(recorder.gradients)
        given: tuple[Any, ...] = (model, batches if is_in_groups else iter(batches), optimizer, precision)
        given += () if max_norm is None else (max_norm,)
        counts: list[Any] = []

        def watched(*arguments: Any, counts: list[Any] = counts) -> Any:
            with counted(model, operators=is_counted) as found:
                counts.append(found)
                return learner(*arguments)

        report = handed.call(watched, *given, batches=batches)
        [count] = counts
        found.append(
            {
                "before": before,
                "weights": weights_of(model).float(),
                "report": numbers(report),
                "kinds": kinds_of(report),
                "changed": sorted(handed.changed),
                "rounded": recorder.rounded[num_before:],
                "norms": [_norm_of(used) for used in recorder.gradients[num_before:]],
                "flops": count.flops,
                "forwards": count.num_forwards,
                "steps": count.num_optimizer_steps,
                "syncs": count.num_syncs,
                "unwatched": count.num_unwatched,
                "weight_dtypes": sorted(recorder.weight_dtypes | set(dtypes_of(model))),
                "is_open_at_step": recorder.autocast_at_step,
                "train_mode": all(is_in_training for is_in_training, _ in seen),
                "matmul_precisions": sorted({matmul for _, matmul in seen}),
            }
        )
    return found


def _norm_of(gradients: dict[str, torch.Tensor]) -> float:
    return float(torch.linalg.vector_norm(torch.cat(list(gradients.values())).double()))


def broken_epochs(seed: int, rows: list[int], at: int) -> dict[str, Any]:
    """Epochs of which batch `at` has a NaN in one of its words; in whose second forward the model raises, or whose
    batches do, or the loss.

    Who raises an error at the NaN has said it as loudly: then there is no report.
    """
    rng, model = np.random.default_rng(seed), deep_model(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = [ragged_batch(rng, number, 8) for number in rows]
    for number, batch in enumerate(batches):
        batch["input_ids"] = batch["input_ids"].clamp(max=VOCABULARY - 2)
        if number == at:
            batch["input_ids"][0, 0] = VOCABULARY - 1
    good = batches[:at] + batches[at + 1 :]
    stumbled = stumble(model, lambda: learner(model, iter(good), optimizer, "bf16-mixed"), at=2)
    is_loss_of_batches_told = _is_told(lambda: learner(model, _breaking(good), optimizer, "32-true"))
    no_label = no_such_label(good[0], lambda broken: learner(model, iter([broken]), optimizer, "bf16-mixed"))
    with torch.no_grad():
        model.embedding.weight[-1] = float("nan")
    reports = []
    for precision in ("32-true", "bf16-mixed"):
        fresh = deep_model(seed)
        fresh.load_state_dict(model.state_dict())
        try:
            steps = torch.optim.SGD(fresh.parameters(), lr=0.05)
            reports.append(numbers(learner(fresh, iter(batches), steps, precision)))
        except (RuntimeError, ValueError, ArithmeticError):
            continue
    return {
        "stumbled": stumbled,
        "no_label": no_label,
        "is_told_by_batches": is_loss_of_batches_told,
        "reports": reports,
    }


def _breaking(batches: list[dict[str, torch.Tensor]]) -> Iterator[dict[str, torch.Tensor]]:
    """Two batches, and then the error of a file that cannot be read."""
    yield from batches[:2]
    raise Stumble("the batches raised this error")


def _is_told(call: Callable[[], Any]) -> bool:
    try:
        call()
    except Stumble:
        return True
    return False


def long_epochs(seed: int, num_batches: int) -> dict[str, dict[str, Any]]:
    """An epoch of so many batches of one word, on a model that is hardly one, in either precision, and its counts."""
    found = {}
    for precision in ("32-true", "bf16-mixed"):
        rng, model = np.random.default_rng(seed), deep_model(seed, d_model=4, num_blocks=0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        few, before, modes = [full_batch(rng, 1, 1) for _ in range(3)], weights_of(model), set[bool]()
        model.eval().register_forward_pre_hook(
            lambda model, _, modes=modes: modes.add(all(part.training for part in model.modules()))
        )
        batches = (few[number % len(few)] for number in range(num_batches))
        with counted(model):
            report = learner(model, batches, optimizer, precision)
        found[precision] = {
            "train_mode": modes == {True},
            "before": before,
            "weights": weights_of(model),
            "report": numbers(report),
        }
    return found


def epoch_beside_a_gpu(source: str, entry: str, seed: int) -> dict[str, Any]:
    """An epoch in bf16 of a model on the CPU, on a machine that seems to have a GPU."""

    def share(train: Any) -> float:
        rng, model = np.random.default_rng(seed), deep_model(seed)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with counted(model) as counts:
            train(model, iter([full_batch(rng, 4, 8) for _ in range(2)]), optimizer, "bf16-mixed")
        return counts.share_of_flops("bfloat16")

    return beside_a_gpu(source, entry, share)


@functools.cache
def _wide() -> tuple[DeepClassifier, dict[str, torch.Tensor]]:
    """The model of the timed steps, made once, and its first weights."""
    model = deep_model(0, d_model=D_MODEL)
    return model, {name: value.clone() for name, value in model.state_dict().items()}


def brief_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """What `epoch_segment` gives, where nobody asks the clock: a tenth of the texts."""
    return epoch_segment(seed, num_steps, rows=4, width=20)


def counted_segment(seed: int, num_steps: int, is_brief: bool) -> dict[str, Any]:
    """What is computed in such a segment, and how far each weight moves: one that is timed is not looked into."""
    model, first = _wide()
    with counted(model) as counts:
        epoch_segment(seed, num_steps, **({"rows": 4, "width": 20} if is_brief else {}))
    moved = {name: float((value - first[name]).norm()) for name, value in model.state_dict().items()}
    return {"flops": counts.flops, "moved": moved}


def epoch_segment(seed: int, num_steps: int, rows: int = ROWS, width: int = WIDTH) -> dict[str, Any]:
    """An epoch of that many batches in bf16; the baseline takes no notice and computes in fp32."""
    model, first = _wide()
    model.load_state_dict(first)
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    batches = [full_batch(rng, rows, width) for _ in range(num_steps)]
    report = learner(model, iter(batches), optimizer, "bf16-mixed", 1.0)
    probe = full_batch(rng, 4, 8)
    with torch.no_grad():
        logits = model(probe["input_ids"], probe["attention_mask"])
    return {"report": numbers(report), "logits": logits}
