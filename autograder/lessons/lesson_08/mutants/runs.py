"""Wrong solutions of 8.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong
from autograder.lessons.checking.mutants import Mistake

_RUN = """
import copy
import random
import numpy as np
import torch
import torch.nn.functional as F
from course_lib.data import collate
from course_lib.training.reproducibility import rng_state, seed_everything, set_rng_state

@exercise("8.4")
class Run:
    def __init__(self, seed, make_model, samples):
        seed_everything(seed)
        self.seed, self.samples, self.step = seed, samples, 0
        self.model = make_model()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)

    def order(self, epoch):
        return np.random.default_rng([self.seed, epoch]).permutation(len(self.samples))

    def train(self, num_steps):
        self.model.train()
        per_epoch = -(-len(self.samples) // 4)
        for _ in range(num_steps):
            epoch, position = divmod(self.step, per_epoch)
            chosen = self.order(epoch)[4 * position : 4 * position + 4]
            batch = collate([self.samples[int(i)] for i in chosen])
            loss = F.cross_entropy(self.model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.step += 1

    def state_dict(self):
        return {
            "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
            "step": self.step, "rng": rng_state(),
        }

    def load_state_dict(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
        set_rng_state(state["rng"])
"""

_ORDER = "        return np.random.default_rng([self.seed, epoch]).permutation(len(self.samples))"
_MODEL = '        self.model.load_state_dict(state["model"])\n'
_RNG = '        set_rng_state(state["rng"])\n'
_LOSS = 'F.cross_entropy(self.model(batch["input_ids"], batch["attention_mask"]), batch["labels"])'

_SEEDS: dict[str, Mistake] = {
    "seeding after the model is built": (
        "seeding after the model is built",
        ("        seed_everything(seed)\n", ""),
        ("self.model = make_model()\n", "self.model = make_model()\n        seed_everything(seed)\n"),
    ),
    "NumPy seed forgotten": (
        "NumPy's seed is forgotten",
        "        seed_everything(seed)\n",
        "        torch.manual_seed(seed)\n        random.seed(seed)\n",
    ),
    "Python seed forgotten": (
        "Python's seed is forgotten",
        "        seed_everything(seed)\n",
        "        torch.manual_seed(seed)\n        np.random.seed(seed)\n",
    ),
    "dropout is not seeded": (
        "torch's generator is not where the seed puts it",
        "self.model = make_model()\n",
        "self.model = make_model()\n        torch.seed()\n",
    ),
    "one generator shared by shuffling and dropout": (
        "one generator shared by shuffling and dropout",
        _ORDER,
        "        if not hasattr(self, 'orders'):\n            self.orders = {}\n"
        "        if epoch not in self.orders:\n"
        "            self.orders[epoch] = torch.randperm(len(self.samples)).tolist()\n"
        "        return self.orders[epoch]",
    ),
    "the order is not seeded": (
        "that the seed does not reach",
        (
            _ORDER,
            "        if epoch not in self.orders:\n"
            "            self.orders[epoch] = np.random.default_rng().permutation(len(self.samples))\n"
            "        return self.orders[epoch]",
        ),
        ("self.seed, self.samples", "self.orders = {}\n        self.seed, self.samples"),
    ),
    "a seed written into the code": (
        "a seed is written into the code",
        "        seed_everything(seed)\n",
        "        seed_everything(42)\n",
    ),
    "one order for every seed": ("a seed is written into the code", "[self.seed, epoch]", "[0, epoch]"),
    "the order hangs on the hash of a text": (
        "hangs on the `hash()` of a text",
        "[self.seed, epoch]",
        'hash(f"{self.seed}, {epoch}") % 2**63',
    ),
    "nothing is seeded with 0": (
        "a seed of 0 is taken for none",
        "        seed_everything(seed)\n",
        "        if seed:\n            seed_everything(seed)\n",
    ),
    "the same order each epoch": ("not on the epoch", "[self.seed, epoch]", "self.seed"),
    "seed times epoch": ("which is 0 for a seed of 0", "[self.seed, epoch]", "self.seed * (epoch + 1)"),
    "every other epoch is the one before, backwards": (
        "turned round or moved on",
        _ORDER,
        "        order = np.random.default_rng([self.seed, epoch // 2]).permutation(len(self.samples))\n"
        "        return order[::-1] if epoch % 2 else order",
    ),
    "two orders in turn": ("not on the epoch", "[self.seed, epoch]", "[self.seed, epoch % 2]"),
    "one sample keeps its place": (
        "only a part of the samples is shuffled",
        _ORDER,
        "        rng = np.random.default_rng([self.seed, epoch])\n"
        "        return np.append(0, 1 + rng.permutation(len(self.samples) - 1))",
    ),
    "the halves are shuffled apart": (
        "parts of them apart from each other",
        _ORDER,
        "        half, rng = len(self.samples) // 2, np.random.default_rng([self.seed, epoch])\n"
        "        return np.append(rng.permutation(half), half + rng.permutation(len(self.samples) - half))",
    ),
    "whole batches are shuffled": (
        "the samples of a batch stay together",
        _ORDER,
        "        places = np.arange(len(self.samples))\n        cuts = np.arange(4, len(places), 4)\n"
        "        parts, rng = np.split(places, cuts), np.random.default_rng([self.seed, epoch])\n"
        "        order = [*rng.permutation(len(parts) - 1), len(parts) - 1]\n"
        "        return np.concatenate([parts[i] for i in order])",
    ),
}

_STEPS: dict[str, Mistake] = {
    "another rate": ("another learning rate", "lr=1e-2", "lr=1e-3"),
    "SGD": ("such as SGD", "torch.optim.AdamW", "torch.optim.SGD"),
    "Adam": ("without its weight decay", "torch.optim.AdamW", "torch.optim.Adam"),
    "Adam with decay": (
        "Adam with weight decay",
        "AdamW(self.model.parameters(), ",
        "Adam(self.model.parameters(), weight_decay=0.01, ",
    ),
    "gradients are kept": ("`zero_grad` is forgotten", "            self.optimizer.zero_grad()\n", ""),
    "gradients are clipped": (
        "gradients are clipped",
        "            self.optimizer.step()\n",
        "            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)\n            self.optimizer.step()\n",
    ),
    "a larger eps": ("settings that are not torch's defaults", "lr=1e-2", "lr=1e-2, eps=1e-7"),
    "the sum for the mean": (
        "the loss is summed, or always divided by 4",
        'batch["labels"])',
        'batch["labels"], reduction="sum")',
    ),
    "a short batch divided by 4": (
        "the loss is summed, or always divided by 4",
        'batch["labels"])\n',
        'batch["labels"], reduction="sum") / 4\n',
    ),
    "smoothed labels": ("another loss", 'batch["labels"])', 'batch["labels"], label_smoothing=0.1)'),
    "padding is read": (
        "another loss",
        'batch["attention_mask"])',
        'torch.ones_like(batch["attention_mask"]))',
    ),
    "the short batch is dropped": (
        "samples are dropped",
        "-(-len(self.samples) // 4)",
        "max(1, len(self.samples) // 4)",
    ),
    "a single sample is dropped": (
        "samples are dropped",
        "-(-len(self.samples) // 4)",
        "max(1, (len(self.samples) + 2) // 4)",
    ),
    "the samples of a batch are sorted": (
        "sorted before they are read",
        "for i in chosen])",
        "for i in sorted(chosen)])",
    ),
    "one step too many": (
        "samples are dropped, repeated, or read ahead",
        "range(num_steps)",
        "range(num_steps + 1)",
    ),
    "batches of five": (
        "samples are dropped, repeated, or read ahead",
        ("// 4)", "// 5)"),
        ("[4 * position : 4 * position + 4]", "[5 * position : 5 * position + 5]"),
    ),
    "the next batch is read ahead": (
        "read ahead of their step",
        "            loss = ",
        "            for index in self.order(epoch)[4 * position + 4 : 4 * position + 8]:\n"
        "                self.samples[int(index)]\n            loss = ",
    ),
    "the samples of a call are read at its beginning": (
        "those of the whole call or epoch before its first one",
        (
            "        for _ in range(num_steps):\n            epoch,",
            "        batches = []\n        for _ in range(num_steps):\n            epoch,",
        ),
        (
            "            batch = collate([self.samples[int(i)] for i in chosen])\n",
            "            batches.append(collate([self.samples[int(i)] for i in chosen]))\n"
            "            self.step += 1\n        for batch in batches:\n",
        ),
        (
            "            self.optimizer.step()\n            self.step += 1\n",
            "            self.optimizer.step()\n",
        ),
    ),
    "the mode that it was left in": (
        "trains in the mode that it was left in",
        "        self.model.train()\n",
        "",
    ),
    "another model is trained": (
        "works on another model",
        "AdamW(self.model.parameters()",
        "AdamW(copy.deepcopy(self.model).parameters()",
    ),
}

_STATES: dict[str, Mistake] = {
    "the position is not saved": (
        "the position in the epoch is not saved",
        'self.step = state["step"]',
        "self.step = 0",
    ),
    "the epoch is counted at the next step": (
        "counted too late",
        ("samples, self.step = seed, samples, 0", "samples, self.step, self.epoch = seed, samples, 0, 0"),
        (
            "epoch, position = divmod(self.step, per_epoch)\n",
            "position = self.step % per_epoch\n"
            "            self.epoch += self.step > 0 and position == 0 and not self.is_new\n"
            "            epoch, self.is_new = self.epoch, False\n",
        ),
        (
            "        self.model.train()\n",
            "        self.model.train()\n        self.is_new = self.was_loaded\n",
        ),
        ('"step": self.step,', '"step": self.step, "epoch": self.epoch,'),
        (
            '        self.step = state["step"]\n',
            '        self.step, self.epoch = state["step"], state["epoch"]\n        self.was_loaded = True\n',
        ),
        ("class Run:\n", "class Run:\n    was_loaded = False\n\n"),
    ),
    "the position is kept in the process": (
        "the position in the epoch is not saved",
        ('"step": self.step', '"step": KEPT.append(self.step) or len(KEPT) - 1'),
        ('self.step = state["step"]', 'self.step = KEPT[state["step"]] if state["step"] < len(KEPT) else 0'),
        ("@exercise", "KEPT = []\n\n@exercise"),
    ),
    "generators are not saved": ("the state of NumPy's generator is not saved", _RNG, ""),
    "Python's generator is not saved": (
        "the state of Python's generator is not saved",
        _RNG,
        _RNG.replace('state["rng"]', '{**state["rng"], "python": rng_state()["python"]}'),
    ),
    "torch's generator is not saved": (
        "torch's generator is not saved",
        _RNG,
        _RNG.replace('state["rng"]', '{**state["rng"], "torch": torch.get_rng_state()}'),
    ),
    "half of a pair of Gaussians is lost": (
        "the state of NumPy's generator is not saved as it is",
        _RNG,
        _RNG.replace('state["rng"]', '{**state["rng"], "numpy": [*state["rng"]["numpy"][:3], 0, 0.0]}'),
    ),
    "a sample is read after loading": (
        "or it was drawn from after",
        _RNG,
        _RNG + "        np.random.random_sample()\n",
    ),
    "the order is drawn anew": (
        "cannot be made again from seed and epoch",
        (
            _ORDER,
            "        if self.orders.get('epoch') != epoch:\n"
            "            self.orders = {'epoch': epoch, 'order': self.rng.permutation(len(self.samples))}\n"
            "        return self.orders['order']",
        ),
        (
            "self.seed, self.samples",
            "self.rng, self.orders = np.random.default_rng(seed), {}\n        self.seed, self.samples",
        ),
    ),
    "the optimizer is not saved": (
        "the optimizer is not saved",
        '        self.optimizer.load_state_dict(state["optimizer"])\n',
        "",
    ),
    "the model is not restored": ("weights and buffers are not restored", _MODEL, ""),
    "buffers are not saved": (
        "weights and buffers are not restored",
        ('"model": self.model.state_dict()', '"model": dict(self.model.named_parameters())'),
        (_MODEL, _MODEL.replace(")\n", ", strict=False)\n")),
    ),
    "saving draws": (
        "saving draws random numbers",
        "    def state_dict(self):\n",
        "    def state_dict(self):\n        torch.rand(1)\n",
    ),
    "objects in the state": (
        "objects in the state",
        '"rng": rng_state()',
        '"rng": rng_state(), "numpy": np.random.default_rng(1)',
    ),
}

MUTANTS: dict[str, tuple[Mutant, ...]] = {"8.4": wrong(_RUN, _SEEDS | _STEPS | _STATES)}
