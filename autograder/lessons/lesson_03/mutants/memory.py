"""Wrong solutions of 3.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

CHECKPOINT = """
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

_HELPERS = """
def drawing(forward, *inputs):
    output = checkpoint(forward, *inputs, use_reentrant=False)
    torch.rand(1)
    return output

def careless(block, forward, *inputs):
    if block.training:
        return checkpoint(forward, *inputs, use_reentrant=False)
    with torch.no_grad():
        return forward(*inputs)
"""
# Computes a block again by hand. Right: what the second forward needs is kept for each call.
_BY_HAND = """
import torch

class Again(torch.autograd.Function):
    @staticmethod
    def forward(context, block, forward, hidden, mask, *parameters):
        context.block, context.run, context.mask = block, forward, mask
        context.save_for_backward(hidden)
        context.state = torch.get_rng_state()
        with torch.no_grad():
            return forward(hidden, mask)

    @staticmethod
    def backward(context, gradient):
        hidden = context.saved_tensors[0].detach().requires_grad_(True)
        parameters, now = list(context.block.parameters()), torch.get_rng_state()
        torch.set_rng_state(context.state)
        with torch.enable_grad():
            output = context.run(hidden, context.mask)
        torch.set_rng_state(now)
        gradients = torch.autograd.grad(output, [hidden, *parameters], gradient)
        return None, None, gradients[0], None, *gradients[1:]

def run_again(block, forward, hidden, mask):
    return Again.apply(block, forward, hidden, mask, *block.parameters())

@exercise("3.5")
def checkpoint_blocks(model):
    for block in model.blocks:
        block.forward = lambda *inputs, b=block, f=block.forward: run_again(b, f, *inputs)
    return model
"""
# Right and too slow: it must never pass.
SLOW_BLOCKS = edited(
    CHECKPOINT,
    ("functools.partial(checkpoint, ", "functools.partial(again, "),
    (
        '@exercise("3.5")\n',
        "def again(forward, *inputs, use_reentrant):\n"
        "    with torch.random.fork_rng(devices=[]), torch.no_grad():\n"
        "        for _ in range(10):\n            forward(*inputs)\n"
        "    return checkpoint(forward, *inputs, use_reentrant=use_reentrant)\n\n\n"
        '@exercise("3.5")\n',
    ),
)

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "3.5": wrong(
        CHECKPOINT + _HELPERS,
        {
            "dropout's random state lost": (
                "dropout's random numbers is lost",
                "use_reentrant=False",
                "use_reentrant=False, preserve_rng_state=False",
            ),
            "parts in the mode of the whole": (
                "such as `train()`",
                "    return model\n",
                "    return model.train(model.training)\n",
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
            "mask ignored": (
                "the mask that a block is called with does not reach it",
                _ONE,
                "lambda hidden, mask, f=block.forward: checkpoint(f, hidden, mask | True, use_reentrant=False)",
            ),
            "mask left out": (
                "each position sees those before it alone",
                _ONE,
                "lambda hidden, mask, f=block.forward: checkpoint(f, hidden, None, use_reentrant=False)",
            ),
            "blocks backwards": (
                "they come in another order",
                "    return model",
                "    model.blocks = torch.nn.ModuleList(reversed(list(model.blocks)))\n    return model",
            ),
            "blocks registered first": (
                "a wrapper registers the blocks before the rest",
                "    return model",
                "    wrapper = torch.nn.Module()\n    wrapper.blocks, wrapper.model = model.blocks, model\n"
                "    wrapper.forward = model.forward\n    return wrapper",
            ),
            "reentrant": (
                "cuts the graph",
                "use_reentrant=False",
                "use_reentrant=True",
            ),
            "weights made anew": (
                "were copied, changed or made anew",
                "    return model",
                "    torch.nn.init.ones_(model.blocks[0].attention_out.weight)\n    return model",
            ),
            "a copy changed": (
                "a copy is changed and returned",
                "    for block in model.blocks:\n",
                "    import copy\n\n    model = copy.deepcopy(model)\n    for block in model.blocks:\n",
            ),
            "nothing returned": ("`return model` is missing", "    return model", "    pass"),
            "nothing done": ("or none", "model.blocks:", "():"),
            "the class changed": (
                "the class of the blocks is changed",
                ("        block.forward = ", "        type(block).forward = "),
                (
                    _ONE,
                    "lambda self, *inputs, f=type(block).forward: checkpoint(f, self, *inputs, use_reentrant=False)",
                ),
                ("model.blocks:", "list(model.blocks)[:1]:"),
            ),
            "mode looked at once": (
                "the mode that the model was given in decides for good",
                "    for block in model.blocks:\n",
                "    for block in model.blocks if model.training else ():\n",
            ),
            "random numbers drawn besides": (
                "dropout draws at another place",
                _ONE,
                "functools.partial(drawing, block.forward)",
            ),
            "left in training mode": (
                "more than it is asked for",
                "    return model",
                "    return model.train()",
            ),
            "kept as arrays": (
                "as NumPy arrays or bytes",
                (_ONE, "functools.partial(kept_as_arrays, block.forward)"),
                (
                    "def careless(",
                    "def kept_as_arrays(forward, *inputs):\n"
                    "    def pack(t):\n"
                    "        return t if isinstance(t, torch.nn.Parameter) else t.detach().numpy().copy()\n"
                    "    def unpack(kept):\n"
                    "        return kept if isinstance(kept, torch.Tensor) else torch.from_numpy(kept)\n"
                    "    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):\n"
                    "        return forward(*inputs)\n\ndef careless(",
                ),
            ),
            "kept in memory that was there before": (
                "in memory that was there before",
                (_ONE, "functools.partial(kept_in, block.forward)"),
                (
                    "def careless(",
                    "ROOM, PLACES = torch.zeros(64_000_000), [0]\n\n"
                    "def kept_in(forward, *inputs):\n"
                    "    def pack(t):\n"
                    "        if t.dtype != torch.float32 or isinstance(t, torch.nn.Parameter):\n"
                    "            return t\n"
                    "        at, PLACES[0] = PLACES[0], (PLACES[0] + t.numel()) % (len(ROOM) // 2)\n"
                    "        return ROOM[at:][: t.numel()].view(t.shape).copy_(t.detach())\n"
                    "    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept):\n"
                    "        return forward(*inputs)\n\ndef careless(",
                ),
            ),
            "kept in an array that was there before": (
                "nothing, or hardly anything, is computed again",
                (_ONE, "functools.partial(kept_in, block.forward)"),
                ("import torch\n", "import numpy as np\nimport torch\n"),
                (
                    "def careless(",
                    "ROOM, PLACES = np.zeros(64_000_000, dtype=np.float32), [0]\n\n"
                    "def kept_in(forward, *inputs):\n"
                    "    def pack(t):\n"
                    "        if t.dtype != torch.float32 or isinstance(t, torch.nn.Parameter):\n"
                    "            return t\n"
                    "        at, PLACES[0] = PLACES[0], (PLACES[0] + t.numel()) % (len(ROOM) // 2)\n"
                    "        place = ROOM[at:][: t.numel()].reshape(tuple(t.shape))\n"
                    "        np.copyto(place, t.detach().numpy())\n"
                    "        return place\n"
                    "    def unpack(kept):\n"
                    "        return kept if isinstance(kept, torch.Tensor) else torch.from_numpy(kept)\n"
                    "    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):\n"
                    "        return forward(*inputs)\n\ndef careless(",
                ),
            ),
            "gradients lost in evaluation": (
                "a gradient for every parameter, in evaluation",
                _ONE,
                "functools.partial(careless, block, block.forward)",
            ),
        },
    )
    + wrong(
        _BY_HAND,
        {
            "random state kept on the block": (
                "is kept once for each block",
                "context.state",
                "context.run.__self__.state",
            )
        },
    )
    + wrong(SLOW_BLOCKS, {"computed again and again": ("computed again more than once",)}, is_timed=True),
}
