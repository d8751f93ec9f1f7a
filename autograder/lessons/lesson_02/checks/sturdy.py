"""The check of exercise 2.5: a model that stands fp16."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import (
    are_equal,
    put_told,
    relative_difference,
    require_equal,
    require_left_alone,
    require_no_worse,
    require_products,
    require_used,
)
from autograder.lessons.lesson_02 import baselines
from autograder.lessons.lesson_02.checks.around import relative
from autograder.lessons.lesson_02.checks.traces import require_untouched

MIN_SHARE = 0.9
EXACT = 3e-5
"""Of fp32 logits: another order of sums, or a root and a division for `rsqrt`. Rounding to fp16 is tenfold."""
QUALITY_SPREAD = 0.2  # points: 0.04 over 12 seeds where it was measured; other kernels round otherwise


SCALES = {"loud": 2.0**12, "long": 2.0**13, "mixed": 2.0**4, "still": 1.0, "brim": 2.0**12, "deafening": 1.0}
SCALES["usual"] = 16.0
"""What a scaler would find: loud values have small gradients, quiet ones large. Loss scaling is another exercise."""
LEAST_CHANGE = 1e-3  # of the logits, where a product is another one by half
LOUDNESS = {
    "long": "with loud texts of hundreds of words",
    "loud": "with hidden values in the hundreds",
    "mixed": "with loud and quiet texts in one batch",
    "still": "with hidden values of a hundredth",
    "usual": "with hidden values of about 1",
    "brim": "with hidden values of up to 50,000, which fp16 holds",
    "deafening": "with hidden values of a million",
}


def check_sturdy_classifier(job: Job) -> None:
    """2.5: in fp32 the same classifier, in 16 bits the same numbers, loud or quiet; and it learns as well."""
    cases = _cases(job)
    in_fp32 = [case | {"precision": "32-true"} for case in cases]
    answers, twins = job.both(baselines.FRAGILE, "fragile_cases", of_twin={"cases": in_fp32}, cases=cases)
    put_told(job, answers, flops="flops")
    products = job.learner().told.call.seen["products"]
    for case, answer, twin in zip(cases, answers, twins, strict=True):
        if case["precision"] == "32-true":
            _require_same_model(job, answer, twin)
    for number, (case, answer, twin) in enumerate(zip(cases, answers, twins, strict=True)):
        if case["precision"] != "32-true":
            dtype = "float16" if case["precision"] == "16-mixed" else "bfloat16"
            _require_share(job, answer, dtype)
            # The mean over the words may be written as a sum.
            require_products(
                job, answer["flops"], twin["flops"], at_most=2.0, spare=twin["flops_of_the_mean"]
            )
            _require_sturdy(job, answer, twin, case, dtype)
            # Of forward alone, which is a third of all but the mean.
            forward = (sum(twin["flops"].values()) - twin["flops_of_the_mean"]) / 3
            hang = sum(flops for at, flops, change in products if at == number and change > LEAST_CHANGE)
            require_used(job, hang / forward)
        require_left_alone(job, answer["set_before"], answer["set_after"], when="after a forward")
        require_untouched(job, [] if answer["is_left"] else ["the ids and masks of the caller"])
    job.corpus()
    require_no_worse(
        job,
        baseline=baselines.FRAGILE,
        function="quality",
        arguments={"num_samples": 480, "num_epochs": 1, "precision": "16-mixed"},
        baseline_arguments={"precision": "32-true"},
        margin=0.5,
        spread=QUALITY_SPREAD,
        likely="right on one batch, but in training the values leave what the repair can take",
        look="print the largest and the smallest value in front of each operation after 50 steps",
    )


def _cases(job: Job) -> list[dict[str, Any]]:
    """The same model and texts in all precisions; loud ones first, for there the mistake is easiest to name."""
    vocabulary, classes, width = (int(job.rng.integers(*limits)) for limits in ((300, 600), (2, 9), (10, 15)))
    shapes: list[tuple[str, list[int], int, bool]] = [
        ("loud", [500, 6], 12, True),
        ("still", [400, 5], 8, True),
        # So many classes that the head is a tenth of the products and more.
        ("mixed", [vocabulary, 40 * classes + 240, 2 * width], 11, True),
        ("loud", [vocabulary, classes, 48], 1, False),
        ("long", [300, 4, 16], 4, True),
        ("brim", [200, 5, 128], 5, True),
        # So narrow that the mean over the words is a tenth of the products and more.
        ("usual", [150, 3, 4], 6, True),
    ]
    cases = []
    for loudness, sizes, rows, is_training in shapes:
        case = {
            "seed": job.seed(),
            "loudness": loudness,
            "scale": SCALES[loudness],
            "sizes": sizes,
            "rows": rows,
        }
        case["is_training"] = is_training
        cases += [case | {"precision": name} for name in ("32-true", "16-mixed", "bf16-mixed")]
    # fp16 has no such values. The other two do: a limit on what is squared shows.
    deafening = cases[0] | {"seed": job.seed(), "loudness": "deafening", "scale": SCALES["deafening"]}
    return [*cases, *(deafening | {"precision": name} for name in ("32-true", "bf16-mixed"))]


def _require_share(job: Job, answer: dict[str, Any], dtype: str) -> None:
    share = answer["flops"].get(dtype, 0) / max(1, sum(answer["flops"].values()))
    job.counts[f"{dtype}_share"] = round(share, 3)
    short = "fp16" if dtype == "float16" else "bf16"
    in_fp16 = dtype != "float16" and answer["flops"].get("float16", 0) > 0
    job.require(
        share >= MIN_SHARE,
        expected=f"at least {MIN_SHARE:.0%} of the matrix products' FLOPs in {dtype}, under autocast with it",
        got=f"{share:.0%}",
        likely="the model chooses fp16 by itself, whatever autocast is open around it"
        if in_fp16
        else f"the whole forward is taken out of {short}: that repairs everything and gains nothing"
        if share < 0.5
        else f"a matrix product is taken out of {short}, such as the head's or the mean over the words: only what is "
        "between them needs fp32",
        look="one operation breaks; keep that one in fp32 and leave the rest to autocast",
    )


def _require_same_model(job: Job, full: dict[str, Any], twin: dict[str, Any]) -> None:
    job.require(
        full["num_weights"] == twin["num_weights"] and are_equal(full["weights"], twin["weights"], "float32"),
        expected="the weights of FragileClassifier, made in the same order",
        got="other weights",
        likely="`__init__` was changed: the fault is in `forward`",
        look="copy `__init__` as it stands",
    )
    job.require(
        sorted(full["names"]) == sorted(twin["names"]),
        expected=f"a state with {', '.join(twin['names'])}",
        got=", ".join(full["names"]),
        likely="a layer has another name, or a buffer is added: no checkpoint of FragileClassifier loads any more",
        look="copy `__init__` as it stands",
    )
    job.require(
        bool(np.isfinite(full["logits"]).all()),
        expected="fp32 logits that are finite numbers, of a text without features too",
        got="NaN or infinity",
        likely="0 is divided by 0: the epsilon is missing, or a text of small or no features gets a scale of its own",
        look="what does each operation make of a text whose features are all 0?",
    )
    rounds = "the repair rounds to 16 bits in fp32 as well, or changes the mathematics a little: another epsilon, say"
    look = "in fp32 both classes must give the same numbers"
    logits = full["logits"], twin["logits"]
    is_near = relative_difference(*logits) <= 100 * EXACT
    likely = (
        rounds
        if is_near
        else "the repair changes the mathematics: a clamp, another epsilon, a normalisation or a gain that is missing"
    )
    require_equal(job, *logits, dtype="float32", what="fp32 logits", likely=likely, look=look)
    job.require(
        relative_difference(*logits) <= EXACT,
        expected=f"the same fp32 logits, but for the last digits (a relative difference up to {EXACT:g})",
        got=f"logits that differ by {relative_difference(*logits):.2g}",
        likely=rounds,
        look=look,
    )
    away = _away(full, twin, part_weight=2.0)
    job.require(
        away <= 1e-3,
        expected="fp32 gradients as those of FragileClassifier",
        got="gradients that are not finite" if not math.isfinite(away) else f"{away:.0%} away",
        likely="a part of the graph is cut, by `no_grad` or `detach`: the gradient of the divisor belongs to it",
        look="compare `hidden.weight.grad` of both classes in fp32",
    )


def _require_sturdy(
    job: Job, half: dict[str, Any], twin: dict[str, Any], case: dict[str, Any], dtype: str
) -> None:
    loudness = case["loudness"]
    likely = {
        "loud": "an overflow: a square above 65,504 is infinite in fp16, and what is divided by it is zero",
        "mixed": "one scale for the whole batch: beside a loud text the squares of a quiet one underflow to zero",
        "usual": "the repair changes the mathematics of values of usual size",
        "still": "a constant factor moves the break: the squares of small values underflow to zero",
        "long": "the words of a text are added up before they are divided: over a long text fp16's sum passes 65,504",
        "brim": "a norm, or a sum of squares, is formed in fp16: it is larger than its values, and above 65,504; "
        "or the values are limited",
        "deafening": "the values are limited, and those of bf16 reach as far as those of fp32",
    }[loudness]
    if loudness == "loud" and not case["is_training"]:  # in training mode it stood
        likely = "repaired in training mode alone: in evaluation the squares overflow as before"
    is_right = np.isfinite(half["logits"]).all() and are_equal(half["logits"], twin["logits"], dtype)
    job.require(
        bool(is_right),
        expected=f"the logits of fp32, but for {dtype}'s rounding, {LOUDNESS[loudness]}",
        got=_described(half["logits"], twin["logits"]),
        likely=likely,
        look="which operation makes the largest numbers of `forward`? Give it, and what follows, fp32 to work in",
    )
    near = 0.04 if dtype == "float16" else 0.2
    away = _away(half, twin, part_weight=4.0)
    job.require(
        away <= near,
        expected=f"gradients within {near:.0%} of those in fp32, {LOUDNESS[loudness]}",
        got="gradients that are not finite" if not math.isfinite(away) else f"{away:.0%} away",
        likely="forward is repaired, and backward still goes through fp16 where the numbers are too large or too small"
        if dtype == "float16"
        else "a part of the graph is cut under bf16's autocast, by `no_grad` or `detach`",
        look="convert once, before the first operation that breaks, so that backward is in fp32 there too",
    )


def _away(own: dict[str, Any], right: dict[str, Any], *, part_weight: float) -> float:
    """How far the gradients are from right ones: all, or those of one parameter, whose share is `part_weight` less."""
    parts = np.cumsum(right["num_weights"])[:-1]
    pairs = zip(np.split(own["gradients"], parts), np.split(right["gradients"], parts), strict=True)
    return max(
        relative(own["gradients"], right["gradients"]),
        *(relative(*pair) / part_weight for pair in pairs if np.any(pair[1])),
    )


def _described(got: np.ndarray, expected: np.ndarray) -> str:
    if not np.isfinite(got).all():
        return "NaN or infinity"
    if np.ptp(got, axis=0).max() < 1e-3 * np.ptp(expected, axis=0).max():
        return "the same logits for every text: nothing of the text reaches them"
    return f"logits that differ by up to {np.abs(got - expected).max():.3g}"
