"""What 1.6 asks of every step of an epoch: whole samples, each once, in a drawn order, trained as by the naive loop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import are_equal, name_the_mistake, put_told, require_report, twin_of
from autograder.lessons.lesson_01 import baselines

PAD_ID = 0


@dataclass(frozen=True)
class Epoch:
    """One epoch as it was asked for, and what went through the model."""

    arguments: dict[str, Any]
    answer: dict[str, Any]

    @property
    def texts(self) -> list[np.ndarray]:
        texts: list[np.ndarray] = self.arguments["ids"]
        return texts

    def batches(self) -> list[list[int]]:
        """Indices of the samples of each step, in the order in which they went through the model."""
        place = {text.tobytes(): index for index, text in enumerate(self.texts)}
        return [[place[tokens.tobytes()] for tokens in _rows(step)] for step in self.answer["steps"]]

    def rows(self) -> list[bytes]:
        """The tokens of every row that went through the model."""
        return [tokens.tobytes() for step in self.answer["steps"] for tokens in _rows(step)]

    def mean_lengths(self) -> list[float]:
        return [float(np.mean([len(self.texts[i]) for i in batch])) for batch in self.batches()]


def epoch_of(job: Job, arguments: dict[str, Any]) -> Epoch:
    """One epoch of the learner's, and what was told of it."""
    learner = job.learner()
    answer = learner.call("epoch_once", **arguments)
    put_told(job, [answer], syncs="num_syncs", unwatched="num_unwatched")
    return Epoch(arguments, answer | {"saves": max(len(learner.told.call.seen["save"]), answer["new_files"])})


def _rows(step: list[dict[str, Any]]) -> list[np.ndarray]:
    """The tokens of each row that the mask takes for real."""
    return [
        ids[mask.astype(bool)]
        for forward in step
        for ids, mask in zip(forward["input_ids"], forward["attention_mask"], strict=True)
    ]


def require_whole_epoch(job: Job, epoch: Epoch) -> None:
    answer, texts, size = epoch.answer, epoch.texts, epoch.arguments["micro_batch_size"]
    forwards = [forward for step in answer["steps"] for forward in step]
    job.require(
        bool(forwards) and all("attention_mask" in forward for forward in forwards),
        expected="samples that go through `model(input_ids, attention_mask)`, and a step of `optimizer`",
        got="no such call before a step of the optimizer",
        likely="no step is taken, or by another optimizer, or the model gets no mask",
        look="each step calls the model, goes backward and ends with `optimizer.step()`",
    )
    rows = [tokens for step in answer["steps"] for tokens in _rows(step)]
    known = {text.tobytes() for text in texts}
    strange = [row for row in rows if row.tobytes() not in known]
    if strange:
        raise failure(
            expected="whole samples in the model, their tokens marked as real and nothing else",
            got=f"a row of {len(strange[0])} real tokens that is none of the samples",
            likely=_why_strange(strange, texts),
            look="print `input_ids[attention_mask]` of a batch, and find its samples in it",
        )
    steps, most = math.ceil(len(texts) / size), max(len(_rows(step)) for step in answer["steps"])
    times = {text: [row.tobytes() for row in rows].count(text) for text in known}
    job.require(
        len(rows) == len(texts) and set(times.values()) == {1},
        expected=f"{len(texts)} samples trained, each once",
        got=f"{len(rows)} trained, {sum(n == 0 for n in times.values())} never, "
        f"{sum(n > 1 for n in times.values())} more than once",
        likely="samples are repeated, such as those that fill up the last batch"
        if len(rows) > len(texts)
        else "some samples stand for others, as where they are drawn with replacement"
        if len(rows) == len(texts)
        else "the tail is dropped: the last, shorter batch belongs to the epoch"
        if len(rows) == len(texts) - len(texts) % size
        else "samples are dropped, and not only the last, shorter batch",
        look="print the size of each batch: the last one is shorter, and belongs to the epoch",
    )
    job.require(
        len(answer["steps"]) == steps and most <= size,
        expected=f"{steps} optimizer steps of at most {size} samples",
        got=f"{len(answer['steps'])} steps of up to {most} samples",
        likely="other batch sizes: fewer steps are faster, but they train another model"
        if most > size
        else "more steps than the naive loop takes: batches are smaller than they may be",
        look="give each batch `micro_batch_size` samples; only the last may have fewer",
    )
    job.require(
        answer["saves"] == 0,
        expected="an epoch that trains, and leaves saving to its caller",
        got=f"a checkpoint is saved, {answer['saves']} times in {steps} steps",
        likely="saving inside the epoch: the disk sets the pace",
        look="save by the clock, not by the step; lesson 4 measures how often is enough",
    )
    job.require(
        answer["samples_kept"],
        expected="the samples as they were handed in",
        got="other lengths or labels in them, or something that was not there",
        likely="`samples.lengths` is sorted or changed in place, or something is kept in `samples`: it is the store's",
        look="`np.asarray` makes no copy: write into an array of your own",
    )
    job.require(
        all(forward["training"] for forward in forwards),
        expected="the model in training mode at every step, as in the naive loop",
        got="evaluation mode: dropout was off",
        likely="`model.train()` is missing, or left out where the outermost module trains already: an evaluation "
        "before may have left the model in eval(), or a part of it",
        look="switch the mode in the first line of an epoch",
    )


def _why_strange(rows: list[np.ndarray], texts: list[np.ndarray]) -> str:
    row = rows[0]
    if all(any(len(row) < len(t) and np.array_equal(row, t[: len(row)]) for t in texts) for row in rows):
        return "texts are cut short, by a limit or by a width that is rounded down: faster, but another task"
    if any(np.array_equal(row, text[text != PAD_ID]) for text in texts):
        return "the mask is made from the ids, and an id may equal PAD_ID inside a text: the lengths decide"
    if any(len(row) > len(text) and np.array_equal(row[: len(text)], text) for text in texts):
        return "padding is marked as real, so the model takes it for text"
    return "the ids of a row are not those of one sample"


_ONE_GROUP = "one parameter group of the optimizer is clipped, not the gradient of all of them"
_TEXTS = {
    "first group clipped": _ONE_GROUP,
    "last group clipped": _ONE_GROUP,
    "group by group": "each parameter group is clipped by itself, not the norm of the whole gradient",
    "first group cleared": "gradients are cleared in one parameter group of the optimizer, not in all of them",
    "unclipped": "the gradient is not clipped at 1.0, or not between backward and the step",
    "scaled up": "every gradient has the norm 1.0, small ones too: they are scaled up, or the loss that goes "
    "backward is the sum over the batch, where its mean is asked for",
    "clipped by value": "each element is clipped by itself, not the norm of the whole gradient",
    "gradients never cleared": "gradients are never cleared: each step adds those of all steps before",
    "gradients cleared late": "gradients that were there before the epoch are added to the first batch's",
    "sum": "the loss that goes backward is the sum over the batch, where its mean is asked for",
    "smoothed": "label smoothing: the naive loop has the plain cross-entropy",
}


def _replayed(epoch: Epoch) -> dict[str, Any]:
    """What `epoch_replay` needs to repeat an epoch."""
    arguments = {name: epoch.arguments[name] for name in ("seed", "scales", "ids", "labels", "groups")}
    return arguments | {"batches": epoch.batches()}


def _steps(job: Job) -> str:
    """The hand-written loop of 1.3, under the name that a worker of this exercise asks for."""
    return f"{baselines.TRAIN_EPOCH}\n{job.entry} = train_one_epoch\n"


def require_naive_steps(job: Job, epoch: Epoch, large: Epoch) -> None:
    """The weights and the loss that a hand-written loop reaches with the same batches.

    `large`: an epoch whose gradients have elements beyond 1.0, so that these would show a clipping by value.
    """
    answer, arguments = epoch.answer, _replayed(epoch)
    steps = _steps(job)
    twin = job.twin(steps).call("epoch_replay", **arguments)

    def unclipped(_: Any) -> str:
        by_value = twin_of(job, steps, "epoch_replay", _replayed(large))("clipped by value")
        is_by_value = are_equal(large.answer["weights"], by_value["weights"], "float32")
        return _TEXTS["clipped by value" if is_by_value else "unclipped"]

    if not are_equal(answer["weights"], twin["weights"], "float32"):
        mistake = name_the_mistake(
            _TEXTS | {"unclipped": unclipped},
            twin=twin_of(job, steps, "epoch_replay", arguments),
            is_same=lambda wrong: are_equal(answer["weights"], wrong["weights"], "float32"),
        )
        raise failure(
            expected="the weights that the naive loop's steps reach with the same batches",
            got="other weights" if answer["changed"] else "the weights as they came",
            likely=mistake
            or (
                "another loss, other labels, another learning rate, or ids that do not begin at the left"
                if answer["changed"]
                else "no gradient reaches the weights: no backward, or a copy is trained"
            ),
            look="do one step by hand, and one by `naive_epoch`, on the same batch: compare the weights",
        )
    job.require(
        answer["optimizer_kept"],
        expected="the optimizer as its own steps leave it",
        got="other settings, such as the rate, or its state dropped",
        likely="the optimizer is changed beside its steps, so that the next epoch trains otherwise",
        look="call `zero_grad` and `step`, and leave the rest of it to its owner",
    )
    job.require(
        answer["type"] == "dict",
        expected='a dict with "loss" and "num_samples"',
        got=f"a {answer['type']}",
        likely="nothing is returned, or not as a dict",
        look="the last line of the docstring says what comes back",
    )
    report, expected = answer["report"], twin["report"]
    averaged = math.isclose(report.get("loss", math.nan), expected["mean_of_means"], rel_tol=5e-4)
    likely = {
        "loss": "averaged batch means: the short last batch counts as much as a full one"
        if averaged
        else "loss is rounded: a small one loses all that it says"
        if any(report.get("loss") == round(expected["loss"], digits) for digits in range(7))
        else "not the mean over samples of the losses that were trained on",
        "num_samples": "something else is counted than samples",
    }
    require_report(
        job, report, expected, likely, look="work NAME out by hand for two batches of 3 and 1 samples"
    )


ELSEWHERE = "the loop is right, but a station outside the model takes its time"
"""What `likely_slow` says where no count shows anything left to do."""


def likely_slow(epoch: Epoch) -> str:
    """What of an epoch takes its time, as far as counts show it; widths of the batches first."""
    forwards = [forward for step in epoch.answer["steps"] for forward in step]
    widths = [forward["input_ids"].shape[1] for forward in forwards]
    longest = [int(forward["attention_mask"].astype(bool).sum(axis=1).max()) for forward in forwards]
    slots = sum(forward["input_ids"].size for forward in forwards)
    real = sum(int(forward["attention_mask"].astype(bool).sum()) for forward in forwards)
    padding = 1 - real / slots
    if any(width > math.ceil(most / 8) * 8 for width, most in zip(widths, longest, strict=True)):
        kind = "a global maximum" if len(set(widths)) == 1 else "more than the longest of the batch"
        return f"padding to {kind}: {padding:.0%} of what the model computes is padding"
    if padding > 0.2:
        return f"{padding:.0%} of what the model computes is padding: batches mix short and long texts"
    if epoch.answer["syncs"] >= len(epoch.answer["steps"]):
        return f"{epoch.answer['syncs']} device syncs in {len(epoch.answer['steps'])} steps"
    return ELSEWHERE
