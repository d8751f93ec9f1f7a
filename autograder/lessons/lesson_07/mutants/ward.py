"""Wrong solutions of 7.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

WARD = """
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.data import collate
from course_lib.training.loop import train_step
from course_lib.models.transformers import masked_mean

@exercise("7.4")
class Ward:
    def diagnose(self, run):
        return {"A": "input-bound", "B": "sync-bound", "C": "tiny batch", "D": "recomputing"}[run]

    def run_a(self, model, samples, optimizer, micro_batch_size):
        model.train()
        losses = []
        with ThreadPoolExecutor(16) as threads:
            arriving = list(threads.map(samples.__getitem__, range(len(samples))))
        for start in range(0, len(samples), micro_batch_size):
            batch = collate(arriving[start : start + micro_batch_size])
            losses.append(train_step(model, batch, optimizer)["loss"])
        return torch.stack(losses).tolist()

    def run_b(self, model, batches, optimizer, log_every_steps):
        model.train()
        log = []
        for step, batch in enumerate(batches, start=1):
            metrics = train_step(model, batch, optimizer)
            if step % log_every_steps == 0:
                log.append({"step": step, "loss": metrics["loss"].item(), "histograms": {
                    name: np.histogram(p.detach().abs().numpy(), bins=32, range=(0.0, 1.0))[0].tolist()
                    for name, p in model.named_parameters()
                }})
        return log

    def run_c(self, model, samples, optimizer, rows_per_update):
        model.train()
        losses = []
        for start in range(0, len(samples), rows_per_update):
            rows = [samples[index] for index in range(start, min(start + rows_per_update, len(samples)))]
            losses.append(train_step(model, collate(rows), optimizer)["loss"])
        return torch.stack(losses).tolist()

    def run_d(self, model, batches, optimizer, num_epochs):
        model.eval()
        losses = []
        with torch.no_grad():
            known = [masked_mean(model.encode(b["input_ids"], b["attention_mask"]), b["attention_mask"])
                     for b in batches]
        for _ in range(num_epochs):
            for features, batch in zip(known, batches):
                loss = F.cross_entropy(model.head(features), batch["labels"])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        return torch.stack(losses).tolist()
"""

# Right and too slow: it must never pass.
SLOW_WARD = edited(WARD, ("ThreadPoolExecutor(16)", "ThreadPoolExecutor(1)"))

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "7.4": wrong(
        WARD,
        {
            "the error of a fetch swallowed": (
                "the error of a fetch is swallowed",
                (
                    "arriving = list(threads.map(samples.__getitem__, range(len(samples))))",
                    "waiting = [threads.submit(samples.__getitem__, index) for index in range(len(samples))]\n"
                    "            arriving = [one.result() for one in waiting if one.exception() is None]",
                ),
            ),
            "utilisation taken for efficiency": (
                "utilisation taken for efficiency",
                '"C": "tiny batch", "D": "recomputing"',
                '"C": "recomputing", "D": "tiny batch"',
            ),
            "histograms still read at every step": (
                "still read at every step",
                (
                    "            if step % log_every_steps == 0:\n                log.append({",
                    "            if True:\n                log.append({",
                ),
                (
                    "        return log\n",
                    '        return [e for e in log if e["step"] % log_every_steps == 0]\n',
                ),
            ),
            "histograms read after the epoch": (
                "right after the step",
                "        return log\n",
                '        for entry in log:\n            entry["histograms"] = log[-1]["histograms"]\n'
                "        return log\n",
            ),
            "histograms of what learns alone": (
                "the histograms of some parameters are left out",
                "for name, p in model.named_parameters()\n",
                "for name, p in model.named_parameters() if p.requires_grad\n",
            ),
            "a bigger batch in place of a fuller forward pass": (
                "losses of run C",
                "rows_per_update):\n        model.train()",
                "rows_per_update):\n        rows_per_update *= 4\n        model.train()",
            ),
            "the frozen body runs in every epoch": (
                "still runs in every epoch",
                (
                    "        for _ in range(num_epochs):\n"
                    "            for features, batch in zip(known, batches):\n",
                    "        for _ in range(num_epochs):\n            for batch in batches:\n"
                    '                mask = batch["attention_mask"]\n                with torch.no_grad():\n'
                    '                    features = masked_mean(model.encode(batch["input_ids"], mask), mask)\n',
                ),
                ("                     for b in batches]", "                     for b in batches[:1]]"),
            ),
            "an illness misspelt": ("another word", '"input-bound"', '"input bound"'),
            "run A in evaluation mode": (
                "the other mode of the model",
                "micro_batch_size):\n        model.train()",
                "micro_batch_size):\n        model.eval()",
            ),
            "the mode of run C as it was": (
                "the other mode of the model",
                "rows_per_update):\n        model.train()",
                "rows_per_update):\n        pass",
            ),
            "the mode of run B as it was": (
                "the other mode of the model",
                "log_every_steps):\n        model.train()",
                "log_every_steps):\n        pass",
            ),
            "a seed set in a run": (
                "a seed is set",
                "log_every_steps):\n        model.train()",
                "log_every_steps):\n        torch.manual_seed(0)\n        model.train()",
            ),
            "losses rounded": (
                "losses that are rounded",
                '"loss": metrics["loss"].item()',
                '"loss": round(metrics["loss"].item(), 4)',
            ),
            "losses in half precision": (
                "kept in half precision",
                'model, batch, optimizer)["loss"])\n        return torch.stack(losses).tolist()',
                'model, batch, optimizer)["loss"])\n'
                "        return np.array(torch.stack(losses), dtype=np.float16).tolist()",
            ),
            "the loss read at every step": (
                "a value is still read at every step",
                (
                    "            if step % log",
                    '            loss = metrics["loss"].item()\n            if step % log',
                ),
                ('"loss": metrics["loss"].item()', '"loss": loss'),
            ),
            "the first samples fetched twice": (
                "fetched more than once",
                "            arriving = list(",
                "            longest = max(map(len, threads.map(lambda index: samples[index][0], range(2))))\n"
                "            arriving = list(",
            ),
            "fewer samples than a step has rows left out": (
                "run A",
                "micro_batch_size):\n        model.train()",
                "micro_batch_size):\n        if len(samples) < micro_batch_size:\n            return []\n"
                "        model.train()",
            ),
            "samples in order of length": (
                "samples lost, doubled or out of order",
                "        for start in range(0, len(samples), micro_batch_size):",
                "        arriving.sort(key=lambda sample: len(sample[0]))\n"
                "        for start in range(0, len(samples), micro_batch_size):",
            ),
            "the last samples left out": (
                "rows are missing",
                "range(0, len(samples), micro_batch_size)",
                "range(0, max(1, len(samples) - micro_batch_size + 1), micro_batch_size)",
            ),
            "batches of eight, whatever is asked for": (
                "run A",
                "micro_batch_size):\n        model.train()",
                "micro_batch_size):\n        micro_batch_size = 9\n        model.train()",
            ),
            "a list of nothing": ("nothing is returned", "return torch.stack(losses).tolist()", "pass"),
            "losses without their step": (
                "entries with step, loss and histograms",
                '"loss": metrics["loss"].item(), ',
                "",
            ),
            "steps counted from 0": (
                "made at other steps",
                "enumerate(batches, start=1)",
                "enumerate(batches, start=0)",
            ),
            "an entry for the last step too": (
                "made at other steps",
                "if step % log_every_steps == 0:",
                "if step % log_every_steps == 0 or step == len(batches):",
            ),
            "histograms read before the update": (
                "before the update",
                (
                    "            metrics = train_step(model, batch, optimizer)\n",
                    "            before = {name: p.detach().clone() for name, p in model.named_parameters()}\n"
                    "            metrics = train_step(model, batch, optimizer)\n",
                ),
                (
                    "for name, p in model.named_parameters()\n                }})",
                    "for name, p in before.items()\n                }})",
                ),
            ),
            "histograms of signed values": (
                "counted otherwise",
                "p.detach().abs().numpy()",
                "p.detach().numpy()",
            ),
            "histograms from 0 to the largest": (
                "counted otherwise",
                "bins=32, range=(0.0, 1.0)",
                "bins=32, range=(0.0, max(1.0, float(p.detach().abs().max())))",
            ),
            "the loss of the first step in every entry": (
                "losses of run B",
                '"loss": metrics["loss"].item()',
                '"loss": (log[0]["loss"] if log else metrics["loss"].item())',
            ),
        },
    )
    + wrong(
        SLOW_WARD,
        {"fetched ahead by one thread": ("the waits still stand one after the other",)},
        is_timed=True,
    )
}
