"""Wrong solutions of 1.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

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

# Right and too slow: this must never pass.
SLOW_EPOCH = edited(_FAST, ("max(len(ids) for ids, _ in batch)", "model.config.max_length"))

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "1.6": wrong(SLOW_EPOCH, {"padding to a global maximum": ("padding to a global maximum",)}, is_timed=True)
    + wrong(
        _FAST,
        {
            "drops the tail": (
                "tail is dropped",
                "np.arange(0, len(order),",
                "np.arange(0, len(order) - micro_batch_size + 1,",
            ),
            "fills up the tail": (
                "fill up the last batch",
                "    starts =",
                "    order = np.concatenate([order, order[: -len(order) % micro_batch_size]])\n    starts =",
            ),
            "drawn with replacement": (
                "with replacement",
                "    starts =",
                "    order = order[np.sort(rng.integers(len(order), size=len(order)))]\n    starts =",
            ),
            "every second batch": (
                "not only the last",
                "    for start in starts:",
                "    for start in starts[::2]:",
            ),
            "texts cut short": (
                "texts are cut short",
                ("max(len(ids) for ids, _ in batch)", "min(16, max(len(ids) for ids, _ in batch))"),
                ("ids_array[row, : len(ids)]", "ids_array[row, : min(len(ids), width)]"),
            ),
            "padding marked as real": (
                "padding is marked as real",
                "mask[row, : len(ids)] = True",
                "mask[row] = True",
            ),
            "mask made from the ids": (
                "made from the ids",
                "torch.from_numpy(mask))",
                "torch.from_numpy(ids_array != 0))",
            ),
            "bigger batches, fewer steps": (
                "other batch sizes",
                "    rng = np.random",
                "    micro_batch_size *= 4\n    rng = np.random",
            ),
            "smaller batches, more steps": (
                "more steps than the naive loop",
                "    rng = np.random",
                "    micro_batch_size = max(1, micro_batch_size // 2)\n    rng = np.random",
            ),
            "saves a checkpoint at every step": (
                "a checkpoint is saved",
                "        total +=",
                "        torch.save(model.state_dict(), 'last.pt')\n        total +=",
            ),
            "saves once at the end": (
                "a checkpoint is saved",
                "    return {",
                "    np.save('weights.npy', next(model.parameters()).detach().numpy())\n    return {",
            ),
            "the seed is ignored": ("`seed` is not used", "default_rng(seed)", "default_rng(0)"),
            "an unseeded generator": ("without the seed", "default_rng(seed)", "default_rng()"),
            "a seed of 0 is none": ("without the seed", "default_rng(seed)", "default_rng(seed or None)"),
            "infinite losses left out": (
                "so that a sick model looks well",
                "total += loss.detach() * len(batch)",
                "total += torch.nan_to_num(loss.detach(), posinf=0.0) * len(batch)",
            ),
            "from short to long": (
                "curriculum nobody asked for",
                "rng.permutation(np.arange(0, len(order), micro_batch_size))",
                "np.arange(0, len(order), micro_batch_size)",
            ),
            "from long to short": (
                "curriculum nobody asked for",
                "rng.permutation(np.arange(0, len(order), micro_batch_size))",
                "np.arange(0, len(order), micro_batch_size)[::-1]",
            ),
            "forgot train()": ("`model.train()` is missing", "    model.train()\n", ""),
            "not clipped": (
                "not clipped at 1.0",
                "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n",
                "",
            ),
            "small gradients scaled up": (
                "scaled up",
                "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n",
                "        gradients = [p.grad for p in model.parameters()]\n"
                "        torch._foreach_mul_(gradients, 1.0 / torch.nn.utils.get_total_norm(gradients))\n",
            ),
            "clipped by value": (
                "each element is clipped",
                "clip_grad_norm_(model.parameters(), 1.0)",
                "clip_grad_value_(model.parameters(), 1.0)",
            ),
            "one group clipped": (
                "one parameter group",
                "clip_grad_norm_(model.parameters(), 1.0)",
                "clip_grad_norm_(optimizer.param_groups[0]['params'], 1.0)",
            ),
            "widths rounded down": (
                "texts are cut short",
                ("max(len(ids) for ids, _ in batch)\n", "cut(max(len(ids) for ids, _ in batch))\n"),
                ("ids_array[row, : len(ids)]", "ids_array[row, : min(len(ids), width)]"),
                (
                    "@exercise",
                    "def cut(width):\n    return width if width < 64 else width - width % 8\n\n@exercise",
                ),
            ),
            "the longest batch first": (
                "has its fixed place",
                "    model.train()\n",
                "    starts = sorted(starts, key=lambda start: start != max(starts))\n    model.train()\n",
            ),
            "the hash of a text": (
                "new each time Python starts",
                "default_rng(seed)",
                "default_rng(hash(f'epoch {seed}') % 2**32)",
            ),
            "lost samples left out": (
                "caught on the way",
                (
                    "[samples[int(i)] for i in order[start : start + micro_batch_size]]",
                    "readable(samples, "
                    "order[start : start + micro_batch_size])\n        if not batch:\n            continue",
                ),
                (
                    "@exercise",
                    "def readable(samples, indices):\n    found = []\n    for i in indices:\n        try:\n"
                    "            found.append(samples[int(i)])\n        except OSError:\n            pass\n"
                    "    return found\n\n@exercise",
                ),
            ),
            "clipped at another norm": ("another loss", "parameters(), 1.0)", "parameters(), 0.3)"),
            "gradients never cleared": (
                "never cleared",
                "        optimizer.zero_grad(set_to_none=True)\n",
                "",
            ),
            "gradients cleared after the step": (
                "there before the epoch",
                ("        optimizer.zero_grad(set_to_none=True)\n", ""),
                ("        optimizer.step()\n", "        optimizer.step()\n        optimizer.zero_grad()\n"),
            ),
            "the sum goes backward": (
                "sum over the batch",
                "loss.backward()",
                "(loss * len(batch)).backward()",
            ),
            "label smoothing": (
                "label smoothing",
                "(logits, labels)",
                "(logits, labels, label_smoothing=0.1)",
            ),
            "no backward": (
                "no gradient reaches the weights",
                "        loss.backward()\n",
                "        optimizer.zero_grad()\n",
            ),
            "an optimizer of its own": (
                "by another optimizer",
                "    model.train()\n",
                "    model.train()\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)\n",
            ),
            "labels of the neighbours": (
                "other labels",
                "[label for _, label in batch]",
                "[label for _, label in batch[::-1]]",
            ),
            "averaged batch means": (
                "averaged batch means",
                ("loss.detach() * len(batch)", "loss.detach()"),
                ("total.item() / len(order)", "total.item() / len(starts)"),
            ),
            "the summed loss": ("not the mean over samples", "total.item() / len(order)", "total.item()"),
            "batches counted": (
                "something else is counted",
                '"num_samples": len(order)',
                '"num_samples": len(starts)',
            ),
            "seeds cut to 256": ("cut to a few values", "default_rng(seed)", "default_rng(seed % 256)"),
            "seeds cut to 60": ("cut to a few values", "default_rng(seed)", "default_rng(seed % 60)"),
            "the global generator besides": (
                "without the seed",
                "rng.random(len(samples))",
                "torch.rand(len(samples)).numpy()",
            ),
            "its state dropped at the start": (
                "another loss",
                "    model.train()\n",
                "    model.train()\n    optimizer.state.clear()\n",
            ),
            "the order kept in the samples": (
                "something is kept in `samples`",
                "    model.train()\n",
                "    model.train()\n    samples.order = order\n",
            ),
            "texts kept by their place": (
                "is kept outside the function",
                ("@exercise", "KEPT = {}\n\n@exercise"),
                ("samples[int(i)] for i", "KEPT.setdefault((len(samples), int(i)), samples[int(i)]) for i"),
            ),
            "the loss is rounded": (
                "loss is rounded",
                "total.item() / len(order)",
                "round(total.item() / len(order), 3)",
            ),
            "a short batch at the end of each pool": (
                "more steps than the naive loop takes",
                ("rng.permutation(np.arange(0, len(order), micro_batch_size))", "rng.permutation(cuts)"),
                (
                    "    starts =",
                    "    pools = [min(start + 1000, len(order)) - start for start in range(0, len(order), 1000)]\n"
                    "    cuts = [1000 * i + at for i, n in enumerate(pools) for at in range(0, n, micro_batch_size)]\n"
                    "    starts =",
                ),
                (
                    "order[start : start + micro_batch_size]",
                    "order[start : min(start + micro_batch_size, start // 1000 * 1000 + 1000)]",
                ),
            ),
            "short batches first": (
                "such as short ones at the start",
                "    model.train()\n",
                "    starts = sorted(starts, key=lambda start: start >= len(order) // 4)\n    model.train()\n",
            ),
            "the rate is halved at the end": (
                "changed beside its steps",
                "    return {",
                "    for group in optimizer.param_groups:\n        group['lr'] *= 0.5\n    return {",
            ),
            "the lengths are sorted": (
                "`samples.lengths` is sorted",
                "    return {",
                "    samples.lengths.sort()\n    return {",
            ),
            "no report": ("nothing is returned", "    return {", "    report = {"),
            "a key is missing": ("a key is missing", ', "num_samples": len(order)', ""),
        },
    ),
}
