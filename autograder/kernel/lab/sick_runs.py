"""Six runs of lesson 1, each made ill on purpose: what they have is for the learner to find."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

import torch
from torch.optim import lr_scheduler

from autograder.kernel.lab.samples import SlowSamples
from autograder.show import figure, plots, show
from course_lib.data import collate
from course_lib.models import ModelConfig, TextClassifier
from course_lib.training import evaluate, loop, make_optimizer, to_device, train_step

Batch = dict[str, torch.Tensor]


@dataclass
class History:
    """What a run showed, one value a step; `validation` by step."""

    loss: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)
    validation: dict[int, float] = field(default_factory=dict)


class _DividesByZero(TextClassifier):
    """Mean over the tokens as it is often written: an empty text divides zero by zero."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.token_embedding(input_ids) * attention_mask[..., None]
        return self.head(hidden.sum(dim=1) / attention_mask.sum(dim=1, keepdim=True))


class SickRuns:
    """Runs A to F on the first tokens of a few texts, and one that is well.

    Attributes:
        runs: histories by letter; "healthy" is well.
        busy: share of F's epoch in which it did not wait, in percent.
    """

    def __init__(
        self, new_model: Callable[[], TextClassifier], samples: Sequence[Any], num_classes: int
    ) -> None:
        """
        Args:
            new_model: makes a fresh small classifier.
            samples: at least 640 short `(ids, label)`.
        """
        self._new_model, self._num_classes = new_model, num_classes
        self._few = [collate(samples[i : i + 16]) for i in range(0, 64, 16)]
        self._held_out = [collate(samples[512 + i : 544 + i]) for i in range(0, 128, 32)]
        few = samples[:64]
        self.runs = {
            "A": self._run(_going_round(few, 60), learning_rate=1e-7),
            "B": self._run(
                _without_tokens(_going_round(few, 60), at=30), model=self._dividing(), learning_rate=1e-2
            ),
            "C": self._run(islice(cycle(self._few), 100), validate_every=10),
            "D": self.mislabelled_run(),
            "E": self._run(
                _going_round(few, 60), schedule=lambda o: lr_scheduler.ExponentialLR(o, gamma=0.7)
            ),
            "healthy": self._run(_going_round(few, 60)),
        }
        loader: Any = torch.utils.data.DataLoader(
            SlowSamples(few, 0.001),  # type: ignore[arg-type]
            batch_size=16,
            collate_fn=collate,
        )
        model = new_model()
        report = loop.train_one_epoch(model, loader, make_optimizer(model))
        self.busy = 100 * (1 - report["data_wait_fraction"])

    def mislabelled_run(self, max_norm: float = math.inf) -> History:
        """Run D: the labels of two batches are wrong. `max_norm` clips its gradients."""
        batches = self._wrong_labels(islice(cycle(self._few), 90), bad_steps={55, 75})
        return self._run(batches, max_norm=max_norm)

    def draw(self) -> None:
        """The curves, without a word of what they mean."""
        fig, axes = figure(2, 3, height=4.6)
        (a, b, c), (d, e, f) = axes
        chance = math.log(self._num_classes)
        runs = self.runs
        a.plot(runs["A"].loss, color=plots.RED)
        a.axhline(chance, color=plots.GREY, linestyle=":")
        a.set(title="A", ylim=(0, 1.3 * chance), ylabel="loss")
        b.plot(runs["B"].loss, color=plots.RED)
        b.set(title="B", xlim=(0, 60), ylim=(0, 1.3 * chance))
        c.plot(runs["C"].loss, color=plots.BLUE, label="train")
        validation = runs["C"].validation
        c.plot(
            list(validation),
            list(validation.values()),
            color=plots.RED,
            marker="o",
            markersize=4,
            label="validation",
        )
        c.set(title="C")
        c.legend()
        d.plot(runs["D"].grad_norm, color=plots.RED)
        d.set(title="D", ylabel="gradient norm", xlabel="step")
        e.plot(runs["E"].loss, color=plots.RED, label="this run")
        e.plot(runs["healthy"].loss, color=plots.GREY, linestyle="--", label="healthy")
        e.set(title="E", ylim=(0, None), ylabel="loss", xlabel="step")
        e.legend()
        f.barh(
            ["busy", "waiting"], [self.busy, 100 - self.busy], color=[plots.BLUE, plots.ORANGE], height=0.55
        )
        f.set(title="F", xlim=(0, 100), xlabel="% of the epoch")
        spikes = [
            step for step, norm in enumerate(runs["D"].grad_norm) if norm == max(runs["D"].grad_norm[20:])
        ]
        show(
            fig,
            alt=f"Six small charts. A: the loss stays at {runs['A'].loss[-1]:.1f}. "
            f"B: the loss falls, and its curve ends at step {sum(map(math.isfinite, runs['B'].loss))}. "
            f"C: the training loss falls to {runs['C'].loss[-1]:.1f}, the validation loss rises to "
            f"{list(validation.values())[-1]:.1f}. "
            f"D: the gradient norm jumps, to {max(runs['D'].grad_norm[20:]):.0f} at step {spikes[0]}. "
            f"E: the loss stops at {runs['E'].loss[-1]:.1f}, that of a healthy run falls to "
            f"{runs['healthy'].loss[-1]:.1f}. F: {self.busy:.0f} % of the epoch busy, {100 - self.busy:.0f} % waiting.",
        )

    def _run(
        self,
        batches: Iterable[Batch],
        *,
        model: TextClassifier | None = None,
        learning_rate: float = 3e-3,
        schedule: Callable[[torch.optim.Optimizer], Any] | None = None,
        validate_every: int = 0,
        max_norm: float = math.inf,
    ) -> History:
        """A training with a sync at each step: for a look only."""
        model = model or self._new_model()
        device = next(model.parameters()).device
        optimizer = make_optimizer(model, learning_rate=learning_rate)
        scheduler = schedule(optimizer) if schedule else None
        history = History()
        model.train()
        for step, batch in enumerate(batches):
            metrics = train_step(
                model, to_device(batch, device), optimizer, scheduler=scheduler, max_norm=max_norm
            )
            history.loss.append(float(metrics["loss"]))
            history.grad_norm.append(float(metrics["grad_norm"]))
            if validate_every and step % validate_every == 0:
                history.validation[step] = evaluate(model, self._held_out)["loss"]
        return history

    def _dividing(self) -> TextClassifier:
        torch.manual_seed(0)
        healthy = self._new_model()
        config: ModelConfig = healthy.config
        return _DividesByZero(config).to(next(healthy.parameters()).device)

    def _wrong_labels(self, batches: Iterable[Batch], bad_steps: set[int]) -> Iterator[Batch]:
        for step, batch in enumerate(batches):
            wrong = (batch["labels"] + 1) % self._num_classes
            yield batch | {"labels": wrong} if step in bad_steps else batch


def _going_round(samples: Sequence[Any], num_steps: int, rows: int = 16) -> Iterator[Batch]:
    """`num_steps` batches, going round the samples."""
    endless = cycle(samples)
    return (collate(list(islice(endless, rows))) for _ in range(num_steps))


def _without_tokens(batches: Iterable[Batch], at: int) -> Iterator[Batch]:
    """One text out of a batch's has no token left."""
    for step, batch in enumerate(batches):
        if step == at:
            batch["attention_mask"][3] = False
        yield batch
