"""Wrong solutions of 2.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

_EPOCH = """
import torch
import torch.nn.functional as F

@exercise("2.4")
def train_epoch(model, batches, optimizer, precision, max_norm=1.0):
    is_mixed = precision == "bf16-mixed"
    model.train()
    total, num_samples = torch.zeros(()), 0
    for batch in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
            loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        total += loss.detach() * len(batch["labels"])
        num_samples += len(batch["labels"])
    return {"loss": total.item() / num_samples, "num_samples": num_samples}
"""

_CALL = 'model(batch["input_ids"], batch["attention_mask"])'
_CLIP = "        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n"
_MASK = 'batch["attention_mask"]'

_SWITCHED = (
    '        torch.set_autocast_dtype("cpu", torch.bfloat16)\n'
    '        torch.set_autocast_enabled("cpu", is_mixed)\n        loss'
)

_AROUND_ALL = """
    around_all = torch.autocast("cpu", torch.bfloat16, enabled=is_mixed)
    around_all.__enter__()
    for batch in batches:
"""

# Right and too slow: it must never pass.
SLOW_EPOCH = edited(
    _EPOCH,
    (
        "        optimizer.step()\n",
        "        optimizer.step()\n        sum(i * i for i in range(4_000_000))\n",
    ),
)

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "2.4": wrong(
        _EPOCH,
        {
            "fp32 whatever is asked for": (
                "does not reach the model's call",
                "enabled=is_mixed",
                "enabled=False",
            ),
            "autocast in 32-true as well": ("whatever was asked for", ", enabled=is_mixed", ""),
            "the model itself in bf16": (
                "the model itself is turned to bf16",
                "    model.train()\n",
                "    model.train()\n    if is_mixed:\n        model.bfloat16()\n",
            ),
            "the model in bf16 for the step alone": (
                "the model itself is turned to bf16",
                (
                    "        optimizer.step()\n",
                    "        model.bfloat16()\n        optimizer.step()\n        model.float()\n",
                ),
                (
                    "    model.train()\n",
                    "    model.train()\n    model.bfloat16 = model.bfloat16 if is_mixed else lambda: None\n",
                ),
            ),
            "a second forward for the log": (
                "a second forward for the log",
                "        total +=",
                '        with torch.no_grad():\n            model(batch["input_ids"], batch["attention_mask"])\n'
                "        total +=",
            ),
            "a look for infinities at every step": (
                "a sync every step",
                "        optimizer.step()\n",
                "        if torch.isfinite(loss):\n            optimizer.step()\n",
            ),
            "a sync every 64 batches": (
                "a sync every few steps",
                "        num_samples +=",
                '        if num_samples // len(batch["labels"]) % 64 == 63:\n            total.item()\n'
                "        num_samples +=",
            ),
            "the device that the machine has": (
                "what the machine has",
                'torch.autocast("cpu"',
                'torch.autocast("cuda" if torch.cuda.is_available() else "cpu"',
            ),
            "the logarithm of a probability": (
                "another loss than the batch mean",
                f'loss = F.cross_entropy({_CALL}, batch["labels"])',
                f"p = F.softmax({_CALL}.float(), -1) + 1e-8\n"
                '            loss = -p.log().gather(1, batch["labels"][:, None]).mean()',
            ),
            "mean of batch means": (
                "a mean of batch means",
                ('loss.detach() * len(batch["labels"])', "loss.detach()"),
                ("total.item() / num_samples", "total.item() / count"),
                (
                    "    for batch in batches:\n",
                    "    count = 0\n    for batch in batches:\n        count += 1\n",
                ),
            ),
            "loss outside autocast": (
                "outside autocast, from bf16 logits",
                "            loss = F.cross_entropy(" + _CALL,
                "            logits = " + _CALL + "\n        loss = F.cross_entropy(logits",
            ),
            "the sum of losses in bf16": (
                "added up in bf16",
                (
                    "total, num_samples = torch.zeros(()), 0",
                    "total, num_samples = torch.zeros((), dtype=torch.bfloat16), 0",
                ),
            ),
            "autocast with fp16": (
                "or the type is fp16",
                "torch.bfloat16, enabled",
                "torch.float16, enabled",
            ),
            "autocast left open for what comes later": (
                "whatever was asked for",
                '        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):\n',
                '        if is_mixed:\n            torch.set_autocast_enabled("cpu", True)\n        if True:\n',
            ),
            "mode not switched": ("`model.train()` is missing", "    model.train()\n", ""),
            "mode of the model alone": (
                "`model.train()` is missing",
                "    model.train()\n",
                "    model.training = True\n",
            ),
            "the first batch alone in training mode": (
                "`model.train()` is missing",
                "        total +=",
                "        model.eval()\n        total +=",
            ),
            "gradients never cleared": (
                "those of the step before are still there",
                "        optimizer.zero_grad(set_to_none=True)\n",
                "",
            ),
            "never clipped": ("the gradient is not clipped", _CLIP, ""),
            "max_norm ignored": ("whatever `max_norm` is", "parameters(), max_norm", "parameters(), 1.0"),
            "another max_norm by default": ("the gradient is not clipped", "max_norm=1.0", "max_norm=1e9"),
            "short gradients made longer": (
                "shorter than `max_norm` are made longer",
                _CLIP,
                "        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])\n"
                "        for p in model.parameters():\n            p.grad *= max_norm / norm\n",
            ),
            "each group of the optimizer clipped by itself": (
                "clipped by itself, and not the norm of all",
                _CLIP,
                "        for group in optimizer.param_groups:\n"
                "            torch.nn.utils.clip_grad_norm_(group['params'], max_norm)\n",
            ),
            "one group of the optimizer clipped": (
                "clipped by itself, and not the norm of all",
                "clip_grad_norm_(model.parameters(),",
                'clip_grad_norm_(optimizer.param_groups[0]["params"],',
            ),
            "gradients cleared after the step": (
                "take part in the first step",
                ("        optimizer.zero_grad(set_to_none=True)\n", ""),
                (
                    "        optimizer.step()\n",
                    "        optimizer.step()\n        optimizer.zero_grad(set_to_none=True)\n",
                ),
            ),
            "products in fp32 less precise from then on": (
                "fp32 products are made less precise",
                "    model.train()\n",
                '    model.train()\n    if is_mixed:\n        torch.set_float32_matmul_precision("medium")\n',
            ),
            "a NaN replaced in the report": (
                "is replaced or left out of the mean",
                "total += loss.detach()",
                "total += torch.nan_to_num(loss.detach())",
            ),
            "a NaN left out of the mean": (
                "is replaced or left out of the mean",
                'total += loss.detach() * len(batch["labels"])',
                'total += torch.where(loss.isfinite(), loss.detach() * len(batch["labels"]), 0.0)',
            ),
            "autocast switched by hand": (
                "autocast is switched for the whole process",
                (
                    '        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):\n            loss',
                    _SWITCHED,
                ),
                (
                    "        optimizer.zero_grad",
                    '        torch.set_autocast_enabled("cpu", False)\n        torch.clear_autocast_cache()\n'
                    "        optimizer.zero_grad",
                ),
            ),
            "one autocast for all steps": (
                "one autocast around several steps",
                ("    for batch in batches:\n", _AROUND_ALL),
                (
                    '        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):\n',
                    "        if True:\n",
                ),
                ("    return", "    around_all.__exit__(None, None, None)\n    return"),
            ),
            "one autocast for all steps, closed for the rest of each": (
                "one autocast around several steps",
                ("    for batch in batches:\n", _AROUND_ALL),
                (
                    _CLIP + "        optimizer.step()\n",
                    '        with torch.autocast("cpu", enabled=False):\n    '
                    + _CLIP
                    + "            optimizer.step()\n",
                ),
                ("    return", "    around_all.__exit__(None, None, None)\n    return"),
            ),
            "no training mode late in the epoch": (
                "`model.train()` is missing",
                "        num_samples += ",
                "        model.train(num_samples < 200)\n        num_samples += ",
            ),
            "an error swallowed": (
                "an error is caught and swallowed",
                ("        with torch.autocast", "        try:\n          with torch.autocast"),
                (
                    "        optimizer.zero_grad",
                    "        except RuntimeError:\n            continue\n        optimizer.zero_grad",
                ),
            ),
            "the sum minimised": (
                "the sum over the batch is minimised",
                "        loss.backward()",
                '        (loss * len(batch["labels"])).backward()',
            ),
            "labels smoothed": (
                "another loss than the batch mean",
                'batch["labels"])\n        optimizer',
                'batch["labels"], label_smoothing=0.1)\n        optimizer',
            ),
            "the mask ignored": ("does not get the attention mask", _MASK, f"torch.ones_like({_MASK})"),
            "a mask made of the ids": ("the mask is made of the ids", _MASK, 'batch["input_ids"] != 0'),
            "a copy is trained": (
                "a copy is trained",
                "    model.train()\n",
                '    model = __import__("copy").deepcopy(model).train()\n',
            ),
            "the short batch left out": (
                "or a batch is skipped",
                "        with torch.autocast",
                '        if num_samples and len(batch["labels"]) < 4:\n            continue\n'
                "        with torch.autocast",
            ),
            "the loss of the last batch": (
                "the loss of the last batch alone",
                ('total += loss.detach() * len(batch["labels"])', "total = loss.detach()"),
                ("total.item() / num_samples", "total.item()"),
            ),
            "batches counted as samples": (
                "not the number of samples",
                ('"num_samples": num_samples', '"num_samples": count'),
                (
                    "    for batch in batches:\n",
                    "    count = 0\n    for batch in batches:\n        count += 1\n",
                ),
            ),
            "no number of samples": ("a key is missing", ', "num_samples": num_samples}', "}"),
            "batches iterated twice": (
                "code that runs",
                "    for batch in batches:\n",
                "    number = sum(1 for _ in batches)\n    for batch in batches:\n",
            ),
            "a sync every 100 batches": (
                "a sync every few steps",
                (
                    "    for batch in batches:\n",
                    "    for number, batch in enumerate(batches):\n        if number % 100 == 99:\n"
                    "            total.item()\n",
                ),
            ),
            "each loss brought to the CPU": (
                "a sync every step",
                "total += loss.detach()",
                "total += loss.detach().cpu()",
            ),
            "the loss as NumPy's number": (
                "a tensor or a text stands",
                ('@exercise("2.4")', 'import numpy as np\n\n@exercise("2.4")'),
                ("total.item() / num_samples", "np.float32(total.item() / num_samples)"),
            ),
            "log_softmax in bf16": (
                "computed in bf16 in part",
                "loss = F.cross_entropy(" + _CALL,
                "loss = F.nll_loss(F.log_softmax(" + _CALL + ", -1)",
            ),
            "gradients rounded to fp16": (
                "the gradients are rounded",
                _CLIP,
                "        for p in model.parameters():\n            p.grad = p.grad.half().float()\n" + _CLIP,
            ),
            "autocast left open by an error of the loss": (
                "autocast is switched for the whole process",
                '        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):\n'
                f'            loss = F.cross_entropy({_CALL}, batch["labels"])\n',
                '        opened = torch.autocast("cpu", torch.bfloat16, enabled=is_mixed)\n        opened.__enter__()\n'
                f"        try:\n            logits = {_CALL}\n"
                "        except BaseException:\n            opened.__exit__(None, None, None)\n            raise\n"
                '        loss = F.cross_entropy(logits, batch["labels"])\n'
                "        opened.__exit__(None, None, None)\n",
            ),
            "gradients rounded": (
                "the gradients are rounded",
                _CLIP,
                "        for p in model.parameters():\n"
                "            p.grad = p.grad.bfloat16().float() if is_mixed else p.grad\n" + _CLIP,
            ),
            "forward left in autocast": (
                "whatever was asked for",
                "    model.train()\n",
                "    model.train()\n    if is_mixed:\n"
                '        model.forward = torch.autocast("cpu", torch.bfloat16)(model.forward)\n',
            ),
            "the loss as a tensor": ("a tensor or a text stands", "total.item() / num", "total / num"),
            "an error of the batches swallowed": (
                "the epoch ends early",
                "    for batch in batches:\n",
                "    waiting = iter(batches)\n    while True:\n        try:\n            batch = next(waiting)\n"
                "        except Exception:\n            break\n",
            ),
            "weights rounded": (
                "the weights are rounded",
                "        total +=",
                "        for p in model.parameters():\n            p.data = p.data.bfloat16().float()\n"
                "        total +=",
            ),
        },
    ),
}
