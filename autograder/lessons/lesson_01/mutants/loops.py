"""Wrong solutions of 1.3 and 1.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_TRAIN = """
import torch
import torch.nn.functional as F

@exercise("1.3")
def train_one_epoch(model, batches, optimizer, scheduler, max_norm=1.0):
    model.train()
    total, norms, samples, steps, slots = 0.0, 0.0, 0, 0, 0
    tokens = torch.zeros((), dtype=torch.int64)
    for batch in batches:
        loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        scheduler.step()
        rows = len(batch["labels"])
        total = total + loss.detach() * rows
        norms = norms + norm
        tokens += batch["attention_mask"].sum()
        samples += rows
        steps += 1
        slots += batch["input_ids"].numel()
    return {
        "loss": float(total) / samples,
        "grad_norm": float(norms) / steps,
        "num_samples": samples,
        "num_tokens": int(tokens),
        "pad_fraction": 1 - int(tokens) / slots,
    }
"""
_CLIP = "        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n"
_BACKWARD = "        loss.backward()\n"
_STEP = "        optimizer.step()\n"
_SCHEDULE = "        scheduler.step()\n"

_EVALUATE = """
import torch
import torch.nn.functional as F

@exercise("1.4")
def evaluate(model, batches):
    was_training = model.training
    model.eval()
    loss, correct, samples, means = 0.0, 0, 0, []
    with torch.inference_mode():
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

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "1.3": wrong(
        _TRAIN,
        {
            "a sync every step": ("a sync every step", "loss.detach() * rows", "loss.item() * rows"),
            "scheduler stepped before the optimizer": (
                "scheduler is stepped before the optimizer",
                (_SCHEDULE, ""),
                (_STEP, _SCHEDULE + _STEP),
            ),
            "clipping before backward": (
                "clipping comes before backward",
                (_CLIP, ""),
                (_BACKWARD, _CLIP + _BACKWARD),
            ),
            "clipping after the step": (
                "clipping comes after the optimizer's step",
                _CLIP + _STEP,
                _STEP + _CLIP,
            ),
            "gradients never cleared": (
                "never cleared",
                "        optimizer.zero_grad(set_to_none=True)\n",
                "",
            ),
            "averaged batch means": (
                "averaged batch means",
                ("loss.detach() * rows", "loss.detach()"),
                ("float(total) / samples", "float(total) / steps"),
            ),
            "forgot train()": ("`model.train()` is missing", "    model.train()\n", ""),
        },
    ),
    "1.4": wrong(
        _EVALUATE,
        {
            "forgot eval()": ("forgot `model.eval()`", "    model.eval()\n", "    model.train()\n"),
            "averaged batch means": ("averaged batch means", "loss / samples", "sum(means) / len(means)"),
            "gradients still on": ("gradients are still on", "torch.inference_mode()", "torch.enable_grad()"),
            "weights left frozen": (
                "next epoch would train nothing",
                ("torch.inference_mode()", "torch.enable_grad()"),
                ("    model.eval()\n", "    model.eval()\n    model.requires_grad_(False)\n"),
            ),
            "left in evaluation mode": ("the mode is not put back", "    model.train(was_training)\n", ""),
        },
    ),
}
