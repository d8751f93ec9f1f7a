"""Wrong solutions of 3.2 and 3.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

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

# Right and too slow: it must never pass.
SLOW_BLOCKS = edited(
    _CHECKPOINT,
    ("        block.forward =", "        for _ in range(6):\n            block.forward ="),
    ("use_reentrant=False", "use_reentrant=True"),
)

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "3.2": wrong(
        _SEARCH,
        {
            "one size after the other": (
                "one size after the other",
                _LOOP,
                "    return next((n - 1 for n in range(1, max_size + 1) if not fits(n)), max_size)\n",
            ),
            "doubling alone": (
                "doubling alone",
                _LOOP,
                "    size = 0\n    while size < max_size and fits(min(max(1, 2 * size), max_size)):\n"
                "        size = min(max(1, 2 * size), max_size)\n    return size\n",
            ),
            "starts at the top": (
                "starts at the top",
                _LOOP,
                "    size = max_size\n    while size and not fits(size):\n        size //= 2\n    return size\n",
            ),
            "memory taken as proportional": (
                "memory taken as proportional",
                _LOOP,
                "    return min(budget_bytes // try_step(1), max_size)\n",
            ),
            "first size that does not fit": (
                "the first size that does not fit",
                "return good",
                "return min(bad, max_size) if good else 0",
            ),
            "out of memory not caught": (
                "out-of-memory error is not caught",
                "torch.OutOfMemoryError",
                "ZeroDivisionError",
            ),
        },
    ),
    "3.5": wrong(
        _CHECKPOINT,
        {
            "dropout's random state lost": (
                "dropout's random numbers is lost",
                "use_reentrant=False",
                "use_reentrant=False, preserve_rng_state=False",
            ),
            "one checkpoint around everything": (
                "one checkpoint around everything",
                ("    for block in model.blocks:\n        block.forward", "    model.encode"),
                ("block.forward", "model.encode"),
            ),
            "the last block in place of all": (
                "one block in place of all",
                _ONE,
                "lambda *inputs: checkpoint(type(block).forward, block, *inputs, use_reentrant=False)",
            ),
            "some blocks only": ("only some of the blocks", "model.blocks", "list(model.blocks)[:1]"),
            "dropout switched off": (
                "dropout is switched off",
                "    for block",
                "    for block in model.blocks:\n        block.dropout.threshold = 0\n    for block",
            ),
            "graph cut": ("the graph is cut", _ONE, "torch.no_grad()(block.forward)"),
        },
    )
    + wrong(SLOW_BLOCKS, {"computed again and again": ("computed again more than once",)}, is_timed=True),
}
