"""Checkpoints that survive `kill -9`, and continue a run as if nothing had happened.

Bit for bit on a CPU, under equal conditions: the number of threads, the version of torch, the number of processes. On a
GPU that is asked for with `seed_everything(…, deterministic=True)`, and its kind, their number and the version of CUDA
must be the same too. `different_conditions` says what is not.
"""

from __future__ import annotations

import copy
import math
import pickle
import shutil
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from course_lib.base import UserError, atomic_file
from course_lib.distributed import from_main_process, gather_objects, world_size
from course_lib.training.callbacks import Callback, TrainState
from course_lib.training.reproducibility import rng_state, set_rng_state

FORMAT_VERSION = 2


def save_checkpoint(path: str | Path, checkpoint: Mapping[str, Any]) -> None:
    """Save atomically. `checkpoint` holds tensors and plain values only, so that loading is safe."""
    with atomic_file(Path(path)) as temporary, temporary.open("wb") as file:
        torch.save(dict(checkpoint), file)


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read on the CPU with `weights_only=True`: a checkpoint can never run code.

    Raises UserError when the file is missing or is no checkpoint of this library.
    """
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"there is no checkpoint {path}") from None
    except (RuntimeError, EOFError, OSError, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        reason = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise UserError(f"cannot read the checkpoint {path} ({reason}); delete it to start over") from None
    version = checkpoint.get("format_version") if isinstance(checkpoint, dict) else None
    if version != FORMAT_VERSION:
        raise UserError(
            f"{path} has checkpoint format {version}, this version reads {FORMAT_VERSION}: "
            f"continue it with the version that wrote it"
        )
    return checkpoint


def capture(
    *,
    state: TrainState,
    config: Mapping[str, Any] | None = None,
    data_fingerprint: str = "",
    callbacks: Sequence[Callback] = (),
    extra: Mapping[str, Any] | None = None,
    **parts: Any,
) -> dict[str, Any]:
    """All that a run needs to go on as if nothing had happened (bit for bit under equal conditions, which it notes),
    referring to live tensors: save at once.

    `parts` (model, optimizer, scheduler, sampler, scaler …) are what has a `state_dict`; so are callbacks
    with a `name`. Every process of a run must call it: each has random generators of its own.
    """
    return {
        "format_version": FORMAT_VERSION,
        "state": state.state_dict(),
        **{name: part.state_dict() for name, part in parts.items()},
        "callbacks": {callback.name: callback.state_dict() for callback in _named(callbacks)},
        "rng": gather_objects(rng_state()),
        "config": dict(config or {}),
        "data_fingerprint": data_fingerprint,
        **_conditions(),
        "extra": dict(extra or {}),
    }


def restore(
    checkpoint: Mapping[str, Any], *, callbacks: Sequence[Callback] = (), rank: int = 0, **parts: Any
) -> TrainState:
    """Put back what `capture` took; returns the state to give to `fit`. Call it last before training: the
    random generators continue from here, those of GPUs only where there are as many as then; `different_conditions`
    says so."""
    for name, part in parts.items():
        part.load_state_dict(checkpoint[name])
    for callback in _named(callbacks):
        if callback.name in checkpoint["callbacks"]:
            callback.load_state_dict(checkpoint["callbacks"][callback.name])
    if rank < len(checkpoint["rng"]):  # resumed on more processes: the new ones keep their fresh seeds
        set_rng_state(checkpoint["rng"][rank])
    state = TrainState(**checkpoint["state"])
    state.should_stop, state.stop_reason = False, ""  # what stopped it then must say so again
    return state


def _named(callbacks: Sequence[Callback]) -> list[Any]:
    return [callback for callback in callbacks if hasattr(callback, "name")]


def _conditions() -> dict[str, Any]:
    """Under which a run rounds and draws alike. A GPU that is not in use is not asked: that would start CUDA."""
    is_on_gpu = torch.cuda.is_initialized()
    return {
        # Sums are split among threads: another number of them rounds differently.
        "num_threads": torch.get_num_threads(),
        "torch_version": str(torch.__version__),
        "gpu": torch.cuda.get_device_name() if is_on_gpu else None,
        "cuda_version": torch.version.cuda if is_on_gpu else None,
        "num_gpus": torch.cuda.device_count() if is_on_gpu else 0,
        "num_processes": world_size(),
    }


def different_conditions(checkpoint: Mapping[str, Any]) -> list[str]:
    """What, outside the config, may make the resumed run round or draw differently, and what of it is not restored: one
    sentence each. Call it when the model is on its device. Checkpoints of before noted less."""
    now = _conditions()
    different = [name for name in now if name in checkpoint and checkpoint[name] != now[name]]
    return [
        f"{name}: {checkpoint[name]} then, {now[name]} now; {_consequence(name, checkpoint[name], now[name])}"
        for name in different
    ]


def _consequence(name: str, then: Any, now: Any) -> str:
    if name == "num_gpus":
        return "random states of GPUs are not restored, so that dropout draws other numbers there"
    if name == "num_processes":
        return f"random states of {min(then, now)} are restored, the others draw by their seeds"
    return "the result may differ in the last bits"


class Checkpointer(Callback):
    """Keeps `last` fresh, `best` at the best validation so far, and the newest numbered copies of `last`.

    `last` is written at the first safe point at least `every_steps` after the one before, and at the end of
    each epoch; with `every_seconds`, at the first one so much later. `best` is written right after a
    validation whose `monitor` beats all earlier ones, or with `tolerance` falls behind the best by no more than that.
    With `is_async` a copy is taken at once and written by a thread, one at a time. Only the main process writes; all
    must take part. `make_checkpoint(is_best)` gives what to write.
    """

    name = "checkpointer"

    def __init__(
        self,
        last: Path,
        best: Path,
        make_checkpoint: Callable[[bool], Mapping[str, Any]],
        *,
        every_steps: int,
        every_seconds: float | None = None,
        monitor: str = "loss",
        higher_is_better: bool = False,
        tolerance: float = 0.0,
        keep: int = 0,
        is_async: bool = False,
        is_main_process: bool = True,
    ) -> None:
        self.last_path, self.best_path = last, best
        self.make_checkpoint = make_checkpoint
        self.every_steps, self.every_seconds = every_steps, every_seconds
        self.monitor, self.sign = monitor, 1.0 if higher_is_better else -1.0
        self.keep = keep
        self.is_main_process = is_main_process
        self.tolerance = tolerance
        self.best: dict[str, Any] | None = None
        self.peak = math.nan
        self.saved = (0, 0)  # step and epoch
        self.saved_at = time.perf_counter()
        self.writer = ThreadPoolExecutor(1, "checkpoint") if is_async else None
        self.pending: Future[None] | None = None

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "peak": self.peak}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best = state["best"]
        self.peak = state.get("peak", self.best["value"] if self.best else math.nan)

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        if record["kind"] != "validation":
            return
        value = float(record[self.monitor])
        is_first = self.best is None or math.isnan(self.peak)  # a NaN could not be beaten
        lead = math.inf if is_first else self.sign * (value - self.peak)
        self.peak = value if lead > 0 else self.peak
        if lead > 0 or (self.tolerance and lead >= -self.tolerance):
            self.best = {"monitor": self.monitor, "value": value, "step": state.step}
            self._write(self.best_path, state.step)

    def on_safe_point(self, state: TrainState) -> None:
        if self.every_seconds is None:
            is_due = state.step - self.saved[0] >= self.every_steps or state.step_in_epoch == 0
        else:  # clocks differ between processes: what the main one says holds for all
            is_due = from_main_process(time.perf_counter() - self.saved_at >= self.every_seconds)
        if is_due:
            self.save_last(state)

    def save_last(self, state: TrainState) -> None:
        if (state.step, state.epoch) != self.saved:
            self._write(self.last_path, state.step)
            self.saved, self.saved_at = (state.step, state.epoch), time.perf_counter()

    def wait(self) -> None:
        """Until everything is on disk. Raises what a thread's write raised."""
        if self.pending is not None:
            self.pending.result()
            self.pending = None

    def _write(self, path: Path, step: int) -> None:
        checkpoint = self.make_checkpoint(path == self.best_path)
        if not self.is_main_process:
            return
        if self.writer is None:
            self._save(path, step, checkpoint)
        else:
            self.wait()
            # The copy is what the loop pays: the tensors change at the next step.
            self.pending = self.writer.submit(self._save, path, step, copy.deepcopy(checkpoint))

    def _save(self, path: Path, step: int, checkpoint: Mapping[str, Any]) -> None:
        save_checkpoint(path, checkpoint)
        if self.keep and path == self.last_path:
            numbered = path.with_name(f"step-{step:08d}.pt")
            with atomic_file(numbered) as temporary:
                shutil.copyfile(path, temporary)
            for old in sorted(path.parent.glob("step-*.pt"))[: -self.keep]:
                old.unlink()
