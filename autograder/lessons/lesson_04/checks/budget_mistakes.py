"""What a loop of 4.4 did with one run, and the mistakes that choose or report another validation than the best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

_EXACT = 1e-12  # relative


@dataclass(frozen=True)
class Run:
    """What the loop did with one run, and what a worker of ours found of it."""

    rate: float
    num_steps: int
    max_steps: int
    report: dict[str, float]
    seen: list[dict[str, float]]
    weights_at: int
    parameters_at: int
    nearly_at: int
    again: float
    above_the_best: float

    @property
    def best(self) -> dict[str, float]:
        return min(self.seen, key=lambda at: (math.isnan(at["loss"]), at["loss"]))

    @property
    def broken(self) -> set[float]:
        """Steps whose validation said NaN."""
        return {at["step"] for at in self.seen if math.isnan(at["loss"])}

    @property
    def is_kept(self) -> bool:
        return self.weights_at == self.best["step"]

    def reports(self, name: str, value: float) -> bool:
        is_same = math.isclose(self.report[name], value, rel_tol=_EXACT)
        return is_same or (math.isnan(self.report[name]) and math.isnan(value))


def _steps(seen: list[dict[str, float]]) -> list[float]:
    return [at["step"] for at in seen]


def _of_most(seen: list[dict[str, float]], name: str) -> set[float]:
    most = max((at[name] for at in seen if not math.isnan(at[name])), default=math.nan)
    return {at["step"] for at in seen if at[name] == most}


def _below_the_one_before(run: Run) -> set[float]:
    """The last validation that was better than the one before it."""
    seen = run.seen
    found = [now["step"] for before, now in itertools.pairwise(seen) if now["loss"] < before["loss"]]
    return {found[-1] if found else seen[0]["step"]}


def _once_the_best(run: Run) -> set[float]:
    return {
        at["step"]
        for number, at in enumerate(run.seen)
        if not any(b["loss"] < at["loss"] for b in run.seen[:number])
    }


def _since_nan(run: Run) -> set[float]:
    """The lowest since the last NaN, or that NaN: no comparison tells that it is no best."""
    kept = run.seen[0]
    for at in run.seen[1:]:
        kept = kept if at["loss"] >= kept["loss"] else at
    return {kept["step"]}


Kept = Callable[[Run], set[float]]
CHOSEN: dict[str, tuple[str, Kept]] = {
    "last": (
        "the last weights, not the best: nothing is put back at the end, or the kept `state_dict()` was "
        "no copy and went on training",
        lambda run: {run.num_steps, _steps(run.seen)[-1]},
    ),
    "NaN": (
        "a loss that is NaN becomes the best: it stays it, or hides the one before, for no comparison is True",
        _since_nan,
    ),
    "worst": (
        "`mode` is inverted: the worst validation is taken for the best",
        lambda run: _of_most(run.seen, "loss"),
    ),
    "train": (
        "the best is chosen on the training loss, which goes on falling when the model learns by heart, or "
        "the last is taken for it",
        lambda run: {min(run.seen, key=lambda at: at["train_loss"])["step"]},
    ),
    "accuracy": (
        "the best is chosen on the accuracy; the loss is asked for",
        lambda run: _of_most(run.seen, "accuracy"),
    ),
    "before": (
        "each validation is compared with the one before it, not with the best of all",
        _below_the_one_before,
    ),
    "once": (
        "a lower loss came later and was not kept: a margin such as `min_delta` decides, or losses that are rounded, "
        "as to float32; or the best is not updated",
        _once_the_best,
    ),
    "first": (
        "the first validation is left out, as a warm-up: it may be the best",
        lambda run: {min(run.seen[1:] or run.seen, key=lambda at: at["loss"])["step"]},
    ),
}
REPORTED: dict[str, tuple[str, Callable[[Run], dict[str, float]]]] = {
    "last": (
        "the report is of another validation than the weights: of the last, not the best",
        lambda run: {"best_step": run.seen[-1]["step"], "loss": run.seen[-1]["loss"]},
    ),
    "again": (
        "the weights are validated once more at the end: that looks at another part of the validation set",
        lambda run: {"best_step": run.num_steps, "loss": run.again},
    ),
    "train": (
        "the training loss is reported, not that of the validation",
        lambda run: {"loss": run.best["train_loss"]},
    ),
    "number": (
        "validations are counted, not steps",
        lambda run: {"best_step": run.seen.index(run.best) + 1},
    ),
    "number from 0": (
        "validations are counted, not steps",
        lambda run: {"best_step": run.seen.index(run.best)},
    ),
}
