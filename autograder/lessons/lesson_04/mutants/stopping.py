"""Wrong solutions of 4.3 and 4.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

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
    "4.3": wrong(
        _STOPPING,
        {
            "mode inverted": ("`mode` is inverted", 'self.mode == "min"', 'self.mode == "max"'),
            "mode not used": ("`mode` is not used", 'self.mode == "min"', "True"),
            "counter not reset": (
                "the counter is not reset",
                "self.best_step, self.num_bad = value, step, 0",
                "self.best_step = value, step",
            ),
            "an equal value counts": (
                "an equal value counts",
                ("value < self.best - self.min_delta", "value <= self.best - self.min_delta"),
                ("value > self.best + self.min_delta", "value >= self.best + self.min_delta"),
            ),
            "min_delta not used": (
                "`min_delta` is not used",
                ("self.best - self.min_delta", "self.best"),
                ("self.best + self.min_delta", "self.best"),
            ),
            "patience off by one": (
                "stops one validation late",
                "self.num_bad >= self.patience",
                "self.num_bad > self.patience",
            ),
            "NaN becomes the best": ("a NaN becomes the best", "not math.isnan(value)", "True"),
            "counter not in the state": (
                "the counter of bad validations is not in the state",
                (', "num_bad": self.num_bad}', "}"),
                ('state["num_bad"]', "0"),
            ),
            "best not in the state": (
                "the best value, its step or the counter is not in the state",
                '{"best": self.best, ',
                '{"best": None, ',
            ),
            "watches the training loss": (
                "it watches `train_loss`",
                "metrics[self.monitor]",
                'metrics["train_loss"]',
            ),
        },
    ),
    "4.4": wrong(
        _TRAIN,
        {
            "best chosen on train loss": (
                "chosen on the training loss",
                'found["loss"] < best["loss"]',
                'found["train_loss"] < best["train_loss"]',
            ),
            "final report from the last, not the best": (
                "the last weights, not the best",
                "    run.model.load_state_dict(weights)\n",
                "",
            ),
            "best kept without a copy": (
                "was no copy",
                "copy.deepcopy(run.model.state_dict())",
                "run.model.state_dict()",
            ),
            "mode inverted": (
                "the worst validation is taken for the best",
                'found["loss"] < best["loss"]',
                'found["loss"] > best["loss"]',
            ),
            "never stops": ("nothing ends the loop", " and bad < 6", ""),
            "gives up at the first bump": (
                "patience is too small",
                ("bad < 6", "bad < 1"),
                ("run.train(10)", "run.train(2)"),
            ),
            "report of another validation": (
                "of the last, not the best",
                '"loss": best["loss"]',
                '"loss": found["loss"]',
            ),
        },
    ),
}
