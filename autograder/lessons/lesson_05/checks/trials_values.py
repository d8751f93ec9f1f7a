"""What 5.2 compares numbers with: the same training without dropout, in a twin, and each model judged again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import TOLERANCES, name_the_mistake, relative_difference, twin_of
from autograder.lessons.lesson_05 import twins

# What a configuration is of. One trains on large gradients and has, when judged, no finite loss on some texts; one has
# a loss there that is finite and beyond all bounds; one has next to none from its first step on; the last diverges at
# once.
CALM = {"learning_rate": 1e-1, "dropout": 0.0}
# Trained for long: so gently that rounding does not grow, and nothing but what was asked for moves its weights.
GENTLE = {"learning_rate": 1e-3, "dropout": 0.0}
DROPPING = {"learning_rate": 3e-2, "dropout": 0.3}
BREAKING = {"learning_rate": 3e-5, "dropout": 0.0, "breaks": 1.0}
TOWERING = {"learning_rate": 3e-2, "dropout": 0.0, "towers": 1.0}
KNOWING = {"learning_rate": 2e-2, "dropout": 0.0, "knows": 1.0}
DIVERGING = {"learning_rate": 1e30, "dropout": 0.0}
_PLAIN = (CALM, GENTLE, BREAKING, DIVERGING)
"""Without dropout, so that there is one right training; a trial that diverges is to end in weights that say so."""
CLOSE = 2e-5
"""Relative: the models compute in float64, and a loss that is cast to float32 moves what comes of it by far less."""
NAMED = 1e-6
"""The same where a mistake is to be told by the number that it gives: several such numbers may lie near each other."""

_LIKELY = {
    "added up": "`zero_grad` is forgotten: each step also goes along the gradients of all steps before",
    "sum": "the sum of the cross-entropies is minimised, not their mean: a learning rate then means another thing for "
    "each size of batch",
    "smoothing": "labels are smoothed: that is another objective than the mean cross-entropy",
    "clipped": "gradients are clipped: a configuration is judged by another training than was asked for",
}


def run_all(job: Job, rounds: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the learner makes of these rounds, and the right training of those trials in which no dropout is drawn."""
    answers, right = job.both(twins.RUN_TRIALS, "run_all", of_twin={"rounds": _plain(rounds)}, rounds=rounds)
    return answers, right


def _plain(rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one | {"configs": [c for c in one["configs"] if c in _PLAIN]} for one in rounds]


def require_right_training(
    job: Job, rounds: list[dict[str, Any]], answers: list[dict[str, Any]], right: list[dict[str, Any]]
) -> None:
    """Where no dropout is drawn there is one right training: to what weights does it come?"""
    small = _plain(rounds)
    twin = twin_of(job, twins.RUN_TRIALS, "run_all", {"rounds": small})
    first, first_right = _weights(rounds, answers, "first"), _weights(small, right, "first")
    job.require(
        all(np.array_equal(first[trial], weights) for trial, weights in first_right.items()),
        expected="first weights that torch draws after `torch.manual_seed(seed)`",
        got="others",
        likely="torch is seeded with another number than the trial's seed, or draws something before the model is made",
        look="`torch.manual_seed(seed)`, directly before `task.make_model`",
    )
    last = _weights(rounds, answers, "last")
    if _are_same(last, _weights(small, right, "last")):
        return
    likely = name_the_mistake(
        _LIKELY, twin=twin, is_same=lambda found: _are_same(last, _weights(small, found, "last"))
    )
    ended = _weights(small, right, "last").items()
    is_calm = any(np.isfinite(last[one]).all() and not np.isfinite(weights).all() for one, weights in ended)
    if is_calm and not likely:
        raise failure(
            expected="weights that are no finite numbers after a training that diverges",
            got="finite ones",
            likely="what is no finite number is replaced, or its step left out: a trial that diverged looks sound",
            look="every step is taken as it comes; `math.inf` in the table says that it diverged",
        )
    raise failure(
        expected="after the last step the weights that come of one step on the mean cross-entropy of each batch",
        got="other weights",
        likely=likely
        or "another objective than the mean cross-entropy of the batch, gradients that are changed or left over, or "
        "the steps of a schedule",
        look="one step by hand: zero_grad, forward, mean cross-entropy, backward, step",
    )


def _weights(
    rounds: list[dict[str, Any]], answers: list[dict[str, Any]], which: str
) -> dict[Any, np.ndarray]:
    """First or last weights by round, learning rate and seed, of the trials without dropout."""
    return {
        (place, one["configs"][life["config"]]["learning_rate"], one["seeds"][life["seed"]]): life[
            f"{which}_weights"
        ]
        for place, (one, answer) in enumerate(zip(rounds, answers, strict=True))
        for life in answer["lives"]
        if one["configs"][life["config"]] in _PLAIN
    }


def _are_same(own: dict[Any, np.ndarray], twins: dict[Any, np.ndarray]) -> bool:
    return all(
        relative_difference(own[trial], weights) <= CLOSE
        if np.isfinite(weights).all()
        else not np.isfinite(own[trial]).all()
        for trial, weights in twins.items()
    )


def require_table(job: Job, one: dict[str, Any], answer: dict[str, Any]) -> None:
    shape, losses = (len(one["configs"]), len(one["seeds"])), answer["losses"]
    job.require(
        losses is not None,
        expected="a NumPy array of float64",
        got=f"a {answer['kind']}",
        likely="the losses are returned in another form than asked for",
        look="`np.full(shape, math.inf)` is one",
    )
    job.require(
        losses.shape == shape,
        expected=f"losses of shape {list(shape)}: a row for each configuration, a column for each seed",
        got=f"shape {list(losses.shape)}",
        likely="one number for each configuration, or rows and columns exchanged",
        look="keep every value: the spread over seeds is what the next decision needs",
    )


def require_values(job: Job, place: int, answer: dict[str, Any]) -> None:
    lives = answer["lives"]
    means = [float(np.divide(*life["validation"].sum(axis=0))) for life in lives]
    # The plain ones first: their losses say most about a mistake.
    for number in sorted(
        range(len(lives)), key=lambda at: means[at] if math.isfinite(means[at]) else math.inf
    ):
        expected, life = means[number], lives[number]
        got = float(answer["losses"][life["config"], life["seed"]])
        if not math.isfinite(expected):
            job.require(
                math.isinf(got) and got > 0,
                expected="inf for a trial whose loss is not a finite number",
                got=f"{got:.6g}",
                likely=_why_no_infinity(life["validation"], got),
                look="`math.isfinite`, of the mean over all validation samples",
            )
        elif not math.isclose(got, expected, rel_tol=CLOSE):
            raise failure(
                expected=f"{expected:.6g}, the mean over validation samples after the last step",
                got=f"{got:.6g}",
                likely=_why_another_loss(job, place, number, answer, got),
                look="evaluate one model by hand, sample by sample",
            )


def _why_no_infinity(validation: np.ndarray, got: float) -> str:
    if math.isnan(got):
        return "NaN is neither smaller nor larger than anything: in a sort or a minimum it ends up anywhere"
    total, rows = validation[np.isfinite(validation[:, 0])].sum(axis=0)
    if any(
        math.isclose(got, total / n, rel_tol=TOLERANCES["float32"])
        for n in (rows, validation[:, 1].sum())
        if n
    ):
        return (
            "validation batches whose loss is no finite number are left out: a model that is half broken gets the loss "
            "of its good batches"
        )
    return (
        "the loss of such a trial is replaced by a number that others may exceed, or cut off, as by "
        "`log(softmax + eps)`"
    )


def _why_another_loss(job: Job, place: int, number: int, answer: dict[str, Any], got: float) -> str:
    sums, rows = answer["lives"][number]["validation"].T
    trained = job.learner().call("train_losses", at=place)[number]

    def is_got(value: float) -> bool:
        return math.isclose(got, value, rel_tol=NAMED)

    if is_got(float(np.mean(sums / rows))):
        return "a mean of batch means: the short last batch counts as much as a whole one"
    if is_got(float(sums.sum())) or is_got(float(sums.sum() / len(rows))):
        return "a sum is not divided by the number of samples"
    if any(is_got(float(one)) for one in sums / rows):
        return "one batch alone is judged, not all validation samples"
    if is_got(float(trained)):
        return "picked on train: the loss of texts that were learnt"
    if any(is_got(float(np.average(sums / rows, weights=tokens))) for tokens in answer["tokens"].T):
        return "the means of batches are weighted by their tokens, and not by their samples"
    if any(is_got(float(s.sum() / n.sum())) for s, n in (life["validation"].T for life in answer["lives"])):
        return "the loss of another trial: rows and columns are exchanged, or the order is another"
    if math.isinf(got):
        return "a loss that is high, and finite, is taken for one that diverged"
    if got < 1e-3 * sums.sum() / rows.sum():
        return "a high loss is cut off, as by `log(softmax + eps)`: it is a number like any other"
    return "the loss of another moment than after the last step, of other texts, or with another mask"
