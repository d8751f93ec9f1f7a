"""The check of exercise 4.2: whatever happens while it is written, a checkpoint is whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.lesson_04 import baselines

NUM_KILLS = 20
_RECIPE = "write all of it under another name in the same folder, force it to the disk, then rename"
_IN_PLACE = "where the rename fails it is written or copied in place: a kill meanwhile leaves half a file"
_SWALLOWED = {
    "fsync": "the error of `fsync` is swallowed: it says that the bytes are not on the disk",
    "rename": "the error of the rename is swallowed: the new checkpoint has no name, and the old one stays",
}


def check_save_atomically(job: Job) -> None:
    """4.2: the old file or the new one, at every moment; and on the disk before it has its name."""
    seed = job.seed()
    job.progress("Saving without trouble", 0.1)
    answer = job.learner().call("save_thrice", seed=seed)
    _require_plain_saves(job, answer, _versions(job, answer["files"], seed))
    job.progress("Looking at the file between any two calls to the system", 0.3)
    looked = job.learner().call("look_between_calls", seed=seed, is_odd=True)
    job.counts["looks_while_saving"] = looked["num_looks"]
    if not set(_versions(job, looked["files"], seed)) <= {0, 1}:
        looked = job.learner().call("look_between_calls", seed=seed, is_odd=False)
        _require_whole(job, looked["files"], _versions(job, looked["files"], seed), {0, 1})
        job.require(
            False,
            expected="a save that is whole at every moment, whatever the checkpoint is called",
            got="a broken file where the checkpoint ends as a temporary file of another does",
            likely="the temporary name can be the checkpoint's own, as with `path.with_suffix(…)`: then it is written "
            "in place",
            look="add to the whole name: `path.with_name(path.name + …)`, or take a random one",
        )
    found = _versions(job, looked["first"], seed)
    job.require(
        set(found) <= {1},
        expected="where there was no file yet: none, and then a whole checkpoint",
        got="a file that is no checkpoint, while the first save was under way",
        likely="a first save is written under its final name: there is no old one to lose, but half a file is no "
        "checkpoint",
        look=_RECIPE,
    )
    job.progress("kill -9, many times", 0.5)
    longest = min(0.05, max(0.002, 3 * float(answer["seconds"])))
    killed = job.learner().call("kill_saves", seed=seed, num_kills=NUM_KILLS, longest=longest)
    job.counts["kills"] = min(NUM_KILLS, len(killed["files"]))
    _require_survived(job, killed, _versions(job, killed["files"], seed))
    job.progress("A disk without space", 0.9)
    for how in ("unsavable", "too large", "of no kind", "stopped", "full", "nearly"):
        _require_refusal(job, seed, how)
    _require_synced(job, answer)
    _require_small(job, seed)
    for how in ("fsync", "rename", "open", "stopped at fsync", "stopped at rename"):
        _require_refusal(job, seed, how)
    for how in ("unsavable", "rename"):
        answer = job.learner().call("save_refused", seed=seed, how=how, is_first=True)
        job.require(
            not answer["is_there"] or not answer["is_tried"],
            expected="no file at `path`, where there was none and the save fails",
            got="one that is empty or broken",
            likely="a file is made at `path` when saving fails, or before: none is what it was",
            look="an error needs no cure at `path`: only the temporary file is to be removed",
        )


def _versions(job: Job, files: list[np.ndarray], seed: int) -> list[int]:
    """Which version each file holds, found out by a worker that holds no learner's code."""
    trusted = job.worker("baseline", baselines.SAVE)
    return [int(v) for v in trusted.call("versions", files=files, seed=seed)]


def _require_plain_saves(job: Job, answer: dict[str, Any], found: list[int]) -> None:
    is_stale = any(version == before for before, version in enumerate(found))
    job.require(
        found == [1, 2, 3],
        expected="after each of three saves, that checkpoint: `torch.load(path, weights_only=True)` gives it back",
        got="an older content" if is_stale else "no such file, or another content",
        likely="`save_atomically` returns before the file has its name, or takes a dict that it knows for the same "
        "content, or a step or a size"
        if is_stale
        else "it is written elsewhere, in another format, or not all of it",
        look="load the file yourself after one save, and compare",
    )
    _require_nothing_beside(job, answer["beside"], "after some saves")
    _require_others(job, answer["others"])
    job.require(
        not any(version < 0 for version in answer["changed"]),
        expected="the same working folder after a save",
        got="another one",
        likely="`os.chdir` moves the whole process: every other relative path means another file now",
        look="put the folder into the names: `path.with_name(…)`",
    )
    job.require(
        not answer["changed"],
        expected="a checkpoint that is afterwards what the caller gave",
        got="another dict, or other tensors in it",
        likely="something is taken out of the dict, put into it or cast, in place: the run goes on with it",
        look="`save_atomically` only reads what it is given",
    )


def _require_others(job: Job, changed: list[str]) -> None:
    job.require(
        not changed,
        expected="the other files in the same folder untouched",
        got=f"another content of {', '.join(changed)}, or it is gone",
        likely="a temporary name that another file has, or a cleaning that takes files of others",
        look="make the name from `path`, or at random, and remove that file alone",
    )


def _require_nothing_beside(job: Job, beside: list[str], when: str) -> None:
    job.require(
        not beside,
        expected=f"nothing but the checkpoints in the folder {when}",
        got=f"{', '.join(beside[:3])} beside them",
        likely="a temporary file is left behind, as where `except Exception` cleans up (Ctrl-C is none), or the "
        "write alone is guarded, and not `fsync` and the rename: a full disk only gets fuller",
        look="remove it in a `finally:`; after the rename it is gone by itself",
    )


def _require_whole(job: Job, files: list[np.ndarray], found: list[int], allowed: set[int]) -> None:
    for file, version in zip(files, found, strict=True):
        is_missing = file.size == 0
        job.require(
            version in allowed,
            expected="at every moment a whole checkpoint under that name, the old one or the new one",
            got="no file, or an empty one" if is_missing else f"{file.size} bytes that are no checkpoint",
            likely="overwriting in place: the old file is emptied, or removed, before the new one is there"
            if is_missing
            else "overwriting in place: the file has its name while it is still being written or copied",
            look=_RECIPE,
        )


def _require_survived(job: Job, killed: dict[str, Any], found: list[int]) -> None:
    _require_whole(job, killed["files"], found, set(range(10)))
    job.require(
        not killed["error"],
        expected="a save that goes well also where an earlier one was killed, and left its temporary file",
        got=str(killed["error"]),
        likely="the temporary name is always the same, and a file of that name is in the way",
        look="write over it, or take a name that is new each time",
    )
    for version, allowed in zip(found, killed["allowed"], strict=True):
        job.require(
            version in allowed,
            expected="after a kill, the checkpoint of the last save that returned, or of the one under way",
            got="an older one",
            likely="`save_atomically` returns before the file has its name, as with a thread that is not waited for",
            look="whoever calls it relies on the file once it returns",
        )


def _require_refusal(job: Job, seed: int, how: str) -> None:
    answer = job.learner().call("save_refused", seed=seed, how=how)
    if not answer["is_tried"]:
        return  # it never asked for what would have failed
    (version,) = _versions(job, answer["files"], seed)
    if how in ("full", "nearly") and version == 1 and not answer["raised"]:
        return  # a file that is a little smaller
    job.require(
        how != "rename" or version == 0,
        expected="the old checkpoint, where the rename fails",
        got="the new one, under a name that could not be given to it"
        if version == 1
        else "a broken file, or none",
        likely=_IN_PLACE
        if version == 1
        else "overwriting in place: the old file is emptied, or removed, before the new one is there",
        look=_RECIPE,
    )
    job.require(
        how != "open" or version != 1,
        expected="the old checkpoint, and an error, where no other file can be made in the folder",
        got="the new one, written in place",
        likely="where the temporary file cannot be opened it is written in place: a kill meanwhile leaves half a file",
        look=_RECIPE,
    )
    job.require(
        version == 0 or (how == "fsync" and version == 1 and not answer["raised"]),
        expected="the old checkpoint, when a save fails half way",
        got="the new one" if version == 1 else "a broken file, or none",
        likely="the error comes when the old file is already gone"
        if answer["raised"]
        else "a short write is not noticed: on a full disk `os.write` may write less than it was given",
        look=_RECIPE
        if answer["raised"]
        else "it returns how many bytes it wrote: write the rest, until nothing is left",
    )
    job.require(
        bool(answer["raised"]),
        expected="an error that reaches the caller, when a save fails",
        got="a return as if all were well",
        likely=_SWALLOWED.get(
            how, "the error is swallowed: the run would train on for hours with an old checkpoint"
        ),
        look="`try … finally` cleans up and lets the error pass; `except: pass` does not",
    )
    job.require(
        bool(answer["heard"]),
        expected="Ctrl-C that stays one, and ends the run"
        if how.startswith("stopped")
        else "the error that it was",
        got="another error",
        likely="Ctrl-C is turned into another error, which `except Exception` of a loop would swallow"
        if how.startswith("stopped")
        else "the temporary file could not be opened, and that error is hidden by the one of removing what is not there"
        if how == "open"
        else "the error is swallowed, and another one raised that does not tell of it",
        look="`unlink(missing_ok=True)`"
        if how == "open"
        else "let it pass: `finally` needs no `except`; else end with a bare `raise`",
    )
    _require_others(job, answer["others"])
    where = how.replace("stopped", "where Ctrl-C came", 1) if " at " in how else "after a save that failed"
    _require_nothing_beside(job, answer["beside"], where)


def _require_small(job: Job, seed: int) -> None:
    answer = job.learner().call("save_small", seed=seed)
    job.require(
        all(job.worker("baseline", baselines.SAVE).call("are_read", files=answer["files"])),
        expected="a small checkpoint saved as any other: an empty dict, and one of a single number",
        got="no such file, or another content",
        likely="an empty dict is taken for nothing to save",
        look="`if not checkpoint` is true for {}",
    )
    job.require(
        all(answer["synced"]),
        expected="a small checkpoint forced to the disk (fsync) as any other",
        got="one that may still be in the machine's memory alone",
        likely="fsync before `flush()`, while a small file's bytes are all still in Python's buffer, or no fsync of a "
        "small file: after a power cut its name can stand for nothing, too",
        look="`file.flush()`, then `os.fsync(file.fileno())`, whatever the size",
    )


def _require_synced(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        all(answer["synced"]),
        expected="a file that was forced to the disk (fsync) with the content that it has now",
        got="one that may still be in the machine's memory alone",
        likely="no fsync, or one before the last byte was written, as without `flush()`: after a power cut the new "
        "name can stand for an empty file",
        look="`file.flush()`, then `os.fsync(file.fileno())`, after the last byte is written",
    )
    job.require(
        all(answer["early"]),
        expected="fsync first, then the rename",
        got="a file that had its name before it was on the disk",
        likely="the order is turned round: a power cut between the two leaves the name of a file without content",
        look=_RECIPE,
    )
