"""Checkpoints that survive `kill -9` and continue a run bit for bit."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_lib.callbacks import Callback, TrainState
from course_lib.config import check_same_config
from course_lib.errors import UserError
from course_lib.files import atomic_file
from course_lib.reproducibility import rng_state, set_rng_state

FORMAT_VERSION = 1


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
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
    sampler: Any,
    state: TrainState,
    config: Mapping[str, Any],
    data_fingerprint: str,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """All that a run needs to go on as if nothing had happened, referring to live tensors: save at once."""
    return {
        "format_version": FORMAT_VERSION,
        "state": state.state_dict(),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "sampler": sampler.state_dict(),
        "rng": rng_state(),
        "config": dict(config),
        "data_fingerprint": data_fingerprint,
        **_conditions(),
        "extra": dict(extra or {}),
    }


def restore(
    checkpoint: Mapping[str, Any],
    *,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
    sampler: Any,
) -> TrainState:
    """Put back what `capture` took; returns the state to give to `fit`. Call it last before training: the
    random generators continue from here."""
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    sampler.load_state_dict(checkpoint["sampler"])
    set_rng_state(checkpoint["rng"])
    return TrainState(**checkpoint["state"])


def check_same_run(
    checkpoint: Mapping[str, Any], *, config: Mapping[str, Any], data_fingerprint: str, path: str | Path
) -> None:
    """Raise UserError, naming what differs, unless the checkpoint is of this config and these data."""
    check_same_config(checkpoint["config"], config, owner=path)
    if checkpoint["data_fingerprint"] != data_fingerprint:
        raise UserError(
            f"{path} was made with other data (fingerprint {checkpoint['data_fingerprint'][:12]}, "
            f"now {data_fingerprint[:12]}): put the old data back, or start a new run with another --out"
        )


def _conditions() -> dict[str, Any]:
    # Sums are split among threads: another number of them rounds differently.
    return {"num_threads": torch.get_num_threads(), "torch_version": str(torch.__version__)}


def different_conditions(checkpoint: Mapping[str, Any]) -> list[str]:
    """What, outside the config, may make the resumed run round differently: one sentence each."""
    now = _conditions()
    return [
        f"{name}: {checkpoint[name]} then, {now[name]} now" for name in now if checkpoint[name] != now[name]
    ]


class Checkpointer(Callback):
    """Keeps `last` fresh and `best` at the best validation so far.

    `last` is written at the first safe point at least `every_steps` after the one before, and at the end of
    each epoch; `best` right after a validation whose `monitor` (`"loss"`: lower, `"accuracy"`: higher) beats
    all earlier ones.
    """

    def __init__(
        self,
        last: Path,
        best: Path,
        make_checkpoint: Callable[[], Mapping[str, Any]],
        *,
        every_steps: int,
        monitor: str = "loss",
    ) -> None:
        self.last_path, self.best_path = last, best
        self.make_checkpoint = make_checkpoint
        self.every_steps = every_steps
        self.monitor = monitor
        self.best: dict[str, Any] | None = None
        self.saved_step = 0

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        if record["kind"] != "validation":
            return
        value = float(record[self.monitor])
        sign = -1.0 if self.monitor == "loss" else 1.0
        if self.best is None or sign * value > sign * self.best["value"]:
            self.best = {"monitor": self.monitor, "value": value, "step": state.step}
            save_checkpoint(self.best_path, self.make_checkpoint())

    def on_safe_point(self, state: TrainState) -> None:
        if state.step - self.saved_step >= self.every_steps or state.step_in_epoch == 0:
            self.save_last(state)

    def save_last(self, state: TrainState) -> None:
        save_checkpoint(self.last_path, self.make_checkpoint())
        self.saved_step = state.step
