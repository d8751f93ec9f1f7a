"""Harness of 7.4: each of the four runs once with its counts, and as a segment under the clock."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import in_groups, learner
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


#: Steps of the run in one step of a segment, and its last argument there.
_SEGMENTS = {
    "A": (BATCHES_PER_STEP, ROWS),
    "B": (LOG_EVERY_STEPS, LOG_EVERY_STEPS),
    "C": (1, ROWS_PER_UPDATE),
    "D": (1, NUM_EPOCHS),
}


def _prepared(
    run: str,
    seed: int,
    num_steps: int,
    argument: int,
    *,
    tail: int = 0,
    latency: float = 0.0,
    words: int = VOCABULARY,
    is_grouped: bool = False,
) -> tuple[Any, tuple[Any, ...]]:
    """A model, and what the run is called with besides: for so many steps, and a last one of `tail` samples.

    `is_grouped`: the optimizer holds all the model's parameters in two groups.
    """
    rng = np.random.default_rng(seed)
    model, optimizer = _model(seed, 64 if run in "AD" else 32, words)
    if is_grouped:
        optimizer = torch.optim.SGD(in_groups(model), lr=0.05)
    if run == "A":
        samples = _StoredSamples(_samples(rng, num_steps * argument + tail), latency)
        return model, (samples, optimizer, argument)
    if run == "B":
        return model, (_batches(rng, num_steps, rows=4, longest=16), optimizer, argument)
    if run == "C":
        return model, (_samples(rng, num_steps * argument + tail, longest=16), optimizer, argument)
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.05)
    return model, (_batches(rng, num_steps, rows=2 * ROWS), optimizer, argument)


def _answer(run: str, model: Any, result: Any, seed: int) -> dict[str, Any]:
    """What was returned, as numbers, and the logits of the trained model on texts that it has not seen."""
    probe = _batches(np.random.default_rng([seed, 1]), 1)[0]
    model.eval()
    with torch.no_grad():
        logits = model(probe["input_ids"], probe["attention_mask"])
    try:
        return {"malformed": "", "logits": logits} | _numbers(run, model, result)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        return {"malformed": f"a {type(result).__name__}: {type(error).__name__} {error}"[:200]}


def _numbers(run: str, model: Any, result: Any) -> dict[str, Any]:
    if run != "B":
        return {"losses": np.array([float(loss) for loss in result], dtype=np.float64)}
    names = sorted(name for name, _ in model.named_parameters())
    counted = [[entry["histograms"][name] for name in names] for entry in result]
    return {
        "losses": np.array([float(entry["loss"]) for entry in result], dtype=np.float64),
        "steps": np.array([int(entry["step"]) for entry in result], dtype=np.int64),
        "histograms": np.array(counted, dtype=np.int64).reshape(len(result), len(names), -1),
    }


def named_illnesses(runs: list[str]) -> list[str]:
    """What the learner says of each run."""
    ward = learner()
    return [str(ward.diagnose(run)) for run in runs]


def _tell_modes_apart(model: Any) -> None:
    """In training mode the model computes something else, as with dropout, and without its chance."""
    for module in (model.blocks[0], model.head):
        module.register_forward_hook(lambda module, _, out: 1.5 * out if module.training else out)


def ward_runs(run: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One ward's run on a few batches, for each case, with its counts. Nothing is timed, so no sample is late.

    The gradients of whatever ran before are still there.
    """
    ward = learner()
    answers = []
    for case in cases:
        model, arguments = _prepared(run, **case, is_grouped=True)
        _tell_modes_apart(model)
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter) if parameter.requires_grad else None
        with torch.no_grad():  # weights above 1, and gradients that are clipped
            model.head.weight *= 20.0
        model.train(run == "D")  # not as the run needs it
        with count_events(model) as counts:
            result = getattr(ward, f"run_{run.lower()}")(model, *arguments)
        counted = {"syncs": counts.num_syncs, "forwards": counts.num_forwards, "flops": counts.total_flops}
        answer = _answer(run, model, result, case["seed"])
        answers.append(answer | {"counts": counted, "unwatched": counts.num_unwatched})
    return answers


class _Unreadable(OSError):
    """What a broken sample raises. No IndexError: that ends a `for` loop over the samples, as Python has it."""


class _BrokenSamples(_StoredSamples):
    """Samples of which one cannot be read."""

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        if index == len(self.samples) // 2:
            raise _Unreadable(f"sample {index} cannot be read")
        return super().__getitem__(index)


def unreadable(run: str, case: dict[str, Any]) -> str:
    """What a ward's run does where a sample cannot be read: the name of the error, "" for none."""
    model, (samples, *arguments) = _prepared(run, **case)
    stored = samples.samples if run == "A" else samples
    try:
        getattr(learner(), f"run_{run.lower()}")(model, _BrokenSamples(stored, 0.0), *arguments)
    except Exception as error:
        return type(error).__name__
    return ""


def _segment(run: str, seed: int, num_steps: int) -> dict[str, Any]:
    each, argument = _SEGMENTS[run]
    words = WORDS_READ if run == "B" else VOCABULARY
    model, arguments = _prepared(run, seed, num_steps * each, argument, latency=LATENCY_SECONDS, words=words)
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
