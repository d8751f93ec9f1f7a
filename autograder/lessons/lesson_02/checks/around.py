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
    require_reports_left(job, answer["changed_reports"])
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
    wrong = [f"{name}: {kind}" for name, kind in kinds.items() if kind != "number" and kind[:3] != "0-d"]
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
