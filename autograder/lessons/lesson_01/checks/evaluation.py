"""The check of exercise 1.4: an evaluation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import name_the_mistake, require_left_alone, twin_of
from autograder.lessons.lesson_01 import baselines
from autograder.lessons.lesson_01.checks.reports import (
    AVERAGED,
    LAST,
    require_infinite,
    require_known_report,
    require_told,
    require_unrounded,
)

MANY = 150
"""Batches of a long evaluation."""


def check_evaluate(job: Job) -> None:
    """1.4: evaluation mode, no gradients, means over samples, and the model left as it came."""
    rng = job.rng
    # Logits so large that a softmax of them has zeros, and so small that they are nearly ties.
    cases = (
        ([12] * 5 + [2], 1.0),
        ([7, 1, 130, 4, 3], 1.0),
        ([int(rng.integers(3, 9))], 1.0),
        ([4, 5, 1], 1.0),
        ([5, 1, 4], 2000.0),
        ([9, 4], 1e-4),
        ([6, 5, 2], 40.0),
    )
    losses = []
    for number, (rows, scale) in enumerate(cases):
        arguments: dict[str, Any] = {
            "seed": job.seed(),
            "rows": rows,
            "training": number != 1,
            "records": number != 2,
            "matmul": "high" if number == 1 else "highest",
            "infinite": number == 3,
            "scale": scale,
            "sure": number == 6,
        }
        answer, twin = job.both(baselines.EVALUATE, "evaluate_once", **arguments)
        answer |= _told(job)
        _require_quiet_forward(job, answer, twin)
        if arguments["infinite"]:
            _require_infinite(job, answer, twin)
        another_mask = _wrong_masks(job, answer, twin, arguments)
        known = {
            "loss": {
                "mean_of_means": AVERAGED,
                "summed loss": "the sum of the samples' losses, where their mean is asked for",
                "loss of the last": LAST,
            }
            | another_mask,
            "accuracy": {
                "mean_of_accuracies": "the mean of the batches' accuracies",
                "percent": "a percentage, where a share of 0 … 1 is asked for",
                "num_correct": "a count that was not divided",
                **{f"accuracy {name}": text for name, text in another_mask.items()},
            },
            "num_samples": {"num_batches": "batches counted, not samples"},
        }
        otherwise = {
            "loss": "the logarithm of a softmax, or what is limited like it: large logits make it infinite, or wrong"
            if scale > 100
            else "another mean than that of the samples' cross-entropies, or of other logits than the model's",
            "accuracy": "something else is counted than the samples whose largest logit is their label",
            "num_samples": "batches counted as if all were full",
        }
        require_known_report(job, answer, twin["report"], known, otherwise)
        losses.append(answer["report"]["loss"])
        _require_no_trace(job, answer["left"], arguments["training"])
        _require_all_kept(job, answer, twin)
    require_unrounded(job, losses)
    _require_many(job)
    for where in ("last batch", "first batch", "loader", "model", "loss", "mean"):
        answer = job.learner().call("evaluate_broken_off", seed=job.seed(), training=True, where=where)
        require_told(job, answer)
        _require_no_trace(job, answer["left"], training=True, when=f", after an error of the {where}")
        require_left_alone(job, *answer["switches"], when=f"after an error of the {where}")
    job.require(
        job.learner().call("evaluate_table", seed=job.seed()),
        expected="the weights as they were, of a model that returns rows of a table which it learns",
        got="others",
        likely="the logits are changed in place, as by `-=` or `sub_`: they may be a view of weights",
        look="`logits - …` makes a new tensor, `logits -= …` writes into the one that came",
    )
    sick = job.learner().call("evaluate_sick", seed=job.seed())
    require_infinite(job, sick["report"].get("loss", math.inf))


def _told(job: Job) -> dict[str, Any]:
    """What was told of the forward passes of the last call."""
    seen = job.learner().told.call.seen
    return {
        "forwards": len(seen["modes"]),
        "eval_mode": bool(seen["modes"]) and not any(training for training, _ in seen["modes"]),
        "partly": all(evaluating for _, evaluating in seen["modes"]),
        "gradients": any(recorded for (recorded,) in seen["recorded"]),
    }


def _require_many(job: Job) -> None:
    answer, twin = job.both(baselines.EVALUATE, "evaluate_many", seed=job.seed(), num_batches=MANY)
    otherwise = {
        "num_samples": f"of {MANY} batches not all are measured, or not all of each",
        "loss": "long texts are cut, or late batches are not measured as the first ones",
        "accuracy": "long texts are cut, or late batches are not measured as the first ones",
    }
    require_known_report(job, answer, twin["report"], {}, otherwise)


def _require_infinite(job: Job, answer: dict[str, Any], twin: dict[str, Any]) -> None:
    """The loss is not finite, and so not to be compared."""
    require_infinite(job, answer["report"].get("loss", math.inf))
    if "loss" in answer["report"]:
        answer["report"]["loss"] = twin["report"]["loss"]


def _wrong_masks(
    job: Job, answer: dict[str, Any], twin: dict[str, Any], arguments: dict[str, Any]
) -> dict[str, str]:
    """Names the mistake where the loss is that of the model with another mask: its wrong numbers are put to the twin's.

    The loss may be close enough to the right one, and the accuracy wrong all the same.
    """
    loss = answer["report"].get("loss", math.nan)
    if math.isclose(loss, twin["report"]["loss"], rel_tol=1e-5):
        return {}
    mistake = name_the_mistake(
        {
            "mask ignored": "the attention mask does not reach the model, which then takes padding for text",
            "mask from ids": "the mask is made from the ids, and an id may equal the padding's inside a text",
        },
        twin=twin_of(job, baselines.EVALUATE, "evaluate_once", arguments),
        # Closer than the report has to be: other mistakes may come near by chance.
        is_same=lambda wrong: math.isclose(loss, wrong["report"]["loss"], rel_tol=1e-5),
    )
    twin["report"] |= {
        "with another mask": loss,
        "accuracy with another mask": answer["report"].get("accuracy", math.nan),
    }
    return {"with another mask": mistake} if mistake else {}


def _require_quiet_forward(job: Job, answer: dict[str, Any], twin: dict[str, Any]) -> None:
    job.require(
        answer["eval_mode"],
        expected="the model in evaluation mode while it is measured",
        got="training mode: dropout was on" if answer["forwards"] else "no forward pass at all",
        likely="the model is not asked"
        if not answer["forwards"]
        else "only a part of the model is in evaluation mode: `model.eval()` reaches all of it"
        if answer["partly"]
        else "forgot `model.eval()`, or layers are switched one by one, by a type that this model has not",
        look="what do dropout layers do in training mode, in the model and in its parts?",
    )
    job.require(
        not answer["gradients"],
        expected="no gradients recorded",
        got="a forward pass that keeps everything for backward",
        likely="gradients are still on: `torch.inference_mode()` or `torch.no_grad()` is missing",
        look="memory: what is kept of each batch, and for whom?",
    )
    job.require(
        np.array_equal(answer["weights"], twin["weights"]),
        expected="the weights as they came",
        got="changed weights",
        likely="an optimizer step inside the evaluation",
        look="take the step out: measuring must not train",
    )


def _require_no_trace(job: Job, left: dict[str, bool], training: bool, *, when: str = "") -> None:
    job.require(
        left["frozen"],
        expected="parameters that ask for gradients as they did before",
        got="others that are frozen",
        likely="`requires_grad_` is not put back as it was: the next epoch would train nothing, or too much",
        look="put it back last; or use `torch.inference_mode()`, which ends by itself",
    )
    job.require(
        left["training"],
        expected=f"the model and its parts back in {'training' if training else 'evaluation'} mode, as they "
        f"came{when}",
        got="the model or a part of it, such as a dropout, in the other mode",
        likely="where an error ends the evaluation, of the model or of `batches` itself, the mode is not put back"
        if when
        else "the mode is not put back: the next epoch would train without dropout"
        if training
        else "`model.train()` is called whatever the mode was before",
        look="remember `model.training` first; put it back in `finally`, with `model.train(mode)`: an assignment to "
        "`model.training` reaches no part",
    )
    for name, likely in (
        ("grad_mode", "gradients are switched off, or on, for all that follows"),
        (
            "generators",
            "a seed is set or a random number drawn, so that the training after it is another one",
        ),
        ("hooks", "a hook is left on the model"),
        (
            "parts",
            "an attribute is left on the model, or taken from it, or a setting such as `p` of a dropout is another",
        ),
        ("buffers", "a buffer is left on the model, or another one put in its place"),
        ("weights", "weights are replaced, or of another dtype: the optimizer has others than the model"),
    ):
        job.require(
            left[name],
            expected=f"no trace of the evaluation{when}",
            got="something that is otherwise than before",
            likely=likely,
            look="what does your function switch, set or register, and where is it put back?",
        )


def _require_all_kept(job: Job, answer: dict[str, Any], twin: dict[str, Any]) -> None:
    job.require(
        np.array_equal(answer["kept_gradients"], twin["kept_gradients"]),
        expected="the gradients that were there before",
        got="others",
        likely="`zero_grad` or `backward` inside the evaluation",
        look="an evaluation has no business with gradients, not even to clear them",
    )
    job.require(
        answer["batches_kept"],
        expected="the batches as they came: the next evaluation has them again",
        got="others, or without one of their tensors",
        likely="something is written into a batch, or taken out of it (`batch.pop`)",
        look="read from a batch; what is changed is to be a copy",
    )
    require_left_alone(job, *answer["switches"], when="after the evaluation")
