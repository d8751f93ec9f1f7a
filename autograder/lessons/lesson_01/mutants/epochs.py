"""Wrong solutions of 1.5 and 1.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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
    "1.5": (
        Mutant(
            name="one after the other",
            source=edited(_LOADER, (", num_workers=4, persistent_workers=True", "")),
            says="one after the other",
            is_timed=True,
        ),
        Mutant(
            name="drops the tail",
            source=edited(_LOADER, ("num_workers=4", "num_workers=4, drop_last=True")),
            says="tail is dropped",
        ),
        Mutant(
            name="shuffles",
            source=edited(_LOADER, ("num_workers=4", "num_workers=4, shuffle=True")),
            says="the loader shuffles",
        ),
        Mutant(
            name="used up after one pass",
            source=edited(
                _LOADER, ("return DataLoader(", "return iter(DataLoader("), ("=True\n    )", "=True\n    ))")
            ),
            says="used up after one pass",
        ),
    ),
    "1.6": (
        Mutant(
            name="padding to a global maximum",
            source=edited(_FAST, ("max(len(ids) for ids, _ in batch)", "model.config.max_length")),
            says="padding to a global maximum",
            is_timed=True,
        ),
        Mutant(
            name="drops the tail",
            source=edited(
                _FAST, ("np.arange(0, len(order),", "np.arange(0, len(order) - micro_batch_size + 1,")
            ),
            says="tail is dropped",
        ),
        Mutant(
            name="texts cut short",
            source=edited(
                _FAST,
                ("max(len(ids) for ids, _ in batch)", "min(32, max(len(ids) for ids, _ in batch))"),
                ("ids_array[row, : len(ids)]", "ids_array[row, : min(len(ids), width)]"),
            ),
            says="texts are cut short",
        ),
        Mutant(
            name="bigger batches, fewer steps",
            source=edited(_FAST, ("    rng = np.random", "    micro_batch_size *= 4\n    rng = np.random")),
            says="other batch sizes",
        ),
        Mutant(
            name="saves a checkpoint at every step",
            source=edited(
                _FAST,
                ("        total +=", "        torch.save(model.state_dict(), 'last.pt')\n        total +="),
            ),
            says="a checkpoint is saved",
        ),
    ),
}

# Right and too slow: these must never pass.
SLOW: dict[str, str] = {
    "1.6": edited(_FAST, ("max(len(ids) for ids, _ in batch)", "model.config.max_length")),
}
