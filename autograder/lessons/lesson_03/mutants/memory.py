"""Wrong solutions of 3.2 and 3.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

_SEARCH = """
import torch

@exercise("3.2")
def largest_micro_batch_size(try_step, budget_bytes, max_size):
    def fits(size):
        try:
            return try_step(size) <= budget_bytes
        except torch.OutOfMemoryError:
            return False
    good, bad, size = 0, max_size + 1, 1
    while good + 1 < bad:
        if fits(size):
            good = size
        else:
            bad = size
        size = min(2 * good, max_size) if bad > max_size else (good + bad) // 2
    return good
"""
_LOOP = _SEARCH[_SEARCH.index("    good, bad") :]

_CHECKPOINT = """
import functools
import torch
from torch.utils.checkpoint import checkpoint

@exercise("3.5")
def checkpoint_blocks(model):
    for block in model.blocks:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
    return model
"""
_ONE = "functools.partial(checkpoint, block.forward, use_reentrant=False)"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "3.2": (
        Mutant(
            name="one size after the other",
            source=edited(
                _SEARCH,
                (
                    _LOOP,
                    "    return next((n - 1 for n in range(1, max_size + 1) if not fits(n)), max_size)\n",
                ),
            ),
            says="one size after the other",
        ),
        Mutant(
            name="doubling alone",
            source=edited(
                _SEARCH,
                (
                    _LOOP,
                    "    size = 0\n    while size < max_size and fits(min(max(1, 2 * size), max_size)):\n"
                    "        size = min(max(1, 2 * size), max_size)\n    return size\n",
                ),
            ),
            says="doubling alone",
        ),
        Mutant(
            name="starts at the top",
            source=edited(
                _SEARCH,
                (
                    _LOOP,
                    "    size = max_size\n    while size and not fits(size):\n        size //= 2\n    return size\n",
                ),
            ),
            says="starts at the top",
        ),
        Mutant(
            name="memory taken as proportional",
            source=edited(
                _SEARCH,
                (_LOOP, "    return min(budget_bytes // try_step(1), max_size)\n"),
            ),
            says="memory taken as proportional",
        ),
        Mutant(
            name="first size that does not fit",
            source=edited(_SEARCH, ("return good", "return min(bad, max_size) if good else 0")),
            says="the first size that does not fit",
        ),
        Mutant(
            name="out of memory not caught",
            source=edited(_SEARCH, ("torch.OutOfMemoryError", "ZeroDivisionError")),
            says="out-of-memory error is not caught",
        ),
    ),
    "3.5": (
        Mutant(
            name="dropout's random state lost",
            source=edited(
                _CHECKPOINT, ("use_reentrant=False", "use_reentrant=False, preserve_rng_state=False")
            ),
            says="dropout's random numbers is lost",
        ),
        Mutant(
            name="one checkpoint around everything",
            source=edited(
                _CHECKPOINT,
                ("    for block in model.blocks:\n        block.forward", "    model.encode"),
                ("block.forward", "model.encode"),
            ),
            says="one checkpoint around everything",
        ),
        Mutant(
            name="the last block in place of all",
            source=edited(
                _CHECKPOINT,
                (
                    _ONE,
                    "lambda *inputs: checkpoint(type(block).forward, block, *inputs, use_reentrant=False)",
                ),
            ),
            says="one block in place of all",
        ),
        Mutant(
            name="some blocks only",
            source=edited(_CHECKPOINT, ("model.blocks", "list(model.blocks)[:1]")),
            says="only some of the blocks",
        ),
        Mutant(
            name="dropout switched off",
            source=edited(
                _CHECKPOINT,
                (
                    "    for block",
                    "    for block in model.blocks:\n        block.dropout.threshold = 0\n    for block",
                ),
            ),
            says="dropout is switched off",
        ),
        Mutant(
            name="graph cut",
            source=edited(_CHECKPOINT, (_ONE, "torch.no_grad()(block.forward)")),
            says="the graph is cut",
        ),
        Mutant(
            name="computed again and again",
            source=edited(
                _CHECKPOINT,
                ("        block.forward =", "        for _ in range(6):\n            block.forward ="),
                ("use_reentrant=False", "use_reentrant=True"),
            ),
            says="computed again more than once",
            is_timed=True,
        ),
    ),
}

# Right and too slow: these must never pass.
SLOW: dict[str, str] = {"3.5": MUTANTS["3.5"][-1].source}
