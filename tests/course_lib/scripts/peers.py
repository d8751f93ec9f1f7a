"""Run by torchrun: the same training by hand-written DDP, by Accelerate and by Fabric, each as its documentation
shows. Usage: peers.py (ddp | accelerate | fabric | ours) FOLDER. No helper of ours but model and data."""

import gc
import os
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from small import (
    MAX_NORM,
    NUM_PEER_SAMPLES,
    PEER_ACCUM_STEPS,
    make_batches,
    make_model,
    make_optimizer,
    weights,
)

from course_lib.distributed.ranks import Ranks

EPOCHS = 2


def windows(rank, world_size):
    """The micro-batches of this process, by update; together those of one process that accumulates."""
    together = PEER_ACCUM_STEPS * world_size
    batches = make_batches(Ranks(), together, NUM_PEER_SAMPLES)
    for epoch in range(EPOCHS):
        batches.set_epoch(epoch)
        whole = list(batches)
        for start in range(0, len(whole), together):
            window = whole[start : start + together]
            yield window[rank::world_size], sum(len(batch["labels"]) for batch in window)


def loss_of(model, batch):
    logits = model(batch["input_ids"], batch["attention_mask"])
    return F.cross_entropy(logits, batch["labels"], reduction="sum")


def train_ddp(rank, world_size):
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(make_model(torch.float32))
    optimizer = make_optimizer(model)
    for mine, num_items in windows(rank, world_size):
        optimizer.zero_grad()
        with model.no_sync():
            for batch in mine[:-1]:
                (loss_of(model, batch) * (world_size / num_items)).backward()
        (loss_of(model, mine[-1]) * (world_size / num_items)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
    return model.module


def train_accelerate(rank, world_size):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=PEER_ACCUM_STEPS)
    plain = make_model(torch.float32)
    model, optimizer = accelerator.prepare(plain, make_optimizer(plain))
    for mine, num_items in windows(rank, world_size):
        for batch in mine:
            with accelerator.accumulate(model):
                # backward divides by the accumulation steps, DDP by the processes: both are taken back.
                scale = world_size * PEER_ACCUM_STEPS / num_items
                accelerator.backward(loss_of(model, batch) * scale)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), MAX_NORM)
                optimizer.step()
                optimizer.zero_grad()
    return accelerator.unwrap_model(model)


def train_fabric(rank, world_size):
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=world_size, strategy="ddp")
    fabric.launch()
    plain = make_model(torch.float32)
    model, optimizer = fabric.setup(plain, make_optimizer(plain))
    for mine, num_items in windows(rank, world_size):
        for number, batch in enumerate(mine, start=1):
            with fabric.no_backward_sync(model, enabled=number < len(mine)):
                fabric.backward(loss_of(model, batch) * (world_size / num_items))
        fabric.clip_gradients(model, optimizer, max_norm=MAX_NORM)
        optimizer.step()
        optimizer.zero_grad()
    return plain


def train_ours(rank, world_size):
    from course_lib.distributed import ranks as distributed
    from course_lib.training.loop import fit

    ranks = distributed.setup("cpu")
    model = distributed.wrap_ddp(make_model(torch.float32))
    fit(
        model,
        make_batches(ranks, PEER_ACCUM_STEPS, NUM_PEER_SAMPLES),
        make_optimizer(model),
        max_epochs=EPOCHS,
        max_norm=MAX_NORM,
        grad_accum_steps=PEER_ACCUM_STEPS,
    )
    return distributed.unwrap(model)


if __name__ == "__main__":
    which, folder = sys.argv[1], Path(sys.argv[2])
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    train = {"ddp": train_ddp, "accelerate": train_accelerate, "fabric": train_fabric, "ours": train_ours}[
        which
    ]
    torch.save(weights(train(rank, world_size)), folder / f"{which}-{rank}.pt")
    gc.collect()  # what is left of a wrapper in a cycle keeps the group's threads, and the process aborts as it exits
    torch.distributed.destroy_process_group()
