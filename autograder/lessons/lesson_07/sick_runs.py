"""The four runs of exercise 7.4. Each is right, and each has one illness that real scripts have.

The lesson shows this text, and it is the baseline that cures are timed against: what is imported here, a worker that
may only read can import too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.data import collate
from course_lib.models import masked_mean
from course_lib.training import train_step

Batch = dict[str, torch.Tensor]


class SickRuns:
    """Runs A to D. Each trains `model` in place and returns what its caller asked for."""

    def run_a(self, model: Any, samples: Any, optimizer: Any, micro_batch_size: int) -> list[float]:
        """One pass over `samples` in their order. Returns the loss of each step."""
        model.train()
        losses = []
        for start in range(0, len(samples), micro_batch_size):
            chosen = range(start, min(start + micro_batch_size, len(samples)))
            batch = collate([samples[index] for index in chosen])
            losses.append(train_step(model, batch, optimizer)["loss"])
        return torch.stack(losses).tolist()

    def run_b(
        self, model: Any, batches: Sequence[Batch], optimizer: Any, log_every_steps: int
    ) -> list[dict[str, Any]]:
        """One pass over `batches`. Returns an entry for every step whose number `log_every_steps` divides."""
        model.train()
        log = []
        for step, batch in enumerate(batches, start=1):
            metrics = train_step(model, batch, optimizer)
            entry: dict[str, Any] = {"step": step, "loss": metrics["loss"].item(), "histograms": {}}
            for name, parameter in model.named_parameters():
                sizes = parameter.detach().abs().cpu().numpy()
                entry["histograms"][name] = np.histogram(sizes, bins=32, range=(0.0, 1.0))[0].tolist()
            if step % log_every_steps == 0:
                log.append(entry)
        return log

    def run_c(self, model: Any, samples: Any, optimizer: Any, rows_per_update: int) -> list[float]:
        """One pass in order, an update for every `rows_per_update` samples. Returns the mean loss of each update."""
        model.train()
        losses = []
        for start in range(0, len(samples), rows_per_update):
            rows = [samples[index] for index in range(start, min(start + rows_per_update, len(samples)))]
            total = torch.zeros(())
            optimizer.zero_grad(set_to_none=True)
            for row in rows:
                batch = collate([row])
                logits = model(batch["input_ids"], batch["attention_mask"])
                loss = F.cross_entropy(logits, batch["labels"]) / len(rows)
                loss.backward()
                total += loss.detach()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # as `train_step` does
            optimizer.step()
            losses.append(total)
        return torch.stack(losses).tolist()

    def run_d(self, model: Any, batches: Sequence[Batch], optimizer: Any, num_epochs: int) -> list[float]:
        """`num_epochs` passes over `batches`. The body is frozen and the optimizer holds `model.head` alone.

        Returns the loss of each step.
        """
        model.eval()  # a frozen body needs no dropout
        losses = []
        for _ in range(num_epochs):
            for batch in batches:
                mask = batch["attention_mask"]
                with torch.no_grad():
                    features = masked_mean(model.encode(batch["input_ids"], mask), mask)
                loss = F.cross_entropy(model.head(features), batch["labels"])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        return torch.stack(losses).tolist()
