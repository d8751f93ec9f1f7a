"""Harness of 4.1: a small run that reads every kind of state, saved in one process and resumed in another."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import as_it_is, generators, learner, switches
from autograder.lessons.lesson_04.harness.broken import broken_ones_taken, ends_of_records, ones_that_lack
from autograder.lessons.lesson_04.harness.small_run import SmallRun


def _draws() -> dict[str, float]:
    """The next numbers of each generator: plain ones, then normal ones, of which it may have one at hand."""
    return {
        "python": random.random(),
        "numpy": float(np.random.random()),
        "torch": float(torch.rand((), dtype=torch.float64)),
        "python_normal": random.gauss(0.0, 1.0),
        "numpy_normal": float(np.random.standard_normal()),
    }


@contextlib.contextmanager
def _as_they_were() -> Any:
    """The generators afterwards as before, cached normal numbers too."""
    python, numbers, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    random.setstate(python)
    np.random.set_state(numbers)
    torch.set_rng_state(torch_state)


def straight(seed: int, stops: list[int]) -> dict[str, Any]:
    """The run without any checkpoint, and where it is after so many steps; the stops come in order."""
    run, moments = SmallRun(seed, seed), []
    losses: list[float] = []
    for stop in stops:
        losses += run.train(stop - len(losses))
        with _as_they_were():
            moments.append({**run.facts(), "draws": _draws()})
    return {"losses": losses, "moments": moments}


def _going_on(run: SmallRun, num_steps: int) -> dict[str, Any]:
    """So many steps more: the losses, where it ends, and what went wrong in them."""
    try:
        losses = run.train(num_steps)
        with _as_they_were():
            return {"losses": losses, "error": "", **run.facts(), "draws": _draws()}
    except Exception as error:
        error_text = f"{type(error).__name__}: {error}"[:200]
        return {"losses": [], "error": error_text, **run.facts(), "draws": {}}


def save_and_go_on(
    seed: int, stops: list[int], steps: list[int], names: list[str], num_after: int
) -> dict[str, Any]:
    """The same run, saved at each stop by the learner's class: the files, and where the run is after each.

    A file of no meaning has the name before. At the second stop the run has just been validated, at the third a part of
    the model stands still. At the end two saves that must fail, into a folder that is not there and over one: "lost"
    says which did not, "left" what they changed; and "back" is where the run is when the last file and the first are
    loaded again, "trouble" the error that this ends with. The "others" are files in the folder that are no longer what
    they were.
    """
    other, run, folder = SmallRun(seed + 1, seed + 1), SmallRun(seed, seed), Path("checkpoints")
    keeper = learner(**run.parts())
    learner(**other.parts())  # another run in the same process
    folder.mkdir()
    for name in (*names, *_BESIDE):
        (folder / name).write_bytes(b"no checkpoint " * 30_000)
    files: list[bytes] = []
    before = switches()
    set_as: dict[str, str] = {}
    after: list[dict[str, Any]] = []
    losses: list[float] = []
    for number, (stop, step, name) in enumerate(zip(stops, steps, names, strict=True)):
        reached = _going_on(run, stop - len(losses))
        losses += reached["losses"]
        if reached["error"]:
            break
        _set_modes(run.model, number)
        modes = [module.training for module in run.model.modules()]
        keeper.save(folder / name, step)
        files.append((folder / name).read_bytes() if (folder / name).is_file() else b"")
        with _as_they_were():
            after.append({**run.facts(), "draws": _draws(), "modes_before": modes})
        set_as |= switches()
        run.model.train()
    beside = sorted({path.name for path in folder.iterdir()} - {*names, *_BESIDE})
    others = [
        name
        for name in _BESIDE
        if not (folder / name).is_file() or (folder / name).read_bytes() != b"no checkpoint " * 30_000
    ]
    end = reached if reached["error"] else _going_on(run, num_after)
    lost, left = _save_in_vain(run, keeper, folder, steps[-1])
    back: list[dict[str, Any]] = []
    trouble = ""
    for name in () if reached["error"] or not all(files) else (names[-1], names[0]):
        try:
            step = keeper.load(folder / name)
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"[:200]
            break
        back.append({"step": step if type(step) is int else -1, **run.facts(), "draws": _draws()})
    return {
        "others": others,
        "left": left,
        "back": back,
        "trouble": trouble,
        "switches": [before, {**before, **set_as}],
        "lost": lost,
        "files": [np.frombuffer(file, np.uint8) for file in files],
        "cuts": [ends_of_records(file) for file in files],
        "beside": beside,
        "after": after,
        "end": {**end, "losses": losses + end["losses"]},
    }


_BESIDE = ("another run", "last.pt.json")  # what is no file of ours


def _set_modes(model: Any, number: int) -> None:
    """All in training; or in evaluation, as after a validation; or one part alone, as where it is frozen."""
    model.train(number != 1)
    if number > 1:
        [*model.modules()][-number].eval()


def _save_in_vain(run: SmallRun, keeper: Any, folder: Path, step: int) -> tuple[list[str], list[str]]:
    """Where nothing can be saved: the places where no error says so, and what is another then."""
    lost, left = [], []
    nowhere = Path("no folder") / "last.pt"
    for name, path in (("in a folder that is missing", nowhere), ("over a folder", folder)):
        before = {"generators": generators(), "modes": [module.training for module in run.model.modules()]}
        try:
            keeper.save(path, step)
            lost += [] if path.is_file() else [name]
        except Exception:
            after = {"generators": generators(), "modes": [module.training for module in run.model.modules()]}
            left += [what for what in before if before[what] != after[what]]
    return lost, left


_resumed: dict[str, Any] = {}


def resume(
    seed: int, own_seed: int, file: np.ndarray, num_after: int, cuts: list[int], is_thinned: bool
) -> dict[str, Any]:
    """In another process, whose first run has other random weights and seeds: the file, and so many steps more.

    The next file is loaded into the same run, wherever it stands by then. `cuts`: where the file is cut off, too.
    `is_thinned`: and what lacks one of its entries is loaded.
    """
    if not _resumed:
        run = SmallRun(seed, own_seed)
        _resumed.update(run=run, keeper=learner(**run.parts()))
        learner(**SmallRun(seed + 1, own_seed + 1).parts())
    run, keeper, path = _resumed["run"], _resumed["keeper"], Path("resumed.pt")
    path.write_bytes(file.tobytes())
    _set_modes(run.model, 3)
    modes, before = [module.training for module in run.model.modules()], switches()
    step = keeper.load(path)
    set_as = switches()
    loaded = {
        "step": step if type(step) is int else -1,
        **run.facts(),
        "draws": _draws(),
        "modes_before": modes,
    }
    keeper.load(path)  # as it was before the numbers were drawn
    run.model.train()
    end = _going_on(run, num_after)
    lacking = _lacking_ones_taken(run, keeper, path, loaded) if is_thinned else []
    return {
        "loaded": loaded,
        "end": end,
        "switches": [before, set_as],
        "taken": lacking + broken_ones_taken(keeper, SmallRun(0, 0).parts(), file, cuts),
    }


def _lacking_ones_taken(run: SmallRun, keeper: Any, path: Path, whole: dict[str, Any]) -> list[str]:
    """Without which entry of the file a load goes well, and the run is another one."""
    taken, content = [], path.read_bytes()
    asked = {
        name: as_it_is(whole[name]) for name in whole if name not in ("modes", "modes_before", "gradients")
    }
    for name, thinned in ones_that_lack(content).items():
        path.write_bytes(content)
        keeper.load(path)
        run.model.train()
        run.train(2)
        path.write_bytes(thinned)
        with contextlib.suppress(Exception):
            step = keeper.load(path)
            found = {"step": step, **run.facts(), "draws": _draws()}
            taken += [f"a file without {name}"] if any(as_it_is(found[n]) != asked[n] for n in asked) else []
    path.write_bytes(content)
    return taken
