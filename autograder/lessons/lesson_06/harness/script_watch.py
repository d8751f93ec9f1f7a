"""Harness of 6.3: what is watched of a rank that runs the script."""

from __future__ import annotations

import builtins
import hashlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import torch

from autograder.lessons.checking.harness_counting import see
from autograder.lessons.lesson_06.harness.shared import NO_WORD, Watch, below
from course_lib.models import TextClassifier
from course_lib.models.transformers import Dropout


def is_half_asleep(model: torch.nn.Module, dropout: float) -> bool:
    """Whether a part of a model in training mode is in evaluation mode, or drops another share than the job says."""
    return not all(
        module.training and (not isinstance(module, Dropout) or module.p == dropout)
        for module in model.modules()
    )


class Learnt:
    """Tells of a rank's rows: "rows" of forwards that a gradient can come back through, and of these "learnt", where
    one has come in training mode. What runs under `no_grad` is for show, and so is what no loss hangs on."""

    def __init__(self, rank: int) -> None:
        self.rank, self.num_rows, self.num_learnt = rank, 0, 0

    def note(self, model: torch.nn.Module, logits: Any) -> None:
        if not (isinstance(logits, torch.Tensor) and logits.requires_grad):
            return
        self.num_rows += len(logits)
        see("rows", self.rank, len(logits))
        if model.training:
            values = logits.detach()
            logits.register_hook(lambda slope: self._note_slope(slope, values))

    def _note_slope(self, slope: torch.Tensor, logits: torch.Tensor) -> None:
        # Where one class lies so far above all others that nothing of them is left in float32, a right row may be
        # learnt without a slope.
        is_decided = (torch.softmax(logits.float(), dim=-1) == 1).flatten(1).any(dim=1)
        number = int(((slope.detach() != 0).flatten(1).any(dim=1) | is_decided).sum())
        self.num_learnt += number
        see("learnt", self.rank, number)


def random_state() -> str:
    return hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()


def watch_forwards(kind: str) -> Watch:
    """Watch every classifier that the cell makes, and make it loud or sick. Nothing is added to the model itself: it
    may be pickled or copied."""
    watch, forward = Watch(), TextClassifier.forward

    def odd_forward(self: Any, *arguments: Any, **named: Any) -> torch.Tensor:
        watch.note(self, arguments, named)
        logits = forward(self, *arguments, **named)
        if kind == "loud":
            return logits + below()
        ids = named["input_ids"] if "input_ids" in named else arguments[0]
        is_sick = (ids == NO_WORD).any(dim=-1, keepdim=True)
        return logits * torch.where(is_sick, float("nan"), 1.0) if kind == "sick" else logits

    TextClassifier.forward = odd_forward  # type: ignore[method-assign]
    return watch


def watch_files(folder: Path, saved: list[str]) -> None:
    """Every file that is opened in the folder to be written."""
    open_any = io.open

    def watched_open(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if isinstance(file, str | os.PathLike) and set(mode) & set("wax+") and Path(file).parent == folder:
            saved.append(str(file))
        return open_any(file, mode, *arguments, **options)

    builtins.open = io.open = watched_open


def watch_devices() -> list[Any]:
    """The local ranks that the cell will ask a device for: without a GPU nothing else tells what it would take."""
    cell, asked_for = sys.modules["__learner__"], []
    choose = cell.choose_device

    def watched_choice(*arguments: Any, **named: Any) -> Any:
        asked_for.append(arguments[0] if arguments else named.get("local_rank"))
        return choose(*arguments, **named)

    cell.choose_device = watched_choice  # type: ignore[attr-defined]
    return asked_for
