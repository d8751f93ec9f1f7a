"""What a trainer of 2.2 keeps and says beside its steps: states, reports, defaults, scales far from the usual."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import TOLERANCES, require_close, require_keys

_DEFAULTS = {"max_norm": 1.0, "init_scale": 2.0**16, "growth_interval": 2000.0}
_SHARED = "two trainers in one process share something, or the defaults of `__init__` are others"


def require_second_trainer(
    job: Job, answer: Mapping[str, Any], twin: Mapping[str, Any], defaults: Mapping[str, float]
) -> None:
    """Fail unless a trainer without options steps by its own defaults beside the first."""
    for own, right in zip(answer["beside"], twin["beside"], strict=True):
        job.require(
            not own["is_changed"] and math.isclose(own["report"]["scale"], right["report"]["scale"]),
            expected="of a second trainer, made without options, unchanged weights and a scale of "
            f"{right['report']['scale']:g}, for its gradients are infinite",
            got=f"a scale of {own['report']['scale']:g}" + (" and changed weights" * own["is_changed"]),
            likely=_SHARED,
            look="what a trainer knows belongs to `self`; the first scale is 65,536 unless it is given",
        )
    for name, right in _DEFAULTS.items():
        job.require(
            defaults.get(name, right) == right,
            expected=f"{name} = {right:g} by default",
            got=f"{defaults.get(name, right):g}",
            likely=_SHARED,
            look="leave the signature as it stands in the cell",
        )


def require_kept(job: Job, answer: Mapping[str, Any]) -> None:
    """Fail where a state or a report, once given, changes later; or where a state holds more than its trainer."""
    changed = answer["changed_states"]
    job.require(
        not changed,
        expected="states that stay as they are while training goes on",
        got=f"a state that was {changed[0] if changed else ''} before, and is another one now",
        likely="the trainer and its caller hold the same dict or tensor: training writes into a state that is saved "
        "later, or loaded a second time",
        look="copy what you are given, and hand out a copy",
    )
    job.require(
        answer["is_state_left"],
        expected="a state that `load_state_dict` leaves as it is",
        got="another one, or an empty one",
        likely="loading takes the state apart or writes into it: who loads it a second time finds another one",
        look="read from the state, as `state[name]` does; `pop` takes away",
    )
    require_reports_left(job, answer["changed_reports"])
    own, others = answer["num_bytes"]["trainer"], answer["num_bytes"]["others"]
    job.require(
        own < others / 8,
        expected=f"a state far smaller than that of model and optimizer, which has {others:,} bytes",
        got=f"{own:,} bytes",
        likely="the model or the optimizer is saved in the trainer's state as well: they are saved elsewhere",
        look="only what nobody else saves belongs to the state",
    )
    job.require(
        answer["is_state_alone"],
        expected="a model and an optimizer that `load_state_dict` of the trainer leaves alone",
        got="other weights, or another momentum",
        likely="the model or the optimizer is saved in the trainer's state as well: they are saved elsewhere",
        look="only what nobody else saves belongs to the state",
    )


def require_reports_left(job: Job, reports: Sequence[str]) -> None:
    """Fail where a report, once given, changes later."""
    job.require(
        not reports,
        expected="reports that stay as they are while training goes on",
        got=f"later {reports[0] if reports else ''}",
        likely="a report holds the trainer's own dict or tensor, such as the scaler's: the next step writes into it",
        look="report numbers, or tensors that nobody changes in place",
    )


def require_kinds(job: Job, kinds: Mapping[str, str]) -> None:
    """Fail unless a report has numbers and 0-d tensors: `kinds` as the harness's `kinds_of` has them."""
    wrong = [
        f"{name}: {kind}" for name, kind in kinds.items() if not kind.startswith(("number", "NumPy", "0-d"))
    ]
    wrong = [text for text in wrong if text.split(":")[0] in ("loss", "grad_norm", "scale")]
    job.require(
        not wrong,
        expected="a report of numbers or 0-d tensors",
        got="; ".join(wrong),
        likely="a text, or a tensor with a dimension too many, stands where a number should",
        look="the docstring says what each value is",
    )


def require_far_scales(job: Job, own: Mapping[str, Any], right: Mapping[str, Any]) -> None:
    """Of trainers whose scale is small, after two bad steps and a good one whose loss is large."""
    for name in ("low", "short"):
        for step in own[name]:
            require_keys(job, step["report"], ("loss", "grad_norm", "scale"))
    _require_scales(job, *(_scales(each["low"]) for each in (own, right)), is_low=True)
    require_close(
        job,
        "loss",
        own["low"][-1]["report"]["loss"],
        right["low"][-1]["report"]["loss"],
        likely="a loss of 20 and more is cut: the logarithm of a probability that was rounded, limited or added to",
        look="`F.cross_entropy` takes logits, and never makes a probability of them",
    )
    for name, words in (
        ("low", "without `max_norm`, which is 1 then"),
        ("short", "at a `max_norm` of 0.001"),
    ):
        away = relative(own[name][-1]["moved"], right[name][-1]["moved"])
        job.require(
            away <= 2 * TOLERANCES["float16"],
            expected=f"the weights of a clipped step, whose loss is 20 and more, {words}",
            got=f"weights that move otherwise, by {away:.0%} of the way",
            likely="a good step is skipped because its gradient is long, or `max_norm` is another one by default",
            look="a long gradient is clipped, and used",
        )


def require_high_scales(job: Job, own: Sequence[Any], right: Sequence[Any]) -> None:
    """Of a trainer that went on, at a huge scale, where another had not stepped."""
    _require_scales(job, _scales(own), _scales(right), is_low=False)


def require_true_scale(job: Job, answer: Mapping[str, Any]) -> None:
    """Of a trainer in whose steps fp16 itself overflows: the scale in the report is the one that was used."""
    before = 3e6
    for number, step in enumerate(answer["steps"]):
        scale = step["report"].get("scale", math.nan)
        expected = before * (2 if step["is_changed"] else 0.5)
        job.require(
            math.isclose(scale, expected, rel_tol=1e-6),
            expected=f"scale = {expected:g} after step {number}, which "
            + ("changed the weights" if step["is_changed"] else "overflowed and changed none"),
            got=f"{scale:g}",
            likely="the scale in the report is not that of a bad step halved, or of a good one doubled",
            look="which steps reach the optimizer?",
        )
        before = scale
    num_good = sum(step["is_changed"] for step in answer["steps"])
    job.require(
        2 < num_good < len(answer["steps"]) - 2,
        expected="from a scale of 3e+06 on steps that overflow, until the scale is small enough, and then good ones",
        got=f"{num_good} good steps of {len(answer['steps'])}",
        likely="the scale in the report is not the one that the loss is multiplied by: that one never moves",
        look="one number is the scale: multiply by it, divide by it, report it",
    )
    own, other = (step["report"].get("scale", math.nan) for step in answer["next"])
    job.require(
        math.isclose(own, other, rel_tol=1e-6),
        expected=f"scale = {own:g} after the next step, of a trainer that goes on as of the first one",
        got=f"{other:g}",
        likely="the scale is loaded into the report alone: the loss is still multiplied by another one",
        look="one number is the scale: multiply by it, divide by it, report it",
    )


def _scales(steps: Sequence[Any]) -> list[float]:
    return [step["report"].get("scale", math.nan) for step in steps]


def _require_scales(job: Job, got: Sequence[float], expected: Sequence[float], *, is_low: bool) -> None:
    start = "1.5 on: two bad steps, a good one" if is_low else "3e+12 on, which it has loaded: good steps"
    job.require(
        all(math.isclose(*pair, rel_tol=1e-6) for pair in zip(got, expected, strict=True)),
        expected=f"scales of {', '.join(f'{scale:g}' for scale in expected)}, from {start}",
        got=", ".join(f"{scale:g}" for scale in got),
        likely="the scale is kept above a limit: a bad step halves it, however small it is"
        if is_low
        else "the scale is kept below a limit: good steps double it, however large it is; or the state of a trainer "
        "that has not stepped yet lacks it",
        look="nothing is wrong with a scale below 1: the gradients were that large"
        if is_low
        else "what overflows halves the scale: it needs no other limit",
    )


def relative(own: Any, right: Any) -> float:
    """How long the difference is, as a share of the right vector; infinite where numbers are missing."""
    if own.shape != right.shape:
        return math.inf
    difference = np.linalg.norm(own.astype(np.float64) - right.astype(np.float64))
    found = float(difference / max(float(np.linalg.norm(right.astype(np.float64))), 1e-300))
    return math.inf if math.isnan(found) else found
