"""A corpus larger than the memory that its process may have: read, split, tokenised, batched, trained on.

    python -m tests.benchmarks.larger_than_memory [--gigabytes 3] [--limit 1.2]

Writes JSON Lines made of real docstrings, each time with other words swapped in, and trains on them in a
process whose private memory the system limits (RLIMIT_DATA; the mapped store is no part of it, as the system
may drop those pages at any time). Prints one line. Needs Linux, and about twice the corpus on the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

STEPS = 200


def write_corpus(path: Path, num_bytes: int, seed: int = 0) -> int:
    """Docstrings again and again, a tenth of their words replaced by words of others; returns the rows."""
    from course_lib.data import load_docstrings

    texts = load_docstrings()
    rng = random.Random(seed)
    words = " ".join(texts.texts[::50]).split()
    names = [texts.label_names[label] for label in texts.labels]
    rows = written = 0
    with path.open("w", encoding="utf-8") as file:
        while written < num_bytes:
            i = rng.randrange(len(texts))
            parts = texts.texts[i].split(" ")
            for _ in range(1 + len(parts) // 10):
                parts[rng.randrange(len(parts))] = rng.choice(words)
            line = json.dumps({"text": " ".join(parts), "label": names[i]}) + "\n"
            written += file.write(line)
            rows += 1
    return rows


def private_bytes(field: str = "RssAnon") -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def train_within(path: Path, headroom: int, limit: int, steps: int) -> dict[str, float]:
    """In this process, from here on: at most `limit` bytes of private memory, or `headroom` more than now."""
    import resource

    import numpy as np
    import torch

    from course_lib.data.batching import Batches, BucketBatchSampler, collate
    from course_lib.models.transformers import ModelConfig, TextClassifier
    from course_lib.runs.components import load_data
    from course_lib.runs.config import TrainConfig
    from course_lib.runs.folder import RunFolder
    from course_lib.training.loop import train_step

    # One step of a small model first: torch loads much on first use, which is not what is measured here.
    tiny = TextClassifier(ModelConfig(vocab_size=9, num_classes=2, max_length=256))
    train_step(tiny, collate([(np.ones(256, dtype=np.int64), 1)] * 16), torch.optim.AdamW(tiny.parameters()))
    before = private_bytes("VmData")
    limit = limit or before + headroom
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    try:
        np.ones(limit, dtype=np.uint8)
        sys.exit("the limit does not hold on this system")
    except MemoryError:
        pass
    peak = [0]

    def watch() -> None:
        while True:
            peak[0] = max(peak[0], private_bytes())
            time.sleep(0.05)

    threading.Thread(target=watch, daemon=True).start()
    started = time.perf_counter()
    config = TrainConfig(data=str(path), model="transformer")
    data = load_data(config, RunFolder(path.parent / "run"), progress=False)
    loaded = time.perf_counter()
    model = TextClassifier(
        ModelConfig(vocab_size=data.train.vocab_size, num_classes=len(data.train.label_names), max_length=256)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses = [float("nan")]
    batches = Batches(data.train, BucketBatchSampler(data.train.lengths, 16))
    for number, batch in enumerate(batches):
        if number < steps:
            losses.append(float(train_step(model, batch, optimizer)["loss"]))
        elif number >= max(steps, 1000):  # and more of them are made than the model is trained on
            break
    return {
        "corpus_bytes": path.stat().st_size,
        "limit_bytes": limit,
        "bytes_before": before,
        "peak_bytes": peak[0],
        "num_texts": len(data.train) + len(data.validation),
        "num_tokens": int(data.train.lengths.sum() + data.validation.lengths.sum()),
        "load_seconds": loaded - started,
        "train_seconds": time.perf_counter() - loaded,
        "first_loss": sum(losses[1:6]) / 5,
        "last_loss": sum(losses[-5:]) / 5,
    }


def run_limited(path: Path, *, headroom: int = 0, limit: int = 0, steps: int = STEPS) -> dict[str, float]:
    """`train_within` on the JSON Lines at `path`, in a process of its own; what it builds lies beside `path`."""
    command = [sys.executable, "-m", "tests.benchmarks.larger_than_memory", "--inside", str(path)]
    command += ["--headroom", str(headroom), "--limit", str(limit / 1e9), "--steps", str(steps)]
    environment = os.environ | {"COURSE_LIB_CACHE": str(path.parent / "cache"), "MALLOC_ARENA_MAX": "2"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--limit", type=float, default=1.2, help="gigabytes")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--headroom", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        print(
            json.dumps(
                train_within(
                    arguments.inside, arguments.headroom, int(arguments.limit * 1e9), arguments.steps
                )
            )
        )
        return
    with tempfile.TemporaryDirectory(prefix="larger-than-memory-") as folder:
        path = Path(folder) / "corpus.jsonl"
        write_corpus(path, int(arguments.gigabytes * 1e9))
        found = run_limited(path, limit=int(arguments.limit * 1e9), steps=arguments.steps)
    print(
        f"{found['corpus_bytes'] / 1e9:.2f} GB, {found['num_texts']:,} texts, {found['num_tokens']:,} tokens; "
        f"limit {found['limit_bytes'] / 1e9:.2f} GB, private peak {found['peak_bytes'] / 1e9:.2f} GB; "
        f"read, split, tokenised in {found['load_seconds']:.0f} s, {arguments.steps} steps in "
        f"{found['train_seconds']:.0f} s, loss {found['first_loss']:.2f} to {found['last_loss']:.2f}"
    )


if __name__ == "__main__":
    main()
