"""The check of exercise 4.1: a run that was killed and resumed equals one that was not, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import CheckFailed, Job
from autograder.lessons.checking import require_left_alone, require_same_parts
from autograder.lessons.lesson_04 import baselines

NUM_AFTER = 6  # as an epoch has
LAST_BYTES = 64  # of a file may say nothing, such as a line end

# What is compared after loading, in the order in which a mistake is easiest to see.
_PARTS = {
    "weights": ("the model's weights", "the model is not saved, or loaded into another object"),
    "model": (
        "the model's buffers",
        "only the parameters are kept, or all is cast to one dtype: the `state_dict()` of a model has its buffers too",
    ),
    "moments": (
        "AdamW's two moments and its count of steps, of each weight",
        "the optimizer is forgotten, or put back into another object: model weights only. The first steps after "
        "the resume are then those of a fresh AdamW",
    ),
    "schedule": (
        "the step of the schedule",
        "the scheduler is forgotten: the learning rate starts its plan anew",
    ),
    "groups": (
        "learning rate and weight decay of the optimizer's groups",
        "of the optimizer only the moments are kept: its `state_dict()` has `param_groups` too",
    ),
    "scale": (
        "the scale of the gradient scaler, and its count of good steps",
        "the scaler is forgotten: it starts at its first scale, and skips steps until that fits again",
    ),
    "place": (
        "the epoch of the sampler, and its place in it",
        "the sampler's position is forgotten: the epoch starts anew, and some samples are seen twice",
    ),
    "told": (
        "all of the state that the sampler gave",
        "values of a state are dropped or converted: None, True, a text and whole numbers belong to it as they are",
    ),
}
_FORGOTTEN = "the state of {} is forgotten, or something draws from it after it was put back"
_HALF = "{} makes normal numbers in pairs and keeps the second for the next call: that one is lost, the rest is there"
_GENERATORS = {
    name: (what, likely.format(what))
    for name, what, likely in (
        ("python", "Python's `random`", _FORGOTTEN),
        ("numpy", "NumPy's global generator", _FORGOTTEN),
        ("torch", "torch's generator, from which dropout draws", _FORGOTTEN),
        ("python_normal", "Python's `random`", _HALF),
        ("numpy_normal", "NumPy's global generator", _HALF),
    )
}
_OVER = "something is put back only into fresh parts, or only where the file has more than nothing of it"
_KEPT = "in the process that saved it, what was kept in memory is put back, and not what stands in the file"
_DISTURBED = {
    "modes": "`save` calls `train()` or `eval()`: the run goes on with, or without, dropout; its parts may differ",
    "draws": "saving draws a random number, or leaves a generator in another state",
    "gradients": "saving clears or changes the gradients of the model",
}
_CHANGED = "saving changes what it saves"
_RUNS_CODE = {
    "pickle": "`weights_only=False`, or plain pickle: a pickle can name any function, and loading calls it",
    "inside": "a pickle lies inside what was loaded safely, as bytes or numbers, and is unpickled then",
    "own": "a pickle is trusted for a checksum or a word in the file: a stranger can make that as well",
    "text": "a text of the file is run as Python, by `eval` or `exec`",
}
_OBJECTS = (
    "whole objects are pickled, and only `weights_only=False` reads those: such a file can run any code"
)


def check_checkpoint(job: Job) -> None:
    """4.1: saving changes nothing, loading brings everything back, and a foreign file runs no code."""
    seed, learner, rng = job.seed(), job.learner(), job.rng
    trusted = job.worker("baseline", baselines.CHECKPOINT)
    # None, odd and even: after an odd number of steps the generators have a normal number at hand.
    stops = [0, 2 * int(rng.integers(1, 4)) + 1, 2 * int(rng.integers(5, 7))]
    steps = [
        0,
        2**53 + 2 * int(rng.integers(1, 2**16)) + 1,
        int(rng.integers(100, 1000)),
    ]  # no float has the second
    names = [f"run {seed % 89}", "last.pt", "last.pt"]
    job.progress("Training, and saving on the way", 0.1)
    saved = learner.call(
        "save_and_go_on", seed=seed, stops=stops, steps=steps, names=names, num_after=NUM_AFTER
    )
    looked_at = sorted({*stops, *(stop + NUM_AFTER for stop in stops)})
    straight = trusted.call("straight", seed=seed, stops=looked_at)
    right = dict(zip(looked_at, straight["moments"], strict=True))
    _require_one_file(job, saved)
    moments = [right[stop] for stop in stops]
    _require_undisturbed(job, saved, moments, straight["losses"], right[looked_at[-1]])
    require_left_alone(job, *saved["switches"], when="before `save`")
    job.progress("Resuming in another process", 0.4)
    fresh = job.worker("resumed", job.source)
    own_seed = job.seed()
    for place in (2, 1, 0):
        stop, file = stops[place], saved["files"][place]
        try:
            drawn = rng.integers(1, max(2, len(file) - LAST_BYTES), size=3).tolist()
            found = fresh.call(
                "resume",
                seed=seed,
                own_seed=own_seed,
                file=file,
                num_after=NUM_AFTER,
                cuts=[*saved["cuts"][place], *drawn],
                is_thinned=place == 1,
            )
        except CheckFailed:
            _require_no_rest(job, file)
            _require_nothing_beside(job, saved["beside"])
            raise
        _require_all_back(job, found["loaded"], right[stop], steps[place], over=_OVER if place < 2 else "")
        _require_modes(job, found["loaded"], saved["after"][place]["modes_before"])
        end, losses = found["end"], straight["losses"][stop : stop + NUM_AFTER]
        job.require(
            end["losses"] == losses and np.array_equal(end["weights"], right[stop + NUM_AFTER]["weights"]),
            expected=f"bitwise the losses and weights of the uninterrupted run, {NUM_AFTER} steps after the resume",
            got=end["error"] or "other numbers",
            likely="something is put back that the next steps do not use: a copy of the optimizer, or of the model",
            look="load into the objects that `__init__` was given",
        )
        require_left_alone(job, *found["switches"], when="before `load`")
        _require_broken_refused(job, found["taken"])
    _require_nothing_beside(job, saved["beside"])
    job.require(
        not saved["others"],
        expected="the other files in the folder untouched",
        got=f"another content of {', '.join(saved['others'])}, or it is gone",
        likely="older files are cleaned up, and those of others with them",
        look="`save` has one file to write, and none to remove",
    )
    job.require(
        not saved["trouble"],
        expected="a file that the process that saved it can load as well, after two saves that had to fail",
        got=saved["trouble"],
        likely="a save that fails takes the file that stood there with it, or leaves the object in another state",
        look="save, save over a folder, and load the first file",
    )
    for place, back in zip((2, 0), saved["back"], strict=True):
        _require_all_back(job, back, right[stops[place]], steps[place], over=_KEPT)
    job.require(
        not saved["lost"],
        expected=f"an error, where the checkpoint cannot be written: here {', '.join(saved['lost'])}",
        got="a return as if all were well, and no file",
        likely="the error is swallowed: the run would train on for hours without a checkpoint",
        look="let it pass: `except: pass` hides it",
    )
    job.require(
        not saved["left"],
        expected="a run that goes on as before also where `save` raises an error",
        got=f"other {' and '.join(saved['left'])}",
        likely="what `save` sets for a moment, a mode or a generator, is put back only where all goes well",
        look="put it back in `finally`, or better set nothing",
    )
    _require_safe(job, saved["files"][1])


def _are_same(one: Any, other: Any) -> bool:
    return bool(one == other) if isinstance(one, dict) else np.array_equal(one, other)


def _require_one_file(job: Job, saved: dict[str, Any]) -> None:
    job.require(
        all(file.size > 0 for file in saved["files"]),
        expected="one file at the given path",
        got="no file there",
        likely="`save` writes elsewhere, or makes a folder",
        look="the check takes this one file to another process: all must be in it",
    )
    job.require(
        not any(bytes(file[:14]) == b"no checkpoint " for file in saved["files"]),
        expected="everything in the one file at the given path",
        got=f"the file that was there before, and {', '.join(saved['beside'][:3]) or 'nothing'} beside it",
        likely="`save` writes under another name, or writes nothing where a file is, or behind what stands in it",
        look='write to `path` itself, as it is; mode "wb" begins an empty file',
    )


def _require_broken_refused(job: Job, taken: list[str]) -> None:
    are_cut = bool(taken) and all(what.startswith("a file cut off") for what in taken)
    are_thinned = bool(taken) and all(what.startswith("a file without '") for what in taken)
    job.require(
        not taken,
        expected="a `load` that raises an error where there is no whole checkpoint",
        got=f"a return as if all were well: {', '.join(taken[:4])}",
        likely="a file that ends early is taken for a whole one: what stands in it is put back, and nobody asks for "
        "what is missing"
        if are_cut
        else "an entry that is missing in the file is passed over, as by `get` or `if … in`: that state stays another"
        if are_thinned
        else "the error is swallowed, or nothing asks whether the file is whole: the run would begin anew, or go on "
        "with half of its state, unnoticed",
        look="how does `load` know that it has seen the last record?"
        if are_cut
        else "let the error pass; whoever calls `load` decides what comes then",
    )


def _require_nothing_beside(job: Job, beside: list[str]) -> None:
    job.require(
        not beside,
        expected="everything in the one file at the given path: `load` gets nothing else",
        got=f"{', '.join(beside[:3])} beside it",
        likely="a part of the run is written into a file of its own, or a copy is left behind",
        look="put all states into one dict, and write that",
    )


def _require_no_rest(job: Job, file: np.ndarray) -> None:
    """Of a file that cannot be loaded."""
    job.require(
        bytes(file[-14:]) != b"no checkpoint ",
        expected="nothing left of the file that had the path before",
        got="its end, behind what was saved",
        likely="the new file is written over the beginning of the old one, and is shorter",
        look='mode "wb" begins an empty file, "r+b" keeps what was there',
    )


def _require_undisturbed(
    job: Job,
    saved: dict[str, Any],
    moments: list[dict[str, Any]],
    losses: list[float],
    last: dict[str, Any],
) -> None:
    """Right after each save, and when the run has gone on, all is as without any save."""
    expected, look = "a run that goes on after `save` as if nothing had happened", "`save` should only read"
    for after, moment in zip(saved["after"], moments, strict=False):
        right = moment | {"modes": after["modes_before"]}
        changed = [name for name in right if not _are_same(after[name], right[name])]
        job.require(
            not changed,
            expected=expected,
            got=f"another state right after it: {', '.join(changed)}",
            likely=next((why for name, why in _DISTURBED.items() if name in changed), _CHANGED),
            look=look,
        )
    end = saved["end"]
    job.require(
        end["losses"] == losses
        and np.array_equal(end["weights"], last["weights"])
        and end["draws"] == last["draws"],
        expected=expected,
        got=end["error"] or "other losses, weights or random numbers after it",
        likely="saving leaves something changed in the process: a thread, a global setting such as that of gradients",
        look=look,
    )


def _require_all_back(
    job: Job, loaded: dict[str, Any], moment: dict[str, Any], step: int, *, over: str
) -> None:
    """`over`: why, where it was loaded into a run that had gone on, maybe from another file."""
    job.require(
        loaded["step"] == step,
        expected=f"`load` to return the step that `save` was given, {step}",
        got=f"{loaded['step']}" if loaded["step"] >= 0 else "no int",
        likely="the step is not in the file, or not returned, or another count is taken for it",
        look="whoever resumes must know how many steps are left",
    )
    require_same_parts(
        job,
        loaded,
        moment,
        {name: (what, over) for name, (what, _) in _PARTS.items()} if over else _PARTS,
        expected="WHAT as they were when the run was saved"
        + (", loaded over those of a run that had gone on" if over else ""),
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
        look="there are three generators on a CPU: Python's, NumPy's and torch's; put back all of each state, last",
    )


def _require_modes(job: Job, loaded: dict[str, Any], when_saved: list[bool]) -> None:
    """As before the load; or as they were when it was saved, which is as good."""
    job.require(
        loaded["modes"] in (loaded["modes_before"], when_saved),
        expected="the modules of the model in training or evaluation mode as before",
        got="other modes",
        likely="`load` calls `model.train()`: a part that stood still, as a frozen one, no longer does"
        if all(loaded["modes"])
        else "`load` calls `model.eval()`: the run would go on without dropout",
        look="who resumes sets the modes; neither is a state",
    )


def _require_safe(job: Job, file: np.ndarray) -> None:
    trusted = job.worker("baseline", baselines.CHECKPOINT)
    foreign = trusted.call("foreign_files", file=file)
    answer = job.learner().call("load_foreign", seed=job.seed(), files=[each["file"] for each in foreign])
    kinds = [each["kind"] for each, did in zip(foreign, answer["ran"], strict=True) if did] + answer["own"]
    if not kinds:
        return
    are_objects = kinds[0] == "pickle" and not trusted.call("reads_safely", file=file)
    job.require(
        False,
        expected="a `load` that runs nothing of what stands in a file",
        got="a file with a planted call in it, and the call was made",
        likely=_OBJECTS if are_objects else _RUNS_CODE[kinds[0]],
        look="save `state_dict()`s, tensors and plain values; then `torch.load(path, weights_only=True)` reads them",
    )
