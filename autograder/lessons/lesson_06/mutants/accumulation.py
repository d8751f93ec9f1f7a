"""Wrong solutions of 6.4, each with the mistake that its check must name."""

from __future__ import annotations

from textwrap import indent

from autograder.lessons.checking import Mutant, wrong

_ACCUMULATE = """
import contextlib
import torch
import torch.distributed as dist
import torch.nn.functional as F

@exercise("6.4")
def accumulate_step(model, micro_batches, optimizer):
    total = torch.tensor(sum(len(batch["labels"]) for batch in micro_batches))
    dist.all_reduce(total)
    optimizer.zero_grad()
    for number, batch in enumerate(micro_batches, start=1):
        is_last = number == len(micro_batches)
        with contextlib.nullcontext() if is_last else model.no_sync():
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
            (loss * dist.get_world_size() / total).backward()
    optimizer.step()
"""
_WITH = "        with contextlib.nullcontext() if is_last else model.no_sync():\n"
_LOSS = """            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
"""
_LOOP = _ACCUMULATE[_ACCUMULATE.index("    for number") : _ACCUMULATE.index("    optimizer.step()")]
_SCALED = "(loss * dist.get_world_size() / total)"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "6.4": wrong(
        _ACCUMULATE,
        {
            "no no_sync at all": (
                "gradients cross at every micro-batch",
                _WITH,
                "        with contextlib.nullcontext():\n",
            ),
            "no_sync around backward alone": (
                "DDP decides in `forward`",
                _WITH + _LOSS,
                _LOSS.replace("    " * 3, "    " * 2) + _WITH,
            ),
            "no_sync around the last one too": (
                "the last micro-batch is inside `no_sync` too",
                "contextlib.nullcontext() if is_last else model.no_sync()",
                "model.no_sync()",
            ),
            "no_sync left open when an exception is raised": (
                "left open when an exception is raised",
                _WITH,
                "        model.require_backward_grad_sync = is_last\n        if True:\n",
            ),
            "loss not rescaled for DDP's average": (
                "divides the sum over ranks by world_size once more",
                _SCALED,
                "(loss / total)",
            ),
            "mean of micro-batch means": (
                "small micro-batches weigh as much as large ones",
                _SCALED,
                '(loss / len(batch["labels"]) / len(micro_batches))',
            ),
            "swallows the error": (
                "swallows errors",
                _LOSS,
                "            try:\n"
                + '                logits = model(batch["input_ids"], batch["attention_mask"])\n'
                + "            except IndexError:\n                continue\n"
                + '            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")\n',
            ),
            "swallows an error of the loss": (
                "swallows errors",
                _LOSS,
                '            logits = model(batch["input_ids"], batch["attention_mask"])\n'
                "            try:\n"
                '                loss = F.cross_entropy(logits, batch["labels"], reduction="sum")\n'
                "            except Exception:\n                continue\n",
            ),
            "swallows a missing key": (
                "swallows errors",
                _LOSS,
                "            try:\n"
                '                logits = model(batch["input_ids"], batch["attention_mask"])\n'
                "            except KeyError:\n                continue\n"
                '            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")\n',
            ),
            "swallows an error of the last micro-batch": (
                "swallows errors",
                _LOSS,
                "            try:\n"
                '                logits = model(batch["input_ids"], batch["attention_mask"])\n'
                "            except RuntimeError:\n"
                "                if not is_last:\n                    raise\n                continue\n"
                '            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")\n',
            ),
            "the optimizer's state lost after an error": (
                "something of the failed call is left in",
                _LOOP,
                "    try:\n" + indent(_LOOP, "    ") + "    except BaseException:\n"
                "        optimizer.state.clear()\n        raise\n",
            ),
            "gradients rounded": (
                "gradients that are rounded",
                "    optimizer.step()\n",
                "    for parameter in (p for p in model.parameters() if p.requires_grad):\n"
                "        parameter.grad = parameter.grad.to(torch.float16).float()\n"
                "    optimizer.step()\n",
            ),
            "dropout switched on": (
                "parts of the model are switched to another mode",
                "    optimizer.zero_grad()\n",
                "    for module in model.modules():\n"
                "        if 'Dropout' in type(module).__name__:\n            module.train()\n"
                "    optimizer.zero_grad()\n",
            ),
            "a mode put back where nothing goes wrong": (
                "put back only where nothing goes wrong",
                (
                    "            loss = F",
                    "            norm = model.module.final_norm\n            mode = norm.training\n"
                    "            norm.train(not mode)\n            loss = F",
                ),
                (_SCALED + ".backward()\n", _SCALED + ".backward()\n            norm.train(mode)\n"),
            ),
            "another error in its place": (
                "another one raised in its place",
                _LOSS,
                "            try:\n"
                + '                logits = model(batch["input_ids"], batch["attention_mask"])\n'
                + "            except Exception as error:\n"
                + '                raise RuntimeError("bad micro-batch") from error\n'
                + '            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")\n',
            ),
            "the same kind of error with other words": (
                "another one raised in its place",
                _LOSS,
                "            try:\n"
                + '                logits = model(batch["input_ids"], batch["attention_mask"])\n'
                + "            except Exception as error:\n"
                + '                raise type(error)(f"micro-batch {number}: {error}") from error\n'
                + '            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")\n',
            ),
            "rows sorted in place": (
                "or written over",
                _LOSS,
                "            for rows in batch.values():\n                rows.copy_(rows.flip(0))\n" + _LOSS,
            ),
            "steps all the same": (
                "the step is made although",
                (_LOOP, "    try:\n" + indent(_LOOP, "    ") + "    finally:\n        optimizer.step()\n"),
                (
                    "    finally:\n        optimizer.step()\n    optimizer.step()\n",
                    "    finally:\n        optimizer.step()\n",
                ),
            ),
            "zeros for what is frozen": (
                "frozen parameters are moved",
                "optimizer.zero_grad()",
                "optimizer.zero_grad(set_to_none=False)",
            ),
            "no_sync left open when it is interrupted": (
                "left open when an exception is raised",
                (
                    _LOOP,
                    "    try:\n"
                    + indent(
                        _LOOP.replace(
                            _WITH, "        model.require_backward_grad_sync = is_last\n        if True:\n"
                        ),
                        "    ",
                    )
                    + "    except Exception:\n        model.require_backward_grad_sync = True\n        raise\n",
                ),
            ),
            "no_sync left open when backward raises": (
                "left open when an exception is raised",
                (_WITH, "        model.require_backward_grad_sync = is_last\n        if True:\n"),
                (
                    _LOSS,
                    "            try:\n" + indent(_LOSS, "    ") + "            except BaseException:\n"
                    "                model.require_backward_grad_sync = True\n                raise\n",
                ),
            ),
            "old gradients left in": ("old gradients are left in", "    optimizer.zero_grad()\n", ""),
            "the model's gradients dropped alone": (
                "the model's old gradients alone",
                "    optimizer.zero_grad()\n",
                "    model.zero_grad()\n",
            ),
            "gradients dropped afterwards": (
                "old gradients are left in",
                ("    optimizer.zero_grad()\n", ""),
                ("    optimizer.step()\n", "    optimizer.step()\n    optimizer.zero_grad()\n"),
            ),
            "gradients dropped between micro-batches": (
                "the last micro-batch alone counts",
                "            logits = model(",
                "            optimizer.zero_grad()\n            logits = model(",
            ),
            "a step after every micro-batch": (
                "a step after every micro-batch",
                "    optimizer.step()\n",
                "        optimizer.step()\n",
            ),
            "no step": ("or none", "    optimizer.step()\n", ""),
            "an optimizer of its own": (
                "or the loss is divided by another number",
                "    optimizer.step()\n",
                "    for group in optimizer.param_groups:\n        group['momentum'] = 0\n    optimizer.step()\n",
            ),
            "a micro-batch left out": (
                "a micro-batch is left out",
                "in enumerate(micro_batches, start=1)",
                "in enumerate(micro_batches[1:], start=2)",
            ),
            "two micro-batches taken for granted": (
                "a micro-batch is left out",
                "in enumerate(micro_batches, start=1)",
                "in enumerate((micro_batches[0], micro_batches[-1]), start=len(micro_batches) - 1)",
            ),
            "two ranks taken for granted": (
                "or the loss is divided by another number",
                "dist.get_world_size()",
                "2",
            ),
            "its own samples": (
                "each rank divides by its own number of samples, and the ranks are added up",
                "    dist.all_reduce(total)\n",
                "",
            ),
            "mean of rank means": (
                "a mean of rank means",
                ("    dist.all_reduce(total)\n", ""),
                (_SCALED, "(loss / total)"),
            ),
            "sum of micro-batch means": (
                "the micro-batches' means are added up",
                _SCALED,
                '(loss / len(batch["labels"]))',
            ),
            "a sum over all samples": (
                "never divided by their number",
                _SCALED,
                "(loss * dist.get_world_size())",
            ),
            "a sum that DDP divides": ("DDP divides by ranks alone", _SCALED, "loss"),
            "two micro-batches synchronised": (
                "more than one backward",
                "is_last = number == len(micro_batches)",
                "is_last = number >= len(micro_batches) - 1",
            ),
            "the last one known by its dict": (
                "more than one backward",
                "is_last = number == len(micro_batches)",
                "is_last = batch is micro_batches[-1]",
            ),
            "one group of old gradients dropped": (
                "or the loss is divided by another number",
                "    optimizer.zero_grad()\n",
                "    for parameter in optimizer.param_groups[0]['params']:\n        parameter.grad = None\n",
            ),
            "the logarithm of a softmax": (
                "the logarithm of a probability",
                'F.cross_entropy(logits, batch["labels"], reduction="sum")',
                'F.nll_loss(logits.softmax(-1).clamp(min=1e-8).log(), batch["labels"], reduction="sum")',
            ),
            "a micro-batch without a loss left out": (
                "a loss that is NaN is hidden",
                "            " + _SCALED,
                "            if loss.isnan():\n                continue\n            " + _SCALED,
            ),
            "micro-batches popped off the list": (
                "taken out of the caller's own",
                "    for number, batch in enumerate(micro_batches, start=1):\n"
                "        is_last = number == len(micro_batches)\n",
                "    for number in range(len(micro_batches), 0, -1):\n"
                "        batch, is_last = micro_batches.pop(0), number == 1\n",
            ),
            "labels popped out of the batches": (
                "taken out of the caller's own",
                'F.cross_entropy(logits, batch["labels"]',
                'F.cross_entropy(logits, batch.pop("labels")',
            ),
            "exchanged by hand after the last backward": (
                "the gradients cross after the last backward",
                ("contextlib.nullcontext() if is_last else model.no_sync()", "model.no_sync()"),
                (_SCALED, "(loss / total)"),
                (
                    "    optimizer.step()\n",
                    "    gradients = [p.grad for p in model.parameters() if p.requires_grad]\n"
                    "    flat = torch.cat([gradient.flatten() for gradient in gradients])\n"
                    "    dist.all_reduce(flat)\n"
                    "    pieces = flat.split([gradient.numel() for gradient in gradients])\n"
                    "    for gradient, piece in zip(gradients, pieces):\n"
                    "        gradient.copy_(piece.view_as(gradient))\n"
                    "    optimizer.step()\n",
                ),
            ),
            "the learning rate scaled instead": (
                "the learning rate is changed for the step",
                (_SCALED, "loss"),
                (
                    "    optimizer.step()\n",
                    "    share = dist.get_world_size() / total.item()\n"
                    "    for group in optimizer.param_groups:\n        group['lr'] *= share\n"
                    "    optimizer.step()\n"
                    "    for group in optimizer.param_groups:\n        group['lr'] /= share\n",
                ),
            ),
            "gradients left switched off": (
                "switched for the whole process",
                "    optimizer.step()\n",
                "    torch.set_grad_enabled(False)\n    optimizer.step()\n",
            ),
            "samples counted for each micro-batch": (
                "ask each other more often",
                "    dist.all_reduce(total)\n",
                "    dist.all_reduce(total)\n    for batch in micro_batches:\n"
                '        dist.all_reduce(torch.tensor(len(batch["labels"])))\n',
            ),
            "gathered for each micro-batch": (
                "ask each other more often",
                "    dist.all_reduce(total)\n",
                "    dist.all_reduce(total)\n    for batch in micro_batches:\n"
                "        dist.all_gather_object([None] * dist.get_world_size(), len(batch['labels']))\n",
            ),
            "evaluation mode": (
                "switched to evaluation mode",
                "    optimizer.zero_grad()\n",
                "    model.eval()\n    optimizer.zero_grad()\n",
            ),
            "one mode for all parts": (
                "parts of the model are switched to another mode",
                "    optimizer.zero_grad()\n",
                "    model.train()\n    optimizer.zero_grad()\n",
            ),
            "the mask made of the ids": (
                "the mask is made of the ids",
                'batch["attention_mask"])',
                'batch["input_ids"] != 0)',
            ),
            "three further all-reduces": (
                "ask each other more often",
                "    optimizer.step()\n",
                "    for _ in range(2):\n        dist.all_reduce(torch.zeros(1))\n    optimizer.step()\n",
            ),
            "gradients by hand as well": (
                "ask each other more often",
                "    optimizer.step()\n",
                "    for parameter in (p for p in model.parameters() if p.requires_grad):\n"
                "        dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)\n"
                "        parameter.grad /= dist.get_world_size()\n    optimizer.step()\n",
            ),
            "synchronised for ever after an error": (
                "gradients cross at every micro-batch",
                (
                    "    optimizer.zero_grad()\n",
                    "    optimizer.zero_grad()\n    careful = getattr(model, 'failed', False)\n"
                    "    model.failed = True\n",
                ),
                ("nullcontext() if is_last", "nullcontext() if is_last or careful"),
                ("    optimizer.step()\n", "    optimizer.step()\n    model.failed = careful\n"),
            ),
        },
    ),
}
