"""A config becomes a run: data, model, training, checkpoints, records, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from course_lib import distributed
from course_lib.callbacks import Callback, TrainState
from course_lib.checkpoint import (
    Checkpointer,
    capture,
    check_same_run,
    different_conditions,
    load_checkpoint,
    restore,
)
from course_lib.components import build_components, load_trained
from course_lib.config import TrainConfig, check_same_config
from course_lib.config_io import to_yaml
from course_lib.cost import BudgetGuard, cost_summary
from course_lib.data.batching import evaluation_batches
from course_lib.early_stopping import EarlyStopping
from course_lib.environment import environment, hardware, resolve_device
from course_lib.files import atomic_write_text
from course_lib.health import health_table
from course_lib.loop import NonFiniteError, evaluate, fit
from course_lib.metrics import RecordWriter, RunFolder, evaluation_summary
from course_lib.profiling import StepProfiler
from course_lib.progress import ProgressBar, say
from course_lib.reproducibility import seed_everything, weights_sha256
from course_lib.run_data import RunData, load_data
from course_lib.trackers import make_trackers


EVALUATION_BATCH_SIZE = 128
_SCORES = ("macro_f1", "perplexity")


def run_training(
    config: TrainConfig,
    out: str | Path,
    *,
    resume: bool = False,
    progress: bool = True,
    callbacks: Sequence[Callback] = (),
) -> dict[str, Any]:
    """Train as `config` says, into the run folder `out`; returns the record that `run.json` holds.

    With `resume=True` continue the run in `out` from its last checkpoint, or from the start when it has none
    yet: the weights at the end are those of a run that was never interrupted. What is told goes to stderr.
    Under torchrun every process calls this; all but the first return {}.

    Raises UserError for data, folder or checkpoint that cannot be used, NonFiniteError when the loss or a
    gradient became NaN. KeyboardInterrupt passes through after the record says so.
    """
    folder = RunFolder(out)
    resume = resume or (distributed.is_elastic() and folder.holds_run)  # torchrun started the job again
    if resume:
        check_same_config(folder.read_config(), config.to_dict(), owner=f"the run in {folder.directory}")
        folder.remove_leftovers()
        if folder.read_record().get("status") == "finished":
            say(f"{folder.directory} is finished already; nothing to resume", enabled=progress)
            return folder.read_record()
    elif folder.holds_run:
        folder.create()  # raises, before any time is spent on data
    ranks = distributed.setup(config.device)
    distributed.quiet_other_ranks()
    try:
        device, device_reason = resolve_device(ranks.device(config.device))
        with distributed.main_process_first(ranks):
            data = load_data(config, folder, progress=progress and ranks.is_main_process)
        run = _Run(config, data, device, folder, ranks, progress=progress, callbacks=callbacks, resume=resume)
        run.reasons["device"] = f"{device} ({device_reason})"
        return run.run()
    finally:
        distributed.cleanup()


def plan_training(config: TrainConfig, out: str | Path) -> dict[str, str]:
    """What `run_training` would do: every `auto` resolved, with its reason. Draws the schedule into `out`."""
    from course_lib.schedules import plot_schedule

    folder = RunFolder(out)
    device, device_reason = resolve_device(config.device)
    data = load_data(config, folder)
    seed_everything(config.seed)
    parts = build_components(config, data, device, distributed.Ranks(), settled=None)
    figure = plot_schedule(
        config.schedule,
        peak=max(group["initial_lr"] for group in parts.optimizer.param_groups),
        max_steps=parts.max_steps,
        warmup_steps=round(config.warmup_fraction * parts.max_steps),
        final_ratio=config.final_learning_rate_ratio,
        num_cycles=config.num_cycles,
    )
    folder.directory.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder.directory / "schedule.svg")
    return {
        "data": f"{len(data.train):,} samples to train on, {len(data.validation):,} to validate on",
        "device": f"{device} ({device_reason})",
        "parameters": f"{sum(p.numel() for p in parts.model.parameters()):,}",
        "steps": f"{parts.max_steps:,}",
        **parts.reasons,
        "schedule": str(folder.directory / "schedule.svg"),
    }


class _Run:
    """One run while it lives: the objects, and how they are saved and put back."""

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
        self.config, self.data, self.folder, self.ranks, self.progress = config, data, folder, ranks, progress
        checkpoint = self._checkpoint_to_resume() if resume else None
        seed_everything(config.seed, deterministic=config.is_deterministic)
        settled = TrainConfig(**checkpoint["extra"]["settled"]) if checkpoint else None
        self.parts = build_components(config, data, device, ranks, settled=settled)
        self.reasons = self.parts.reasons
        seed_everything(ranks.seed(config.seed), deterministic=config.is_deterministic)
        self.state = TrainState()
        self.num_records = 0
        self.checkpointer = Checkpointer(
            folder.last,
            folder.best,
            self.checkpoint,
            every_steps=config.checkpoint_every_steps,
            every_seconds=config.checkpoint_every_seconds,
            monitor=config.monitor,
            higher_is_better=config.higher_is_better,
            keep=config.keep_checkpoints,
            is_async=config.use_async_checkpoints,
            is_main_process=ranks.is_main_process,
        )
        self.callbacks = [*self._own_callbacks(), *callbacks]
        self.started = time.perf_counter()
        if checkpoint:
            self._restore(checkpoint)
        elif not resume and ranks.is_main_process:
            folder.create()
            atomic_write_text(folder.config, to_yaml(config.to_dict()))

    def _own_callbacks(self) -> list[Callback]:
        config, callbacks = self.config, list[Callback]()
        if config.early_stopping_patience is not None:
            mode = "max" if config.higher_is_better else "min"
            patience, min_delta = config.early_stopping_patience, config.min_delta
            callbacks.append(EarlyStopping(config.monitor, mode, patience, min_delta))
        if config.budget is not None and config.price_per_hour is not None:
            callbacks.append(BudgetGuard(config.budget, config.price_per_hour, currency=config.currency))
        if config.profile_steps:
            callbacks.append(StepProfiler(config.profile_steps, self.folder.directory))
        return callbacks

    def _stateful(self, path: Path) -> dict[str, Any]:
        """The parts of the checkpoint at `path`."""
        parts = self.parts
        stateful = {"scheduler": parts.scheduler, "sampler": parts.order}
        if parts.precision.scaler:
            stateful["scaler"] = parts.precision.scaler
        if self.config.sharding == "ddp":
            return stateful | {"model": parts.model, "optimizer": parts.optimizer}
        from course_lib.fsdp import ShardedParts, WholeWeights

        if path == self.folder.best:  # for use, on one process
            return stateful | {"model": WholeWeights(parts.model)}
        keep = self.config.keep_checkpoints
        return stateful | {"parts": ShardedParts(path.parent, parts.model, parts.optimizer, keep=keep)}

    def _checkpoint_to_resume(self) -> dict[str, Any] | None:
        """`last.pt`, checked; None when the run was killed before its first checkpoint."""
        if not self.folder.last.exists():
            self.folder.last.parent.mkdir(parents=True, exist_ok=True)
            say("no checkpoint was written yet; starting from step 0", enabled=self.progress)
            return None
        checkpoint = load_checkpoint(self.folder.last)
        config, fingerprint = self.config.to_dict(), self.data.fingerprint
        check_same_run(checkpoint, config=config, data_fingerprint=fingerprint, path=self.folder.last)
        for difference in different_conditions(checkpoint):
            say(f"warning: {difference}; the result may differ in the last bits", enabled=True)
        return checkpoint

    def _restore(self, checkpoint: dict[str, Any]) -> None:
        callbacks = [*self.callbacks, self.checkpointer]
        self.state = restore(checkpoint, callbacks=callbacks, rank=self.ranks.rank, **self._stateful(self.folder.last))
        self.num_records = checkpoint["extra"]["num_records"]
        self.checkpointer.saved = (self.state.step, self.state.epoch)
        say(f"resuming at step {self.state.step} of {self.parts.max_steps}", enabled=self.progress)

    def checkpoint(self, path: Path) -> dict[str, Any]:
        return capture(
            **self._stateful(path),
            state=self.state,
            config=self.config.to_dict(),
            data_fingerprint=self.data.fingerprint,
            callbacks=[*self.callbacks, self.checkpointer],
            extra={
                "num_records": self.writer.num_records if self.writer else 0,
                "settled": self.parts.settled.to_dict(),
                "label_names": list(self.data.train.label_names),
                "vocab_size": self.data.train.vocab_size,
            },
        )

    def run(self) -> dict[str, Any]:
        """Train to the end, or write down why not."""
        if self.ranks.is_main_process and not self.folder.tokenizer.exists():
            atomic_write_text(self.folder.tokenizer, self.data.train.load_tokenizer().to_str())
        self._write_record(self._record("running"))
        try:
            self._train()
        except KeyboardInterrupt:
            self.checkpointer.wait()
            if self.folder.last.exists():  # the signal may have come between the file and our note of it
                state = load_checkpoint(self.folder.last)["state"]
                self.checkpointer.saved = (state["step"], state["epoch"])
            self._write_record(self._record("interrupted"))
            raise
        except NonFiniteError as error:
            self._write_record(self._record("failed", failure=str(error)))
            raise
        last_weights = self._stateful(self.folder.best)["model"].state_dict()
        distributed.cleanup()  # the rest is the first process's alone
        return self._finish(last_weights) if self.ranks.is_main_process else {}

    def _train(self) -> None:
        self.writer: RecordWriter | None = None
        if self.ranks.is_main_process:
            purge_step = self.state.step + 1 if self.state.step else None
            self.trackers = make_trackers(self.config.trackers, self.folder, self.config.to_dict())
            self.writer = RecordWriter(
                self.folder, num_records=self.num_records, purge_step=purge_step, trackers=self.trackers
            )
        shown = self.progress and self.ranks.is_main_process
        bar = ProgressBar(self.parts.max_steps, self.parts.max_epochs, start=self.state.step, enabled=shown)
        status = "failed"
        try:
            # In this order: what the checkpointer saves counts the records that the writer has written.
            fit(
                distributed.wrap_ddp(self.parts.model),
                self.parts.batches,
                self.parts.optimizer,
                scheduler=self.parts.scheduler,
                validation_batches=self.parts.validation_batches,
                max_epochs=self.parts.max_epochs,
                max_steps=self.parts.max_steps,
                max_norm=self.config.max_norm,
                grad_accum_steps=self.parts.grad_accum_steps,
                precision=self.parts.precision,
                label_smoothing=self.config.label_smoothing,
                log_every_steps=self.config.log_every_steps,
                validate_every_steps=self.config.validate_every_steps,
                callbacks=[*([self.writer] if self.writer else []), bar, *self.callbacks, self.checkpointer],
                state=self.state,
            )
            self.checkpointer.save_last(self.state)
            self.checkpointer.wait()
            status = "finished"
        finally:
            bar.close()
            if self.writer:
                self.writer.close()
                for tracker in self.trackers:
                    tracker.close(status)

    def _finish(self, last_weights: dict[str, Any]) -> dict[str, Any]:
        """Judge the best weights (not the last), then write record and report."""
        from course_lib.report import write_report

        last_sha256 = weights_sha256(last_weights)
        best = load_trained(self.folder.directory)
        batches = evaluation_batches(self.data.validation, EVALUATION_BATCH_SIZE)
        scores = evaluate(best.model, batches, return_predictions=True)
        arrays = [scores.pop(name).numpy() for name in ("labels", "predictions", "lengths")]
        summary = evaluation_summary(
            self.config.task, *arrays, self.data.train.label_names, loss=scores["loss"]
        )
        record = self._record("finished")
        records = self.folder.read_metrics()
        record |= {
            "weights_sha256": last_sha256,
            "best_weights_sha256": weights_sha256(best.model),
            "best": self.checkpointer.best,
            "validation": {**scores, **{k: summary.pop(k) for k in _SCORES if k in summary}},
            **summary,
            "health": health_table(records),
            "cost": cost_summary(records, self.config, record),
        }
        write_report(self.folder, record)
        self._write_record(record)
        return record

    def _write_record(self, record: dict[str, Any]) -> None:
        if self.ranks.is_main_process:
            self.folder.write_record(record)

    def _record(self, status: str, *, failure: str | None = None) -> dict[str, Any]:
        seconds = self.state.train_seconds
        return {
            "status": status,
            "failure": failure,
            "stop_reason": self.state.stop_reason,
            "step": self.state.step,
            "max_steps": self.parts.max_steps,
            "max_epochs": self.parts.max_epochs,
            "checkpoint_step": self.checkpointer.saved[0],
            "num_parameters": sum(parameter.numel() for parameter in self.parts.model.parameters()),
            "train_seconds": seconds,
            "samples_per_sec": self.state.num_samples / seconds if seconds else None,
            "tokens_per_sec": self.state.num_tokens / seconds if seconds else None,
            "process_seconds": time.perf_counter() - self.started,
            "world_size": self.ranks.world_size,
            "resolved": self.reasons,
            "config": self.config.to_dict(),
            "config_fingerprint": self.config.fingerprint,
            "data": {
                "fingerprint": self.data.fingerprint,
                "num_train": len(self.data.train),
                "num_validation": len(self.data.validation),
                "label_names": list(self.data.train.label_names),
                "notes": self.data.notes,
            },
            "environment": environment(),
            "hardware": hardware(),
        }
