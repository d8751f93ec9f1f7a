"""One run while it lives: its parts, its place, and how both are saved and put back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from course_lib.base import UserError, atomic_write_text, environment, hardware, memory_bytes, say, to_yaml
from course_lib.distributed import ranks as distributed
from course_lib.runs.compare import check_same_run, differences
from course_lib.runs.components import RunData, build_components
from course_lib.runs.config import OLD, TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.record import RecordWriter
from course_lib.runs.watching.cost import CostMeter
from course_lib.training import (
    Callback,
    Checkpointer,
    EarlyStopping,
    StepProfiler,
    TrainState,
    capture,
    different_conditions,
    load_checkpoint,
    restore,
    seed_everything,
)

LATER_IS_BETTER = 0.01
"""How far a later validation of n-grams may fall behind and still be `best`: such a model settles as the learning rate
falls, and on a thousand texts a score is no surer than this."""


class Run:
    """A run in `folder`: a new one, or with `resume` the one whose last checkpoint is there.

    Raises UserError when the checkpoint is of another config or other data, and what `build_components` raises.
    """

    def __init__(
        self,
        config: TrainConfig,
        data: RunData,
        device: torch.device,
        folder: RunFolder,
        ranks: distributed.Ranks,
        *,
        progress: bool,
        callbacks: Sequence[Callback],
        resume: bool,
    ) -> None:
        self.config, self.data, self.folder, self.ranks = config, data, folder, ranks
        self.device = device
        self.progress = progress and ranks.is_main_process
        checkpoint = self._checkpoint_to_resume() if resume else None
        seed_everything(config.seed, deterministic=config.is_deterministic)
        settled = TrainConfig(**OLD | checkpoint["extra"]["settled"]) if checkpoint else None
        self.parts = build_components(
            config, data, device, ranks, settled=settled, trained=folder if checkpoint else None
        )
        # Dropout draws other numbers on each process; the weights above are the same on all.
        seed_everything(ranks.seed(config.seed), deterministic=config.is_deterministic)
        self.state = TrainState()
        self.trials: list[dict[str, Any]] = []  # of `model=auto`
        self.num_records = 0  # that the checkpoint to resume counts
        self.writer: RecordWriter | None = None
        self.meter = CostMeter(config, device)
        self.checkpointer = Checkpointer(
            folder.last,
            folder.best,
            self.checkpoint,
            every_steps=config.checkpoint_every_steps,
            every_seconds=config.checkpoint_every_seconds,
            monitor=config.metric,
            higher_is_better=config.higher_is_better,
            tolerance=LATER_IS_BETTER if config.model == "ngrams" and config.higher_is_better else 0.0,
            keep=config.keep_checkpoints,
            is_async=config.use_async_checkpoints,
            is_main_process=ranks.is_main_process,
        )
        self.profiler = StepProfiler(config.profile_steps, folder.directory) if config.profile_steps else None
        self.callbacks = [*self._own_callbacks(), *callbacks]
        # As they were when the run began: the checkout may be at another commit when it ends.
        self.surroundings = {"environment": environment(), "hardware": hardware()}
        self.started = time.perf_counter()
        if checkpoint:
            self._restore(checkpoint)
        if ranks.is_main_process:
            if not resume:
                folder.create()
            if not resume or differences(folder.read_config(), config.to_dict()):  # it goes on to another end
                atomic_write_text(folder.config, to_yaml(config.to_dict()))

    def _own_callbacks(self) -> list[Callback]:
        config, callbacks = self.config, list[Callback]()
        if config.early_stopping_patience is not None:
            mode = "max" if config.higher_is_better else "min"
            patience, min_delta = config.early_stopping_patience, config.min_delta
            callbacks.append(EarlyStopping(config.metric, mode, patience, min_delta))
        if self.profiler is not None and self.ranks.is_main_process:
            callbacks.append(self.profiler)
        return callbacks

    def stateful(self, *, is_best: bool = False) -> dict[str, Any]:
        """What a checkpoint holds of the parts. Under FSDP2 the weights are put together for the best one, which
        is for use, and stay in parts for the last one, which is to go on from."""
        parts = self.parts
        stateful: dict[str, Any] = {"scheduler": parts.scheduler, "sampler": parts.order}
        if parts.precision.scaler is not None:
            stateful["scaler"] = parts.precision.scaler
        if not parts.is_sharded:
            return {"model": parts.model, "optimizer": parts.optimizer, **stateful}
        from course_lib.distributed import ShardedParts, WholeWeights

        if is_best:
            return {"model": WholeWeights(parts.model), **stateful}
        checkpoints, keep = self.folder.last.parent, self.config.keep_checkpoints
        return {"shards": ShardedParts(checkpoints, parts.model, parts.optimizer, keep=keep), **stateful}

    def _checkpoint_to_resume(self) -> dict[str, Any] | None:
        """`last.pt`, checked; None when the run was killed before its first checkpoint."""
        if not self.folder.last.exists():
            self.folder.last.parent.mkdir(parents=True, exist_ok=True)
            say("no checkpoint was written yet; starting from step 0", enabled=self.progress)
            return None
        checkpoint = load_checkpoint(self.folder.last)
        checkpoint["config"] = TrainConfig.from_dict(
            OLD | checkpoint["config"]
        ).to_dict()  # with keys of today
        config, fingerprint = self.config.to_dict(), self.data.fingerprint
        check_same_run(checkpoint, config=config, data_fingerprint=fingerprint, path=self.folder.last)
        return checkpoint

    def _saved_callbacks(self) -> list[Callback]:
        return [self.meter, *self.callbacks, self.checkpointer]

    def _restore(self, checkpoint: dict[str, Any]) -> None:
        for difference in different_conditions(checkpoint):
            say(f"warning: {difference}", enabled=True)
        parts, callbacks = self.stateful(), self._saved_callbacks()
        self.state = restore(checkpoint, callbacks=callbacks, rank=self.ranks.rank, **parts)
        step, end = self.state.step, self.parts.max_steps
        if step >= end and differences(checkpoint["config"], self.config.to_dict()):
            raise UserError(
                f"{self.folder.directory} has made {step} steps, and would end after {end}: set more"
            )
        self.num_records = checkpoint["extra"]["num_records"]
        self.checkpointer.saved = (self.state.step, self.state.epoch)
        say(f"resuming at step {self.state.step} of {self.parts.max_steps}", enabled=self.progress)

    def checkpoint(self, is_best: bool) -> dict[str, Any]:
        return capture(
            **self.stateful(is_best=is_best),
            state=self.state,
            config=self.config.to_dict(),
            data_fingerprint=self.data.fingerprint,
            callbacks=self._saved_callbacks(),
            extra={
                "num_records": self.writer.num_records if self.writer else 0,
                "settled": self.parts.settled.to_dict(),
                "label_names": list(self.data.train.label_names),
                "vocab_size": self.data.train.vocab_size,
            },
        )

    def record(self, status: str, *, failure: str | None = None) -> dict[str, Any]:
        """What `run.json` says at any time of the run."""
        seconds = self.state.train_seconds
        sizes = [(parameter.numel(), parameter.requires_grad) for parameter in self.parts.model.parameters()]
        return {
            "status": status,
            "failure": failure,
            "stop_reason": self.state.stop_reason,
            "step": self.state.step,
            "max_steps": self.parts.max_steps,
            "max_epochs": self.parts.max_epochs,
            "checkpoint_step": self.checkpointer.saved[0],
            "num_parameters": sum(size for size, _ in sizes),
            "num_trainable": sum(size for size, learns in sizes if learns),
            "peak_memory_bytes": memory_bytes(self.device).get("peak_memory_bytes"),
            "train_seconds": seconds,
            "samples_per_sec": self.state.num_samples / seconds if seconds else None,
            "tokens_per_sec": self.state.num_tokens / seconds if seconds else None,
            "process_seconds": time.perf_counter() - self.started,
            "world_size": self.ranks.world_size,
            "resolved": self.parts.reasons,
            "choice": self.trials,
            "config": self.config.to_dict(),
            "config_fingerprint": self.config.fingerprint,
            "data": {
                "fingerprint": self.data.fingerprint,
                "num_train": len(self.data.train),
                "num_validation": len(self.data.validation),
                "num_test": len(self.data.test) if self.data.test else 0,
                "label_names": list(self.data.train.label_names),
                "columns": dict(self.data.columns),
                "notes": self.data.notes,
            },
            **self.surroundings,
        }
