"""Wrong solutions of 2.3, each with the mistake that its check must name."""

from __future__ import annotations

import textwrap

from autograder.lessons.checking import Mutant, wrong

_STEP = """
import torch
import torch.nn.functional as F

@exercise("2.3")
def mixed_step(model, batch, optimizer, max_norm):
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits, batch["labels"])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return {"loss": loss.detach(), "grad_norm": norm}
"""
_LOSS = "        loss = F.cross_entropy"

_CLIP = "    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n"
_TAKE = "    optimizer.step()\n"
_MASK = 'batch["attention_mask"]'
_OPEN = '    with torch.autocast("cpu", torch.bfloat16):\n'
_INSIDE = """        logits = model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits, batch["labels"])
"""
_ON = '    torch.set_autocast_dtype("cpu", torch.bfloat16)\n    torch.set_autocast_enabled("cpu", True)\n'
_OFF = '    torch.set_autocast_enabled("cpu", False)\n    torch.clear_autocast_cache()\n'

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "2.3": wrong(
        _STEP,
        {
            "bfloat16 on the model": (
                "on the model",
                "    with torch.autocast",
                "    model.bfloat16()\n    with torch.autocast",
            ),
            "bfloat16 on the model, and back after the step": (
                "on the model",
                ("    with torch.autocast", "    model.bfloat16()\n    with torch.autocast"),
                ("    return", "    model.float()\n    return"),
            ),
            "trained in fp32 beside products that nobody needs": (
                "products of other matrices",
                _OPEN + _INSIDE,
                "    spare = torch.ones(512, 512, dtype=torch.bfloat16)\n"
                "    for _ in range(16):\n        spare @ spare\n"
                + textwrap.indent(textwrap.dedent(_INSIDE), "    "),
            ),
            "autocast around backward": (
                "autocast around backward",
                "    optimizer.zero_grad(set_to_none=True)\n    loss",
                "        optimizer.zero_grad(set_to_none=True)\n        loss",
            ),
            "loss outside autocast": ("outside autocast, from bf16 logits", _LOSS, _LOSS[4:]),
            "autocast around the loss alone": (
                "around the loss alone",
                '    with torch.autocast("cpu", torch.bfloat16):\n'
                '        logits = model(batch["input_ids"], batch["attention_mask"])\n',
                '    logits = model(batch["input_ids"], batch["attention_mask"])\n'
                '    with torch.autocast("cpu", torch.bfloat16):\n',
            ),
            "gradients never cleared": (
                "gradients of two steps",
                "    optimizer.zero_grad(set_to_none=True)\n",
                "",
            ),
            "autocast with fp16": ("autocast got another type", "torch.bfloat16)", "torch.float16)"),
            "autocast of another device": (
                "not open while the model runs",
                'torch.autocast("cpu"',
                'torch.autocast("cuda"',
            ),
            "the device that the machine has": (
                "what the machine has",
                (
                    '@exercise("2.3")',
                    'DEVICE = "cuda" if torch.cuda.is_available() else "cpu"\n\n@exercise("2.3")',
                ),
                ('torch.autocast("cpu"', "torch.autocast(DEVICE"),
            ),
            "the logarithm of a probability": (
                "another loss",
                'F.cross_entropy(logits, batch["labels"])',
                '-(F.softmax(logits.float(), -1) + 1e-8).log().gather(1, batch["labels"][:, None]).mean()',
            ),
            "the sum for the mean": (
                "the sum over the batch",
                'batch["labels"])',
                'batch["labels"], reduction="sum")',
            ),
            "labels smoothed": (
                "another loss",
                'batch["labels"])',
                'batch["labels"], label_smoothing=0.1)',
            ),
            "the loss rounded, then fp32": (
                "from bf16 logits, or rounded",
                ("    optimizer.zero", "    loss = loss.bfloat16().float()\n    optimizer.zero"),
            ),
            "the loss as a number": ("a number was read", "loss.detach()", "loss.item()"),
            "the norm as a number": ("a number was read", '"grad_norm": norm', '"grad_norm": norm.item()'),
            "no key for the norm": ("a key is missing", ', "grad_norm": norm', ""),
            "never clipped": (
                "the gradients are not clipped",
                "model.parameters(), max_norm",
                'model.parameters(), float("inf")',
            ),
            "clipped after the step": (
                "only after the step",
                _CLIP + _TAKE,
                _TAKE + _CLIP,
            ),
            "max_norm ignored": (
                "to another norm than `max_norm`",
                "parameters(), max_norm",
                "parameters(), 1.0",
            ),
            "clipped by value": (
                "each number is clipped by itself",
                _CLIP,
                "    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])\n"
                "    torch.nn.utils.clip_grad_value_(model.parameters(), max_norm)\n",
            ),
            "short gradients made longer": (
                "shorter than `max_norm` are made longer",
                _CLIP,
                _CLIP
                + "    for p in model.parameters():\n        p.grad *= max_norm / norm.clamp(max=max_norm)\n",
            ),
            "the norm after clipping": (
                "the norm after clipping",
                _CLIP,
                _CLIP + "    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])\n",
            ),
            "one group of the optimizer clipped": (
                "not the norm of all gradients",
                _CLIP,
                '    norm = torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], max_norm)\n',
            ),
            "each group of the optimizer clipped by itself": (
                "clipped by itself, and not the norm of all",
                _CLIP,
                "    norm = torch.stack([torch.nn.utils.clip_grad_norm_(group['params'], max_norm)\n"
                "        for group in optimizer.param_groups]).norm()\n",
            ),
            "gradients cleared after the step": (
                "of another backward",
                ("    optimizer.zero_grad(set_to_none=True)\n", ""),
                (_TAKE, _TAKE + "    optimizer.zero_grad(set_to_none=True)\n"),
            ),
            "autocast switched by hand": (
                "autocast is switched for the whole process",
                _OPEN + _INSIDE,
                _ON + textwrap.indent(textwrap.dedent(_INSIDE), " " * 4) + _OFF,
            ),
            "autocast entered by hand, and left but for an error": (
                "autocast is switched for the whole process",
                _OPEN + _INSIDE,
                '    opened = torch.autocast("cpu", torch.bfloat16)\n    opened.__enter__()\n'
                + textwrap.indent(textwrap.dedent(_INSIDE), " " * 4)
                + "    opened.__exit__(None, None, None)\n",
            ),
            "autocast switched by hand, without an end to its copies": (
                "forward computes with old weights",
                _OPEN + _INSIDE,
                '    was, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")\n'
                + _ON
                + "    try:\n"
                + _INSIDE
                + "    finally:\n"
                '        torch.set_autocast_enabled("cpu", was)\n        torch.set_autocast_dtype("cpu", dtype)\n',
            ),
            "autocast left open by an error of the loss": (
                "autocast is switched for the whole process",
                _OPEN + _INSIDE,
                '    opened = torch.autocast("cpu", torch.bfloat16)\n    opened.__enter__()\n    try:\n'
                '        logits = model(batch["input_ids"], batch["attention_mask"])\n'
                "    except BaseException:\n        opened.__exit__(None, None, None)\n        raise\n"
                '    loss = F.cross_entropy(logits, batch["labels"])\n    opened.__exit__(None, None, None)\n',
            ),
            "autocast left around the model's forward": (
                "wrapped around the model's `forward`",
                _OPEN,
                '    model.forward = torch.autocast("cpu", torch.bfloat16)(model.forward)\n' + _OPEN,
            ),
            "gradients rounded to fp16": (
                "the gradients are rounded",
                _CLIP,
                "    for p in model.parameters():\n        p.grad = p.grad.half().float()\n" + _CLIP,
            ),
            "an error swallowed": (
                "an error is caught and swallowed",
                '        logits = model(batch["input_ids"], batch["attention_mask"])\n',
                '        try:\n            logits = model(batch["input_ids"], batch["attention_mask"])\n'
                "        except RuntimeError:\n"
                '            return {"loss": torch.zeros(()), "grad_norm": torch.zeros(())}\n',
            ),
            "the mask ignored": ("does not get the attention mask", _MASK, f"torch.ones_like({_MASK})"),
            "a mask made of the ids": ("the mask is made of the ids", _MASK, 'batch["input_ids"] != 0'),
            "gradients rounded": (
                "the gradients are rounded",
                _CLIP,
                "    for p in model.parameters():\n        p.grad = p.grad.bfloat16().float()\n" + _CLIP,
            ),
            "weights rounded": (
                "the weights are rounded",
                _TAKE,
                _TAKE + "    for p in model.parameters():\n        p.data = p.data.bfloat16().float()\n",
            ),
            "weights of matrices rounded": (
                "the weights are rounded",
                _TAKE,
                _TAKE + "    for p in model.parameters():\n"
                "        p.data = p.data.bfloat16().float() if p.ndim > 1 else p.data\n",
            ),
            "clipped a second time": (
                "clipped a second time",
                _CLIP,
                _CLIP + _CLIP.replace("norm =", "_ =").replace("max_norm)", "0.95 * max_norm)"),
            ),
            "a second forward for the report": (
                "a second forward for the report",
                _TAKE,
                _TAKE + _OPEN + "        with torch.no_grad():\n"
                "            model(batch['input_ids'], batch['attention_mask'])\n",
            ),
            "a NaN replaced in the report": (
                "a broken step looks like a good one",
                "loss.detach()",
                "torch.nan_to_num(loss.detach())",
            ),
            "two steps": ("or taken twice", _TAKE, _TAKE + _TAKE),
            "no step": ("the step is missing", _TAKE, ""),
            "autocast around the step": (
                "the `with` goes on after the loss",
                _TAKE,
                '    with torch.autocast("cpu", torch.bfloat16):\n    ' + _TAKE,
            ),
            "activations kept in fp32": (
                "activations are saved in fp32 as well",
                "        logits = model(",
                "        kept = [F.dropout(p.float(), 0.5).exp() for p in model.parameters()]\n"
                "        loss_of_kept = sum(k.square().sum() for k in kept) * 0.0\n"
                "        logits = loss_of_kept + model(",
            ),
        },
    ),
}
