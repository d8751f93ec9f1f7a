"""Wrong solutions of 1.5 and 1.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

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

# Right and too slow: these must never pass.
SLOW_LOADER = edited(_LOADER, (", num_workers=4, persistent_workers=True", ""))
SLOW_EPOCH = edited(_FAST, ("max(len(ids) for ids, _ in batch)", "model.config.max_length"))

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "1.5": wrong(SLOW_LOADER, {"one after the other": ("one after the other",)}, is_timed=True)
    + wrong(
        _LOADER,
        {
            "drops the tail": ("tail is dropped", "num_workers=4", "num_workers=4, drop_last=True"),
            "shuffles": ("the loader shuffles", "num_workers=4", "num_workers=4, shuffle=True"),
            "used up after one pass": (
                "used up after one pass",
                ("return DataLoader(", "return iter(DataLoader("),
                ("=True\n    )", "=True\n    ))"),
            ),
        },
    ),
    "1.6": wrong(SLOW_EPOCH, {"padding to a global maximum": ("padding to a global maximum",)}, is_timed=True)
    + wrong(
        _FAST,
        {
            "drops the tail": (
                "tail is dropped",
                "np.arange(0, len(order),",
                "np.arange(0, len(order) - micro_batch_size + 1,",
            ),
            "texts cut short": (
                "texts are cut short",
                ("max(len(ids) for ids, _ in batch)", "min(32, max(len(ids) for ids, _ in batch))"),
                ("ids_array[row, : len(ids)]", "ids_array[row, : min(len(ids), width)]"),
            ),
            "bigger batches, fewer steps": (
                "other batch sizes",
                "    rng = np.random",
                "    micro_batch_size *= 4\n    rng = np.random",
            ),
            "saves a checkpoint at every step": (
                "a checkpoint is saved",
                "        total +=",
                "        torch.save(model.state_dict(), 'last.pt')\n        total +=",
            ),
        },
    ),
}
