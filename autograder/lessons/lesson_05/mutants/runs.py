"""Wrong solutions of 5.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

RUN = """
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

MUTANTS: tuple[Mutant, ...] = wrong(
    RUN,
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
        "training mode of the outermost module alone": (
            "`model.train()` is missing",
            "            model.train()\n",
            "            model.training = True\n",
        ),
        "losses kept from the search before": (
            "results are kept from a search before",
            ("@exercise", "known = {}\n\n@exercise"),
            (
                _SEED,
                "            key = (*sorted(config.items()), seed)\n            if key in known:\n"
                "                losses[row, column] = known[key]\n                continue\n" + _SEED,
            ),
            (
                "if math.isfinite(value) else math.inf\n",
                "if math.isfinite(value) else math.inf\n            known[key] = losses[row, column]\n",
            ),
        ),
        "gradients that are no numbers set to zero": (
            "a trial that diverged looks sound",
            "                optimizer.step()\n",
            "                for p in model.parameters():\n                    p.grad.nan_to_num_()\n"
            "                optimizer.step()\n",
        ),
        "padding read from the ids": (
            "with another mask",
            (
                "batches = list(batches)\n",
                'batches = [b | {"attention_mask": b["input_ids"] != 0} for b in batches]\n',
            ),
        ),
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
)
