"""The frozen baselines of lesson 03's timed exercises, and twins that make one known mistake on request.

They never change with the library.
"""

# A wrong result that equals the result of a twin with this mistake names the mistake.
TRAIN_ACCUMULATED = """
import torch
import torch.nn.functional as F

MISTAKE = "none"

def train_accumulated(model, micro_batches, optimizer, grad_accum_steps):
    model.train()
    micro_batches = list(micro_batches)
    loss_sum, num_labels, means, updates = 0.0, 0, [], 0
    for start in range(0, len(micro_batches), grad_accum_steps):
        window = micro_batches[start : start + grad_accum_steps]
        labels = [int((batch["labels"] != -100).sum()) for batch in window]
        positions = sum(batch["labels"].numel() for batch in window)
        tokens = sum(int(batch["attention_mask"].sum()) for batch in window)
        rows = sum(len(batch["labels"]) for batch in window)
        if MISTAKE != "never cleared":
            optimizer.zero_grad()
        for batch, count in zip(window, labels):
            if MISTAKE == "cleared inside":
                optimizer.zero_grad()
            divisor = {
                "not divided": count,
                "sum": 1,
                "mean of means": count * len(window),
                "full window": count * grad_accum_steps,
                "positions": positions,
                "tokens": tokens,
                "rows": rows,
                "sum over steps": len(window),
            }.get(MISTAKE, sum(labels))
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), reduction="sum")
            (loss / max(divisor, 1)).backward()
            loss_sum += float(loss)
            means.append(float(loss) / max(count, 1))
        num_labels += sum(labels)
        optimizer.step()
        updates += 1
    return {"loss": loss_sum / num_labels, "mean_of_means": sum(means) / len(means), "num_updates": updates}
"""

TRAIN_ACCUMULATED_MIXED = """
import torch
import torch.nn.functional as F

MISTAKE = "none"

def train_accumulated_mixed(model, micro_batches, optimizer, scheduler, scaler, grad_accum_steps, max_norm):
    model.train()
    micro_batches = list(micro_batches)
    parameters = list(model.parameters())
    loss_sum, num_rows, norms = 0.0, 0, []
    for start in range(0, len(micro_batches), grad_accum_steps):
        window = micro_batches[start : start + grad_accum_steps]
        rows = sum(len(batch["labels"]) for batch in window)
        optimizer.zero_grad()
        for batch in window:
            own = len(batch["labels"])
            divisor = {"not divided": own, "mean of means": own * len(window)}.get(MISTAKE, rows)
            with torch.autocast("cpu", torch.bfloat16):
                logits = model(batch["input_ids"], batch["attention_mask"])
                loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
            scaler.scale(loss / divisor).backward()
            if MISTAKE == "clipped at every micro-step":
                torch.nn.utils.clip_grad_norm_(parameters, max_norm * scaler.get_scale())
            loss_sum += float(loss)
        num_rows += rows
        if MISTAKE == "clipped while scaled":
            torch.nn.utils.clip_grad_norm_(parameters, max_norm)
        scaler.unscale_(optimizer)
        limit = max_norm if MISTAKE in ("none", "not divided", "mean of means") else float("inf")
        norms.append(float(torch.nn.utils.clip_grad_norm_(parameters, limit)))
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
    return {"loss": loss_sum / num_rows, "grad_norm": sum(norms) / len(norms), "num_updates": len(norms)}
"""

NO_CHECKPOINTS = '''
def checkpoint_blocks(model):
    """Everything that the forward pass makes is kept for the backward pass."""
    return model
'''

# Micro-batches of 4 in the order of the samples.
MICRO_BATCHES_OF_4 = """
import torch
import torch.nn.functional as F
from course_lib.data import collate

def train_in_budget(model, samples, optimizer, global_batch_size, budget_bytes, step_bytes):
    model.train()
    loss_sum, updates = torch.zeros(()), 0
    for start in range(0, len(samples), global_batch_size):
        window = samples[start : start + global_batch_size]
        optimizer.zero_grad(set_to_none=True)
        for first in range(0, len(window), 4):
            batch = collate(window[first : first + 4])
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
            (loss / len(window)).backward()
            loss_sum += loss.detach()
        optimizer.step()
        updates += 1
    return {"loss": float(loss_sum) / len(samples), "num_updates": updates}
"""

# For a worker in which our own steps are measured; nothing calls it.
SEARCH = """
def largest_micro_batch_size(try_step, budget_bytes, max_size):
    raise NotImplementedError
"""
