"""Wrong solutions of 4.3 and 4.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

_STOPPING = """
import math

@exercise("4.3")
class EarlyStopping:
    def __init__(self, monitor="loss", mode="min", patience=3, min_delta=0.0):
        self.monitor, self.mode, self.patience, self.min_delta = monitor, mode, patience, min_delta
        self.best = self.best_step = None
        self.num_bad = 0

    def update(self, metrics, step):
        value = metrics[self.monitor]
        if self.best is None:
            is_better = not math.isnan(value)
        elif self.mode == "min":
            is_better = value < self.best - self.min_delta
        else:
            is_better = value > self.best + self.min_delta
        if is_better:
            self.best, self.best_step, self.num_bad = value, step, 0
        else:
            self.num_bad += 1
        return self.num_bad >= self.patience

    def state_dict(self):
        return {"best": self.best, "best_step": self.best_step, "num_bad": self.num_bad}

    def load_state_dict(self, state):
        self.best, self.best_step, self.num_bad = state["best"], state["best_step"], state["num_bad"]
"""

_TRAIN = """
import copy

@exercise("4.4")
def train_with_early_stopping(run):
    best, weights, bad = None, None, 0
    while run.num_steps < run.max_steps and bad < 6:
        run.train(10)
        found = run.validate()
        if best is None or found["loss"] < best["loss"]:
            best, weights, bad = found, copy.deepcopy(run.model.state_dict()), 0
        else:
            bad += 1
    run.model.load_state_dict(weights)
    return {"best_step": best["step"], "loss": best["loss"]}
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "4.3": (
        Mutant(
            name="mode inverted",
            source=edited(_STOPPING, ('self.mode == "min"', 'self.mode == "max"')),
            says="`mode` is inverted",
        ),
        Mutant(
            name="mode not used",
            source=edited(_STOPPING, ('self.mode == "min"', "True")),
            says="`mode` is not used",
        ),
        Mutant(
            name="counter not reset",
            source=edited(
                _STOPPING, ("self.best_step, self.num_bad = value, step, 0", "self.best_step = value, step")
            ),
            says="the counter is not reset",
        ),
        Mutant(
            name="an equal value counts",
            source=edited(
                _STOPPING,
                ("value < self.best - self.min_delta", "value <= self.best - self.min_delta"),
                ("value > self.best + self.min_delta", "value >= self.best + self.min_delta"),
            ),
            says="an equal value counts",
        ),
        Mutant(
            name="min_delta not used",
            source=edited(
                _STOPPING,
                ("self.best - self.min_delta", "self.best"),
                ("self.best + self.min_delta", "self.best"),
            ),
            says="`min_delta` is not used",
        ),
        Mutant(
            name="patience off by one",
            source=edited(_STOPPING, ("self.num_bad >= self.patience", "self.num_bad > self.patience")),
            says="stops one validation late",
        ),
        Mutant(
            name="NaN becomes the best",
            source=edited(_STOPPING, ("not math.isnan(value)", "True")),
            says="a NaN becomes the best",
        ),
        Mutant(
            name="counter not in the state",
            source=edited(_STOPPING, (', "num_bad": self.num_bad}', "}"), ('state["num_bad"]', "0")),
            says="the counter of bad validations is not in the state",
        ),
        Mutant(
            name="best not in the state",
            source=edited(_STOPPING, ('{"best": self.best, ', '{"best": None, ')),
            says="the best value, its step or the counter is not in the state",
        ),
        Mutant(
            name="watches the training loss",
            source=edited(_STOPPING, ("metrics[self.monitor]", 'metrics["train_loss"]')),
            says="it watches `train_loss`",
        ),
    ),
    "4.4": (
        Mutant(
            name="best chosen on train loss",
            source=edited(
                _TRAIN, ('found["loss"] < best["loss"]', 'found["train_loss"] < best["train_loss"]')
            ),
            says="chosen on the training loss",
        ),
        Mutant(
            name="final report from the last, not the best",
            source=edited(_TRAIN, ("    run.model.load_state_dict(weights)\n", "")),
            says="the last weights, not the best",
        ),
        Mutant(
            name="best kept without a copy",
            source=edited(_TRAIN, ("copy.deepcopy(run.model.state_dict())", "run.model.state_dict()")),
            says="was no copy",
        ),
        Mutant(
            name="mode inverted",
            source=edited(_TRAIN, ('found["loss"] < best["loss"]', 'found["loss"] > best["loss"]')),
            says="the worst validation is taken for the best",
        ),
        Mutant(
            name="never stops",
            source=edited(_TRAIN, (" and bad < 6", "")),
            says="nothing ends the loop",
        ),
        Mutant(
            name="gives up at the first bump",
            source=edited(_TRAIN, ("bad < 6", "bad < 1"), ("run.train(10)", "run.train(2)")),
            says="patience is too small",
        ),
        Mutant(
            name="report of another validation",
            source=edited(_TRAIN, ('"loss": best["loss"]', '"loss": found["loss"]')),
            says="of the last, not the best",
        ),
    ),
}
