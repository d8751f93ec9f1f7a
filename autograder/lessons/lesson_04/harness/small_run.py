"""The run of 4.1: its next step depends on every kind of state that a checkpoint has to hold."""

from __future__ import annotations

import random
import zlib
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import as_it_is, small_model
from course_lib.data import collate

FP16_MAX = 65504.0


class _Order:
    """Batches of indices in an order that is new each epoch, and the place in it. Its state is nested."""

    def __init__(self, size: int, rows: int, seed: int) -> None:
        self._size, self._rows, self._seed = size, rows, seed
        self._labels = {
            "kind": "shuffled\n",
            "most": None,
            "is_whole": True,
            "seed": 2**40 + seed,
            "share": 0.1,
        }
        self._start(0)

    def _start(self, epoch: int) -> None:
        order = np.random.default_rng([self._seed, epoch]).permutation(self._size)
        self._epoch, self._order, self._taken = epoch, torch.from_numpy(order), [0, 0.0]

    def next_batch(self) -> list[int]:
        start = int(self._taken[0])
        self._taken = [start + self._rows, (start + self._rows) / self._size]
        batch = self._order[start : start + self._rows].tolist()
        if self._taken[0] >= self._size:
            self._start(self._epoch + 1)
        return [int(index) for index in batch]

    def state_dict(self) -> dict[str, Any]:
        place = {"taken": self._taken, "order": self._order, "labels": self._labels}
        return {"epoch": self._epoch, "place": place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._epoch, self._order = int(state["epoch"]), state["place"]["order"].clone()
        self._taken, self._labels = list(state["place"]["taken"]), dict(state["place"]["labels"])

    def where(self) -> list[float]:
        return [float(self._epoch), *map(float, self._taken), *map(float, self._order)]


class _Model(torch.nn.Module):
    """A classifier, and buffers that its next step reads: a cast to 32 bits would round them."""

    num_seen: torch.Tensor
    heat: torch.Tensor

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.classifier = small_model(seed, dropout=0.2)
        self.register_buffer("num_seen", torch.tensor(2**24 + 1 + seed % 997))
        self.register_buffer("heat", torch.tensor(1.0 + (seed % 991) / 3e3, dtype=torch.float64))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.num_seen += len(input_ids)
            self.heat *= 1.0 + 1.0 / 3e3
        scale = (self.heat * (1.0 + 1e-9 * self.num_seen)).float()
        logits: torch.Tensor = self.classifier(input_ids, attention_mask) * scale
        return logits


class SmallRun:
    """A run whose next step depends on weights, moments, schedule, scale, place, and three random generators."""

    def __init__(self, data_seed: int, own_seed: int) -> None:
        rng = np.random.default_rng(data_seed)
        self.samples = [
            (rng.integers(3, 60, size=rng.integers(4, 20)), int(rng.integers(5))) for _ in range(44)
        ]
        self.model = _Model(own_seed)
        weights = list(self.model.parameters())
        groups: list[dict[str, Any]] = [
            {"params": weights[::2]},
            {"params": weights[1::2], "lr": 1e-3, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=3e-3)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: (1 + step) ** -0.5)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=3)
        self.sampler = _Order(len(self.samples), 8, data_seed % 1000)
        random.seed(own_seed)
        np.random.seed(own_seed % 2**32)
        torch.manual_seed(own_seed)

    def parts(self) -> dict[str, Any]:
        names = ("model", "optimizer", "scheduler", "scaler", "sampler")
        return {name: getattr(self, name) for name in names}

    def train(self, num_steps: int) -> list[float]:
        return [self._step() for _ in range(num_steps)]

    def _step(self) -> float:
        rows = []
        for index in self.sampler.next_batch():
            ids, label = self.samples[index]
            ids = np.where(np.random.random(len(ids)) < 0.15, 2, ids)  # words masked, by NumPy's generator
            rows.append((ids[::-1].copy() if random.random() < 0.5 else ids, label))  # by Python's
        batch = collate(rows)
        loss = F.cross_entropy(self.model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        # A normal number each: both generators make two at a time, and keep one for the next step.
        loss = loss * float(np.exp(0.1 * random.gauss(0.0, 1.0) + 0.1 * np.random.standard_normal()))
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        for parameter in self.model.parameters():  # what fp16 could not hold, as a GPU would see it
            if parameter.grad is not None:
                parameter.grad[parameter.grad.abs() > FP16_MAX] = float("inf")
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        for group in self.optimizer.param_groups:
            group["weight_decay"] *= 1.01  # a plan of the loop's own, which no scheduler knows
        return float(loss.detach())

    def _schedule(self) -> list[float]:
        plan = self.scheduler
        return [
            float(number)
            for number in (plan.last_epoch, plan._step_count, *plan.base_lrs, *plan.get_last_lr())
        ]

    def facts(self) -> dict[str, Any]:
        """Where the run is, in numbers that can be compared to the bit. Draws from no generator."""
        states = [self.optimizer.state.get(p, {}) for p in self.model.parameters()]
        moments = [state.get(name) for state in states for name in ("exp_avg", "exp_avg_sq", "step")]
        gradients = [p.grad.flatten() for p in self.model.parameters() if p.grad is not None]
        wide = [value.detach().double().flatten() for value in self.model.state_dict().values()]
        groups = [[group["lr"], group["weight_decay"]] for group in self.optimizer.param_groups]
        return {
            "weights": torch.cat([p.detach().flatten() for p in self.model.parameters()]),
            "model": torch.cat(wide),
            "moments": torch.cat([torch.zeros(1) if m is None else m.detach().flatten() for m in moments]),
            "groups": np.array(groups, dtype=np.float64),
            "schedule": self._schedule(),
            "scale": [float(self.scaler.get_scale()), float(self.scaler._get_growth_tracker())],
            "place": self.sampler.where(),
            "told": [float(zlib.crc32(repr(as_it_is(self.sampler.state_dict())).encode()))],
            "gradients": torch.cat(gradients) if gradients else torch.zeros(0),
            "modes": [module.training for module in self.model.modules()],
        }
