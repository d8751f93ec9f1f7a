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
            "powers of ten of natural logarithms": ("powers of ten", "math.exp(", "10 ** ("),
            "a float that grows": (
                "another distribution than asked for",
                '        return rng.uniform(part["low"], part["high"])\n',
                '        return part["low"] + (part["high"] - part["low"]) * rng.random() ** 0.5\n',
            ),
            "rounded values": ("values are rounded", _LOG, f"round({_LOG}, 4)"),
            "an array for a number": (
                "an array or a text where a number is",
                '        return rng.uniform(part["low"], part["high"])\n',
                '        return rng.uniform(part["low"], part["high"], size=1)\n',
            ),
            "a float for a whole number": (
                "a float where a whole number is asked for",
                "int(rng.integers(",
                "float(rng.integers(",
            ),
            "cut to a whole number": (
                "cuts towards 0",
                'int(rng.integers(part["low"], part["high"] + 1))',
                'int(rng.uniform(part["low"], part["high"] + 1))',
            ),
            "rounded to a whole number": (
                "half a share each",
                'int(rng.integers(part["low"], part["high"] + 1))',
                'round(rng.uniform(part["low"], part["high"]))',
            ),
            "a choice as text": (
                "of another type",
                'return part["values"][rng.integers(len(part["values"]))]',
                'return str(part["values"][rng.integers(len(part["values"]))])',
            ),
            "a choice by way of an array": (
                "taken for values of one type",
                ("import math\n", "import math\nimport numpy as np\n"),
                (
                    'return part["values"][rng.integers(len(part["values"]))]',
                    'return rng.choice(np.array(part["values"])).item()',
                ),
            ),
            "the first choice twice as often": (
                "values that are not equally likely",
                'part["values"][rng.integers(len(part["values"]))]',
                'part["values"][rng.integers(len(part["values"]) + 1) % len(part["values"])]',
            ),
            "one number for all keys": (
                "one random number serves several keys",
                ("    drawn = {}\n", "    rng.random()\n    drawn, state = {}, rng.bit_generator.state\n"),
                (
                    "            drawn[name] = draw(part, rng)\n",
                    "            rng.bit_generator.state = state\n            drawn[name] = draw(part, rng)\n",
                ),
            ),
            "samples that follow each other": (
                "samples follow each other",
                ("import math\n", "import copy\nimport math\n"),
                (
                    "    drawn = {}\n",
                    "    drawn, rng, given = {}, copy.deepcopy(rng), rng\n    given.random()\n",
                ),
            ),
            "a condition that is there": (
                "`when` is ignored",
                "if parent not in drawn or drawn[parent] != wanted:",
                "if parent not in drawn:",
            ),
            "a condition by identity": (
                "compared by `is`",
                "drawn[parent] != wanted:",
                "drawn[parent] is not wanted:",
            ),
            "a condition read too early": (
                "before the key that it hangs on is drawn",
                "                if parent in waiting:\n                    continue\n",
                "",
            ),
            "None for what does not apply": (
                "condition `when` is ignored",
                "    return drawn\n",
                "    return {name: drawn.get(name) for name in space}\n",
            ),
            "a help variable": (
                "a help variable",
                "    return drawn\n",
                '    return drawn | {"num_keys": len(drawn)}\n',
            ),
            "conditions taken out of the space": (
                "or conditions are taken out of it",
                "    return drawn\n",
                '    for part in space.values():\n        part.pop("when", None)\n    return drawn\n',
            ),
            "one dict for all samples": (
                "the dict is made once",
                ("def sample(space, rng):", "def sample(space, rng, drawn={}):"),
                ("    drawn = {}\n", "    drawn.clear()\n"),
            ),
            "a seed of its own": (
                "a seed of the function's own",
                ("import math\n", "import math\nimport numpy as np\n"),
                ("    drawn = {}\n", "    drawn, rng = {}, np.random.default_rng(0)\n"),
            ),
            "an int of one value is refused": (
                "a range that can be is refused",
                'in ("log", "float") and',
                'in ("log", "float", "int") and',
            ),
            "a float below 0 is refused": (
                "a range that can be is refused",
                'if part["kind"] == "log" and part["low"] <= 0:',
                'if part["kind"] in ("log", "float") and part["low"] <= 0:',
            ),
            "equal ends": (
                "its ends are not compared",
                'not part["low"] < part["high"]',
                'not part["low"] <= part["high"]',
            ),
            "ends exchanged": (
                "silently repaired",
                (
                    'if part["kind"] in ("log", "float") and not part["low"] < part["high"]:',
                    "if False:",
                ),
                (
                    "    drawn = {}\n",
                    '    space = {k: p | {"low": min(p["low"], p["high"]), "high": max(p["low"], p["high"])}'
                    ' if "low" in p else p for k, p in space.items()}\n    drawn = {}\n',
                ),
            ),
            "another error": ("its ends are not compared", "raise ValueError(", "raise RuntimeError("),
            "drawn in the order of a set": (
                "the order in which keys are drawn is that of a `set`",
                "list(waiting.items())",
                "[(name, waiting[name]) for name in set(waiting)]",
            ),
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
            "a trial that diverges is stopped": (
                "different budgets",
                "                optimizer.zero_grad()\n",
                "                if not math.isfinite(loss.item()):\n                    break\n"
                "                optimizer.zero_grad()\n",
            ),
            "one step fewer": (
                "another budget than was asked for",
                "range(num_steps)",
                "range(num_steps - 1)",
            ),
            "an optimizer of another configuration": (
                "train with the learning rate of one",
                "task.make_optimizer(model, config)",
                "task.make_optimizer(model, configs[0])",
            ),
            "a seed counted from zero": (
                "another number than the trial's seed",
                "torch.manual_seed(seed)",
                "torch.manual_seed(column)",
            ),
            "one seed for all weights": ("a fixed seed", "torch.manual_seed(seed)", "torch.manual_seed(0)"),
            "a seed left out": (
                "a seed that is used twice",
                "            batches = task.train_batches(seed)\n",
                "            batches = task.train_batches(seeds[0])\n",
            ),
            "no training mode": ("`model.train()` is missing", "            model.train()\n", ""),
            "judged in training mode": ("forgot `model.eval()`", "    model.eval()\n", ""),
            "gradients added up": ("`zero_grad` is forgotten", "                optimizer.zero_grad()\n", ""),
            "gradients of one group set to zero": (
                "gradients that are changed or left over",
                "                optimizer.zero_grad()\n",
                "                for p in optimizer.param_groups[0]['params']:\n                    p.grad = None\n",
            ),
            "the sum is minimised": (
                "the sum of the cross-entropies is minimised",
                "loss = loss_of(model, batch)",
                'loss = loss_of(model, batch, "sum")',
            ),
            "smoothed labels": (
                "labels are smoothed",
                "reduction=reduction)",
                'reduction=reduction, label_smoothing=0.1 if reduction == "mean" else 0.0)',
            ),
            "clipped gradients": (
                "gradients are clipped",
                "                optimizer.step()\n",
                "                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
                "                optimizer.step()\n",
            ),
            "a rate that decays": (
                "the steps of a schedule",
                "                optimizer.step()\n",
                "                optimizer.step()\n                optimizer.param_groups[0]['lr'] *= 0.9\n",
            ),
            "a mean of batch means": (
                "a mean of batch means",
                (
                    'total = sum(loss_of(model, batch, "sum").item() for batch in batches)',
                    "total = sum(loss_of(model, batch).item() for batch in batches)",
                ),
                ('sum(len(batch["labels"]) for batch in batches)', "len(batches)"),
            ),
            "a sum over validation": (
                "a sum is not divided by the number of samples",
                'sum(len(batch["labels"]) for batch in batches)',
                "len(batches)",
            ),
            "one validation batch": (
                "one batch alone is judged",
                "batches = list(batches)\n",
                "batches = list(batches)[:1]\n",
            ),
            "judged before the last step": (
                "of another moment",
                (
                    "                optimizer.zero_grad()\n",
                    "                if step == num_steps - 1:\n"
                    "                    value = judge(model, task.validation_batches())\n"
                    "                    model.train()\n"
                    "                optimizer.zero_grad()\n",
                ),
                (
                    "            value = judge(model, task.validation_batches())\n            losses",
                    "            losses",
                ),
            ),
            "the rows in another order": (
                "the loss of another trial",
                "    return losses\n",
                "    return losses[::-1].copy()\n",
            ),
            "columns for rows": (
                "rows and columns exchanged",
                "    return losses\n",
                "    return losses.T.copy()\n",
            ),
            "one number for each configuration": (
                "one number for each configuration",
                "    return losses\n",
                "    return losses.mean(axis=1)\n",
            ),
            "losses of less precision": (
                "in another form than asked for",
                "    return losses\n",
                "    return losses.astype(np.float32)\n",
            ),
            "a high loss taken for infinite": (
                "is taken for one that diverged",
                "value if math.isfinite(value)",
                "value if value < 1e6",
            ),
            "a probability that is never 0": (
                "cut off, as by `log(softmax + eps)`",
                (
                    "def judge(model, batches):\n",
                    "def cut_off(model, batch):\n"
                    '    logits = model(batch["input_ids"], batch["attention_mask"])\n'
                    '    return F.nll_loss((logits.softmax(-1) + 1e-30).log(), batch["labels"], reduction="sum")\n\n'
                    "def judge(model, batches):\n",
                ),
                ('loss_of(model, batch, "sum").item()', "cut_off(model, batch).item()"),
            ),
            "weighted by tokens": (
                "weighted by their tokens",
                (
                    'loss_of(model, batch, "sum").item()',
                    'loss_of(model, batch).item() * batch["attention_mask"].sum().item()',
                ),
                ('sum(len(batch["labels"])', 'sum(batch["attention_mask"].sum().item()'),
            ),
            "a large number for an infinite loss": (
                "replaced by a number that others may exceed",
                "value if math.isfinite(value) else math.inf",
                "np.nan_to_num(value, nan=math.inf)",
            ),
            "batches that are not finite left out": (
                "are left out",
                (
                    'total = sum(loss_of(model, batch, "sum").item() for batch in batches)',
                    'sums = [(loss_of(model, batch, "sum").item(), len(batch["labels"])) for batch in batches]\n'
                    "        sums = [one for one in sums if math.isfinite(one[0])]",
                ),
                (
                    'return total / sum(len(batch["labels"]) for batch in batches)',
                    "return sum(s for s, _ in sums) / sum(n for _, n in sums) if sums else math.inf",
                ),
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
            "infinity written into the table": (
                "something is written into `losses`",
                "    gains = losses[0]",
                "    losses[~np.isfinite(losses)] = np.inf\n    gains = losses[0]",
            ),
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
            "confidence ignored": ("`confidence` is ignored", "(1 - confidence)", "0.05"),
            "another default": ("another default", "confidence=0.95", "confidence=0.9"),
            "divided by the number of seeds": ("`ddof=1` is missing", "std(ddof=1)", "std()"),
            "as many degrees of freedom as seeds": (
                "too many degrees of freedom",
                "stats.t.ppf(1 - share / 2, num_seeds - 1)",
                "stats.t.ppf(1 - share / 2, num_seeds)",
            ),
            "the whole error at each end": (
                "each has the whole error",
                "stats.t.ppf(1 - share / 2,",
                "stats.t.ppf(1 - share,",
            ),
            "the spread of single values": ("far too wide", " / math.sqrt(num_seeds)", ""),
            "row 0 as a candidate": (
                "row 0 is no candidate",
                ("gains = losses[0] - losses[1:]", "gains = losses[0] - losses"),
                ('"candidate": best + 1', '"candidate": best'),
                ("best + 1 if low", "best if low"),
                ("gains.shape\n", "gains.shape\n    num_candidates -= 1\n"),
            ),
            "counted from row 1": (
                "the lowest mean loss",
                ('"candidate": best + 1', '"candidate": best'),
                ("best + 1 if low", "best if low"),
            ),
            "the highest loss": (
                "or a higher loss wins",
                "gains = losses[0] - losses[1:]",
                "gains = losses[1:] - losses[0]",
            ),
            "the mean of the seeds that are left": (
                "NaN wins",
                (
                    "np.where(np.isfinite(gains).all(axis=1), gains.mean(axis=1), -np.inf)",
                    "np.nanmean(gains, axis=1)",
                ),
                ("gains[best].std(ddof=1)", "np.nanstd(gains[best], ddof=1)"),
            ),
            "minus infinity wins": (
                "minus infinity is below all",
                "np.isfinite(gains).all(axis=1)",
                "~np.isnan(gains).any(axis=1)",
            ),
            "ends exchanged": ("ends that are swapped", '"interval": (low, high)', '"interval": (high, low)'),
            "the interval of its loss": (
                "the interval of a loss",
                '"interval": (low, high)',
                '"interval": (losses[best + 1].mean() - width, losses[best + 1].mean() + width)',
            ),
            "an interval of the other sign": (
                "improvement with the wrong sign",
                '"interval": (low, high)',
                '"interval": (-high, -low)',
            ),
            "a winner that is worse": (
                "the interval is only reported",
                "best + 1 if low > 0 else 0",
                "best + 1 if high > 0 else 0",
            ),
            "a tie counts as a win": (
                "a tie counts as a win",
                "best + 1 if low > 0 else 0",
                "best + 1 if low >= 0 else 0",
            ),
            "no interval for a tie": (
                "0 is divided by it",
                "width = stats.t.ppf(1 - share / 2, num_seeds - 1) * error",
                "width = stats.t.ppf(1 - share / 2, num_seeds - 1) * error**2 / error",
            ),
            "no winner is none": (
                "its value has another form",
                "best + 1 if low > 0 else 0",
                "best + 1 if low > 0 else None",
            ),
            "another key": ("a key is missing or misspelt", '"interval": (low, high)', '"ends": (low, high)'),
            "NaN wins": (
                "NaN wins",
                "np.where(np.isfinite(gains).all(axis=1), gains.mean(axis=1), -np.inf)",
                "gains.mean(axis=1)",
            ),
        },
    ),
}
