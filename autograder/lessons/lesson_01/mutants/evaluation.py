"""Wrong solutions of 1.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_EVALUATE = """
from contextlib import contextmanager

import torch
import torch.nn.functional as F

@contextmanager
def put_back(model, mode):
    try:
        yield
    except Exception:
        model.train(mode)
        raise

@exercise("1.4")
def evaluate(model, batches):
    was_training = model.training
    model.eval()
    loss, correct, samples, means = 0.0, 0, 0, []
    with put_back(model, was_training), torch.inference_mode():
        for batch in batches:
            logits = model(batch["input_ids"], batch["attention_mask"])
            mean = F.cross_entropy(logits, batch["labels"])
            means.append(mean.item())
            loss += mean.item() * len(batch["labels"])
            correct += (logits.argmax(-1) == batch["labels"]).sum().item()
            samples += len(batch["labels"])
    model.train(was_training)
    return {"loss": loss / samples, "accuracy": correct / samples, "num_samples": samples}
"""
_MASK = 'batch["attention_mask"])'

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "1.4": wrong(
        _EVALUATE,
        {
            "forgot eval()": ("forgot `model.eval()`", "    model.eval()\n", "    model.train()\n"),
            "logits changed in place": (
                "the logits are changed in place",
                "            mean = F.cross",
                "            logits.data -= logits.data.amax(dim=1, keepdim=True)\n            mean = F.cross",
            ),
            "only the outermost module": (
                "only a part of the model",
                "    model.eval()\n",
                "    model.training = False\n",
            ),
            "only its dropout layers": (
                "only a part of the model",
                "    model.eval()\n",
                "    for part in model.modules():\n        part.train(type(part).__name__ != 'Dropout')\n",
            ),
            "infinite losses left out": (
                "so that a sick model looks well",
                'mean = F.cross_entropy(logits, batch["labels"])',
                'mean = F.cross_entropy(logits, batch["labels"], reduction="none")\n'
                "            mean = mean[mean.isfinite()].mean()",
            ),
            "ends where a batch cannot be read": (
                "caught on the way",
                "        raise\n",
                "",
            ),
            "not put back after an error": (
                "where an error ends the evaluation",
                "        model.train(mode)\n",
                "",
            ),
            "labels taken out of the batch": (
                "taken out of it",
                '            samples += len(batch["labels"])\n',
                '            samples += len(batch.pop("labels"))\n',
            ),
            "another matmul precision": (
                "not put back",
                "    model.eval()\n",
                '    model.eval()\n    torch.set_float32_matmul_precision("medium")\n',
            ),
            "a precision not put back after an error": (
                "not put back",
                (
                    "    model.eval()\n",
                    "    model.eval()\n    precision = torch.get_float32_matmul_precision()\n"
                    '    torch.set_float32_matmul_precision("medium")\n',
                ),
                (
                    "    model.train(was_training)\n",
                    "    model.train(was_training)\n    torch.set_float32_matmul_precision(precision)\n",
                ),
            ),
            "averaged batch means": ("averaged batch means", "loss / samples", "sum(means) / len(means)"),
            "the sum of the losses": ("the sum of the samples' losses", "loss / samples", "loss"),
            "loss of the last batch": ("last batch alone", "loss / samples", "mean.item()"),
            "mask ignored": ("takes padding for text", _MASK, 'torch.ones_like(batch["input_ids"]))'),
            "mask made from the ids": ("made from the ids", _MASK, 'batch["input_ids"] != 0)'),
            "the first batch is skipped": (
                "another mean",
                "        for batch in batches:\n",
                "        next(batches)\n        for batch in batches:\n",
            ),
            "the last, short batch is skipped": (
                "another mean",
                "        for batch in batches:\n",
                "        batches = list(batches)\n        for batch in batches[:-1] or batches:\n",
            ),
            "mean of the batches' accuracies": (
                "the mean of the batches' accuracies",
                (
                    'correct += (logits.argmax(-1) == batch["labels"]).sum().item()',
                    'correct += (logits.argmax(-1) == batch["labels"]).float().mean().item()',
                ),
                ("correct / samples", "correct / len(means)"),
            ),
            "a percentage": ("a percentage", "correct / samples", "100 * correct / samples"),
            "a count": ("not divided", '"accuracy": correct / samples', '"accuracy": correct'),
            "the smallest logit": ("something else is counted", "argmax", "argmin"),
            "batches counted": (
                "batches counted, not samples",
                '"num_samples": samples',
                '"num_samples": len(means)',
            ),
            "no report": ("nothing is returned", "    return {", "    report = {"),
            "a key is missing": ("a key is missing", ', "num_samples": samples', ""),
            "gradients still on": ("gradients are still on", "torch.inference_mode()", "torch.enable_grad()"),
            "gradients left off": (
                "switched off, or on",
                "    with put_back(model, was_training), torch.inference_mode():\n        for",
                "    torch.set_grad_enabled(False)\n    if True:\n        for",
            ),
            "gradients left on": (
                "switched off, or on",
                "    model.train(was_training)\n",
                "    model.train(was_training)\n    torch.set_grad_enabled(True)\n",
            ),
            "weights left frozen": (
                "next epoch would train nothing",
                ("torch.inference_mode()", "torch.enable_grad()"),
                ("    model.eval()\n", "    model.eval()\n    model.requires_grad_(False)\n"),
            ),
            "frozen weights thawed": (
                "or too much",
                ("    model.eval()\n", "    model.eval()\n    model.requires_grad_(False)\n"),
                (
                    "    model.train(was_training)\n",
                    "    model.train(was_training)\n    model.requires_grad_(True)\n",
                ),
            ),
            "a weight changed": (
                "step inside the evaluation",
                "    model.train(was_training)\n",
                "    model.train(was_training)\n    model.head.bias.data.add_(0.1)\n",
            ),
            "gradients cleared": (
                "`zero_grad` or `backward`",
                "    model.train(was_training)\n",
                "    model.train(was_training)\n    model.zero_grad()\n",
            ),
            "a seed is set": (
                "a seed is set",
                "    model.eval()\n",
                "    model.eval()\n    torch.manual_seed(0)\n",
            ),
            "a hook is left": (
                "a hook is left",
                "    model.eval()\n",
                "    model.eval()\n    model.head.register_forward_hook(lambda *_: None)\n",
            ),
            "tensors in the report": (
                "its value is not one number",
                '"loss": loss / samples',
                '"loss": torch.tensor(loss / samples)',
            ),
            "log of a softmax": (
                "the logarithm of a softmax",
                'F.cross_entropy(logits, batch["labels"])',
                'F.nll_loss(logits.softmax(-1).log(), batch["labels"])',
            ),
            "not put back after an error of the model": (
                "where an error ends the evaluation",
                "    except Exception:",
                "    except OSError:",
            ),
            "an attribute is left": (
                "an attribute is left",
                "    model.eval()\n",
                "    model.eval()\n    model.was_training = was_training\n",
            ),
            "a dropout's share is left": (
                "a setting such as `p`",
                "    model.eval()\n",
                "    model.eval()\n    for part in model.modules():\n"
                '        if type(part).__name__ == "Dropout":\n            part.p = 0.0\n',
            ),
            "a backward hook is left": (
                "a hook is left",
                "    model.eval()\n",
                "    model.eval()\n    model.register_full_backward_hook(lambda *_: None)\n",
            ),
            "a buffer is left": (
                "a buffer is left",
                "    model.eval()\n",
                "    model.eval()\n    model.register_buffer('seen', torch.zeros(()), persistent=False)\n",
            ),
            "the first 100 batches": (
                "not all are measured",
                "        for batch in batches:\n",
                "        for _, batch in zip(range(100), batches):\n",
            ),
            "the first 64 rows": (
                "another mean",
                "            logits =",
                "            batch = {name: tensor[:64] for name, tensor in batch.items()}\n            logits =",
            ),
            "texts cut at 1024": (
                "long texts are cut",
                'model(batch["input_ids"], batch["attention_mask"])',
                'model(batch["input_ids"][:, :1024], batch["attention_mask"][:, :1024])',
            ),
            "tensors taken by their place": (
                "index out of range",
                'model(batch["input_ids"], batch["attention_mask"])',
                "model(*[*batch.values()][:2])",
            ),
            "the loss is rounded": ("loss is rounded", "loss / samples", "round(loss / samples, 4)"),
            "not put back where there are no batches": (
                "where an error ends the evaluation",
                "    model.train(was_training)\n    return",
                "    loss, correct = loss / samples, correct / samples\n    model.train(was_training)\n"
                "    loss, correct = loss * samples, correct * samples\n    return",
            ),
            "not put back where they cannot be had": (
                "where an error ends the evaluation",
                "    with put_back(",
                "    batches = iter(batches)\n    with put_back(",
            ),
            "left in evaluation mode": ("the mode is not put back", "    model.train(was_training)\n", ""),
            "always back to training": (
                "whatever the mode was before",
                "model.train(was_training)",
                "model.train()",
            ),
        },
    ),
}
