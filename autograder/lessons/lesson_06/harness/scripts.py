"""Harness of 6.3: the cell as a script, first on forked ranks that are watched, then launched by torchrun."""

from __future__ import annotations

import hashlib
import linecache
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

from autograder.lessons.checking.harness_shared import learner, small_model, weights_of
from autograder.lessons.lesson_06.harness.shared import CELL, Crew, Parted, free_port, loss_of, shares
from course_lib.models import TextClassifier

TORCHRUN_SECONDS = 150.0  # some seconds on a quiet machine
# A DDP that is freed after its group was taken down may wait for ever for gloo's thread, which waits for Python's lock
# (torch 2.13): rare, and no mistake of a solution's. So it is never freed.
_kept_wrappers: list[Any] = []
# Beside the script in its folder: the cell imports `exercise`, which keeps here what the function returns.
_STUB = """
import functools, os
import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

make, kept = DistributedDataParallel.__init__, []

def make_and_keep(self, *arguments, **options):
    make(self, *arguments, **options)
    kept.append(self)

DistributedDataParallel.__init__ = make_and_keep

def exercise(_):
    def keep(main):
        @functools.wraps(main)
        def watched(folder):
            model = main(folder)
            row = torch.cat([p.detach().cpu().flatten() for p in model.parameters()]).numpy()
            np.save(os.path.join(str(folder), f"kept-{os.environ['RANK']}.npy"), row)
            os._exit(0)
        return watched
    return keep
"""


def write_job(name: str, seed: int, rows: list[int], dropout: float) -> Path:
    """A folder with what the script is given: `job.pt`."""
    folder = Path.cwd() / name
    folder.mkdir()
    settings = {"vocab_size": 60, "num_classes": 5, "d_model": 16, "num_layers": 1, "num_heads": 2}
    job = {"seed": seed, "learning_rate": 0.3, "batches": shares(seed, [rows])[0]}
    torch.save(job | {"model": settings | {"max_length": 32, "dropout": dropout}}, folder / "job.pt")
    return folder


def watched_script(
    name: str, seed: int, rows: list[int], dropout: float, local_ranks: list[int]
) -> dict[str, Any]:
    """The script's function on forked ranks with torchrun's environment; `local_ranks` make them nodes."""
    folder = write_job(name, seed, rows, dropout)
    crew = Crew(len(local_ranks), joins=False, local_ranks=local_ranks)
    try:
        ranks = crew.call("script_rank", folder=str(folder))
        return {"ranks": ranks, "parted": "", "checkpoint": checkpoint_in(folder)}
    except Parted as error:
        return {"ranks": [], "parted": str(error), "checkpoint": None}
    finally:
        crew.close()


def script_rank(rank: int, world_size: int, folder: str) -> dict[str, Any]:
    saved: list[str] = []
    random_states: list[str] = []
    torch_save = torch.save

    def watched_save(obj: Any, f: Any, *arguments: Any, **options: Any) -> None:
        saved.append(str(f))
        torch_save(obj, f, *arguments, **options)

    rows = [0]

    def note(module: Any, inputs: Any) -> None:
        if type(module) is TextClassifier:
            rows[0] += len(inputs[0]) if inputs else 0
        if module.training and not random_states:
            random_states.append(hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest())

    make = DistributedDataParallel.__init__

    def make_and_keep(self: Any, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        _kept_wrappers.append(self)

    DistributedDataParallel.__init__ = make_and_keep  # type: ignore[method-assign]
    torch.save = watched_save
    torch.nn.modules.module.register_module_forward_pre_hook(note)
    model = learner(Path(folder))
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"`main` returns the trained model, not a {type(model).__name__}")
    return {
        "weights": weights_of(model),
        "num_saves": len(saved),
        "rows": rows[0],
        "random_state": random_states[0] if random_states else "",
        "in_training_mode": bool(random_states),
    }


def script_alone(seed: int, rows: list[int]) -> torch.Tensor:
    """The weights of one process that trains on the whole batches."""
    model = small_model(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for batch in shares(seed, [rows])[0]:
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
    return weights_of(model)


def launched_script(name: str, seed: int, rows: list[int]) -> dict[str, Any]:
    """The cell as a file, started for real on two processes by torchrun."""
    folder = write_job(name, seed, rows, 0.0)
    (folder / "train.py").write_text("".join(linecache.getlines(CELL)), encoding="utf-8")
    (folder / "autograder.py").write_text(_STUB, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if sys.platform == "linux":
        environment["GLOO_SOCKET_IFNAME"] = "lo"
    try:
        done = subprocess.run(
            [*command, str(folder / "train.py"), str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TORCHRUN_SECONDS,
        )
    except subprocess.TimeoutExpired:
        said = f"no end after {TORCHRUN_SECONDS:.0f} s"
        return {"status": None, "said": said, "weights": [], "checkpoint": None}
    kept = [folder / f"kept-{rank}.npy" for rank in range(2)]
    return {
        "status": done.returncode,
        "said": _error_line(done.stderr),
        "weights": [np.load(path) for path in kept if path.exists()],
        "checkpoint": checkpoint_in(folder),
    }


def _error_line(text: str) -> str:
    """The line of a traceback that names the error; torchrun prints a page around it."""
    lines = [line.partition("]: ")[2] or line for line in text.splitlines()]
    named = [line for line in lines if line[:1].isalpha() and "Error: " in line and "ChildFailed" not in line]
    return (named or lines or [""])[0][:300]


def checkpoint_in(folder: Path) -> dict[str, Any] | None:
    """The checkpoint as another program finds it: names and one row of numbers; None without one."""
    path = folder / "last.pt"
    if not path.exists():
        return None
    state = torch.load(path, weights_only=True)
    values = [value.flatten().float() for value in state.values() if isinstance(value, torch.Tensor)]
    expected = list(small_model(0).state_dict())
    return {
        "has_same_names": list(state) == expected,
        "first_name": str(next(iter(state), "")),
        "row": torch.cat(values) if values else torch.zeros(0),
    }


def chosen_devices(cases: list[list[int]]) -> list[str]:
    """What the cell's `choose_device(local_rank, num_gpus)` says; "!" and the type of an error that it raises."""
    module = sys.modules["__learner__"]
    choose = getattr(module, "choose_device", None)
    if choose is None:
        raise NameError("the cell defines no `choose_device`")
    found = []
    for local_rank, num_gpus in cases:
        try:
            found.append(str(choose(local_rank, num_gpus)))
        except (ValueError, RuntimeError) as error:
            found.append(f"!{type(error).__name__}")
    return found
