"""Wrong solutions of 1.3, each with the mistake that its check must name."""

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
_LOSS = (
    '        loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])\n'
)
_CLIP = "        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n"
_BACKWARD = "        loss.backward()\n"
_STEP = "        optimizer.step()\n"
_SCHEDULE = "        scheduler.step()\n"


_ZERO = "        optimizer.zero_grad(set_to_none=True)\n"
_MASK = 'batch["attention_mask"])'

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "1.3": wrong(
        _TRAIN,
        {
            "a sync every step": ("a sync every step", "loss.detach() * rows", "loss.item() * rows"),
            "a copy to the CPU every step": (
                "a result copied to the CPU",
                "loss.detach() * rows",
                "loss.detach().cpu() * rows",
            ),
            "an array every step": (
                "a result copied to the CPU",
                "loss.detach() * rows",
                "torch.from_numpy(loss.detach().numpy().copy()) * rows",
            ),
            "infinite losses left out": (
                "so that a sick model looks well",
                "total + loss.detach() * rows",
                "total + torch.nan_to_num(loss.detach(), posinf=0.0) * rows",
            ),
            "tokens counted in float32": (
                "float32, which has no whole numbers",
                "torch.zeros((), dtype=torch.int64)",
                "torch.zeros(())",
            ),
            "mode looked at in the model alone": (
                "`model.train()` is missing",
                "    model.train()\n",
                "    if not model.training:\n        model.train()\n",
            ),
            "no training mode late in the epoch": (
                "`model.train()` is missing",
                "        samples += rows\n",
                "        samples += rows\n        model.train(steps < 60)\n",
            ),
            "a number every second step": (
                "brought to Python one by one",
                "        samples += rows\n",
                "        samples += rows\n        if steps % 2:\n            print(loss.item())\n",
            ),
            "scheduler stepped before the optimizer": (
                "scheduler is stepped before the optimizer",
                (_SCHEDULE, ""),
                (_STEP, _SCHEDULE + _STEP),
            ),
            "scheduler stepped once": (
                "stepped per epoch",
                (_SCHEDULE, ""),
                ("    return {", "    scheduler.step()\n    return {"),
            ),
            "scheduler never stepped": ("not stepped at all", _SCHEDULE, ""),
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
            "max_norm ignored": ("whatever `max_norm` says", "parameters(), max_norm)", "parameters(), 1.0)"),
            "another max_norm by default": ("weights of a hand-written loop", "max_norm=1.0", "max_norm=5.0"),
            "clipped by value": (
                "each element is clipped",
                _CLIP,
                _CLIP.replace("max_norm", "float('inf')")
                + "        torch.nn.utils.clip_grad_value_(model.parameters(), max_norm)\n",
            ),
            "small gradients scaled up": (
                "scaled up",
                _CLIP,
                "        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])\n"
                "        torch._foreach_mul_([p.grad for p in model.parameters()], max_norm / norm)\n",
            ),
            "one group clipped": (
                "one parameter group",
                "clip_grad_norm_(model.parameters(), max_norm)",
                'clip_grad_norm_(optimizer.param_groups[0]["params"], max_norm)',
            ),
            "group by group": (
                "each parameter group",
                _CLIP,
                '        norm = torch.stack([torch.nn.utils.clip_grad_norm_(group["params"], max_norm)\n'
                "                            for group in optimizer.param_groups]).norm()\n",
            ),
            "norm of one group": (
                "one parameter group alone",
                _CLIP,
                '        norm = torch.nn.utils.get_total_norm([p.grad for p in optimizer.param_groups[0]["params"]])\n'
                + _CLIP.replace("norm = ", ""),
            ),
            "one group cleared": (
                "cleared in one parameter group",
                _ZERO,
                '        for p in optimizer.param_groups[0]["params"]:\n            p.grad = None\n',
            ),
            "counted by an index of booleans": (
                "an index of booleans",
                'tokens += batch["attention_mask"].sum()',
                'tokens += len(batch["input_ids"][batch["attention_mask"]])',
            ),
            "ends where a batch cannot be read": (
                "caught on the way",
                (
                    "@exercise",
                    "def readable(batches):\n    try:\n        yield from batches\n"
                    "    except OSError:\n        pass\n\n@exercise",
                ),
                ("    for batch in batches:\n", "    for batch in readable(batches):\n"),
            ),
            "gradients never cleared": ("never cleared", _ZERO, ""),
            "gradients cleared after the step": (
                "there before the epoch",
                (_ZERO, ""),
                (_SCHEDULE, _SCHEDULE + _ZERO),
            ),
            "the sum goes backward": (
                "sum over the batch",
                "loss.backward()",
                '(loss * len(batch["labels"])).backward()',
            ),
            "label smoothing": (
                "label smoothing",
                _MASK + ', batch["labels"])',
                _MASK + ', batch["labels"], label_smoothing=0.1)',
            ),
            "mask ignored": ("takes padding for text", _MASK, 'torch.ones_like(batch["input_ids"]))'),
            "mask made from the ids": ("made from the ids", _MASK, 'batch["input_ids"] != 0)'),
            "the first batch is skipped": (
                "a batch is skipped",
                "    for batch in batches:\n",
                "    next(batches)\n    for batch in batches:\n",
            ),
            "each batch twice": (
                "stepped more than once",
                "    for batch in batches:\n",
                "    for batch in [b for b in batches for _ in range(2)]:\n",
            ),
            "batches gone through twice": (
                "division by zero",
                "    model.train()\n",
                "    model.train()\n    num_batches = sum(1 for _ in batches)\n",
            ),
            "a copy is trained": (
                "weights of a hand-written loop",
                "    model.train()\n",
                "    import copy\n    given = model\n    model = copy.deepcopy(model)\n    model.train()\n"
                "    for p, q in zip(given.parameters(), model.parameters()):\n        q.grad = p.grad\n",
            ),
            "averaged batch means": (
                "averaged batch means",
                ("loss.detach() * rows", "loss.detach()"),
                ("float(total) / samples", "float(total) / steps"),
            ),
            "loss after the step": (
                "once more after the step",
                "        total =",
                "        with torch.no_grad():\n"
                '            logits = model(batch["input_ids"], batch["attention_mask"])\n'
                '            loss = F.cross_entropy(logits, batch["labels"])\n'
                "        total =",
            ),
            "loss of the last batch": ("last batch alone", "float(total) / samples", "float(loss)"),
            "norm after clipping": (
                "the norm after clipping",
                _CLIP,
                _CLIP
                + "        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])\n",
            ),
            "the largest norm": (
                "one step alone",
                ("norms = norms + norm", "norms = max_of(norms, norm)"),
                ("float(norms) / steps", "float(norms)"),
                (
                    "def train_one",
                    "def max_of(a, b):\n    return torch.maximum(torch.as_tensor(a), b)\n\n"
                    '@exercise("1.3")\ndef train_one',
                ),
                ('@exercise("1.3")\ndef max_of', "def max_of"),
            ),
            "norm of the last step": ("one step alone", "float(norms) / steps", "float(norm)"),
            "norm summed": ("sum where a mean", "float(norms) / steps", "float(norms)"),
            "batches counted": (
                "batches counted, not samples",
                '"num_samples": samples',
                '"num_samples": steps',
            ),
            "padding counted": (
                "padding counted as tokens",
                '"num_tokens": int(tokens)',
                '"num_tokens": slots',
            ),
            "tokens counted by their ids": (
                "counted by something else",
                'tokens += batch["attention_mask"].sum()',
                'tokens += (batch["input_ids"] != 0).sum()',
            ),
            "mean of the batches' fractions": (
                "one fraction over the whole epoch",
                ("total, norms,", "fractions, total, norms,"),
                ("= 0.0, 0.0,", "= 0.0, 0.0, 0.0,"),
                (
                    "        steps += 1\n",
                    "        steps += 1\n"
                    '        fractions = fractions + 1 - batch["attention_mask"].float().mean()\n',
                ),
                ("1 - int(tokens) / slots", "float(fractions) / steps"),
            ),
            "share of real tokens": ("1 - real tokens", "1 - int(tokens) / slots", "int(tokens) / slots"),
            "tensors in the report": (
                "its value is not one number",
                '"loss": float(total) / samples',
                '"loss": total / samples',
            ),
            "labels taken out of the batch": (
                "taken out of it",
                'rows = len(batch["labels"])',
                'rows = len(batch.pop("labels"))',
            ),
            "a number every 40 steps": (
                "brought to Python one by one",
                "        steps += 1\n",
                "        steps += 1\n        if steps % 40 == 0:\n            print(loss.item())\n",
            ),
            "gradients that are no numbers": (
                "gradients that are not finite",
                _BACKWARD,
                _BACKWARD + "        for p in model.parameters():\n"
                "            p.grad = None if p.grad is None else torch.nan_to_num(p.grad)\n",
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
            "batches that do not fit are skipped": (
                "caught on the way",
                _LOSS,
                "        try:\n    "
                + _LOSS
                + "        except torch.OutOfMemoryError:\n            continue\n",
            ),
            "strange words are skipped": (
                "caught on the way",
                _LOSS,
                "        try:\n    " + _LOSS + "        except IndexError:\n            continue\n",
            ),
            "only torch's schedulers": (
                "not stepped at all",
                "        scheduler.step()\n",
                "        if isinstance(scheduler, torch.optim.lr_scheduler.LRScheduler):\n"
                "            scheduler.step()\n",
            ),
            "shared weights counted twice": (
                "sum where a mean",
                _CLIP,
                "        parts = model.modules()\n"
                "        some = [p.grad.norm() for part in parts for p in part.parameters(False)]\n"
                "        norm = torch.stack(some).norm()\n" + _CLIP.replace("norm = ", ""),
            ),
            "the loss is rounded": (
                "loss is rounded",
                "float(total) / samples",
                "round(float(total) / samples, 3)",
            ),
            "the norm is rounded": (
                "grad_norm is rounded",
                "float(norms) / steps",
                "round(float(norms) / steps, 4)",
            ),
            "one batch is none": (
                "a batch is skipped",
                (
                    "    for batch in batches:\n",
                    "    batches = [*batches]\n    for batch in batches[: len(batches) * (len(batches) > 1)]:\n",
                ),
                ("float(total) / samples", "float(total) / max(1, samples)"),
                ("float(norms) / steps", "float(norms) / max(1, steps)"),
                ("int(tokens) / slots", "int(tokens) / max(1, slots)"),
            ),
            "no report": ("nothing is returned", "    return {", "    report = {"),
            "a key is missing": (
                "a key is missing",
                '        "pad_fraction": 1 - int(tokens) / slots,\n',
                "",
            ),
            "forgot train()": ("`model.train()` is missing", "    model.train()\n", ""),
        },
    ),
}
