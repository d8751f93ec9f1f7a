"""Harness of 6.3: the cell as a script, first on forked ranks that are watched, then launched by torchrun."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from autograder.lessons.checking.harness_counting import counted
from autograder.lessons.checking.harness_shared import learner, small_model, weights_of
from autograder.lessons.lesson_06.harness.script_watch import (
    Learnt,
    is_half_asleep,
    random_state,
    watch_devices,
    watch_files,
    watch_forwards,
)
from autograder.lessons.lesson_06.harness.shared import (
    CELL,
    Crew,
    Parted,
    free_port,
    loss_without_large,
    make_loud,
    shares,
    with_no_word,
)
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
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.parallel import DistributedDataParallel

from course_lib.models import TextClassifier

make, kept, rows = DistributedDataParallel.__init__, [], []

def make_and_keep(self, *arguments, **options):
    make(self, *arguments, **options)
    kept.append(self)

DistributedDataParallel.__init__ = make_and_keep

def note_rows(module, _, output):
    if isinstance(module, TextClassifier) and isinstance(output, torch.Tensor) and output.requires_grad:
        rows.append(len(output))

register_module_forward_hook(note_rows)

def exercise(_):
    def keep(main):
        @functools.wraps(main)
        def watched(folder):
            model = main(folder)
            row = torch.cat([p.detach().cpu().flatten() for p in model.parameters()]).numpy()
            np.save(os.path.join(str(folder), f"rows-{os.environ['RANK']}.npy"), sum(rows))
            np.save(os.path.join(str(folder), f"kept-{os.environ['RANK']}.npy"), row)
            os._exit(0)
        return watched
    return keep
"""


def write_job(
    name: str, seed: int, rows: list[int], settings: dict[str, Any], dropout: float, kind: str = ""
) -> Path:
    """A folder with what the script is given: `job.pt`. `settings`: learning rate, width, number of layers."""
    folder = Path.cwd() / name
    folder.mkdir()
    sizes = {"vocab_size": 60, "num_classes": 5, "num_heads": 2, "max_length": 32, "dropout": dropout}
    job = {"seed": seed, "learning_rate": settings["learning_rate"], "batches": shares(seed, [rows])[0]}
    if kind == "sick":
        job["batches"][-1] = with_no_word(job["batches"][-1])
    torch.save(job | {"model": sizes | settings["model"]}, folder / "job.pt")
    return folder


def watched_script(
    name: str,
    seed: int,
    rows: list[int],
    settings: dict[str, Any],
    local_ranks: list[int],
    dropout: float = 0.0,
    kind: str = "",
) -> dict[str, Any]:
    """The script's function on forked ranks with torchrun's environment; `local_ranks` make them nodes.

    A `kind` of model is "loud", with losses of 50, or "sick", with none for a row of the last batch.
    """
    folder = write_job(name, seed, rows, settings, dropout, kind)
    if kind == "sick":  # as an earlier run has left it
        torch.save({"of_an_earlier_run": torch.zeros(3)}, folder / "last.pt")
    crew = Crew(len(local_ranks), joins=False, local_ranks=local_ranks)
    try:
        ranks = crew.call(
            "script_rank", folder=str(folder), model=settings["model"], dropout=dropout, kind=kind
        )
        checkpoint = checkpoint_in(folder, settings["model"])
        return {"ranks": ranks, "parted": "", "checkpoint": checkpoint}
    except Parted as error:
        return {"ranks": [], "parted": str(error), "checkpoint": None}
    finally:
        crew.close()


def script_rank(
    rank: int, world_size: int, folder: str, model: dict[str, int], dropout: float, kind: str
) -> dict[str, Any]:
    saved: list[str] = []
    random_states: list[str] = []
    torch_save = torch.save

    def watched_save(obj: Any, f: Any, *arguments: Any, **options: Any) -> None:
        path = f if isinstance(f, str | os.PathLike) else getattr(f, "name", None)
        if path is not None:  # what is written to memory is no file
            saved.append(str(path))
        torch_save(obj, f, *arguments, **options)

    learnt, num_without_draws = Learnt(rank), [0]

    def note_state(module: Any, _: Any) -> None:
        if isinstance(module, TextClassifier) and module.training:
            random_states.append(random_state())

    def note_rows(module: Any, _: Any, output: Any) -> None:
        if not isinstance(module, TextClassifier):
            return
        learnt.note(module, output)
        if module.training:
            num_without_draws[0] += random_states[-1:] == [random_state()] or is_half_asleep(module, dropout)

    make = DistributedDataParallel.__init__

    def make_and_keep(self: Any, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        _kept_wrappers.append(self)

    watch = watch_forwards(kind)
    watch_files(Path(folder), saved)
    asked_for = watch_devices()
    DistributedDataParallel.__init__ = make_and_keep  # type: ignore[method-assign]
    torch.save = watched_save
    torch.nn.modules.module.register_module_forward_pre_hook(note_state)
    torch.nn.modules.module.register_module_forward_hook(note_rows)
    with counted(of=f"rank {rank}") as counts:
        trained = learner(Path(folder))
    return {
        "returned": type(trained).__name__,
        "trained": _described(trained.state_dict(), model) if isinstance(trained, torch.nn.Module) else None,
        "num_saves": len(saved),
        "rows": learnt.num_rows,
        "learnt": learnt.num_learnt,
        "flops": counts.total_flops,
        "all_reduces": counts.num_all_reduces,
        "random_states": random_states,
        "num_without_draws": num_without_draws[0],
        "is_from_ids": watch.is_from_ids,
        "asked_for": asked_for,
        "group_is_up": torch.distributed.is_initialized(),
    }


def script_alone(
    seed: int,
    rows: list[int],
    settings: dict[str, Any],
    mistake: str = "none",
    world_size: int = 2,
    kind: str = "",
) -> torch.Tensor:
    """The weights of one process that trains on the whole batches; with a mistake, those of ranks that make it.

    "no step": as they are at the start.
    """
    model = small_model(seed, **settings["model"])
    if kind == "loud":
        make_loud(model)
    if mistake == "no step":
        return weights_of(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["learning_rate"])
    for batch in shares(seed, [rows])[0]:
        size = len(batch["labels"])
        places = torch.arange(size)
        owners = places % world_size
        if mistake == "mean of rank means of pieces":  # the first ranks have one row more
            owners = torch.repeat_interleave(torch.tensor([len(p) for p in places.tensor_split(world_size)]))
        of_owner = torch.bincount(owners, minlength=world_size)[owners]
        weigh = {
            "mean of rank means": 1 / of_owner / world_size,
            "mean of rank means of pieces": 1 / of_owner / world_size,
            "sum of rank means": 1 / of_owner,
            "divided twice": torch.full((size,), 1 / size / world_size),
            "multiplied twice": torch.full((size,), world_size / size),
            "a sum": torch.ones(size),
            "a sum by ranks": torch.full((size,), 1 / world_size),
        }.get(mistake, torch.full((size,), 1 / size))
        losses = F.cross_entropy(
            model(batch["input_ids"], batch["attention_mask"]), batch["labels"], reduction="none"
        )
        if mistake != "old gradients":
            optimizer.zero_grad()
        if mistake == "large losses left out":
            loss_without_large(model, batch).backward()
        else:
            (weigh * losses).sum().backward()
        if mistake == "clipped":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return weights_of(model)


def work_alone(seed: int, rows: list[int], settings: dict[str, Any]) -> int:
    """FLOPs of the matrix products of one process that trains on the whole batches."""
    with counted() as counts:
        script_alone(seed, rows, settings)
    return counts.total_flops


_ABORTED = "terminate called without an active exception"


def launched_script(name: str, seed: int, rows: list[int], settings: dict[str, Any]) -> dict[str, Any]:
    """The cell as a file, started for real on two processes by torchrun."""
    folder = write_job(name, seed, rows, settings, 0.0)
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
        return {"status": None, "said": said, "weights": [], "rows": [], "checkpoint": None}
    kept = [folder / f"kept-{rank}.npy" for rank in range(2)]
    # Threads of torch's own, which outlive the group, now and then abort a process that has done all and ends.
    has_ended = _ABORTED in done.stderr and all(path.exists() for path in kept)
    return {
        "status": 0 if has_ended else done.returncode,
        "said": _error_line(done.stderr),
        "weights": [np.load(path) for path in kept if path.exists()],
        "rows": [int(np.load(path)) for path in sorted(folder.glob("rows-*.npy"))],
        "checkpoint": checkpoint_in(folder, settings["model"]),
    }


def _error_line(text: str) -> str:
    """The line of a traceback that names the error; torchrun prints a page around it."""
    lines = [line.partition("]: ")[2] or line for line in text.splitlines()]
    named = [line for line in lines if line[:1].isalpha() and "Error: " in line and "ChildFailed" not in line]
    return (named or lines or [""])[0][:300]


def checkpoint_in(folder: Path, model: dict[str, int]) -> dict[str, Any] | None:
    """The checkpoint as another program finds it; None without one."""
    path = folder / "last.pt"
    if not path.exists():
        return None
    try:
        state = torch.load(path, weights_only=True)
    except Exception as error:  # whatever the file is
        return {"type": f"file that torch.load cannot read ({type(error).__name__})", "first_name": ""}
    if not isinstance(state, dict):
        return {"type": type(state).__name__, "first_name": ""}
    return {"type": "dict"} | _described(state, model)


def _described(state: dict[str, Any], model: dict[str, int]) -> dict[str, Any]:
    """A state dict: whether its names are those of the plain model, and then its numbers, in one row."""
    expected = small_model(0, **model).state_dict()
    found = {"has_same_names": set(state) == set(expected), "first_name": str(next(iter(state), ""))}
    if found["has_same_names"]:
        found["dtypes"] = sorted({str(value.dtype) for value in state.values()})
        found["row"] = torch.cat([state[name].detach().flatten().float() for name in expected])
    return found


def chosen_devices(cases: list[list[int]]) -> list[dict[str, str]] | None:
    """What the cell's `choose_device(local_rank, num_gpus)` returns or raises; None without such a function."""
    choose = getattr(sys.modules["__learner__"], "choose_device", None)
    if choose is None:
        return None
    found = []
    for local_rank, num_gpus in cases:
        try:
            device = choose(local_rank, num_gpus)
            found.append({"type": type(device).__name__, "said": str(device), "error": ""})
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            name = "ValueError" if "ValueError" in kinds else kinds[0]
            found.append({"type": "", "said": str(error)[:100], "error": name})
    return found
