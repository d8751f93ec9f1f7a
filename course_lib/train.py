"""A config becomes a run: data, model, training, checkpoints, records, report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

from course_lib.callbacks import TrainState
from course_lib.checkpoint import (
    Checkpointer,
    capture,
    check_same_run,
    different_conditions,
    load_checkpoint,
    restore,
)
from course_lib.config import TrainConfig, check_same_config, write_yaml
from course_lib.data.batching import Batches, BucketBatchSampler, evaluation_batches
from course_lib.environment import environment, hardware, resolve_device
from course_lib.files import atomic_write_text
from course_lib.loop import NonFiniteError, evaluate, fit
from course_lib.metrics import RecordWriter, RunFolder, classification_table, macro_f1
from course_lib.models import ModelConfig, TextClassifier
from course_lib.optim import make_optimizer, resolve_epochs, resolve_fused, warmup_cosine
from course_lib.progress import ProgressBar, say
from course_lib.reproducibility import seed_everything, weights_sha256
from course_lib.run_data import RunData, load_data


def run_training(
    config: TrainConfig, out: str | Path, *, resume: bool = False, progress: bool = True
) -> dict[str, Any]:
    """Train as `config` says, into the run folder `out`; returns the record that `run.json` holds.

    With `resume=True` continue the run in `out` from its last checkpoint, or from the start when it has none
    yet: the weights at the end are those of a run that was never interrupted. What is told goes to stderr.

    Raises UserError for data, folder or checkpoint that cannot be used, NonFiniteError when the loss or a
    gradient became NaN. KeyboardInterrupt passes through after the record says so.
    """
    folder = RunFolder(out)
    if resume:
        check_same_config(folder.read_config(), config.to_dict(), owner=f"the run in {folder.directory}")
        folder.remove_leftovers()
        if folder.read_record().get("status") == "finished":
            say(f"{folder.directory} is finished already; nothing to resume", enabled=progress)
            return folder.read_record()
    elif folder.holds_run:
        folder.create()  # raises, before any time is spent on data
    device, device_reason = resolve_device(config.device)
    data = load_data(config, folder, progress=progress)
    run = _Run(config, data, device, folder, progress=progress)
    if resume:
        run.resume()
    else:
        folder.create()
        atomic_write_text(folder.config, write_yaml(config))
    run.resolved["device"] = f"{device} ({device_reason})"
    return run.run()


class _Run:
    """One run while it lives: the objects, and how they are saved and put back."""

    def __init__(
        self, config: TrainConfig, data: RunData, device: torch.device, folder: RunFolder, *, progress: bool
    ) -> None:
        self.config, self.data, self.folder, self.progress = config, data, folder, progress
        seed_everything(config.seed, deterministic=config.is_deterministic)
        self.model_config = ModelConfig(
            vocab_size=data.train.vocab_size,
            num_classes=len(data.train.label_names),
            max_length=config.max_length,
            d_model=config.d_model,
            num_layers=config.num_layers,
            num_heads=config.num_heads,
            dropout=config.dropout,
        )
        self.model = TextClassifier(self.model_config).to(device)
        self.sampler = BucketBatchSampler(data.train.lengths, config.micro_batch_size, seed=config.seed)
        self.max_epochs, epochs_reason = resolve_epochs(
            len(self.sampler), max_epochs=config.max_epochs, max_steps=config.max_steps
        )
        steps = self.max_epochs * len(self.sampler)
        self.max_steps = min(steps, config.max_steps or steps)
        self.optimizer = make_optimizer(
            self.model, learning_rate=config.learning_rate, weight_decay=config.weight_decay
        )
        self.scheduler = warmup_cosine(
            self.optimizer,
            warmup_steps=round(config.warmup_fraction * self.max_steps),
            max_steps=self.max_steps,
            final_ratio=config.final_learning_rate_ratio,
        )
        names = ("model", "optimizer", "scheduler", "sampler")
        self.stateful = {name: getattr(self, name) for name in names}
        self.state = TrainState()
        self.num_records = 0
        self.checkpointer = Checkpointer(
            folder.last,
            folder.best,
            self.checkpoint,
            every_steps=config.checkpoint_every_steps,
            monitor=config.monitor,
        )
        self.started = time.perf_counter()
        self.resolved = {"epochs": epochs_reason, "optimizer": resolve_fused(self.model)[1]}

    def resume(self) -> None:
        """Continue from `last.pt`; when the run was killed before its first checkpoint, from the start."""
        if not self.folder.last.exists():
            self.folder.last.parent.mkdir(parents=True, exist_ok=True)
            say("no checkpoint was written yet; starting from step 0", enabled=self.progress)
            return
        checkpoint = load_checkpoint(self.folder.last)
        check_same_run(
            checkpoint,
            config=self.config.to_dict(),
            data_fingerprint=self.data.fingerprint,
            path=self.folder.last,
        )
        for difference in different_conditions(checkpoint):
            say(f"warning: {difference}; the result may differ in the last bits", enabled=True)
        self.state = restore(checkpoint, **self.stateful)
        self.num_records = checkpoint["extra"]["num_records"]
        self.checkpointer.best = checkpoint["extra"]["best"]
        self.checkpointer.saved_step = self.state.step
        say(f"resuming at step {self.state.step} of {self.max_steps}", enabled=self.progress)

    def checkpoint(self) -> dict[str, Any]:
        return capture(
            **self.stateful,
            state=self.state,
            config=self.config.to_dict(),
            data_fingerprint=self.data.fingerprint,
            extra={
                "num_records": self.writer.num_records,
                "best": self.checkpointer.best,
                "label_names": list(self.data.train.label_names),
                "model_config": vars(self.model_config).copy(),
            },
        )

    def run(self) -> dict[str, Any]:
        """Train to the end, or write down why not."""
        if not self.folder.tokenizer.exists():
            atomic_write_text(self.folder.tokenizer, self.data.train.load_tokenizer().to_str())
        self.folder.write_record(self._record("running"))
        try:
            self._train()
            return self._finish()
        except KeyboardInterrupt:
            if self.folder.last.exists():  # the signal may have come between the file and our note of it
                self.checkpointer.saved_step = load_checkpoint(self.folder.last)["state"]["step"]
            self.folder.write_record(self._record("interrupted"))
            raise
        except NonFiniteError as error:
            self.folder.write_record(self._record("failed", failure=str(error)))
            raise

    def _train(self) -> None:
        self.writer = RecordWriter(
            self.folder,
            num_records=self.num_records,
            purge_step=self.state.step + 1 if self.state.step else None,
        )
        bar = ProgressBar(self.max_steps, self.max_epochs, start=self.state.step, enabled=self.progress)
        try:
            # In this order: what the checkpointer saves counts the records that the writer has written.
            fit(
                self.model,
                Batches(self.data.train, self.sampler),
                self.optimizer,
                scheduler=self.scheduler,
                validation_batches=self._validation_batches(),
                max_epochs=self.max_epochs,
                max_steps=self.max_steps,
                max_norm=self.config.max_norm,
                log_every_steps=self.config.log_every_steps,
                validate_every_steps=self.config.validate_every_steps,
                callbacks=[self.writer, bar, self.checkpointer],
                state=self.state,
            )
            self.checkpointer.save_last(self.state)
        finally:
            bar.close()
            self.writer.close()

    def _finish(self) -> dict[str, Any]:
        """Judge the best weights (not the last), then write record and report."""
        from course_lib.report import write_report

        last_sha256 = weights_sha256(self.model)
        self.model.load_state_dict(load_checkpoint(self.folder.best)["model"])
        result = evaluate(self.model, self._validation_batches(), return_predictions=True)
        predictions, labels = result.pop("predictions").numpy(), result.pop("labels").numpy()
        table = classification_table(labels, predictions, self.data.train.label_names)
        record = self._record("finished")
        record |= {
            "weights_sha256": last_sha256,
            "best_weights_sha256": weights_sha256(self.model),
            "best": self.checkpointer.best,
            "validation": {**result, "macro_f1": macro_f1(table)},
            "per_class": table,
        }
        write_report(self.folder, record)
        self.folder.write_record(record)
        return record

    def _validation_batches(self) -> Batches:
        return evaluation_batches(self.data.validation, 2 * self.config.micro_batch_size)

    def _record(self, status: str, *, failure: str | None = None) -> dict[str, Any]:
        seconds = self.state.train_seconds
        return {
            "status": status,
            "failure": failure,
            "step": self.state.step,
            "max_steps": self.max_steps,
            "max_epochs": self.max_epochs,
            "checkpoint_step": self.checkpointer.saved_step,
            "num_parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "train_seconds": seconds,
            "samples_per_sec": self.state.num_samples / seconds if seconds else None,
            "tokens_per_sec": self.state.num_tokens / seconds if seconds else None,
            "process_seconds": time.perf_counter() - self.started,
            "resolved": self.resolved,
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
