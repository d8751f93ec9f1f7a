# Odd right solutions of some exercises of lesson 03.

# %%
import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("3.1")
def train_accumulated(model, micro_batches, optimizer, grad_accum_steps):
    """Each window is the closure of its step; a micro-batch without a label is left out."""
    model.train()
    source = iter(micro_batches)
    sums, counts = [], []

    def window_of(first):
        yield first
        for _ in range(grad_accum_steps - 1):
            if (batch := next(source, None)) is None:
                return
            yield batch

    num_updates = 0
    for first in source:
        window = [batch for batch in window_of(first) if (batch["labels"] >= 0).any()]
        total = sum(int((batch["labels"] >= 0).sum()) for batch in window)

        def closure(window=window, total=total):
            optimizer.zero_grad()
            for batch in window:
                scores = model.forward(batch["input_ids"], batch["attention_mask"]).log_softmax(-1)
                picked = scores.gather(-1, batch["labels"].clamp(min=0).unsqueeze(-1)).squeeze(-1)
                loss = -(picked * (batch["labels"] >= 0)).sum()
                loss.div(total).backward()
                sums.append(loss.item())
            return sum(sums)

        optimizer.step(closure)
        counts.append(total)
        num_updates += 1
    return {"loss": sum(sums) / sum(counts), "num_updates": num_updates, "windows": counts}


# %%
import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("3.3")
def train_accumulated_mixed(model, micro_batches, optimizer, scheduler, scaler, grad_accum_steps, max_norm):
    """Clips in a hook of the step, by hand; the loss is cast, and computed where autocast has ended."""
    norms, losses = [], []

    def clip(*_):
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        norms.append(torch.stack([g.square().sum() for g in grads]).sum().sqrt().item())
        if norms[-1] > max_norm:
            torch._foreach_mul_(grads, max_norm / norms[-1])

    model.train()
    batches = list(micro_batches)
    hook = optimizer.register_step_pre_hook(clip)
    for start in range(0, len(batches), grad_accum_steps):
        window = batches[start : start + grad_accum_steps]
        rows = sum(batch["labels"].numel() for batch in window)
        for number, batch in enumerate(window):
            if number == 0:
                model.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                logits = model(batch["input_ids"], batch["attention_mask"])
            each = F.cross_entropy(logits.float(), batch["labels"], reduction="none")
            scaler.scale(each.sum() / rows).backward()
            losses += each.tolist()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
    hook.remove()
    mean = sum(losses) / len(losses)
    return {"loss": mean, "grad_norm": sum(norms) / len(norms), "num_updates": len(norms)}


# %%
from autograder import exercise
from course_lib.training.memory import apply_activation_checkpointing


@exercise("3.5")
def checkpoint_blocks(model):
    return apply_activation_checkpointing(model)
