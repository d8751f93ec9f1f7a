"""Wrong solutions of 4.3, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

STOPPING = """
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

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "4.3": wrong(
        STOPPING,
        {
            "mode inverted": ("`mode` is inverted", 'self.mode == "min"', 'self.mode == "max"'),
            "mode not used": ("`mode` is not used", 'self.mode == "min"', "True"),
            "counter not reset": (
                "the counter is not reset",
                "self.best_step, self.num_bad = value, step, 0",
                "self.best_step = value, step",
            ),
            "the best creeps": (
                "slow progress never adds up",
                "            self.num_bad += 1\n",
                "            self.num_bad += 1\n"
                "            sign = -1 if self.mode == 'min' else 1\n"
                "            if self.best is not None and sign * value > sign * self.best:\n"
                "                self.best, self.best_step = value, step\n",
            ),
            "an equal value counts": (
                "an equal value counts",
                ("value < self.best - self.min_delta", "value <= self.best - self.min_delta"),
                ("value > self.best + self.min_delta", "value >= self.best + self.min_delta"),
            ),
            "no worse than another infinity": (
                "inf - inf is NaN",
                (
                    "is_better = value < self.best - self.min_delta",
                    "is_better = not (math.isnan(value) or self.best - value <= self.min_delta)",
                ),
                (
                    "is_better = value > self.best + self.min_delta",
                    "is_better = not (math.isnan(value) or value - self.best <= self.min_delta)",
                ),
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
            "a tolerance on top of min_delta": (
                "a tolerance is taken on top of `min_delta`",
                ("value < self.best - self.min_delta", "value < self.best - self.min_delta - 1e-8"),
                ("value > self.best + self.min_delta", "value > self.best + self.min_delta + 1e-8"),
            ),
            "says stop for ever": (
                "once it has said stop, it says so for ever",
                (
                    "        self.num_bad = 0\n\n",
                    "        self.num_bad = 0\n        self.has_said = False\n\n",
                ),
                (
                    "        return self.num_bad >= self.patience\n",
                    "        self.has_said |= self.num_bad >= self.patience\n        return self.has_said\n",
                ),
            ),
            "an older best stays where none was saved": (
                "something that the object had before stays",
                "        self.best, self.best_step, self.num_bad = state",
                '        if state["best"] is None:\n            self.num_bad = state["num_bad"]\n'
                "            return\n        self.best, self.best_step, self.num_bad = state",
            ),
            "counts no further than patience": (
                "`num_bad` is not counted",
                "            self.num_bad += 1\n",
                "            self.num_bad = min(self.num_bad + 1, self.patience)\n",
            ),
            "another counter than num_bad": (
                "`num_bad` is not counted",
                ("self.best_step, self.num_bad = value", "self.best_step, self.num_worse = value"),
                ("self.num_bad +=", "self.num_worse +="),
                ("self.num_bad >=", "self.num_worse >="),
                ("        self.num_bad = 0\n", "        self.num_bad = self.num_worse = 0\n"),
                ('"num_bad": self.num_bad', '"num_bad": self.num_worse'),
                ("self.best_step, self.num_bad = state", "self.best_step, self.num_worse = state"),
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
            "an infinite best not in the state": (
                "a best that is infinite is not in the state",
                '"best": self.best,',
                '"best": self.best if self.best is None or math.isfinite(self.best) else None,',
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
}
