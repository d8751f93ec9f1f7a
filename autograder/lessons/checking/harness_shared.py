"""What the harness of every lesson has: the learner's name, small models and batches, numbers that may be sent back.

Nothing secret stands in a harness: seeds come with each call, and every comparison happens in the parent process.
`learner` is the function or class of the cell. A worker gets this file and the lesson's as one source
(`lessons.harness_source`).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import subprocess
import sys
import types
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.data import collate
from course_lib.models import ModelConfig, TextClassifier

learner: Any = globals().get("learner")


class NotCopied:
    """What a solution is given and is counted: a copy would be used beside it, uncounted.

    `why` says what else to copy.
    """

    why = "what it does is counted, of this one alone"

    def __reduce_ex__(self, _: Any) -> Any:  # `copy` and `pickle` ask here
        raise TypeError(f"this {type(self).__name__} cannot be copied: {self.why}")


def small_model(seed: int, *, dropout: float = 0.0, **sizes: int) -> TextClassifier:
    """A classifier of 5 classes and 60 words that computes in a millisecond; `sizes` replace its own."""
    torch.manual_seed(seed)
    settings: dict[str, Any] = {"d_model": 16, "num_layers": 1, "num_heads": 2, "max_length": 32} | sizes
    return TextClassifier(ModelConfig(vocab_size=60, num_classes=5, dropout=dropout, **settings))


def small_batches(seed: int, num_batches: int, *, rows: int = 12) -> list[dict[str, torch.Tensor]]:
    """Batches of random texts; the last is of 2 rows and one class, so that a mean of means differs."""
    rng = np.random.default_rng(seed)
    batches = []
    for index in range(num_batches):
        is_last = index == num_batches - 1
        labels = np.full(2, rng.integers(5)) if is_last else rng.integers(5, size=rows)
        samples = [(rng.integers(3, 60, size=rng.integers(2, 20)), int(label)) for label in labels]
        batches.append(collate(samples))
    return batches


def full_rows(
    rng: np.random.Generator, rows: int, width: int, *, words: int = 60, classes: int = 5
) -> dict[str, torch.Tensor]:
    """A batch of random texts that all fill the width: no padding."""
    return {
        "input_ids": torch.from_numpy(rng.integers(3, words, size=(rows, width))),
        "attention_mask": torch.ones(rows, width, dtype=torch.bool),
        "labels": torch.from_numpy(rng.integers(classes, size=rows)),
    }


def plain_step(model: Any, optimizer: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """One update, nothing beside it: what a lesson times or counts is around it. Returns the loss, scalar."""
    loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


def weights_of(model: Any) -> torch.Tensor:
    """All parameters in one row."""
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def in_groups(model: Any) -> list[dict[str, Any]]:
    """The parameters in two groups, as for a weight decay of matrices: what clips or divides one alone shows."""
    parameters = list(model.parameters())
    return [{"params": [p for p in parameters if (p.ndim > 1) == large]} for large in (True, False)]


def switches() -> dict[str, str]:
    """What is set for the whole process or thread; equal before and after a function that leaves no trace."""
    return {
        "autocast": f"{torch.is_autocast_enabled('cpu')}, {torch.get_autocast_dtype('cpu')}",
        "default dtype": str(torch.get_default_dtype()),
        "default device": str(torch.get_default_device()),
        "deterministic algorithms": str(torch.are_deterministic_algorithms_enabled()),
        "gradients recorded": str(torch.is_grad_enabled() and not torch.is_inference_mode_enabled()),
        "anomaly detection": str(torch.is_anomaly_enabled()),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "number of threads": str(torch.get_num_threads()),
    }


def as_it_is(value: Any) -> Any:
    """What `==` compares with the same value later: tensors, arrays, dicts, lists and tuples to the last bit.

    Types and shapes count, the order of a dict's keys does not.
    """
    if isinstance(value, torch.Tensor):
        content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return str(value.dtype), tuple(value.shape), content
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, dict):
        return {name: as_it_is(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [as_it_is(item) for item in value]
    return type(value).__name__, value


def generators() -> tuple[Any, ...]:
    """The states of torch's, NumPy's and Python's: equal where nobody has drawn from them or set them meanwhile."""
    return as_it_is(torch.get_rng_state()), repr(np.random.get_state()), random.getstate()


def small(seed: int) -> int:
    """A seed as people choose them: `np.random.seed` still takes what a solution makes of it and of the epoch."""
    return seed % 1000


def numbers(report: Any) -> dict[str, float]:
    """The numbers of a report. Whatever else a solution keeps there, a history or a text, is left out."""
    if not isinstance(report, dict):
        raise TypeError(f"a dict of numbers is needed, not a {type(report).__name__}")
    found = {}
    for key, value in report.items():
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            found[str(key)] = float(value)
    return found


# Loads the cell alone, and so is quick; hashes of texts, and with them the order of a set, are others in each. An
# answer begins with a key that the cell does not know: what else is printed is none, whoever ends the interpreter.
_ELSEWHERE = """
import json, sys, types
def _speaker(key, write=sys.stdout.write, dumps=json.dumps):
    return lambda answer: write(key + dumps(answer) + "\\n")
source, entry, request, say = json.load(sys.stdin)
say = _speaker(say)
marker, module = types.ModuleType("autograder"), types.ModuleType("__learner__")
marker.exercise = module.exercise = lambda _: lambda definition: definition
def stand_in(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *_, **__: None
marker.__getattr__ = stand_in
sys.modules |= {"autograder": marker, "__learner__": module}
exec(compile(source, "<your cell>", "exec"), module.__dict__)
learner = getattr(module, entry)
"""


def elsewhere(code: str, source: str, entry: str, request: Any, hash_seed: int) -> Any:
    """What `code` gives to `say` in a fresh interpreter: it has the cell's `learner` and the `request`.

    Raises RuntimeError with the last words of an interpreter that ends with an error, or without an answer.
    """
    key = secrets.token_hex(16)
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE + code],
        input=json.dumps([source, entry, request, key]),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
    )
    if done.returncode:
        raise RuntimeError(f"in a fresh interpreter the cell ended with: {done.stderr.strip()[-200:]}")
    answers = [line.removeprefix(key) for line in done.stdout.splitlines() if line.startswith(key)]
    if not answers:
        raise RuntimeError("in a fresh interpreter the cell ended Python before anything was asked of it")
    return json.loads(answers[-1])


def answer_here(code: str, request: Any) -> Any:
    """The same in this process, as it comes back from one."""
    said: list[Any] = []
    names = {
        "json": json,
        "sys": sys,
        "types": types,
        "learner": learner,
        "request": json.loads(json.dumps(request)),
    }
    exec(compile(code, "<harness>", "exec"), {"__name__": "harness", "say": said.append, **names})
    return json.loads(json.dumps(said[-1]))


def same_everywhere(
    code: str, source: str, entry: str, request: Any, hash_seeds: Iterable[int] = (1, 8)
) -> dict[str, Any]:
    """Whether fresh interpreters, which hash texts otherwise, say the same as this process; else what one said in
    "trouble"."""
    try:
        there = [elsewhere(code, source, entry, request, hash_seed) for hash_seed in hash_seeds]
    except RuntimeError as error:
        return {"is_same": False, "trouble": str(error)}
    here = answer_here(code, request)
    return {"is_same": all(one == here for one in there), "trouble": ""}
