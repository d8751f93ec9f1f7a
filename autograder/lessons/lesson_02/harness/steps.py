"""Harness of 2.2 and 2.3: one step in 16 bits, seen from the optimizer."""

from __future__ import annotations

import contextlib
import io
import pickle
import re
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import (
    learner,
    numbers,
    small_batches,
    small_model,
    weights_of,
)
from autograder.lessons.lesson_02.harness.shared import Recorder, deep_model, dtypes_of, full_batch
from course_lib.measuring import count_events

# What torch's GradScaler says when it is used in the wrong order.
_SCALER_SAYS = ("unscale_()", "step()", "FP16 gradients", "inf checks")


class _Run:
    """A model, its optimizer and the learner's trainer around both."""

    def __init__(self, seed: int, options: dict[str, Any]) -> None:
        self.model = small_model(seed)
        # A head this faint sends gradients of about 1e-8 into the body: nothing in fp16, unless they are scaled.
        with torch.no_grad():
            self.model.head.weight.mul_(1e-4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.recorder = Recorder(self.model, self.optimizer)
        self.is_bad = False
        self.model.head.bias.register_hook(lambda g: torch.full_like(g, torch.inf) if self.is_bad else None)
        self.trainer = learner(self.model, self.optimizer, **options)

    def resumed(self, seed: int, options: dict[str, Any]) -> _Run:
        """A new process, as far as it matters: everything is loaded from what was saved."""
        other = _Run(seed + 1, options)
        other.model.load_state_dict(self.model.state_dict())
        other.optimizer.load_state_dict(self.optimizer.state_dict())
        file = io.BytesIO()
        torch.save(self.trainer.state_dict(), file)
        file.seek(0)
        other.trainer.load_state_dict(torch.load(file, weights_only=True))
        return other


def fp16_steps(
    seed: int, num_steps: int, bad_steps: list[int], resume_at: int, options: dict[str, Any]
) -> dict[str, Any]:
    """Steps of the learner's trainer, some with an infinite gradient; one save and resume on the way if asked."""
    run = _Run(seed, options)
    steps: list[dict[str, Any]] = []
    share = 0.0
    for step, batch in enumerate(small_batches(seed, num_steps)):
        if step == resume_at:
            try:
                run = run.resumed(seed, options)
            except pickle.UnpicklingError as error:
                kind = re.search(r"GLOBAL (\S+)", str(error))
                return {"refused": None, "unloadable": kind[1] if kind else "another class", "steps": steps}
        run.is_bad, before, num_before = step in bad_steps, weights_of(run.model), len(run.recorder.gradients)
        try:
            with count_events(run.model) if step == 0 else contextlib.nullcontext() as counts:
                report = run.trainer.train_step(batch)
        except (RuntimeError, ValueError, AssertionError) as error:
            if not any(words in str(error) for words in _SCALER_SAYS):
                raise
            return {"refused": str(error), "step": step}
        share = counts.share_of_flops("float16") if counts else share
        used = run.recorder.gradients[num_before:]
        steps.append(
            {
                "num_steps": len(used),
                "gradients": used[-1] if used else {},
                "is_changed": not torch.equal(before, weights_of(run.model)),
                "dtypes": sorted(set(dtypes_of(run.model)) | run.recorder.weight_dtypes),
                "report": numbers(report),
            }
        )
    return {"refused": None, "steps": steps, "float16_share": share}


def bf16_steps(seed: int, num_steps: int, rows: int, width: int, max_norm: float) -> dict[str, Any]:
    """Steps of the learner's function on one model, with all that can be counted."""
    rng = np.random.default_rng(seed)
    model = deep_model(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    recorder = Recorder(model, optimizer)
    reports, dtypes = [], set[str]()
    with count_events(model) as counts:
        for _ in range(num_steps):
            report = learner(model, full_batch(rng, rows, width), optimizer, max_norm)
            loss = report.get("loss") if isinstance(report, dict) else None
            dtypes |= {str(getattr(loss, "dtype", "float32")).removeprefix("torch.")}
            reports.append(numbers(report))
    return {
        "reports": reports,
        "loss_dtypes": sorted(dtypes),
        "gradients": recorder.gradients,
        "weight_dtypes": sorted(recorder.weight_dtypes | set(dtypes_of(model))),
        "autocast_in_backward": recorder.autocast_in_backward,
        "autocast_at_step": recorder.autocast_at_step,
        "bfloat16_share": counts.share_of_flops("bfloat16"),
        "saved_bytes": counts.peak_saved_bytes,
        "unwatched": counts.num_unwatched,
    }
