"""The check of exercise 4.1: a run that was killed and resumed equals one that was not, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_same_parts
from autograder.lessons.lesson_04 import baselines

NUM_BEFORE, NUM_AFTER = 10, 8  # an epoch has 6 steps

# What is compared after loading, in the order in which a mistake is easiest to see.
_PARTS = {
    "weights": ("the model's weights", "the model is not saved, or loaded into another object"),
    "moments": (
        "AdamW's two moments of each weight",
        "the optimizer is forgotten: model weights only. The first steps after the resume are then those of a "
        "fresh AdamW",
    ),
    "schedule": (
        "the step of the schedule, and its learning rate",
        "the scheduler is forgotten: the learning rate starts its plan anew",
    ),
    "scale": (
        "the scale of the gradient scaler, and its count of good steps",
        "the scaler is forgotten: it starts at its first scale, and skips steps until that fits again",
    ),
    "place": (
        "the epoch of the sampler, and its place in it",
        "the sampler's position is forgotten: the epoch starts anew, and some samples are seen twice",
    ),
}
_FORGOTTEN = "the state of {} is forgotten, or something draws from it after it was put back"
_GENERATORS = {
    name: (what, _FORGOTTEN.format(what))
    for name, what in (
        ("python", "Python's `random`"),
        ("numpy", "NumPy's global generator"),
        ("torch", "torch's generator, from which dropout draws"),
    )
}


def check_checkpoint(job: Job) -> None:
    """4.1: saving changes nothing, loading brings everything back, and a foreign file runs no code."""
    seed, learner = job.seed(), job.learner()
    trusted = job.worker("baseline", baselines.CHECKPOINT)
    job.progress("Training, and saving on the way", 0.1)
    saved = learner.call("save_and_go_on", seed=seed, num_before=NUM_BEFORE, num_after=NUM_AFTER)
    end = trusted.call("straight", seed=seed, num_steps=NUM_BEFORE + NUM_AFTER)
    job.require(
        saved["file"].size > 0,
        expected="one file at the given path",
        got="no file there",
        likely="`save` writes elsewhere, or makes a folder",
        look="the check takes this one file to another process: all must be in it",
    )
    job.require(
        np.array_equal(saved["weights"], end["weights"])
        and (saved["losses"], saved["draws"]) == (end["losses"], end["draws"]),
        expected="a run that goes on after `save` as if nothing had happened",
        got="other losses or weights after it",
        likely="saving draws a random number, or changes mode, device or gradients of the model",
        look="`save` should only read",
    )
    job.progress("Resuming in another process", 0.4)
    fresh = job.worker("resumed", job.source)
    arguments: dict[str, Any] = {"seed": seed, "own_seed": job.seed(), "file": saved["file"]}
    moment = trusted.call("straight", seed=seed, num_steps=NUM_BEFORE)
    _require_all_back(job, fresh.call("resume", **arguments, num_after=0), moment)
    resumed = fresh.call("resume", **arguments, num_after=NUM_AFTER)
    job.require(
        resumed["losses"] == end["losses"][NUM_BEFORE:]
        and np.array_equal(resumed["weights"], end["weights"]),
        expected=f"bitwise the losses and weights of the uninterrupted run, {NUM_AFTER} steps after the resume",
        got="other numbers",
        likely="something is put back that the next steps do not use: a copy of the optimizer, or of the model",
        look="load into the objects that `__init__` was given",
    )
    _require_safe(job, saved["file"])


def _require_all_back(job: Job, loaded: dict[str, Any], moment: dict[str, Any]) -> None:
    job.require(
        loaded["step"] == NUM_BEFORE,
        expected=f"`load` to return the step that was saved, {NUM_BEFORE}",
        got=f"{loaded['step']}" if loaded["step"] >= 0 else "no int",
        likely="the step is not in the file, or not returned",
        look="whoever resumes must know how many steps are left",
    )
    require_same_parts(
        job,
        loaded,
        moment,
        _PARTS,
        expected="WHAT as they were when the run was saved",
        said="others",
        look="go through the arguments of `__init__`: which has no line in `save`, or none in `load`?",
    )
    require_same_parts(
        job,
        loaded["draws"],
        moment["draws"],
        _GENERATORS,
        expected="WHAT to go on where it was",
        said="another random number",
        look="there are three generators on a CPU: Python's, NumPy's and torch's; put them back last",
    )
    job.require(
        loaded["training"] == moment["training"],
        expected="the model in training mode, as before",
        got="evaluation mode",
        likely="`load` calls `model.eval()`: the run would go on without dropout",
        look="who resumes wants to train",
    )


def _require_safe(job: Job, file: np.ndarray) -> None:
    ran_code = job.learner().call("load_poison", seed=job.seed())
    if not ran_code:
        return
    reads_safely = job.worker("baseline", baselines.CHECKPOINT).call("reads_safely", file=file)
    job.require(
        False,
        expected="a `load` that runs nothing of what stands in a file",
        got="a file with a planted call in it, and the call was made",
        likely="`weights_only=False`, or plain pickle: a pickle can name any function, and loading calls it"
        if reads_safely
        else "whole objects are pickled, and only `weights_only=False` reads those: such a file can run any code",
        look="save `state_dict()`s, tensors and plain values; then `torch.load(path, weights_only=True)` reads them",
    )
