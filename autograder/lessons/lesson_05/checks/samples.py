"""The check of 5.1: what a sampler draws from secret spaces, by tests of distributions.

Each test rejects at a p-value of 1e-6, and a check makes fewer than 40 of them: a right sampler fails by chance in
fewer than one check in 25,000.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy import stats

from autograder.engine import Job
from autograder.lessons.checking import require_repeatable

P_VALUE = 1e-6
NUM_SAMPLES = 4000


def check_sampler(job: Job) -> None:
    """5.1: distributions, ends, conditions, independence, repeatability, and refusals of spaces that cannot be."""
    space = _secret_space(job.rng)
    drawn = job.learner().call("draw_samples", space=space, seed=job.seed(), number=NUM_SAMPLES)
    _require_names(job, space, drawn)
    _require_reads_alone(job, drawn)
    values = {name: drawn["columns"][name][drawn["present"][name]] for name in space}
    for name, part in space.items():
        if part["kind"] in ("log", "float"):
            _require_range(job, name, part, values[name])
        else:
            _require_even(job, name, part, values[name])
    _require_independent(job, space, drawn)
    _require_refusals(job)
    job.counts["samples_drawn"] = NUM_SAMPLES


def _secret_space(rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Every kind, under secret ranges, in a secret order: a condition may come before what it hangs on."""
    low = 10 ** rng.uniform(-6, -4)
    first = int(rng.integers(1, 4))
    optimizers = ["adamw", "sgd", "lion"]
    condition = {"when": ("optimizer", str(rng.choice(optimizers)))}
    parts: dict[str, dict[str, Any]] = {
        "learning_rate": {"kind": "log", "low": low, "high": low * 10 ** rng.uniform(2.5, 4)},
        "weight_decay": {"kind": "log", "low": 10 ** rng.uniform(-4, -3), "high": 10 ** rng.uniform(-1.5, 0)},
        "dropout": {"kind": "float", "low": rng.uniform(0, 0.1), "high": rng.uniform(0.3, 0.6)},
        "num_layers": {"kind": "int", "low": first, "high": first + int(rng.integers(3, 6))},
        "optimizer": {"kind": "choice", "values": optimizers},
        "momentum": {"kind": "float", "low": 0.5, "high": rng.uniform(0.9, 0.99)} | condition,
        "use_nesterov": {"kind": "choice", "values": [True, False]} | condition,
        "width": {"kind": "choice", "values": [32, 64, 128]},
    }
    return {name: parts[name] for name in rng.permutation(list(parts)).tolist()}


def _require_names(job: Job, space: dict[str, Any], drawn: dict[str, Any]) -> None:
    for name, part in space.items():
        present = drawn["present"][name]
        if "when" not in part:
            job.require(
                bool(present.all()),
                expected=f"{name} in every sample",
                got=f"{name} in {int(present.sum())} of {len(present)}",
                likely="a key without a condition is left out",
                look="only a key with `when` may be absent",
            )
            continue
        parent, wanted = part["when"]
        holds = drawn["present"][parent] & (drawn["columns"][parent] == space[parent]["values"].index(wanted))
        job.require(
            bool((present == holds).all()),
            expected=f"{name} exactly where {parent} is {wanted!r}: in {int(holds.sum())} of {len(holds)} samples",
            got=f"{name} in {int(present.sum())} samples",
            likely="the condition `when` is ignored: the sample holds a value that no training reads"
            if bool(present.all())
            else "the condition is read before the key that it hangs on is drawn, or compared with something else",
            look="draw a few samples of a space with two keys, one of them conditional, in both orders",
        )
    job.require(
        not drawn["extra"],
        expected=f"no keys but {', '.join(space)}",
        got=f"also {', '.join(drawn['extra'])}",
        likely="a help variable went into the sample",
        look="a sample holds keys of the space alone",
    )
    job.require(
        not drawn["odd"],
        expected="whole numbers for kind int, numbers for float and log",
        got=f"something else under {', '.join(drawn['odd'])}",
        likely="a float where a whole number is asked for, an array or a text where a number is",
        look="`int(...)`, `float(...)` of what the generator gives",
    )


def _require_reads_alone(job: Job, drawn: dict[str, Any]) -> None:
    require_repeatable(
        job,
        what="sample",
        is_same=drawn["is_repeatable"],
        when="from a generator in the same state",
        unseeded="numbers come from another generator than `rng`: the search cannot be repeated or resumed",
        look_unseeded="`random`, `np.random.…` and a new `default_rng()` all have a state of their own",
    )
    job.require(
        drawn["is_unchanged"],
        expected="the space as it was",
        got="a changed space",
        likely="the sample is written into the space, or conditions are taken out of it",
        look="make a new dict for the sample",
    )


def _require_range(job: Job, name: str, part: dict[str, Any], values: np.ndarray) -> None:
    low, high, is_log = part["low"], part["high"], part["kind"] == "log"
    shown = f"{low:.3g} … {high:.3g}"
    outside = int(((values < low * (1 - 1e-9)) | (values > high * (1 + 1e-9)) | ~np.isfinite(values)).sum())
    job.require(
        outside == 0,
        expected=f"{name} within {shown}",
        got=f"{outside} of {len(values)} outside",
        likely="the ends are mixed up, or powers of ten with the natural logarithm",
        look="exp goes with log, 10 ** … with log10",
    )
    at_ends = float(np.mean(np.isclose(values, low, rtol=1e-9) | np.isclose(values, high, rtol=1e-9)))
    job.require(
        at_ends < 0.005,
        expected=f"{name} between its ends; an end itself almost never",
        got=f"{at_ends:.1%} of the draws exactly on an end",
        likely="the search space is silently clipped: what falls outside is moved to the end, which is tried again "
        "and again",
        look="draw inside the range; do not draw wider and cut",
    )
    scaled = (np.log(values / low) / np.log(high / low)) if is_log else (values - low) / (high - low)
    if stats.kstest(np.clip(scaled, 0, 1), "uniform").pvalue >= P_VALUE:
        return
    linear = (values - low) / (high - low)
    top = float(np.mean(values > high / 10))
    is_linear = is_log and stats.kstest(np.clip(linear, 0, 1), "uniform").pvalue >= P_VALUE
    kind = "every decade as likely as the next" if is_log else "every part of the range equally likely"
    job.require(
        False,
        expected=f"{name} in {shown} with {kind}",
        got=f"{top:.0%} of the draws in the top decade" if is_log else f"a mean of {values.mean():.3g}",
        likely="uniform where log-uniform is asked for: nearly all trials go to the largest values"
        if is_linear
        else "another distribution than asked for"
        + ("" if is_log else ": a log scale where a plain one is asked for?"),
        look="plot a histogram of 1,000 draws, on a log axis for kind log",
    )


def _require_even(job: Job, name: str, part: dict[str, Any], values: np.ndarray) -> None:
    if part["kind"] == "int":
        wanted = np.arange(part["low"], part["high"] + 1)
        text = f"{part['low']} … {part['high']}, both ends among them"
    else:
        wanted, text = np.arange(len(part["values"])), ", ".join(map(str, part["values"]))
    counts = np.array([(values == one).sum() for one in wanted])
    job.require(
        int(counts.sum()) == len(values),
        expected=f"{name} from {text}",
        got=f"{len(values) - int(counts.sum())} draws of something else",
        likely="values outside the range, or of another type",
        look="print the set of 1,000 draws",
    )
    job.require(
        bool(counts.min() > 0),
        expected=f"{name} from {text}",
        got=f"never {wanted[int(counts.argmin())]} in {len(values)} draws",
        likely="an end that is left out: the upper bound of `rng.integers` and of `range` is excluded",
        look="`endpoint=True`, or one more",
    )
    job.require(
        bool(stats.chisquare(counts).pvalue >= P_VALUE),
        expected=f"each value of {name} equally often: about {len(values) / len(wanted):.0f} times",
        got=f"between {counts.min()} and {counts.max()} times",
        likely="rounding a float gives the ends half a share each",
        look="draw whole numbers as whole numbers",
    )


def _require_independent(job: Job, space: dict[str, Any], drawn: dict[str, Any]) -> None:
    """Of parts of a sample, which have no reason to follow each other; of one sample and the next."""
    names = [name for name in space if "when" not in space[name]]
    for one, two in itertools.combinations(names, 2):
        found = stats.spearmanr(drawn["columns"][one], drawn["columns"][two])
        job.require(
            bool(found.pvalue >= P_VALUE),
            expected=f"{one} drawn without regard to {two}",
            got=f"a rank correlation of {found.statistic:.2f}",
            likely="one random number serves several keys: the search walks along a diagonal",
            look="ask the generator anew for each key",
        )


def _require_refusals(job: Job) -> None:
    rng = job.rng
    spaces = {
        "a log range that begins at 0": {"kind": "log", "low": 0.0, "high": float(rng.uniform(0.1, 1))},
        "a log range below 0": {"kind": "log", "low": -float(rng.uniform(0.1, 1)), "high": 1.0},
        "a range whose ends are swapped": {"kind": "float", "low": float(rng.uniform(0.5, 1)), "high": 0.1},
    }
    for what, part in spaces.items():
        got = job.learner().call("refuse", space={"weight_decay": part}, seed=job.seed())
        job.require(
            got == "ValueError",
            expected=f"ValueError for {what}",
            got=got,
            likely="the space is silently repaired: what is searched is no longer what was asked for",
            look="compare the ends before anything is drawn, and say which key is wrong",
        )
    hidden = {
        "optimizer": {"kind": "choice", "values": ["adamw", "sgd"]},
        "momentum": {"kind": "float", "low": 0.9, "high": 0.5, "when": ("optimizer", "sgd")},
    }
    got = job.learner().call("refuse", space=hidden, seed=job.seed())
    job.require(
        got == "ValueError",
        expected="ValueError at every draw for a range whose ends are swapped, also where its condition does not hold",
        got=got,
        likely="the ends are compared only where the key is drawn: a search finds out after hours that its space is "
        "wrong",
        look="go through the whole space before the first draw",
    )
