"""The same training written for each library, as its own documentation writes it, tuned as that advises.

Each function carries out one `Job`. All get AdamW in the same groups, the same schedule and the same gradient
clipping; nothing logs, saves or evaluates beyond what a job asks for. The pages that were followed:

- PyTorch: docs.pytorch.org/tutorials/recipes/recipes/tuning_guide
- Fabric: lightning.ai/docs/fabric/stable/fundamentals/convert.html
- Lightning: lightning.ai/docs/pytorch/stable/advanced/speed.html (workers, mixed precision, no needless validation)
- Accelerate: huggingface.co/docs/accelerate/basic_tutorials/migration
- Trainer: huggingface.co/docs/transformers/main_classes/trainer: `train_sampling_strategy="group_by_length"` with
  dynamic padding, bf16, dataloader workers
"""

from __future__ import annotations

import itertools
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from course_lib.data.batching import Batches, BucketBatchSampler
from course_lib.measuring.naive import pad_to_maximum
from course_lib.training.callbacks import Callback, TrainState
from course_lib.training.loop import fit
from course_lib.training.optim import make_optimizer
from course_lib.training.precision import resolve_precision
from tests.benchmarks.peers_case import Job, Texts, pad_batch

MANY_EPOCHS = 10_000


def course_lib(job: Job) -> None:
    """`fit`, as `run_training` calls it."""
    case = job.case

    class OnStep(Callback):
        def on_step(self, state: TrainState) -> None:
            if job.on_step():
                state.stop("the job is done")

    precision = resolve_precision(case.precision, torch.device("cpu"), width=case.d_model)
    optimizer = make_optimizer(
        job.model,
        case.optimizer,
        learning_rate=case.learning_rate,
        weight_decay=case.weight_decay,
        embedding_lr_ratio=case.embedding_lr_ratio,
    )
    order = job.order or BucketBatchSampler(job.train.lengths, case.micro_batch_size, seed=case.seed)
    history = fit(
        job.model,
        Batches(job.train, order, width_multiple=precision.width_multiple),
        optimizer,
        scheduler=job.scheduler(optimizer),
        max_epochs=MANY_EPOCHS,
        max_steps=case.max_steps,
        max_norm=case.max_norm,
        precision=precision,
        label_smoothing=case.label_smoothing,
        callbacks=[OnStep()],
    )
    windows = [record for record in history if record["kind"] == "train"]
    seconds = sum(record["seconds"] for record in windows)
    job.details["precision"] = precision.name
    for name in ("pad_fraction", "data_wait_fraction"):
        job.details[name] = sum(record[name] * record["seconds"] for record in windows) / seconds


def naive(job: Job) -> None:
    """The loop of `course_lib.measuring.naive`: every text as wide as the longest, fp32, a sync per step."""
    case, optimizer = job.case, torch.optim.AdamW(job.model.parameters(), lr=job.case.learning_rate)
    scheduler = job.scheduler(optimizer)
    job.model.train()
    for epoch in range(MANY_EPOCHS):
        order = torch.randperm(len(job.train), generator=torch.Generator().manual_seed(case.seed + epoch))
        for start in range(0, len(order), case.micro_batch_size):
            chosen = [job.train[i] for i in order[start : start + case.micro_batch_size].tolist()]
            batch = pad_to_maximum(chosen, case.max_length)
            optimizer.zero_grad(set_to_none=False)
            loss = job.loss(job.model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
            loss.backward()
            nn.utils.clip_grad_norm_(job.model.parameters(), case.max_norm)
            optimizer.step()
            scheduler.step()
            loss.item()
            if job.on_step():
                return


def hand_written(job: Job) -> None:
    """A `DataLoader` and a plain loop."""
    optimizer = job.optimizer()
    scheduler = job.scheduler(optimizer)
    use_bf16 = job.case.precision == "bf16-mixed"
    job.model.train()
    running_loss = torch.zeros(())
    for batch in forever(loader(job)):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=use_bf16):
            loss = job.loss(job.model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        loss.backward()
        nn.utils.clip_grad_norm_(job.model.parameters(), job.case.max_norm)
        optimizer.step()
        scheduler.step()
        running_loss += loss.detach()
        if job.step % 50 == 49:
            running_loss.item()
        if job.on_step():
            return


def bucketed(job: Job) -> None:
    """The hand-written loop with our sampler, which no library brings: what is left is loop and loader."""
    case = job.case
    sampler = BucketBatchSampler(job.train.lengths, case.micro_batch_size, seed=case.seed)
    epochs = (sampler.set_epoch(epoch) or list(sampler) for epoch in itertools.count())
    enough = itertools.islice(itertools.chain.from_iterable(epochs), case.max_steps)
    job.order = job.order or list(enough)
    hand_written(job)


def fabric(job: Job) -> None:
    from lightning.fabric import Fabric

    quiet_lightning()
    case = job.case
    instance = Fabric(accelerator="cpu", devices=1, precision=case.precision)
    model, optimizer = instance.setup(job.model, job.optimizer())
    scheduler = job.scheduler(optimizer)
    batches = instance.setup_dataloaders(loader(job), use_distributed_sampler=False)
    model.train()
    for batch in forever(batches):
        optimizer.zero_grad()
        loss = job.loss(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        instance.backward(loss)
        instance.clip_gradients(model, optimizer, max_norm=case.max_norm)
        optimizer.step()
        scheduler.step()
        if job.on_step():
            return


def lightning(job: Job) -> None:
    import lightning.pytorch as pl

    quiet_lightning()
    case = job.case

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = job.model

        def training_step(self, batch: dict[str, Tensor], index: int) -> Tensor:
            return job.loss(self.model(batch["input_ids"], batch["attention_mask"]), batch["labels"])

        def configure_optimizers(self) -> Any:
            # Lightning refuses to clip what a fused optimizer updates under mixed precision (AMP plugin).
            optimizer = job.optimizer(is_fused=case.precision == "32-true")
            schedule = {"scheduler": job.scheduler(optimizer), "interval": "step"}
            return {"optimizer": optimizer, "lr_scheduler": schedule}

    class OnStep(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
            if job.on_step():
                trainer.should_stop = True

    trainer = pl.Trainer(
        accelerator="cpu",
        devices=1,
        precision=case.precision,
        max_steps=case.max_steps,
        max_epochs=-1,
        gradient_clip_val=case.max_norm,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        limit_val_batches=0,
        use_distributed_sampler=False,
        callbacks=[OnStep()],
    )
    trainer.fit(Module(), loader(job))


def accelerate(job: Job) -> None:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)  # it remembers the precision of the job before
    accelerator = Accelerator(
        cpu=True, mixed_precision="bf16" if job.case.precision == "bf16-mixed" else "no"
    )
    optimizer = job.optimizer()
    model, optimizer, batches, scheduler = accelerator.prepare(
        job.model, optimizer, loader(job), job.scheduler(optimizer)
    )
    model.train()
    for batch in forever(batches):
        optimizer.zero_grad()
        loss = job.loss(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), job.case.max_norm)
        optimizer.step()
        scheduler.step()
        if job.on_step():
            return


def hf_trainer(job: Job) -> None:
    from accelerate.state import AcceleratorState
    from transformers import Trainer, TrainerCallback, TrainingArguments

    AcceleratorState._reset_state(reset_partial_state=True)
    case = job.case

    class WithLoss(nn.Module):
        """Trainer wants the loss from the model."""

        def __init__(self) -> None:
            super().__init__()
            self.model = job.model

        def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
            logits = self.model(input_ids, attention_mask)
            return {"loss": job.loss(logits, labels), "logits": logits}

    class OnStep(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            if job.on_step():
                control.should_training_stop = True
            return control

    class Ordered(Trainer):
        def get_train_dataloader(self) -> Any:
            if job.order is None:
                return super().get_train_dataloader()
            return self.accelerator.prepare(loader(job))

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            use_cpu=True,
            bf16=case.precision == "bf16-mixed",
            per_device_train_batch_size=case.micro_batch_size,
            max_steps=case.max_steps,
            max_grad_norm=case.max_norm,
            train_sampling_strategy="group_by_length",
            dataloader_num_workers=case.num_workers,
            dataloader_persistent_workers=case.num_workers > 0,
            dataloader_pin_memory=False,
            remove_unused_columns=False,
            report_to="none",
            logging_strategy="no",
            save_strategy="no",
            eval_strategy="no",
            disable_tqdm=True,
            seed=case.seed,
        )
        optimizer = job.optimizer()
        trainer = Ordered(
            model=WithLoss(),
            args=arguments,
            train_dataset=Texts(job.train),
            data_collator=pad_batch,
            optimizers=(optimizer, job.scheduler(optimizer)),
            callbacks=[OnStep()],
        )
        trainer.train()


def loader(job: Job) -> DataLoader[Any]:
    """A `DataLoader` with dynamic padding: the batches that the job names, else shuffled texts."""
    common: dict[str, Any] = {
        "collate_fn": pad_batch,
        "num_workers": job.case.num_workers,
        "persistent_workers": job.case.num_workers > 0,
    }
    if job.order is not None:
        return DataLoader(Texts(job.train), batch_sampler=job.order, **common)
    generator = torch.Generator().manual_seed(job.case.seed)
    size = job.case.micro_batch_size
    return DataLoader(Texts(job.train), size, shuffle=True, generator=generator, **common)


def forever(batches: Any) -> Iterator[Any]:
    """Epoch after epoch."""
    while True:
        yield from batches


def quiet_lightning() -> None:
    warnings.filterwarnings("ignore", module="lightning")
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)


SYSTEMS: dict[str, Callable[[Job], None]] = {
    "course_lib": course_lib,
    "naive": naive,
    "hand-written": hand_written,
    "hand-written + our buckets": bucketed,
    "fabric": fabric,
    "lightning": lightning,
    "accelerate": accelerate,
    "hf-trainer": hf_trainer,
}
