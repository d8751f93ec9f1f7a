"""The check of 5.1: what a sampler draws from secret spaces, and refuses."""

from __future__ import annotations

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_repeatable
from autograder.lessons.lesson_05.checks.sample_independence import require_independent
from autograder.lessons.lesson_05.checks.sample_laws import (
    Drawn,
    require_distributions,
    require_values,
)
from autograder.lessons.lesson_05.checks.sample_spaces import (
    NUM_SPACES,
    WRONG,
    Space,
    draw_spaces,
    impossible_spaces,
    odd_spaces,
)

NUM_SAMPLES = 400


def check_sampler(job: Job) -> None:
    """5.1: distributions, ends, conditions, independence, repeatability, and refusals of spaces that cannot be."""
    *many, last = draw_spaces(job.rng)
    drawn = [_draw(job, space) for space in many]
    require_independent(job, many, drawn)
    require_distributions(job, many, drawn)
    require_distributions(job, [last], [_draw(job, last)])  # with an int of one value
    _require_odd_spaces(job)
    _require_refusals(job)
    _require_same_elsewhere(job, last)
    job.counts["samples_drawn"] = NUM_SPACES * NUM_SAMPLES


def _draw(job: Job, space: Space) -> Drawn:
    found: Drawn = job.learner().call(
        "draw_samples", space=space, seed=job.seed(), number=NUM_SAMPLES, seconds=60.0
    )
    _require_form(job, space, found)
    _require_reads_alone(job, found)
    _require_names(job, space, found)
    _require_types(job, found)
    require_values(job, space, found)
    return found


def _require_form(job: Job, space: Space, drawn: Drawn) -> None:
    job.require(
        "choice" not in drawn,
        expected=f"one of the values {drawn.get('choice')}",
        got=str(drawn.get("said")),
        likely="`rng.choice(values)` makes an array of the values, which gives them all one type, or another form; or "
        "they are taken for keys of a dict: they may be of several types, and dicts",
        look="draw a place, and take the value that stands there",
    )
    job.require(
        not drawn["strange"],
        expected="a dict of values: nothing in this space is wrong",
        got=drawn["strange"],
        likely="a range that can be is refused, such as an int of one value, a float that begins below 0 or an int "
        "wider than 16 bits; or the sample is no dict",
        look="which ranges does the docstring refuse?",
    )
    job.require(
        not drawn["extra"],
        expected=f"no keys but {', '.join(space)}",
        got=f"also {', '.join(drawn['extra'])}",
        likely="a help variable went into the sample, or a key of another space",
        look="a sample holds keys of the space alone",
    )


def _require_types(job: Job, drawn: Drawn) -> None:
    job.require(
        not drawn["odd"],
        expected="whole numbers for kind int, numbers for float and log",
        got=f"something else under {', '.join(drawn['odd'])}",
        likely="a float where a whole number is asked for, an array or a text where a number is; "
        "`np.float32` is no float",
        look="`int(...)`, `float(...)` of what the generator gives",
    )


def _require_reads_alone(job: Job, drawn: Drawn) -> None:
    job.require(
        drawn["is_unchanged"],
        expected="the space as it was",
        got="a changed space",
        likely="the sample is written into the space, or conditions are taken out of it",
        look="make a new dict for the sample",
    )
    job.require(
        not drawn["is_one_object"],
        expected="a new dict for every sample",
        got="the same dict again: a new draw changes the ones before",
        likely="the dict is made once, outside the function or as a default of an argument",
        look="make the dict inside the function",
    )
    require_repeatable(
        job,
        what="sample",
        is_same=drawn["is_repeatable"],
        when="from a generator in the same state",
        unseeded="numbers come from another generator than `rng`: the search cannot be repeated or resumed",
        look_unseeded="`random`, `np.random.…` and a new `default_rng()` all have a state of their own",
        is_another=any(len(np.unique(column)) > 2 for column in drawn["columns"].values()),
        another="at the next call with the same generator",
        fixed="a seed of the function's own: the generator that came in is not drawn from",
        look_fixed="every number must come from `rng` itself",
    )


def _require_names(job: Job, space: Space, drawn: Drawn) -> None:
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
        code = wanted if space[parent]["kind"] == "int" else space[parent]["values"].index(wanted)
        is_never = not present.any() and list(space).index(parent) < list(space).index(name)
        holds = drawn["present"][parent] & (drawn["columns"][parent] == code)
        job.require(
            bool((present == holds).all()),
            expected=f"{name} exactly where {parent} is {wanted!r}: in {int(holds.sum())} of {len(holds)} samples",
            got=f"{name} in {int(present.sum())} samples",
            likely="the condition `when` is ignored: the sample holds a value that no training reads"
            if bool(present.all())
            else "the condition never holds: it is compared by `is`, though equal values may be two objects, or with "
            "something else than the value"
            if is_never
            else "the condition is read before the key that it hangs on is drawn, or compared with something else",
            look="draw a few samples of a space with two keys, one of them conditional, in both orders",
        )


def _require_same_elsewhere(job: Job, space: Space) -> None:
    found = job.learner().call(
        "drawn_elsewhere",
        source=job.source,
        entry=job.entry,
        space=space,
        seed=job.seed(),
        hash_seed=int(job.rng.integers(1, 1000)),
        seconds=60.0,
    )
    job.require(
        not found["trouble"],
        expected="a cell that draws in a fresh interpreter too",
        got=found["trouble"],
        likely="the cell needs something that stands outside it",
        look="run this cell alone in a new kernel, and draw a sample",
    )
    job.require(
        found["is_same"],
        expected="the same samples when Python is started again, from a generator in the same state",
        got="others",
        likely="the order in which keys are drawn is that of a `set` or of `hash()`: it is new each time Python starts",
        look="go through the keys in an order that is always the same, such as the dict's own",
    )


def _require_odd_spaces(job: Job) -> None:
    cases = odd_spaces()
    answers = job.learner().call("draw_odd", spaces=[space for _, space, _ in cases], seed=job.seed())
    for (what, space, beside), samples in zip(cases, answers, strict=True):
        for sample in samples:
            rest = {name: value for name, value in sample.items() if name != "x"}
            job.require(
                rest == beside and ("x" in sample) == ("x" in space),
                expected=f"a sample of a space {what}",
                got=str(sample)[:120],
                likely="a space that can be is refused, or a key of it comes or goes that should not: nothing in it is "
                "wrong",
                look="which ranges does the docstring refuse, and when is a key in the sample?",
            )
            part = space.get("x", {"low": 0.0, "high": 0.0})
            room = 1e-15 * part["high"]
            job.require(
                part["low"] - room <= sample.get("x", 0.0) <= part["high"] + room,
                expected=f"x within {part['low']!r} … {part['high']!r}",
                got=f"{sample.get('x')!r}",
                likely="a range that is narrow is taken for one of another width",
                look="draw from `low` to `high`, however near they are",
            )


def _require_refusals(job: Job) -> None:
    cases = impossible_spaces(job.rng)
    answers = job.learner().call("refuse", spaces=[space for _, space in cases], name=WRONG, seed=job.seed())
    for (what, _), (got, later) in zip(cases, answers, strict=True):
        is_hidden = "condition" in what
        job.require(
            got == "ValueError",
            expected=f"ValueError at every draw for {what}",
            got=got,
            likely="what was taken out of `space` is not put back where it is refused: the caller has another one then"
            if got.endswith("not what it was")
            else "the ends are compared only where the key is drawn: a search finds out after hours that its "
            "space is wrong"
            if is_hidden
            else "a range with NaN passes: `low >= high` is False as well, for no comparison with NaN is True"
            if "NaN" in what
            else "the space is silently repaired, or its ends are not compared: what is searched is no longer what was "
            "asked for",
            look="go through the whole space before the first draw"
            if is_hidden
            else "compare the ends before anything is drawn, and say which key is wrong",
        )
        job.require(
            later == "ValueError",
            expected=f"ValueError at every draw for {what}, though the space was right at a call before",
            got=later,
            likely="what an earlier call found out about a space is kept for the next: its ranges are others by then",
            look="keep nothing outside the function",
        )
