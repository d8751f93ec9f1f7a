"""Harness of 7.4: each of the four runs once with its counts, and as a segment under the clock."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_counting import counted
from autograder.lessons.checking.harness_shared import (
    generators,
    learner,
    switches,
    weights_of,
)
from autograder.lessons.lesson_07.harness.sick_inputs import (
    BATCHES_PER_STEP,
    LOG_EVERY_STEPS,
    NUM_EPOCHS,
    ROWS,
    ROWS_PER_UPDATE,
    VOCABULARY,
    Anew,
    StoredSamples,
    drawn_batches,
    prepared,
    two_rates,
)

WORDS_READ = 20_000  # of run B: a table whose histogram takes longer than a step
DRAWS = 16  # of loaders, one for each pass: they seed their workers from torch's generator
NO_HISTOGRAM = "no histogram of"


#: Steps of the run in one step of a segment, and its last argument there.
_SEGMENTS = {
    "A": (BATCHES_PER_STEP, ROWS),
    "B": (LOG_EVERY_STEPS, LOG_EVERY_STEPS),
    "C": (1, ROWS_PER_UPDATE),
    "D": (1, NUM_EPOCHS),
}


def _answer(run: str, model: Any, result: Any, seed: int) -> dict[str, Any]:
    """What was returned, as numbers, and the logits of the trained model on texts that it has not seen."""
    probe = drawn_batches(np.random.default_rng([seed, 1]), 1)[0]
    model.eval()
    with torch.no_grad():
        logits = model(probe["input_ids"], probe["attention_mask"])
    try:
        return {"malformed": "", "logits": logits} | _numbers(run, model, result)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        return {"malformed": f"a {type(result).__name__}: {type(error).__name__} {error}"[:200]}


def _numbers(run: str, model: Any, result: Any) -> dict[str, Any]:
    if not isinstance(result, list):
        raise TypeError("where a list is asked for")
    if run != "B":
        return {"losses": np.array([_number(loss) for loss in result], dtype=np.float64)}
    names = sorted(name for name, _ in model.named_parameters())
    for entry in result:
        if missing := [name for name in names if name not in entry["histograms"]]:
            raise KeyError(f"{NO_HISTOGRAM} {missing[0]}")
    counted = [[entry["histograms"][name] for name in names] for entry in result]
    return {
        "losses": np.array([_number(entry["loss"]) for entry in result], dtype=np.float64),
        "steps": np.array([_number(entry["step"]) for entry in result], dtype=np.int64),
        "histograms": np.array(counted, dtype=np.int64).reshape(
            len(result), len(names), -1 if result else 32
        ),
    }


def _number(value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"with a {type(value).__name__} where a number is asked for")
    return float(value)


def named_illnesses(runs: list[str]) -> list[str]:
    """What the learner says of each run."""
    ward = learner()
    return [str(ward.diagnose(run)) for run in runs]


def _tell_modes_apart(model: Any) -> None:
    """In training mode the model computes something else, as with dropout, and without its chance. No mere factor: a
    norm behind it takes that out again."""
    for module in (model.blocks[0], model.head):
        module.register_forward_hook(lambda module, _, out: out + 0.5 * out.sin() if module.training else out)


def ward_runs(run: str, cases: list[dict[str, Any]], only: int | None = None) -> list[dict[str, Any]]:
    """One ward's run on a few batches, for each case, with its counts; samples of run A are stored under its number.

    The gradients of whatever ran before are still there. In the first case there are weights above 1, and gradients
    that are clipped, in the second of run C there are none. The second of run D has model and batches of the first,
    after the body was changed, and those of the third and fourth are made when they are asked for.
    `only`: the others are prepared and not run.
    """
    ward = learner()
    answers: list[dict[str, Any]] = []
    model: Any = None
    arguments: tuple[Any, ...] = ()
    for number, case in enumerate(cases):
        if run == "D" and number == 1:
            arguments = (arguments[0], two_rates(model.head), case["argument"])
        else:
            model, arguments = prepared(run, **case, number=number, is_grouped=True)
            if run == "D" and number:
                arguments = (Anew(arguments[0]), *arguments[1:])
            _tell_modes_apart(model)
        with torch.no_grad():
            model.head.weight *= (20.0, 0.3 if run == "C" else 1.0, 1.0, 1.0)[number]
            model.final_norm.weight *= 0.02 if run == "C" and number == 1 else 1.1
        if only in (None, number):
            answers.append(_case(run, getattr(ward, f"run_{run.lower()}"), model, arguments, case["seed"]))
    return answers


def _case(run: str, method: Any, model: Any, arguments: tuple[Any, ...], seed: int) -> dict[str, Any]:
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter) if parameter.requires_grad else None
    model.train(run == "D")  # not as the run needs it
    weights, given, switched = weights_of(model).double(), _text(arguments[0]), switches()
    learning, drawn = [p.requires_grad for p in model.parameters()], generators()
    begin = torch.get_rng_state()
    with counted(model):
        result = method(model, *arguments)
    after, is_drawn_from = switches(), _is_drawn_from(begin, drawn)
    torch.set_grad_enabled(True)
    state = arguments[1].state
    momenta = [state[p]["momentum_buffer"].flatten() for p in model.parameters() if p in state]
    answer = _answer(run, model, result, seed)
    return answer | {
        "moved": weights_of(model).double() - weights,
        "momenta": torch.cat([torch.zeros(1), *momenta]),
        "is_unchanged": _text(arguments[0]) == given,
        "switched": [name for name, value in switched.items() if after[name] != value],
        "is_seeded": not is_drawn_from,
        "is_as_frozen": [p.requires_grad for p in model.parameters()] == learning,
    }


def _is_drawn_from(begin: torch.Tensor, drawn: tuple[Any, ...]) -> bool:
    """Whether the generators stand where they stood, or torch's where a few loaders left it."""
    is_kept = generators()[1:] == drawn[1:]
    now = torch.get_rng_state()
    torch.set_rng_state(begin)
    states = [begin]
    for _ in range(DRAWS):
        torch.empty((), dtype=torch.int64).random_()
        states.append(torch.get_rng_state())
    torch.set_rng_state(now)
    return is_kept and any(torch.equal(state, now) for state in states)


def _text(given: Any) -> str:
    """Samples or batches as they read: keys, order and values. Those that another process keeps nobody changes."""
    if isinstance(given, StoredSamples):
        return ""
    with np.printoptions(threshold=10**6):
        return repr([{k: v.tolist() for k, v in s.items()} if isinstance(s, dict) else s for s in given])


class _Unreadable(OSError):
    """What a broken sample raises. No IndexError: that ends a `for` loop over the samples, as Python has it."""


class _BrokenSamples(Sequence[Any]):
    """Samples of which one cannot be read."""

    def __init__(self, samples: Sequence[Any] | StoredSamples) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):  # as of the list that run C gets
            return [self[i] for i in range(*index.indices(len(self)))]
        if index == len(self) // 2:
            raise _Unreadable(f"sample {index} cannot be read")
        return self.samples[index]


def unreadable(run: str, case: dict[str, Any]) -> str:
    """What a ward's run does where a sample cannot be read: the name of the error, "" for none."""
    model, (samples, *arguments) = prepared(run, **case)
    try:
        getattr(learner(), f"run_{run.lower()}")(model, _BrokenSamples(samples), *arguments)
    except Exception as error:
        return type(error).__name__
    return ""


def _segment(run: str, seed: int, num_steps: int) -> dict[str, Any]:
    each, argument = _SEGMENTS[run]
    words = WORDS_READ if run == "B" else VOCABULARY
    # Samples of run A are stored under their number, of which no case has so many.
    number = num_steps * each * argument
    model, arguments = prepared(run, seed, num_steps * each, argument, number=number, words=words)
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
