"""Harness of 7.4: each of the four runs once with its counts, and as a segment under the clock."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner
from course_lib.data import collate
from course_lib.measuring import count_events
from course_lib.models import ModelConfig, TextClassifier

VOCABULARY = 2000
WORDS_READ = 20_000  # of run B: a table whose histogram takes longer than a step
ROWS = 8
LATENCY_SECONDS = 0.002  # of one sample in run A: a sleep, so that the verdict is stable
BATCHES_PER_STEP = 4  # of a segment of run A
LOG_EVERY_STEPS = 6  # as many batches has a step of a segment of run B: each has its entry
ROWS_PER_UPDATE = 8
NUM_EPOCHS = 5


class _StoredSamples:
    """Samples that take a while to arrive."""

    def __init__(self, samples: list[tuple[np.ndarray, int]], seconds: float) -> None:
        self.samples, self.seconds = samples, seconds

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        if not 0 <= index < len(self.samples):
            raise IndexError(index)
        time.sleep(self.seconds)
        return self.samples[index]


def _model(
    seed: int, width: int = 32, words: int = VOCABULARY
) -> tuple[TextClassifier, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"d_model": width, "num_layers": 1, "num_heads": 2, "max_length": 32}
    model = TextClassifier(ModelConfig(vocab_size=words, num_classes=5, dropout=0.0, **sizes))
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def _samples(rng: np.random.Generator, number: int, longest: int = 32) -> list[tuple[np.ndarray, int]]:
    return [
        (rng.integers(3, VOCABULARY, size=rng.integers(longest // 2, longest + 1)), int(rng.integers(5)))
        for _ in range(number)
    ]


def _batches(
    rng: np.random.Generator, number: int, rows: int = ROWS, longest: int = 32
) -> list[dict[str, torch.Tensor]]:
    return [collate(_samples(rng, rows, longest)) for _ in range(number)]


def _prepared(run: str, seed: int, size: int, latency: float) -> tuple[Any, Any, tuple[Any, ...]]:
    """A model, its optimizer, and what the run is called with besides; `size` is in segments' steps."""
    tail = 0 if latency else 5  # a short last batch, where nothing is timed
    rng = np.random.default_rng(seed)
    model, optimizer = _model(seed, 64 if run in "AD" else 32, WORDS_READ if run == "B" else VOCABULARY)
    if run == "A":
        samples = _StoredSamples(_samples(rng, size * BATCHES_PER_STEP * ROWS + tail), latency)
        return model, optimizer, (samples, optimizer, ROWS)
    if run == "B":
        batches = _batches(rng, size * LOG_EVERY_STEPS, rows=4, longest=16)
        return model, optimizer, (batches, optimizer, LOG_EVERY_STEPS)
    if run == "C":
        samples_in_memory = _samples(rng, size * ROWS_PER_UPDATE + tail, longest=16)
        return model, optimizer, (samples_in_memory, optimizer, ROWS_PER_UPDATE)
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.05)
    return model, optimizer, (_batches(rng, size, rows=2 * ROWS), optimizer, NUM_EPOCHS)


def _answer(run: str, model: Any, result: Any, seed: int) -> dict[str, Any]:
    """What was returned, as numbers, and the logits of the trained model on texts that it has not seen."""
    probe = _batches(np.random.default_rng([seed, 1]), 1)[0]
    model.eval()
    with torch.no_grad():
        logits = model(probe["input_ids"], probe["attention_mask"])
    answer: dict[str, Any] = {"logits": logits}
    if run != "B":
        return answer | {"losses": np.array([float(loss) for loss in result], dtype=np.float64)}
    names = sorted(name for name, _ in model.named_parameters())
    counted = [[entry["histograms"][name] for name in names] for entry in result]
    return answer | {
        "losses": np.array([float(entry["loss"]) for entry in result], dtype=np.float64),
        "steps": np.array([int(entry["step"]) for entry in result], dtype=np.int64),
        "histograms": np.array(counted, dtype=np.int64).reshape(len(result), len(names), -1),
    }


def named_illnesses(runs: list[str]) -> list[str]:
    """What the learner says of each run."""
    ward = learner()
    return [str(ward.diagnose(run)) for run in runs]


def ward_once(run: str, seed: int, size: int) -> dict[str, Any]:
    """One run on a few batches, with its counts. Run A without its latency, as nothing is timed."""
    model, _, arguments = _prepared(run, seed, size, latency=0.0)
    method = getattr(learner(), f"run_{run.lower()}")
    with count_events(model) as counts:
        result = method(model, *arguments)
    counted = {"syncs": counts.num_syncs, "forwards": counts.num_forwards, "flops": counts.total_flops}
    return _answer(run, model, result, seed) | {"counts": counted, "unwatched": counts.num_unwatched}


def _segment(run: str, seed: int, num_steps: int) -> dict[str, Any]:
    model, _, arguments = _prepared(run, seed, num_steps, LATENCY_SECONDS)
    return _answer(run, model, getattr(learner(), f"run_{run.lower()}")(model, *arguments), seed)


def segment_a(seed: int, num_steps: int) -> dict[str, Any]:
    """Input from behind a latency."""
    return _segment("A", seed, num_steps)


def segment_b(seed: int, num_steps: int) -> dict[str, Any]:
    """Readings of weights and loss."""
    return _segment("B", seed, num_steps)


def segment_c(seed: int, num_steps: int) -> dict[str, Any]:
    """Updates of several rows."""
    return _segment("C", seed, num_steps)


def segment_d(seed: int, num_steps: int) -> dict[str, Any]:
    """A head on a frozen body."""
    return _segment("D", seed, num_steps)
