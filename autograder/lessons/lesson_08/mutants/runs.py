"""Wrong solutions of 8.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_RUN = """
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

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "8.4": wrong(
        _RUN,
        {
            "seeding after the model is built": (
                "seeding after the model is built",
                ("        seed_everything(seed)\n", ""),
                ("self.model = make_model()\n", "self.model = make_model()\n        seed_everything(seed)\n"),
            ),
            "NumPy seed forgotten": (
                "NumPy's or Python's seed is forgotten",
                "        seed_everything(seed)\n",
                "        torch.manual_seed(seed)\n",
            ),
            "one generator shared by shuffling and dropout": (
                "one generator shared by shuffling and dropout",
                "        return np.random.default_rng([self.seed, epoch]).permutation(len(self.samples))",
                "        if not hasattr(self, 'orders'):\n            self.orders = {}\n"
                "        if epoch not in self.orders:\n"
                "            self.orders[epoch] = torch.randperm(len(self.samples)).tolist()\n"
                "        return self.orders[epoch]",
            ),
            "the position is not saved": (
                "the position in the epoch is not saved",
                'self.step = state["step"]',
                "self.step = 5 * (state['step'] // 5)",
            ),
            "generators are not saved": (
                "states of NumPy's and Python's generators are not saved",
                '        set_rng_state(state["rng"])\n',
                "",
            ),
            "the optimizer is not saved": (
                "optimizer or torch's generator is not saved",
                '        self.optimizer.load_state_dict(state["optimizer"])\n',
                "",
            ),
            "the same order each epoch": ("not on the epoch", "[self.seed, epoch]", "self.seed"),
            "objects in the state": (
                "objects in the state",
                '"rng": rng_state()',
                '"rng": rng_state(), "numpy": np.random.default_rng(1)',
            ),
        },
    )
}
