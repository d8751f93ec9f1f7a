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
import math

@exercise("4.4")
def train_with_early_stopping(run):
    best, weights, bad = None, {}, 0
    while run.num_steps < run.max_steps and bad < 6:
        run.train(10)
        found = run.validate()
        if not math.isnan(found["loss"]) and (best is None or found["loss"] < best["loss"]):
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
                "the best value is not in the state",
                '{"best": self.best, ',
                '{"best": None, ',
            ),
            "a NaN is skipped": (
                "a NaN is skipped",
                "        if self.best is None:",
                "        if math.isnan(value):\n            return False\n        if self.best is None:",
            ),
            "a NaN before the first best is skipped": (
                "a NaN before the first best is skipped",
                "is_better = not math.isnan(value)",
                "if math.isnan(value):\n                return False\n            is_better = True",
            ),
            "a best of 0 is none": (
                "a best of 0.0 is taken for none",
                "if self.best is None:",
                "if not self.best:",
            ),
            "an infinite first value is none": (
                "begins at an infinity",
                "is_better = not math.isnan(value)",
                'is_better = value < math.inf if self.mode == "min" else value > -math.inf',
            ),
            "one late from patience 2 on": (
                "a comparison or the counting is off",
                "self.num_bad >= self.patience",
                "self.num_bad >= max(2, self.patience)",
            ),
            "says stop only once": (
                "only the validation at which patience ends",
                "self.num_bad >= self.patience",
                "self.num_bad == self.patience",
            ),
            "no answer to an improvement": (
                "has no `return`",
                "self.best_step, self.num_bad = value, step, 0\n",
                "self.best_step, self.num_bad = value, step, 0\n            return None\n",
            ),
            "best moves with every change": (
                "`best` also moves",
                "            self.num_bad += 1\n",
                "            self.num_bad += 1\n"
                "            if math.copysign(1, self.min_delta) * self.min_delta > 0 and step % 2:\n"
                "                self.best_step = step\n",
            ),
            "the number of the validation for its step": (
                "`best_step` is not the step given",
                ("self.num_bad = 0\n\n", "self.num_bad = self.number = 0\n\n"),
                ("        value = metrics", "        self.number += 1\n        value = metrics"),
                ("= value, step, 0", "= value, self.number, 0"),
            ),
            "another default patience": ("a default of `__init__`", "patience=3", "patience=4"),
            "another default monitor": ("a default of `__init__`", 'monitor="loss"', 'monitor="train_loss"'),
            "another default mode": ("a default of `__init__`", 'mode="min"', 'mode="max"'),
            "another default min_delta": ("a default of `__init__`", "min_delta=0.0", "min_delta=0.3"),
            "best_step not in the state": (
                "`best_step` is not in the state",
                '"best_step": self.best_step',
                '"best_step": None',
            ),
            "nothing put back": (
                "nothing of the state is put back",
                'self.best, self.best_step, self.num_bad = state["best"], state["best_step"], state["num_bad"]',
                "pass",
            ),
            "a best of 0 not put back": (
                "the best value, its step or the counter is not in the state",
                'state["best"], state["best_step"]',
                'state["best"] or None, state["best_step"]',
            ),
            "best rounded in the state": (
                "the best value is rounded in the state",
                '"best": self.best,',
                '"best": self.best if self.best is None else round(self.best, 6),',
            ),
            "best in the state in 32 bits": (
                "the best value is rounded in the state",
                ("import math\n", "import math\nimport torch\n"),
                (
                    '"best": self.best,',
                    '"best": self.best if self.best is None else torch.tensor(self.best).item(),',
                ),
            ),
            "a tensor in the state": (
                "something that JSON cannot hold",
                ("import math\n", "import math\nimport torch\n"),
                ('"num_bad": self.num_bad', '"num_bad": torch.tensor(self.num_bad)'),
            ),
            "hands out its own dict": (
                "what `state_dict` gave goes on changing",
                '        return {"best": self.best, "best_step": self.best_step, "num_bad": self.num_bad}\n',
                "        return vars(self)\n",
            ),
            "works on the dict that was loaded": (
                "what was loaded goes on changing",
                (
                    '{"best": self.best, "best_step": self.best_step, "num_bad": self.num_bad}',
                    "dict(vars(self))",
                ),
                (
                    'self.best, self.best_step, self.num_bad = state["best"], state["best_step"], state["num_bad"]',
                    "self.__dict__ = state",
                ),
            ),
            "one counter for all objects": (
                "where all objects share it",
                ("        self.num_bad = 0\n", "        EarlyStopping.num_bad = 0\n"),
                (
                    "self.best_step, self.num_bad = value, step, 0",
                    "self.best_step, EarlyStopping.num_bad = value, step, 0",
                ),
                ("            self.num_bad += 1", "            EarlyStopping.num_bad += 1"),
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
            "a fixed number of steps": (
                "a fixed number of steps ends the loop",
                "run.num_steps < run.max_steps and bad < 6",
                "run.num_steps < 0.6 * run.max_steps",
            ),
            "too patient": ("patience is too large", "bad < 6", "bad < 22"),
            "validated at every step": (
                "validations are too frequent",
                ("bad < 6", "bad < 120"),
                ("run.train(10)", "run.train(1)"),
            ),
            "trains beyond the end": (
                "ValueError: 400 + 10 steps",
                "run.num_steps < run.max_steps and",
                "True and",
            ),
            "best chosen on the accuracy": (
                "chosen on the accuracy",
                'found["loss"] < best["loss"]',
                'found["accuracy"] > best["accuracy"]',
            ),
            "NaN hides the best before it": (
                "a loss that is NaN becomes the best",
                'not math.isnan(found["loss"]) and (best is None or found["loss"] < best["loss"])',
                'best is None or not found["loss"] >= best["loss"]',
            ),
            "a NaN that comes first stays the best": (
                "a loss that is NaN becomes the best",
                'not math.isnan(found["loss"]) and (best is None or found["loss"] < best["loss"])',
                'best is None or found["loss"] < best["loss"]',
            ),
            "kept only when much better": (
                "a margin such as `min_delta`",
                'found["loss"] < best["loss"]',
                'found["loss"] < best["loss"] - 0.05',
            ),
            "compared with the validation before": (
                "compared with the one before it",
                ('found["loss"] < best["loss"]', 'found["loss"] < before["loss"]'),
                (
                    "        else:\n            bad += 1\n",
                    "        else:\n            bad += 1\n        before = found\n",
                ),
            ),
            "best kept in 16 bits": (
                "the right weights are kept, and rounded",
                "copy.deepcopy(run.model.state_dict())",
                "{name: value.half() for name, value in run.model.state_dict().items()}",
            ),
            "put back only where it stops early": (
                "a run that comes to `max_steps` keeps its last",
                "    run.model.load_state_dict(weights)\n",
                "    if bad >= 6:\n        run.model.load_state_dict(weights)\n",
            ),
            "kept after further steps": (
                "other weights are kept than those that were validated",
                ("run.train(10)", "run.train(min(10, run.max_steps - run.num_steps))"),
                (
                    "            best, weights, bad =",
                    "            if run.num_steps < run.max_steps:\n                run.train(1)\n"
                    "            best, weights, bad =",
                ),
            ),
            "never trains": ("is never called", "run.train(10)", "bad += 1"),
            "no report": (
                "a key is missing",
                '    return {"best_step": best["step"], "loss": best["loss"]}\n',
                "",
            ),
            "the number of the validation": (
                "validations are counted, not steps",
                '"best_step": best["step"]',
                '"best_step": best["step"] // 10',
            ),
            "the training loss reported": (
                "the training loss is reported",
                '"loss": best["loss"]',
                '"loss": best["train_loss"]',
            ),
            "validated once more for the report": (
                "validated once more at the end",
                '"loss": best["loss"]',
                '"loss": run.validate()["loss"]',
            ),
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
