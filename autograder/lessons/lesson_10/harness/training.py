"""Harness of 10.2: a whole training, from texts to predictions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.overrides import TorchFunctionMode

from autograder.lessons.checking.harness_counting import see
from autograder.lessons.checking.harness_shared import elsewhere, learner, small
from autograder.lessons.lesson_10.harness.tables import secret_table

TEXTS_PER_STEP = 32
NUM_PROBES = 48
TIMED_EPOCHS = 2


def predictions(
    texts: list[str],
    labels: list[str],
    unseen: list[str],
    num_epochs: int,
    seed: int,
    long: list[str],
    short: list[str],
) -> dict[str, Any]:
    """Labels that a fresh training on `texts` gives to `unseen`; and to long texts, alone and among short ones."""
    with told_of_training():
        predict = learner(texts, labels, num_epochs=num_epochs, seed=seed)
    return {
        "labels": _labels(predict, unseen),
        "alone": [label for text in long for label in _labels(predict, [text])],
        "among": _labels(predict, [*short, *long])[len(short) :],
    }


def trained(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Trainings in one process, one after the other: what each says of its texts at once, and when all are done, or the
    error that this ends with; of the texts alone and in threes ("apart"); then of no text at all.
    """
    found, functions = [], []
    for number, case in enumerate(cases):
        texts, labels = list(case["texts"]), list(case["labels"])
        with told_of_training(number):
            predict = learner(texts, labels, num_epochs=case["num_epochs"], seed=case["seed"])
        functions.append((predict, case["unseen"]))
        asked = list(case["unseen"])
        answer = predict(asked)
        apart = [label for text in asked[:5] for label in _labels(predict, [text])]
        for start in range(5, len(asked), 3):  # in threes, each backwards: other neighbours, other widths
            apart += _labels(predict, asked[start : start + 3][::-1])[::-1]
        found.append(
            {
                "labels": [str(label) for label in answer],
                "apart": apart,
                "kind": type(answer).__name__,
                "is_kept": [texts, labels, asked] == [case["texts"], case["labels"], case["unseen"]],
            }
        )
    for answer, (predict, unseen) in zip(found, functions, strict=True):
        answer["later"], answer["trouble"] = _labels_or_trouble(predict, unseen)
        answer["of_none"], answer["trouble_of_none"] = _labels_or_trouble(predict, [])
    return found


class _RowsOfLosses(TorchFunctionMode):
    """Looks at the scores that go into a loss with a gradient."""

    def __init__(self, note: Callable[[int, Any], None]) -> None:
        super().__init__()
        self.note = note

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in (F.cross_entropy, F.nll_loss):
            scores = args[0] if args else given["input"]
            if scores.requires_grad:
                target = args[1] if len(args) > 1 else given.get("target")
                self.note(len(scores) if scores.ndim > 1 else 1, target)
        return func(*args, **given)


def _when_learnt(scores: torch.Tensor, note: Callable[[], None]) -> None:
    """`note` when a gradient comes back to them: what no backward goes through is learnt by nobody."""
    try:
        scores.register_hook(lambda _: note())
    except RuntimeError:  # as in `torch.func`, where a gradient comes for certain
        note()


@contextlib.contextmanager
def told_of_training(number: int = 0, *, looks_at_losses: bool = True) -> Iterator[None]:
    """Tells of each update of torch's optimizers ("step"), of the rows of each loss ("loss"), and of the rows of logits
    that a gradient comes back to, by the module that made them and their width ("rows")."""
    modules: dict[torch.nn.Module, int] = {}

    def note_rows(module: torch.nn.Module, _: Any, out: Any) -> None:
        if isinstance(out, torch.Tensor) and out.requires_grad and out.ndim == 2 and out.grad_fn:
            place, (rows, width) = modules.setdefault(module, len(modules)), out.shape
            _when_learnt(out, lambda: see("rows", number, place, width, rows))

    losses = _RowsOfLosses(lambda rows, _: see("loss", number, rows))
    handles = [
        register_optimizer_step_post_hook(lambda *_: see("step", number)),
        register_module_forward_hook(note_rows),
    ]
    try:
        with losses if looks_at_losses else contextlib.nullcontext():
            yield
    finally:
        for handle in handles:
            handle.remove()


def learnt_by_label(texts: list[str], num_epochs: int, seed: int) -> None:
    """A training in which each text has a label of its own. Tells of the labels that go into a loss ("targets")."""

    def note(_: int, target: Any) -> None:
        with contextlib.suppress(Exception):
            if not target.is_floating_point():
                see("targets", *target.reshape(-1).tolist())

    with _RowsOfLosses(note):
        learner(
            list(texts), [f"label {number}" for number in range(len(texts))], num_epochs=num_epochs, seed=seed
        )


def by_majority(texts: list[str], seed: int) -> list[list[str]]:
    """What is said of texts of which each stands there twenty times: in the first and in the last place with one label,
    between them with the other one. After 1 epoch, after 1 with the labels the other way round, and after 4."""
    found = []
    for rare, usual, num_epochs in ("AB1", "BA1", "AB4"):
        labels = [label for label in (rare, *usual * 18, rare) for _ in texts]
        predict = learner(texts * 20, labels, num_epochs=int(num_epochs), seed=seed)
        found.append(_labels(predict, texts))
    return found


def in_company(words: list[str], seed: int) -> tuple[list[str], ...]:
    """Of two words, of which each text has one: what a long text is that begins with few of one and goes on with the
    other. Alone; among short texts of the one that it begins with; and alone again, after another training in which
    each word has the other's label. And what a word is and the same one in capitals, each alone and both in one list,
    after a training that tells them apart. And what an empty text is alone, and ahead of and behind each word."""
    texts = [" ".join([word] * times) for times in (40, 1) * 10 for word in words]
    predict = learner(texts, ["A", "B"] * 20, num_epochs=8, seed=seed)
    long = " ".join(words[1:] * 5 + words[:1] * 100)
    found = [_labels(predict, [long])[0], _labels(predict, [words[1]] * 60 + [long])[-1]]
    empty = _labels(predict, [""])
    for word, text in zip(words, texts, strict=False):
        empty += _labels(predict, ["", word, "", text, ""])[::2]
    learner(texts, ["B", "A"] * 20, num_epochs=8, seed=seed + 1)
    found += _labels(predict, [long])
    alike = [texts[0], texts[0].upper()]
    tells_apart = learner(alike * 20, ["A", "B"] * 20, num_epochs=8, seed=seed)
    apart = [label for text in alike for label in _labels(tells_apart, [text])]
    return found, apart, _labels(tells_apart, alike), empty


def epochs_and_seeds(
    case: dict[str, Any], epochs: list[int], seeds: list[int]
) -> tuple[list[list[str]], list[list[str]]]:
    """What trainings of so many epochs say of the unseen texts; and that with each seed."""
    few, by_epochs = slice(40), []
    for number, num_epochs in enumerate(epochs):
        with told_of_training(number):
            predict = learner(
                case["texts"][few], case["labels"][few], num_epochs=num_epochs, seed=case["seed"]
            )
        by_epochs.append(_labels(predict, case["unseen"]))
    answers = []
    for seed in seeds:
        predict = learner(list(case["texts"]), list(case["labels"]), num_epochs=1, seed=seed)
        answers.append(_labels(predict, case["unseen"]))
    return by_epochs, answers


_TRAIN_ELSEWHERE = """
found = []
for case in request:
    predict = learner(case["texts"], case["labels"], num_epochs=case["num_epochs"], seed=case["seed"])
    found.append([str(label) for label in predict(case["unseen"])])
say(found)
"""


def trained_elsewhere(
    source: str, entry: str, cases: list[dict[str, Any]], hash_seed: int
) -> list[list[str]]:
    """The predictions of the same trainings, one after the other, in a fresh interpreter."""
    found: list[list[str]] = elsewhere(_TRAIN_ELSEWHERE, source, entry, cases, hash_seed)
    return found


def _labels(predict: Any, texts: list[str]) -> list[str]:
    return [str(label) for label in predict(list(texts))]


def _labels_or_trouble(predict: Any, texts: list[str]) -> tuple[list[str], str]:
    try:
        return _labels(predict, texts), ""
    except Exception as error:
        return [], repr(error)[:200]


def _size(seed: int, num_steps: int) -> int:
    """Texts of a segment: any number, so that none tells where a training is timed."""
    spread = TEXTS_PER_STEP // 2
    return num_steps * TEXTS_PER_STEP + int(np.random.default_rng(seed).integers(-spread, spread))


def segment(seed: int, num_steps: int) -> dict[str, Any]:
    """One training of two epochs on secret texts, and what it says of all that it was trained on, and of others.

    Rows of logits are told of as where nobody asks the clock, by hooks that take no time beside a step.
    """
    num_texts = _size(seed, num_steps)
    texts, labels = secret_table(seed, num_texts + NUM_PROBES)
    asked = list(texts)
    with told_of_training(looks_at_losses=False):
        predict = learner(texts[:num_texts], labels[:num_texts], num_epochs=TIMED_EPOCHS, seed=small(seed))
    return {
        "predictions": [str(label) for label in predict(asked)],
        "num_labels": len(set(labels[:num_texts])),
        "num_different": len(set(zip(texts[:num_texts], labels, strict=False))),
        "num_texts": num_texts,
        "num_epochs": TIMED_EPOCHS,
        "seed": seed,
        "num_steps": num_steps,
    }


def answers(seed: int, num_steps: int) -> list[str]:
    """The right labels of that segment's texts. Asked of the baseline's process alone."""
    return secret_table(seed, _size(seed, num_steps) + NUM_PROBES)[1]
