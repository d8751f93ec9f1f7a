"""Right solutions of lesson 03 that make one known mistake on request: what equals theirs has made it.

What they return beside the report are numbers that a wrong report may hold.
"""

from __future__ import annotations

# Which micro-batches make an update; for 3.1 and 3.3.
_WINDOWS = """
import contextlib
import torch
import torch.nn.functional as F

MISTAKE = "none"

def windows_of(micro_batches, steps):
    whole = [micro_batches[start : start + steps] for start in range(0, len(micro_batches), steps)]
    has_tail = len(whole) > 1 and len(whole[-1]) < steps
    if MISTAKE == "tail dropped" and has_tail:
        return whole[:-1]
    if MISTAKE == "tail joined" and has_tail:
        return [*whole[:-2], whole[-2] + whole[-1]]
    if MISTAKE == "first alone":
        rest = micro_batches[1:]
        later = [rest[start : start + steps] for start in range(0, len(rest), steps)]
        return [micro_batches[:1], *(window for window in later if len(window) == steps)]
    if MISTAKE == "each alone":
        return [[batch] for batch in micro_batches]
    return whole

def mean(values):
    return sum(values) / len(values)

def with_gradients(parameters):
    return [parameter for parameter in parameters if parameter.grad is not None]

def clear(parameters):
    for parameter in parameters:
        parameter.grad = None
"""

TRAIN_ACCUMULATED = (
    _WINDOWS
    + """
def train_accumulated(model, micro_batches, optimizer, grad_accum_steps):
    model.train()
    if MISTAKE == "thawed":
        model.requires_grad_(True)
    micro_batches = list(micro_batches)
    sums, counts, means, window_means, positions_seen = [], [], [], [], 0
    all_labels = sum(int((batch["labels"] != -100).sum()) for batch in micro_batches)
    for number, window in enumerate(windows_of(micro_batches, grad_accum_steps)):
        labels = [int((batch["labels"] != -100).sum()) for batch in window]
        positions = sum(batch["labels"].numel() for batch in window)
        tokens = sum(int(batch["attention_mask"].sum()) for batch in window)
        rows = sum(len(batch["labels"]) for batch in window)
        if MISTAKE == "one group cleared":
            clear(optimizer.param_groups[0]["params"])
        elif MISTAKE != "never cleared" and not (MISTAKE == "left over" and number == 0):
            optimizer.zero_grad()
        for batch, count in zip(window, labels):
            if MISTAKE == "cleared inside":
                optimizer.zero_grad()
            divisor = {
                "not divided": count,
                "sum": 1,
                "one group divided": 1,
                "mean of means": count * len(window),
                "full window": count * grad_accum_steps,
                "positions": positions,
                "tokens": tokens,
                "rows": rows,
                "sum over steps": len(window),
                "pass": all_labels,
            }.get(MISTAKE, sum(labels))
            mask = batch["attention_mask"]
            if MISTAKE == "mask from ids":
                mask = batch["input_ids"] != 0
            if MISTAKE == "mask from lengths":
                mask = torch.arange(mask.shape[1])[None] < mask.sum(1, keepdim=True)
            logits = model(batch["input_ids"], mask)
            loss = F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), reduction="sum")
            (loss / max(divisor, 1)).backward()
            sums.append(float(loss))
            if count:
                means.append(float(loss) / count)
        if MISTAKE == "one group divided":
            for parameter in with_gradients(optimizer.param_groups[0]["params"]):
                parameter.grad /= sum(labels)
        positions_seen += positions
        counts += labels
        if MISTAKE == "clipped":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        window_means.append(sum(sums[-len(window) :]) / sum(labels))
        optimizer.step()
    return {
        "loss": sum(sums) / sum(counts),
        "num_updates": len(window_means),
        "mean of means": mean(means),
        "mean of windows": mean(window_means),
        "last window": window_means[-1],
        "sum": sum(sums),
        "positions": sum(sums) / positions_seen,
    }
"""
)

TRAIN_ACCUMULATED_MIXED = (
    _WINDOWS
    + """
def train_accumulated_mixed(model, micro_batches, optimizer, scheduler, scaler, grad_accum_steps, max_norm):
    is_one = MISTAKE == "one autocast"
    with torch.autocast("cpu", torch.bfloat16) if is_one else contextlib.nullcontext():
        return train(model, micro_batches, optimizer, scheduler, scaler, grad_accum_steps, max_norm)

def train(model, micro_batches, optimizer, scheduler, scaler, grad_accum_steps, max_norm):
    model.train()
    if MISTAKE == "thawed":
        model.requires_grad_(True)
    micro_batches = list(micro_batches)
    parameters, first_group = list(model.parameters()), optimizer.param_groups[0]["params"]
    sums, counts, window_means, norms, scaled, of_first, samples = [], [], [], [], [], [], []
    for number, window in enumerate(windows_of(micro_batches, grad_accum_steps)):
        rows = sum(len(batch["labels"]) for batch in window)
        if MISTAKE == "one group cleared":
            clear(first_group)
        elif MISTAKE != "never cleared" and not (MISTAKE == "left over" and number == 0):
            optimizer.zero_grad()
        for batch in window:
            if MISTAKE == "cleared inside":
                optimizer.zero_grad()
            own = len(batch["labels"])
            divisor = {
                "not divided": own,
                "sum": 1,
                "mean of means": own * len(window),
                "full window": own * grad_accum_steps,
                "sum over steps": len(window),
            }.get(MISTAKE, rows)
            mask = batch["attention_mask"]
            if MISTAKE == "mask from ids":
                mask = batch["input_ids"] != 0
            if MISTAKE == "mask from lengths":
                mask = torch.arange(mask.shape[1])[None] < mask.sum(1, keepdim=True)
            with torch.autocast("cpu", torch.bfloat16):
                logits = model(batch["input_ids"], mask)
                loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
            if MISTAKE == "loss in bfloat16":
                loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
            scaler.scale(loss / divisor).backward()
            if MISTAKE == "clipped at every micro-step":
                torch.nn.utils.clip_grad_norm_(parameters, max_norm * scaler.get_scale())
            sums.append(float(loss))
            counts.append(own)
        window_means.append(sum(sums[-len(window) :]) / rows)
        scaled.append(float(torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])))
        if MISTAKE == "clipped while scaled":
            torch.nn.utils.clip_grad_norm_(parameters, max_norm)
        if MISTAKE == "never unscaled":
            scaler.unscale_(optimizer)
            torch._foreach_mul_([p.grad for p in parameters if p.grad is not None], scaler.get_scale())
        else:
            scaler.unscale_(optimizer)
        samples.append(rows)
        of_first.append(float(torch.nn.utils.get_total_norm([p.grad for p in first_group if p.grad is not None])))
        if MISTAKE == "one group clipped":
            torch.nn.utils.clip_grad_norm_(first_group, max_norm)
        wrong = ("clipped at every micro-step", "clipped while scaled", "unclipped", "clipped by value")
        wrong = (*wrong, "one group clipped")
        limit = float("inf") if MISTAKE in wrong else 1.0 if MISTAKE == "clipped to 1" else max_norm
        norms.append(float(torch.nn.utils.clip_grad_norm_(parameters, limit)))
        if MISTAKE == "clipped by value":
            torch.nn.utils.clip_grad_value_(parameters, max_norm)
        if MISTAKE == "schedule first":
            scheduler.step()
        scaler.step(optimizer)
        scaler.update()
        if MISTAKE != "schedule first":
            scheduler.step()
    return {
        "loss": sum(sums) / sum(counts),
        "grad_norm": mean(norms),
        "num_updates": len(norms),
        "mean of means": mean([one / count for one, count in zip(sums, counts)]),
        "mean of windows": mean(window_means),
        "last window": window_means[-1],
        "sum": sum(sums),
        "clipped": mean([min(norm, max_norm) for norm in norms]),
        "scaled": mean(scaled),
        "last": norms[-1],
        "largest": max(norms),
        "norms": sum(norms),
        "by samples": sum(norm * rows for norm, rows in zip(norms, samples)) / sum(samples),
        "first group": mean(of_first),
        "root": mean([norm**2 for norm in norms]) ** 0.5,
    }
"""
)

# Without checkpoints: only what a mistake does to the numbers is asked for.
CHECKPOINT_BLOCKS = """
import torch

MISTAKE = "none"

def checkpoint_blocks(model):
    blocks = list(model.blocks)
    if MISTAKE in ("no dropout", "no dropout in blocks"):
        for module in (model if MISTAKE == "no dropout" else model.blocks).modules():
            if hasattr(module, "threshold"):
                module.threshold = 0
    if MISTAKE == "blocks backwards":
        model.blocks = torch.nn.ModuleList(blocks[::-1])
    for block in blocks:
        forward = block.forward
        if MISTAKE == "every key":
            block.forward = lambda hidden, key_mask, f=forward: f(hidden, torch.ones_like(key_mask))
        if MISTAKE == "no mask":
            block.forward = lambda hidden, key_mask, f=forward: f(hidden, None)
        if MISTAKE == "last block":
            block.forward = lambda *inputs, b=blocks[-1]: type(b).forward(b, *inputs)
        if MISTAKE == "first block":
            block.forward = lambda *inputs, b=blocks[0]: type(b).forward(b, *inputs)
    return model
"""

# Micro-batches of 4 in the order of the samples, and what may go wrong with them.
TRAIN_IN_BUDGET = """
import torch
import torch.nn.functional as F
from course_lib.data import collate

MISTAKE = "none"

def train_in_budget(model, samples, optimizer, global_batch_size, budget_bytes, step_bytes):
    model.train()
    if MISTAKE == "thawed":
        model.requires_grad_(True)
    if MISTAKE == "sorted as a whole":
        samples = sorted(samples, key=lambda sample: len(sample[0]))
    sums, window_means, means, steps = [], [], [], 0
    for start in range(0, len(samples), global_batch_size):
        window = samples[start : start + global_batch_size]
        if MISTAKE == "one group cleared":
            for parameter in optimizer.param_groups[0]["params"]:
                parameter.grad = None
        elif MISTAKE != "never cleared" and not (MISTAKE == "left over" and start == 0):
            optimizer.zero_grad()
        for first in range(0, len(window), 4):
            rows = window[first : first + 4]
            batch = collate(rows)
            mask = batch["input_ids"] != 0 if MISTAKE == "mask from ids" else batch["attention_mask"]
            loss = F.cross_entropy(model(batch["input_ids"], mask), batch["labels"], reduction="sum")
            divisors = {"sum": 1, "one group divided": 1, "full update": global_batch_size}
            divisor = divisors.get(MISTAKE, len(window))
            (loss / divisor).backward()
            sums.append(float(loss))
            means.append(float(loss) / len(rows))
        if MISTAKE == "one group divided":
            for parameter in optimizer.param_groups[0]["params"]:
                if parameter.grad is not None:
                    parameter.grad /= len(window)
        window_means.append(sum(sums[-((len(window) + 3) // 4) :]) / len(window))
        if MISTAKE == "clipped":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
    return {
        "loss": sum(sums) / len(samples),
        "num_updates": steps,
        "mean of windows": sum(window_means) / len(window_means),
        "mean of means": sum(means) / len(means),
        "last window": window_means[-1],
        "sum": sum(sums),
    }
"""
