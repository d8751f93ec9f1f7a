"""What needs torch and NumPy alone: training, judging, checkpoints, counts, clocks. Prints as JSON what came of it."""

import json
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import course_lib
from course_lib.runs.record import ProgressBar
from course_lib.training import precision
from course_lib.training.reproducibility import weights_sha256


def on_pairs() -> dict:
    """`fit`, `evaluate`, and a run that goes on from its checkpoint."""
    course_lib.seed_everything(0)
    x = torch.randn(256, 8)
    data = TensorDataset(x, x[:, :3].argmax(dim=1))
    held_out = DataLoader(data, 64)

    def parts() -> dict:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
        optimizer = course_lib.make_optimizer(model, learning_rate=0.01)
        sampler = course_lib.BucketBatchSampler([1] * 256, 32, seed=0)
        schedule = course_lib.make_schedule(optimizer, "linear", max_steps=12, warmup_steps=2)
        return {"model": model, "optimizer": optimizer, "sampler": sampler, "scheduler": schedule}

    def train(
        run: dict, state: course_lib.TrainState, max_steps: int, *callbacks: course_lib.Callback
    ) -> None:
        loader = DataLoader(data, batch_sampler=run["sampler"])
        course_lib.fit(
            run["model"], loader, run["optimizer"], scheduler=run["scheduler"], state=state,
            validation_batches=held_out, max_steps=max_steps, max_epochs=9, callbacks=callbacks,
        )  # fmt: skip

    whole, first = parts(), parts()
    train(whole, course_lib.TrainState(), 12, ProgressBar(12, 9))
    state, last = course_lib.TrainState(), Path("last.pt")
    saver = course_lib.Checkpointer(
        last, Path("best.pt"), lambda _: course_lib.capture(state=state, **first),
        every_steps=4, monitor="accuracy", higher_is_better=True,
    )  # fmt: skip
    stopping = course_lib.EarlyStopping(monitor="accuracy", mode="max", patience=5)
    train(first, state, 4, saver, stopping)
    second = parts()
    train(second, course_lib.restore(course_lib.load_checkpoint(last), **second), 12)
    weights = [weights_sha256(run["model"].state_dict()) for run in (whole, second)]
    return {
        "weights": weights[0],
        "is_resumed": weights[0] == weights[1],
        "scores": course_lib.evaluate(whole["model"], held_out),
    }


def on_texts() -> dict:
    """Texts as arrays of ids, and a table by n-grams, which need no tokenizer of another package."""
    rng = np.random.default_rng(0)
    samples = [(rng.integers(3, 60, size=rng.integers(2, 20)), int(rng.integers(2))) for _ in range(64)]
    sizes = {"num_classes": 2, "max_length": 32, "d_model": 16, "num_layers": 1, "num_heads": 2}
    torch.manual_seed(0)
    model = course_lib.TextClassifier(course_lib.ModelConfig(vocab_size=60, **sizes))
    optimizer = course_lib.make_optimizer(model)
    batches = [course_lib.collate(samples[start : start + 8]) for start in range(0, 64, 8)]
    with course_lib.count_events(model) as counts:
        course_lib.train_step(model, batches[0], optimizer, max_norm=1.0)
    course_lib.train_one_epoch(model, batches, optimizer)
    course_lib.naive_epoch(model, samples, optimizer, pad_to=32, micro_batch_size=16)

    os.environ["COURSE_LIB_CACHE"] = "cache"  # else another package finds the place
    table = Path("reviews.csv")
    rows = [f"the {word} is {word},{label}" for word, label in (("wave", "sea"), ("rock", "hill")) * 20]
    table.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    texts = course_lib.load_table(table)  # with its bar, where there is one
    store = course_lib.TokenStore.build(texts, course_lib.data.train_ngrams(texts.texts), max_length=32)
    by_length = course_lib.BucketBatchSampler(store.lengths, 8, seed=0)
    return {
        "weights": weights_sha256(model.state_dict()),
        "counts": [counts.num_optimizer_steps, counts.num_syncs],
        "widths": [batch["input_ids"].shape[1] for batch in course_lib.Batches(store, by_length)],
        "pad_fraction": course_lib.pad_fraction(store.lengths, by_length),
    }


def measured() -> dict:
    large, small = torch.randn(300, 300), torch.randn(30, 300)
    speedup = course_lib.paired_speedup(
        lambda: large @ large, lambda: small @ large, blocks=3, min_seconds=0.02
    )
    peak = course_lib.peak_bytes(lambda: large @ large, torch.device("cpu"))
    precision.bf16_units = lambda: ["as of another CPU"]  # then it measures, and the cache would keep it
    resolved = course_lib.resolve_precision("auto", torch.device("cpu"), width=16)
    return {"is_faster": speedup.estimate > 1, "peak": peak, "is_measured": "× as fast" in resolved.reason}


if __name__ == "__main__":
    print(json.dumps({"pairs": on_pairs(), "measured": measured(), "texts": on_texts()}))
