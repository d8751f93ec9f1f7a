"""Wrong solutions of 5.1, 5.2 and 5.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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
    "5.1": (
        Mutant(
            name="uniform learning rate",
            source=edited(_SAMPLE, (_LOG, 'rng.uniform(part["low"], part["high"])')),
            says="uniform where log-uniform is asked for",
        ),
        Mutant(
            name="silently clipped",
            source=edited(
                _SAMPLE,
                (
                    _LOG,
                    'min(part["high"], max(part["low"], math.exp(rng.uniform(math.log(part["low"]) - 1, '
                    'math.log(part["high"]) + 1))))',
                ),
            ),
            says="silently clipped",
        ),
        Mutant(
            name="a log range from 0 is repaired",
            source=edited(
                _SAMPLE,
                ('if part["kind"] == "log" and part["low"] <= 0:', "if False:"),
                ('math.log(part["low"])', 'math.log(max(1e-12, part["low"]))'),
            ),
            says="silently repaired",
        ),
        Mutant(
            name="refuses only what it draws",
            source=edited(
                _SAMPLE,
                (_REFUSES, ""),
                ("            drawn[name] = draw", _REFUSES_LATE + "            drawn[name] = draw"),
            ),
            says="only where the key is drawn",
        ),
        Mutant(
            name="condition ignored",
            source=edited(_SAMPLE, ('if "when" in part:', "if False:")),
            says="condition `when` is ignored",
        ),
        Mutant(
            name="upper end never drawn",
            source=edited(_SAMPLE, ('part["high"] + 1', 'part["high"]')),
            says="an end that is left out",
        ),
        Mutant(
            name="a generator of its own",
            source=edited(
                _SAMPLE,
                ("import math\n", "import math\nimport numpy as np\n"),
                ("draw(part, rng)\n            del", "draw(part, np.random.default_rng())\n            del"),
            ),
            says="cannot be repeated",
        ),
    ),
    "5.2": (
        Mutant(
            name="reused model",
            source=edited(
                _RUN,
                (_SEED + _MODEL + _OPTIMIZER, ""),
                (
                    _LOSSES,
                    _LOSSES + "    torch.manual_seed(seeds[0])\n    model = task.make_model(configs[0])\n"
                    "    optimizer = task.make_optimizer(model, configs[0])\n",
                ),
            ),
            says="a reused model",
        ),
        Mutant(
            name="reused optimizer",
            source=edited(
                _RUN,
                (_OPTIMIZER, "            optimizer = optimizer or task.make_optimizer(model, config)\n"),
                (_LOSSES, _LOSSES + "    optimizer = None\n"),
            ),
            says="a reused optimizer",
        ),
        Mutant(
            name="different budgets",
            source=edited(
                _RUN,
                (
                    "                loss = loss_of(model, batch)\n",
                    "                loss = loss_of(model, batch)\n                if not loss < 2.5:\n"
                    "                    break\n",
                ),
            ),
            says="different budgets",
        ),
        Mutant(
            name="picked on train",
            source=edited(
                _RUN,
                ("judge(model, task.validation_batches())", "judge(model, [batch])"),
            ),
            says="picked on train",
        ),
        Mutant(
            name="picked on test",
            source=edited(_RUN, ("task.validation_batches()", "task.test_batches()")),
            says="picked on test",
        ),
        Mutant(
            name="seeded after the model is built",
            source=edited(_RUN, (_SEED + _MODEL, _MODEL + _SEED)),
            says="seeded after the model is built",
        ),
        Mutant(
            name="one stream for all trials",
            source=edited(
                _RUN, (_BATCHES, ""), (_LOSSES, _LOSSES + "    batches = task.train_batches(seeds[0])\n")
            ),
            says="one stream of batches shared",
        ),
        Mutant(
            name="another seed for each configuration",
            source=edited(
                _RUN,
                (_SEED, "            seed = seed + 10_000 * row\n" + _SEED),
            ),
            says="configurations compared at different seeds",
        ),
        Mutant(
            name="NaN kept as it is",
            source=edited(_RUN, (" if math.isfinite(value) else math.inf", "")),
            says="NaN is neither smaller nor larger",
        ),
    ),
    "5.4": (
        Mutant(
            name="best of noise from one seed",
            source=edited(_CHOOSE, ("best = int(np.argmax(means))", "best = int(np.nanargmax(gains[:, 0]))")),
            says="one lucky seed decides",
        ),
        Mutant(
            name="the lowest mean wins",
            source=edited(_CHOOSE, ("best + 1 if low > 0 else 0", "best + 1 if means[best] > 0 else 0")),
            says="best of noise",
        ),
        Mutant(
            name="no price for many candidates",
            source=edited(_CHOOSE, ("(1 - confidence) / num_candidates", "1 - confidence")),
            says="the best of many is picked first",
        ),
        Mutant(
            name="normal quantile for four seeds",
            source=edited(
                _CHOOSE, ("stats.t.ppf(1 - share / 2, num_seeds - 1)", "stats.norm.ppf(1 - share / 2)")
            ),
            says="too narrow for so few seeds",
        ),
        Mutant(
            name="pairs not used",
            source=edited(
                _CHOOSE,
                (
                    "gains[best].std(ddof=1) / math.sqrt(num_seeds)",
                    "math.sqrt((losses[0].var(ddof=1) + losses[best + 1].var(ddof=1)) / num_seeds)",
                ),
            ),
            says="the pairs are not used",
        ),
        Mutant(
            name="NaN wins",
            source=edited(
                _CHOOSE,
                (
                    "np.where(np.isfinite(gains).all(axis=1), gains.mean(axis=1), -np.inf)",
                    "gains.mean(axis=1)",
                ),
            ),
            says="NaN wins",
        ),
    ),
}
