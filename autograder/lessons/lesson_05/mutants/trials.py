"""Wrong solutions of 5.1, 5.2 and 5.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_SAMPLE = """
import math

@exercise("5.1")
def sample(space, rng):
    for name, part in space.items():
        if part["kind"] in ("log", "float") and not part["low"] < part["high"]:
            raise ValueError(f"{name}: the ends are swapped")
        if part["kind"] == "log" and part["low"] <= 0:
            raise ValueError(f"{name}: a log range begins above 0")
    drawn = {}
    waiting = dict(space)
    while waiting:
        for name, part in list(waiting.items()):
            if "when" in part:
                parent, wanted = part["when"]
                if parent in waiting:
                    continue
                if parent not in drawn or drawn[parent] != wanted:
                    del waiting[name]
                    continue
            drawn[name] = draw(part, rng)
            del waiting[name]
    return drawn

def draw(part, rng):
    if part["kind"] == "log":
        return math.exp(rng.uniform(math.log(part["low"]), math.log(part["high"])))
    if part["kind"] == "float":
        return rng.uniform(part["low"], part["high"])
    if part["kind"] == "int":
        return int(rng.integers(part["low"], part["high"] + 1))
    return part["values"][rng.integers(len(part["values"]))]
"""
_REFUSES = """    for name, part in space.items():
        if part["kind"] in ("log", "float") and not part["low"] < part["high"]:
            raise ValueError(f"{name}: the ends are swapped")
        if part["kind"] == "log" and part["low"] <= 0:
            raise ValueError(f"{name}: a log range begins above 0")
"""
_REFUSES_LATE = "".join("    " + line for line in _REFUSES.splitlines(keepends=True)[1:])
_LOG = 'math.exp(rng.uniform(math.log(part["low"]), math.log(part["high"])))'

_RUN = """
import math
import numpy as np
import torch
import torch.nn.functional as F

def loss_of(model, batch, reduction="mean"):
    logits = model(batch["input_ids"], batch["attention_mask"])
    return F.cross_entropy(logits, batch["labels"], reduction=reduction)

def judge(model, batches):
    model.eval()
    batches = list(batches)
    with torch.inference_mode():
        total = sum(loss_of(model, batch, "sum").item() for batch in batches)
    return total / sum(len(batch["labels"]) for batch in batches)

@exercise("5.2")
def run_trials(task, configs, seeds, num_steps):
    losses = np.full((len(configs), len(seeds)), math.inf)
    for row, config in enumerate(configs):
        for column, seed in enumerate(seeds):
            torch.manual_seed(seed)
            model = task.make_model(config)
            optimizer = task.make_optimizer(model, config)
            batches = task.train_batches(seed)
            model.train()
            for step in range(num_steps):
                batch = next(batches)
                loss = loss_of(model, batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            value = judge(model, task.validation_batches())
            losses[row, column] = value if math.isfinite(value) else math.inf
    return losses
"""
_MODEL = "            model = task.make_model(config)\n"
_OPTIMIZER = "            optimizer = task.make_optimizer(model, config)\n"
_SEED = "            torch.manual_seed(seed)\n"
_BATCHES = "            batches = task.train_batches(seed)\n"
_LOSSES = "    losses = np.full((len(configs), len(seeds)), math.inf)\n"

_CHOOSE = """
import math
import numpy as np
from scipy import stats

@exercise("5.4")
def choose_winner(losses, confidence=0.95):
    gains = losses[0] - losses[1:]
    means = np.where(np.isfinite(gains).all(axis=1), gains.mean(axis=1), -np.inf)
    best = int(np.argmax(means))
    num_candidates, num_seeds = gains.shape
    error = gains[best].std(ddof=1) / math.sqrt(num_seeds)
    share = (1 - confidence) / num_candidates
    width = stats.t.ppf(1 - share / 2, num_seeds - 1) * error
    low, high = means[best] - width, means[best] + width
    return {"candidate": best + 1, "interval": (low, high), "winner": best + 1 if low > 0 else 0}
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "5.1": wrong(
        _SAMPLE,
        {
            "uniform learning rate": (
                "uniform where log-uniform is asked for",
                _LOG,
                'rng.uniform(part["low"], part["high"])',
            ),
            "silently clipped": (
                "silently clipped",
                _LOG,
                'min(part["high"], max(part["low"], math.exp(rng.uniform(math.log(part["low"]) - 1, '
                'math.log(part["high"]) + 1))))',
            ),
            "a log range from 0 is repaired": (
                "silently repaired",
                ('if part["kind"] == "log" and part["low"] <= 0:', "if False:"),
                ('math.log(part["low"])', 'math.log(max(1e-12, part["low"]))'),
            ),
            "refuses only what it draws": (
                "only where the key is drawn",
                (_REFUSES, ""),
                ("            drawn[name] = draw", _REFUSES_LATE + "            drawn[name] = draw"),
            ),
            "condition ignored": ("condition `when` is ignored", 'if "when" in part:', "if False:"),
            "upper end never drawn": ("an end that is left out", 'part["high"] + 1', 'part["high"]'),
            "a generator of its own": (
                "cannot be repeated",
                ("import math\n", "import math\nimport numpy as np\n"),
                ("draw(part, rng)\n            del", "draw(part, np.random.default_rng())\n            del"),
            ),
        },
    ),
    "5.2": wrong(
        _RUN,
        {
            "reused model": (
                "a reused model",
                (_SEED + _MODEL + _OPTIMIZER, ""),
                (
                    _LOSSES,
                    _LOSSES + "    torch.manual_seed(seeds[0])\n    model = task.make_model(configs[0])\n"
                    "    optimizer = task.make_optimizer(model, configs[0])\n",
                ),
            ),
            "reused optimizer": (
                "a reused optimizer",
                (_OPTIMIZER, "            optimizer = optimizer or task.make_optimizer(model, config)\n"),
                (_LOSSES, _LOSSES + "    optimizer = None\n"),
            ),
            "different budgets": (
                "different budgets",
                "                loss = loss_of(model, batch)\n",
                "                loss = loss_of(model, batch)\n                if not loss < 2.5:\n"
                "                    break\n",
            ),
            "picked on train": (
                "picked on train",
                "judge(model, task.validation_batches())",
                "judge(model, [batch])",
            ),
            "picked on test": ("picked on test", "task.validation_batches()", "task.test_batches()"),
            "seeded after the model is built": (
                "seeded after the model is built",
                _SEED + _MODEL,
                _MODEL + _SEED,
            ),
            "one stream for all trials": (
                "one stream of batches shared",
                (_BATCHES, ""),
                (_LOSSES, _LOSSES + "    batches = task.train_batches(seeds[0])\n"),
            ),
            "another seed for each configuration": (
                "configurations compared at different seeds",
                _SEED,
                "            seed = seed + 10_000 * row\n" + _SEED,
            ),
            "NaN kept as it is": (
                "NaN is neither smaller nor larger",
                " if math.isfinite(value) else math.inf",
                "",
            ),
        },
    ),
    "5.4": wrong(
        _CHOOSE,
        {
            "best of noise from one seed": (
                "one lucky seed decides",
                "best = int(np.argmax(means))",
                "best = int(np.nanargmax(gains[:, 0]))",
            ),
            "the lowest mean wins": (
                "best of noise",
                "best + 1 if low > 0 else 0",
                "best + 1 if means[best] > 0 else 0",
            ),
            "no price for many candidates": (
                "the best of many is picked first",
                "(1 - confidence) / num_candidates",
                "1 - confidence",
            ),
            "normal quantile for four seeds": (
                "too narrow for so few seeds",
                "stats.t.ppf(1 - share / 2, num_seeds - 1)",
                "stats.norm.ppf(1 - share / 2)",
            ),
            "pairs not used": (
                "the pairs are not used",
                "gains[best].std(ddof=1) / math.sqrt(num_seeds)",
                "math.sqrt((losses[0].var(ddof=1) + losses[best + 1].var(ddof=1)) / num_seeds)",
            ),
            "NaN wins": (
                "NaN wins",
                "np.where(np.isfinite(gains).all(axis=1), gains.mean(axis=1), -np.inf)",
                "gains.mean(axis=1)",
            ),
        },
    ),
}
