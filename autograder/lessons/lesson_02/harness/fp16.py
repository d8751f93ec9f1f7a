"""Harness of 2.2: a trainer in fp16, some of whose gradients are not finite, saved here and loaded elsewhere."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np

from autograder.lessons.checking.harness_shared import (
    learner,
    small_batches,
    switches,
)
from autograder.lessons.lesson_02.harness.fp16_run import Fp16Run, file_of, loaded
from autograder.lessons.lesson_02.harness.handed import defaults_of, no_such_label
from autograder.lessons.lesson_02.harness.scales import far_scales
from autograder.lessons.lesson_02.harness.shared import (
    beside_a_gpu,
    leave_gradients,
    stumble,
    with_padding_ids,
)

# What torch's GradScaler says when it is used in the wrong order.
_SCALER_SAYS = ("unscale_()", "step()", "FP16 gradients", "inf checks")


def fp16_steps(
    seed: int,
    num_steps: int,
    spikes: list[tuple[int, float, str]],
    options: dict[str, Any],
    *,
    first: int = 0,
    until: int | None = None,
    saved: dict[str, np.ndarray] | None = None,
) -> dict[str, Any]:
    """Steps `first` … `until` of the learner's trainer, some with a gradient that is not finite; what it saves then.

    A second trainer, with no options, steps beside it: each of its gradients is infinite. Others are `far_scales`.
    What is `saved` is loaded into a trainer that does not step and saves at once; what that saves is loaded into one
    that began with another scale, and has met an infinity. Gradients are left over from before, and an error of the
    model comes first.
    """
    set_before = switches()
    rng, spiked = np.random.default_rng(seed), {number: (place, kind) for number, place, kind in spikes}
    batches = [with_padding_ids(rng, batch) for batch in small_batches(seed, num_steps)]
    if saved is not None:
        options = {name: value for name, value in options.items() if name != "init_scale"}
    run, beside = Fp16Run(seed + first, options), Fp16Run(seed + 1, {})
    answer: dict[str, Any] = {
        "refused": None,
        "unloadable": None,
        "steps": [],
        "beside": [],
        "far": {},
        "changed_states": [],
        "defaults": defaults_of(learner),
    }
    try:
        if saved is not None:
            relay = Fp16Run(seed, options)
            relay.load(saved)
            run.step(batches[0], (0.5, "inf"))
            run.load(relay.saved())
        answer["stumbled"] = stumble(run.model, lambda: run.trainer.train_step(batches[0]))
        leave_gradients(run.model, 1.0)
        run.hand_out()
        run.handed.tell_as("the run")
        for number, batch in enumerate(batches[first:until], start=first):
            answer["steps"].append(run.step(batch, spiked.get(number)))
            run.hand_out()
            if number < first + 3:
                answer["beside"].append(beside.step(batch, (0.5, "inf")))
        kept = _try_to_save(run)
        answer["changed_states"] = run.changed_states()
        answer["changed_reports"], answer["is_state_alone"] = run.changed_reports(), run.is_state_alone
        answer["is_state_left"] = run.is_state_left
        answer["far"] = far_scales(seed + 2, batches[0], max_norm=1e-3)
    except (RuntimeError, ValueError, AssertionError) as error:
        if not any(words in str(error) for words in _SCALER_SAYS):
            raise
        return answer | {"refused": str(error)}
    answer |= {"changed": sorted(run.handed.changed), "set_before": set_before, "set_after": switches()}
    return answer | kept


def step_without_a_label(seed: int) -> dict[str, Any]:
    """What is set before and after an error of the loss."""
    return no_such_label(small_batches(seed, 1)[0], Fp16Run(seed, {}).trainer.train_step)


def trainer_beside_a_gpu(source: str, entry: str, seed: int) -> dict[str, Any]:
    """One step of a model on the CPU, on a machine that seems to have a GPU."""

    def share(trainer: Any) -> float:
        products = Fp16Run(seed, {"init_scale": 1e3}, trainer).step(small_batches(seed, 1)[0], None)[
            "products"
        ]
        return float(products == ["float16"])

    return beside_a_gpu(source, entry, share)


def _try_to_save(run: Fp16Run) -> dict[str, Any]:
    state = run.trainer.state_dict()
    try:
        file = file_of(state)
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError) as error:
        return {"unloadable": f"that cannot even be saved: {error}"}
    try:
        loaded(np.frombuffer(file, np.uint8))
    except pickle.UnpicklingError as error:
        kind = re.search(r"GLOBAL (\S+)", str(error))
        return {"unloadable": f"with an object of {kind[1] if kind else 'another class'}"}
    saved = run.saved()
    return {"saved": saved, "num_bytes": {name: len(content) for name, content in saved.items()}}
