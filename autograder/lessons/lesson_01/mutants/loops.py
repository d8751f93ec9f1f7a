"""Wrong solutions of 1.3 and 1.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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
    "1.3": (
        Mutant(
            name="a sync every step",
            source=edited(_TRAIN, ("loss.detach() * rows", "loss.item() * rows")),
            says="a sync every step",
        ),
        Mutant(
            name="scheduler stepped before the optimizer",
            source=edited(_TRAIN, (_SCHEDULE, ""), (_STEP, _SCHEDULE + _STEP)),
            says="scheduler is stepped before the optimizer",
        ),
        Mutant(
            name="clipping before backward",
            source=edited(_TRAIN, (_CLIP, ""), (_BACKWARD, _CLIP + _BACKWARD)),
            says="clipping comes before backward",
        ),
        Mutant(
            name="clipping after the step",
            source=edited(_TRAIN, (_CLIP + _STEP, _STEP + _CLIP)),
            says="clipping comes after the optimizer's step",
        ),
        Mutant(
            name="gradients never cleared",
            source=edited(_TRAIN, ("        optimizer.zero_grad(set_to_none=True)\n", "")),
            says="never cleared",
        ),
        Mutant(
            name="averaged batch means",
            source=edited(
                _TRAIN,
                ("loss.detach() * rows", "loss.detach()"),
                ("float(total) / samples", "float(total) / steps"),
            ),
            says="averaged batch means",
        ),
        Mutant(
            name="forgot train()",
            source=edited(_TRAIN, ("    model.train()\n", "")),
            says="`model.train()` is missing",
        ),
    ),
    "1.4": (
        Mutant(
            name="forgot eval()",
            source=edited(_EVALUATE, ("    model.eval()\n", "    model.train()\n")),
            says="forgot `model.eval()`",
        ),
        Mutant(
            name="averaged batch means",
            source=edited(_EVALUATE, ("loss / samples", "sum(means) / len(means)")),
            says="averaged batch means",
        ),
        Mutant(
            name="gradients still on",
            source=edited(_EVALUATE, ("torch.inference_mode()", "torch.enable_grad()")),
            says="gradients are still on",
        ),
        Mutant(
            name="weights left frozen",
            source=edited(
                _EVALUATE,
                ("torch.inference_mode()", "torch.enable_grad()"),
                ("    model.eval()\n", "    model.eval()\n    model.requires_grad_(False)\n"),
            ),
            says="next epoch would train nothing",
        ),
        Mutant(
            name="left in evaluation mode",
            source=edited(_EVALUATE, ("    model.train(was_training)\n", "")),
            says="the mode is not put back",
        ),
    ),
}
