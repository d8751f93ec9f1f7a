"""Wrong solutions of 8.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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
    "8.4": (
        Mutant(
            name="seeding after the model is built",
            source=edited(
                _RUN,
                ("        seed_everything(seed)\n", ""),
                ("self.model = make_model()\n", "self.model = make_model()\n        seed_everything(seed)\n"),
            ),
            says="seeding after the model is built",
        ),
        Mutant(
            name="NumPy seed forgotten",
            source=edited(_RUN, ("        seed_everything(seed)\n", "        torch.manual_seed(seed)\n")),
            says="NumPy's or Python's seed is forgotten",
        ),
        Mutant(
            name="one generator shared by shuffling and dropout",
            source=edited(
                _RUN,
                (
                    "        return np.random.default_rng([self.seed, epoch]).permutation(len(self.samples))",
                    "        if not hasattr(self, 'orders'):\n            self.orders = {}\n"
                    "        if epoch not in self.orders:\n"
                    "            self.orders[epoch] = torch.randperm(len(self.samples)).tolist()\n"
                    "        return self.orders[epoch]",
                ),
            ),
            says="one generator shared by shuffling and dropout",
        ),
        Mutant(
            name="the position is not saved",
            source=edited(_RUN, ('self.step = state["step"]', "self.step = 5 * (state['step'] // 5)")),
            says="the position in the epoch is not saved",
        ),
        Mutant(
            name="generators are not saved",
            source=edited(_RUN, ('        set_rng_state(state["rng"])\n', "")),
            says="states of NumPy's and Python's generators are not saved",
        ),
        Mutant(
            name="the optimizer is not saved",
            source=edited(_RUN, ('        self.optimizer.load_state_dict(state["optimizer"])\n', "")),
            says="optimizer or torch's generator is not saved",
        ),
        Mutant(
            name="the same order each epoch",
            source=edited(_RUN, ("[self.seed, epoch]", "self.seed")),
            says="not on the epoch",
        ),
        Mutant(
            name="objects in the state",
            source=edited(
                _RUN,
                ('"rng": rng_state()', '"rng": rng_state(), "numpy": np.random.default_rng(1)'),
            ),
            says="objects in the state",
        ),
    ),
}
