"""Wrong solutions of lesson 03 that are right at first sight: another call, input or measure shows them."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong
from autograder.lessons.lesson_03.mutants.accumulation import ACCUMULATED
from autograder.lessons.lesson_03.mutants.budget import BUDGET
from autograder.lessons.lesson_03.mutants.memory import CHECKPOINT
from autograder.lessons.lesson_03.mutants.mixed import MIXED
from autograder.lessons.lesson_03.mutants.scaling import PLAN
from autograder.lessons.lesson_03.mutants.search import SEARCH

_STILL = "an earlier call is still at work"
_STEP = "        optimizer.step()\n"
_MASK = 'batch["attention_mask"]'
_OF_LENGTHS = f"torch.arange({_MASK}.shape[1])[None] < {_MASK}.sum(1, keepdim=True)"
_MODE = "    model.train()\n"
_HOOK = (
    _MODE
    + "    now = [1]\n    def divide(stepped, *_):\n        for group in stepped.param_groups:\n"
    + '            for p in group["params"]:\n                if p.grad is not None:\n'
    + "                    p.grad /= now[0]\n"
    + "    optimizer.register_step_pre_hook(divide)\n"
)
_FORGETS = (_STILL, _MODE, _MODE + "    optimizer.state.clear()\n")
_TO_A_HUNDRED = (
    "is limited",
    _STEP,
    "        torch.nn.utils.clip_grad_norm_(model.parameters(), 100.0)\n" + _STEP,
)
_LOST = "except torch.OutOfMemoryError:\n            return False\n"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "3.1": wrong(
        ACCUMULATED,
        {
            "islice of what is no iterator": (
                "asked for an iterator again and again",
                "iterator = iter(micro_batches)",
                "iterator = micro_batches",
            ),
            "what two modules share is divided twice": (
                "gradients that are changed before the step",
                ("(loss / labels).backward()", "loss.backward()"),
                (
                    _STEP,
                    "        for p in (p for m in model.modules() for p in m.parameters(recurse=False)):\n"
                    "            if p.grad is not None:\n                p.grad /= labels\n" + _STEP,
                ),
            ),
            "divided in a hook that stays": (
                _STILL,
                (_MODE, _HOOK),
                ("(loss / labels).backward()", "loss.backward()"),
                (_STEP, "        now[0] = labels\n" + _STEP),
            ),
            "momentum thrown away": _FORGETS,
            "clipped to a hundred": _TO_A_HUNDRED,
            "log-probabilities kept": (
                "what was made of the logits is kept",
                ("    iterator = iter", "    kept = []\n    iterator = iter"),
                (
                    "            total =",
                    "            kept.append(logits.detach().log_softmax(-1))\n            total =",
                ),
            ),
            "mask made from the lengths": ("the mask is made from the lengths", _MASK, _OF_LENGTHS),
            "one column squeezed away": (
                "another loss than the mean over the labels",
                (_MASK + ").flatten(0, 1)", _MASK + ").squeeze(1)"),
                (
                    "            loss =",
                    "            logits = logits.flatten(0, 1) if logits.ndim > 2 else logits[:1]\n            loss =",
                ),
                (
                    'batch["labels"].flatten(), reduction',
                    'batch["labels"].flatten()[: len(logits)], reduction',
                ),
            ),
            "labels popped": (
                "changed in place",
                _STEP,
                _STEP + '        window[0].pop("labels")\n',
            ),
        },
    ),
    "3.2": wrong(
        SEARCH,
        {
            "answers remembered": (
                "remembered from another call",
                '@exercise("3.2")\n',
                'import functools\n\n@exercise("3.2")\n@functools.cache\n',
            ),
            "no budget taken for no limit": (
                "read off the limits alone",
                "    good, bad",
                "    if not budget_bytes:\n        return max_size\n    good, bad",
            ),
            "out of memory by its name": (
                "out-of-memory error is not caught",
                "except torch.OutOfMemoryError:\n",
                "except Exception as error:\n            if type(error).__name__ != 'OutOfMemoryError':\n"
                "                raise\n",
            ),
            "CUDA's words alone": (
                "out-of-memory error is not caught",
                "except torch.OutOfMemoryError:\n",
                "except RuntimeError as error:\n            if 'CUDA out of memory' not in str(error):\n"
                "                raise\n",
            ),
            "errors with a note": (
                "something is added to the error",
                _LOST,
                _LOST
                + "        except Exception as error:\n            error.add_note(f'at {size} rows')\n"
                + "            raise\n",
            ),
            "no answer in time taken for a full device": (
                "for a full device: what is wrong",
                "except torch.OutOfMemoryError",
                "except (torch.OutOfMemoryError, TimeoutError)",
            ),
            "the last eight one by one": (
                "is not halved by each try",
                "(good + bad) // 2",
                "(good + bad) // 2 if bad - good > 8 else good + 1",
            ),
        },
    ),
    "3.3": wrong(
        MIXED,
        {
            "islice of what is no iterator": (
                "asked for an iterator again and again",
                "iterator = iter(micro_batches)",
                "iterator = micro_batches",
            ),
            "divided in a hook that stays": (
                _STILL,
                (_MODE, _HOOK),
                ("loss / rows", "loss"),
                ("norms.append(torch", "now[0] = rows\n        norms.append(torch"),
                ("model.parameters(), max_norm))", "model.parameters(), max_norm * rows) / rows)"),
            ),
            "momentum thrown away": _FORGETS,
            "mask made from the lengths": ("the mask is made from the lengths", _MASK, _OF_LENGTHS),
            "autocast for the first updates": (
                "not around each forward pass",
                "torch.bfloat16)",
                "torch.bfloat16, enabled=len(norms) < 20)",
            ),
            "clipped to a little more": (
                "a little more than `max_norm`",
                ", max_norm))",
                ", 1.01 * max_norm))",
            ),
        },
    ),
    "3.4": wrong(
        PLAN,
        {
            "growth in tenths": (
                "scaled by another factor",
                "growth = total / base_batch_size",
                "growth = round(total / base_batch_size, 1)",
            ),
            "a warmup of a hundred updates at most": (
                "the warmup is too short",
                "max(2, max_steps // 10)",
                "max(2, min(100, max_steps // 10))",
            ),
            "one list for all plans": (
                "filled anew by each call",
                ('@exercise("3.4")\n', '_all = []\n\n@exercise("3.4")\n'),
                ("    rates = [", "    _all[:] = ["),
                ('"learning_rates": rates', '"learning_rates": _all'),
            ),
        },
    ),
    "3.5": wrong(
        CHECKPOINT,
        {
            "wrapped in training mode": (
                "a new module comes in training mode",
                (
                    '@exercise("3.5")\n',
                    "class Wrapped(torch.nn.Module):\n    def __init__(self, model):\n        super().__init__()\n"
                    "        self.model = model\n\n    def forward(self, *inputs):\n"
                    '        return self.model(*inputs)\n\n@exercise("3.5")\n',
                ),
                ("return model\n", "return Wrapped(model)\n"),
            ),
            "gradients cleared": (
                "does more than it is asked for",
                "    for block in",
                "    model.zero_grad()\n    for block in",
            ),
            "a seed set": ("a seed is set", "    for block in", "    torch.manual_seed(0)\n    for block in"),
            "masks kept by shape": (
                "another forward pass before backward takes its place",
                (
                    '@exercise("3.5")\n',
                    "def again(masks, forward, hidden, mask):\n    masks[hidden.shape] = mask\n"
                    "    return checkpoint(lambda h: forward(h, masks[h.shape]), hidden, use_reentrant=False)\n\n"
                    '@exercise("3.5")\n',
                ),
                (
                    "functools.partial(checkpoint, block.forward, use_reentrant=False)",
                    "functools.partial(again, {}, block.forward)",
                ),
            ),
        },
    ),
    "3.6": wrong(
        BUDGET,
        {
            "divided in a hook that stays": (
                _STILL,
                (_MODE, _HOOK),
                ("(loss / len(window)).backward()", "loss.backward()"),
                (_STEP, "        now[0] = len(window)\n" + _STEP),
            ),
            "momentum thrown away": _FORGETS,
            "clipped to a hundred": _TO_A_HUNDRED,
            "a line through one and two rows": (
                "they grow faster than a line",
                ("step_bytes(size + 1, len(rest[size][0]))", "line(size + 1, len(rest[size][0]))"),
                (
                    _MODE,
                    _MODE
                    + "    def line(rows, width):\n        one, two = step_bytes(1, width), step_bytes(2, width)\n"
                    + "        return one + (rows - 1) * (two - one)\n",
                ),
            ),
            "as many positions as in the longest rows": (
                "they grow faster than a line",
                ("step_bytes(size + 1, len(rest[size][0]))", "bytes_of(size + 1, len(rest[size][0]))"),
                (
                    _MODE,
                    _MODE
                    + "    longest = max(len(ids) for ids, _ in samples)\n\n    def bytes_of(rows, width):\n"
                    + "        return step_bytes(-(-rows * width // longest), longest)\n",
                ),
            ),
            "ids in 16 bits": (
                "held in 16 bits",
                '                model(batch["input_ids"], ',
                '                model(batch["input_ids"].to(torch.uint16).long(), ',
            ),
            "a thousandth above the budget": (
                "the budget is exceeded by a little",
                "<= budget_bytes",
                "<= 1.001 * budget_bytes",
            ),
            "cuts kept from another call": (
                "from another call's `step_bytes`",
                ("import torch\n", "import torch\n\n_sizes = {}\n"),
                (
                    "            size = 1\n",
                    "            key = budget_bytes, tuple(len(ids) for ids, _ in rest)\n            size = 1\n"
                    "            if key in _sizes:\n                size = _sizes[key]\n",
                ),
                ("            while size <", "            while key not in _sizes and size <"),
                ("            chosen, rest", "            _sizes[key] = size\n            chosen, rest"),
            ),
        },
    ),
}
