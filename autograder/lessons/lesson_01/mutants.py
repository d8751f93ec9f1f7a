"""Wrong solutions of lesson 1, each with the mistake that its check must name.

Most are one edit away from a right solution, as learners' mistakes are: `_swap` makes the edit and insists that the
text was there. `SLOW` holds solutions that are right and too slow; they must never pass.
"""

from __future__ import annotations

from autograder.lessons import Mutant


def _swap(source: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        if old not in source:
            raise ValueError(f"the source has no {old!r} to replace")
        source = source.replace(old, new)
    return source


_COLLATE = """
import torch

@exercise("1.1")
def collate(batch):
    width = max(len(ids) for ids, _ in batch)
    input_ids = torch.zeros(len(batch), width, dtype=torch.int64)
    mask = torch.zeros(len(batch), width, dtype=torch.bool)
    for row, (ids, _) in enumerate(batch):
        input_ids[row, : len(ids)] = torch.as_tensor(ids)[:width]
        mask[row, : len(ids)] = True
    labels = torch.tensor([label for _, label in batch])
    return {"input_ids": input_ids, "attention_mask": mask, "labels": labels}
"""

_SAMPLER = """
import numpy as np

@exercise("1.2")
class BucketBatchSampler:
    def __init__(self, lengths, micro_batch_size, seed=0):
        self.lengths, self.micro_batch_size, self.seed, self.epoch = np.asarray(lengths), micro_batch_size, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.micro_batch_size)

    def __iter__(self):
        rng = np.random.default_rng([self.seed, self.epoch])
        order = np.lexsort((rng.random(len(self.lengths)), self.lengths))
        batches = [order[i : i + self.micro_batch_size] for i in range(0, len(order), self.micro_batch_size)]
        rng.shuffle(batches := list(batches))
        for batch in batches:
            yield batch.tolist()
"""

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

_LOADER = """
from torch.utils.data import DataLoader

@exercise("1.5")
def make_loader(dataset, micro_batch_size, collate_fn):
    return DataLoader(
        dataset, batch_size=micro_batch_size, collate_fn=collate_fn, num_workers=4, persistent_workers=True
    )
"""

_FAST = """
import numpy as np
import torch
import torch.nn.functional as F

@exercise("1.6")
def fast_epoch(model, samples, optimizer, micro_batch_size, seed):
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(samples)), np.asarray(samples.lengths)))
    starts = rng.permutation(np.arange(0, len(order), micro_batch_size))
    model.train()
    total = torch.zeros(())
    for start in starts:
        batch = [samples[int(i)] for i in order[start : start + micro_batch_size]]
        width = max(len(ids) for ids, _ in batch)
        ids_array = np.zeros((len(batch), width), dtype=np.int64)
        mask = np.zeros((len(batch), width), dtype=bool)
        for row, (ids, _) in enumerate(batch):
            ids_array[row, : len(ids)] = ids[:width]
            mask[row, : len(ids)] = True
        labels = torch.tensor([label for _, label in batch])
        logits = model(torch.from_numpy(ids_array), torch.from_numpy(mask))
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.detach() * len(batch)
    return {"loss": total.item() / len(order), "num_samples": len(order)}
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "1.1": (
        Mutant(
            name="padding to a global maximum",
            source=_swap(_COLLATE, ("max(len(ids) for ids, _ in batch)", "1024")),
            says="global maximum",
        ),
        Mutant(
            name="attention mask ignores padding",
            source=_swap(_COLLATE, ("mask[row, : len(ids)] = True", "mask[row] = True")),
            says="marks padding as real",
        ),
        Mutant(
            name="long samples are cut",
            source=_swap(
                _COLLATE,
                ("max(len(ids) for ids, _ in batch)", "min(len(ids) for ids, _ in batch)"),
                ("input_ids[row, : len(ids)]", "input_ids[row, : min(len(ids), width)]"),
            ),
            says="long samples are cut",
        ),
        Mutant(
            name="mask of the wrong type",
            source=_swap(_COLLATE, ("dtype=torch.bool", "dtype=torch.int64")),
            says="another dtype",
        ),
    ),
    "1.2": (
        Mutant(
            name="bucketing that never reshuffles",
            source=_swap(_SAMPLER, ("[self.seed, self.epoch]", "self.seed")),
            says="never reshuffles",
        ),
        Mutant(
            name="drops the tail",
            source=_swap(
                _SAMPLER,
                (
                    "range(0, len(order), self.micro_batch_size)]",
                    "range(0, len(order) - self.micro_batch_size + 1, self.micro_batch_size)]",
                ),
            ),
            says="tail is dropped",
        ),
        Mutant(
            name="repeats the tail",
            source=_swap(
                _SAMPLER,
                (
                    "self.lengths))\n",
                    "self.lengths))\n        missing = -len(order) % self.micro_batch_size\n"
                    "        order = np.concatenate([order, order[:missing]])\n",
                ),
            ),
            says="already used",
        ),
        Mutant(
            name="batches from short to long",
            source=_swap(_SAMPLER, ("        rng.shuffle(batches := list(batches))\n", "")),
            says="curriculum nobody asked for",
        ),
        Mutant(
            name="random batches",
            source=_swap(
                _SAMPLER,
                (
                    "np.lexsort((rng.random(len(self.lengths)), self.lengths))",
                    "rng.permutation(len(self.lengths))",
                ),
            ),
            says="still mix short and long",
        ),
    ),
    "1.3": (
        Mutant(
            name="a sync every step",
            source=_swap(_TRAIN, ("loss.detach() * rows", "loss.item() * rows")),
            says="a sync every step",
        ),
        Mutant(
            name="scheduler stepped before the optimizer",
            source=_swap(_TRAIN, (_SCHEDULE, ""), (_STEP, _SCHEDULE + _STEP)),
            says="scheduler is stepped before the optimizer",
        ),
        Mutant(
            name="clipping before backward",
            source=_swap(_TRAIN, (_CLIP, ""), (_BACKWARD, _CLIP + _BACKWARD)),
            says="clipping comes before backward",
        ),
        Mutant(
            name="clipping after the step",
            source=_swap(_TRAIN, (_CLIP + _STEP, _STEP + _CLIP)),
            says="clipping comes after the optimizer's step",
        ),
        Mutant(
            name="gradients never cleared",
            source=_swap(_TRAIN, ("        optimizer.zero_grad(set_to_none=True)\n", "")),
            says="never cleared",
        ),
        Mutant(
            name="averaged batch means",
            source=_swap(
                _TRAIN,
                ("loss.detach() * rows", "loss.detach()"),
                ("float(total) / samples", "float(total) / steps"),
            ),
            says="averaged batch means",
        ),
        Mutant(
            name="forgot train()",
            source=_swap(_TRAIN, ("    model.train()\n", "")),
            says="`model.train()` is missing",
        ),
    ),
    "1.4": (
        Mutant(
            name="forgot eval()",
            source=_swap(_EVALUATE, ("    model.eval()\n", "    model.train()\n")),
            says="forgot `model.eval()`",
        ),
        Mutant(
            name="averaged batch means",
            source=_swap(_EVALUATE, ("loss / samples", "sum(means) / len(means)")),
            says="averaged batch means",
        ),
        Mutant(
            name="gradients still on",
            source=_swap(_EVALUATE, ("torch.inference_mode()", "torch.enable_grad()")),
            says="gradients are still on",
        ),
        Mutant(
            name="left in evaluation mode",
            source=_swap(_EVALUATE, ("    model.train(was_training)\n", "")),
            says="the mode is not put back",
        ),
    ),
    "1.5": (
        Mutant(
            name="one after the other",
            source=_swap(_LOADER, (", num_workers=4, persistent_workers=True", "")),
            says="one after the other",
            is_timed=True,
        ),
        Mutant(
            name="drops the tail",
            source=_swap(_LOADER, ("num_workers=4", "num_workers=4, drop_last=True")),
            says="tail is dropped",
        ),
        Mutant(
            name="shuffles",
            source=_swap(_LOADER, ("num_workers=4", "num_workers=4, shuffle=True")),
            says="the loader shuffles",
        ),
        Mutant(
            name="used up after one pass",
            source=_swap(
                _LOADER, ("return DataLoader(", "return iter(DataLoader("), ("=True\n    )", "=True\n    ))")
            ),
            says="used up after one pass",
        ),
    ),
    "1.6": (
        Mutant(
            name="padding to a global maximum",
            source=_swap(_FAST, ("max(len(ids) for ids, _ in batch)", "model.config.max_length")),
            says="padding to a global maximum",
            is_timed=True,
        ),
        Mutant(
            name="drops the tail",
            source=_swap(
                _FAST, ("np.arange(0, len(order),", "np.arange(0, len(order) - micro_batch_size + 1,")
            ),
            says="tail is dropped",
        ),
        Mutant(
            name="texts cut short",
            source=_swap(
                _FAST,
                ("max(len(ids) for ids, _ in batch)", "min(32, max(len(ids) for ids, _ in batch))"),
                ("ids_array[row, : len(ids)]", "ids_array[row, : min(len(ids), width)]"),
            ),
            says="texts are cut short",
        ),
        Mutant(
            name="bigger batches, fewer steps",
            source=_swap(_FAST, ("    rng = np.random", "    micro_batch_size *= 4\n    rng = np.random")),
            says="other batch sizes",
        ),
        Mutant(
            name="saves a checkpoint at every step",
            source=_swap(
                _FAST,
                ("        total +=", "        torch.save(model.state_dict(), 'last.pt')\n        total +="),
            ),
            says="a checkpoint is saved",
        ),
    ),
}

SLOW: dict[str, str] = {
    "1.1": _swap(
        _COLLATE,
        ("torch.zeros(len(batch), width, ", "torch.zeros(len(batch), 1024, "),
        (
            "        input_ids[row, : len(ids)] = torch.as_tensor(ids)[:width]\n        mask[row, : len(ids)] = True\n",
            "        for column in range(1024):\n"
            "            mask[row, column] = column < len(ids)\n"
            "            if mask[row, column]:\n"
            "                input_ids[row, column] = int(ids[column])\n",
        ),
        (
            '"input_ids": input_ids, "attention_mask": mask',
            '"input_ids": input_ids[:, :width], "attention_mask": mask[:, :width]',
        ),
    ),
    "1.2": _swap(
        _SAMPLER,
        (
            "        for batch in batches:\n",
            "        for batch in batches:\n            sum(i * i for i in range(400_000))\n",
        ),
    ),
    "1.6": _swap(_FAST, ("max(len(ids) for ids, _ in batch)", "model.config.max_length")),
}
