"""Run by torchrun: FSDP2 on several processes; what came out goes into the folder argv[1]."""

import sys
from pathlib import Path

import torch
from small import MAX_NORM, Samples, make_batches, make_model, make_optimizer

from course_lib.data.batching import evaluation_batches
from course_lib.distributed import fsdp
from course_lib.distributed import ranks as distributed
from course_lib.training.callbacks import Callback, TrainState
from course_lib.training.evaluation import evaluate
from course_lib.training.loop import fit
from course_lib.training.precision import resolve_precision

SAVE_AT = 1  # in the middle of the first epoch, which has two updates


def train(ranks, model, optimizer, callbacks=(), sampler=None, **more):
    batches = make_batches(ranks, 3)
    if sampler is not None:
        batches.order.load_state_dict(sampler)
    options = {"max_epochs": 2, "max_norm": MAX_NORM, "grad_accum_steps": 3}
    fit(model, batches, optimizer, callbacks=[make(batches) for make in callbacks], **options, **more)
    return batches


def case(ranks, folder=None, **options):
    model = fsdp.shard(make_model(), **options)
    optimizer = make_optimizer(model)

    class Save(Callback):
        def __init__(self, batches):
            self.batches = batches

        def on_step(self, state):
            if state.step == SAVE_AT and folder is not None:
                fsdp.save_sharded(folder / "sharded", model, optimizer)
                progress = {"sampler": self.batches.order.state_dict(), "state": state.state_dict()}
                if ranks.is_main_process:
                    torch.save(progress, folder / "progress.pt")

    precision = resolve_precision(options.get("precision", "32-true"), torch.device("cpu"))
    train(ranks, model, optimizer, [Save], precision=precision)
    full = dict(fsdp.full_state_dict(model))
    validation = evaluation_batches(Samples(29, seed=1), 4)  # the same on both
    return {
        "weights": full,
        "num_own": sum(parameter.to_local().numel() for parameter in model.parameters()),
        "dtype": str(next(model.parameters()).dtype),
        "scores": evaluate(model, validation, precision=precision),
    }


def from_one(ranks, folder):
    """One process saves in the middle; two load that and go on."""
    model = fsdp.shard(make_model())
    optimizer = make_optimizer(model)
    fsdp.load_sharded(folder / "of-one", model, optimizer)
    saved = torch.load(folder / "of-one.pt", weights_only=True)
    train(ranks, model, optimizer, state=TrainState(**saved["state"]), sampler=saved["sampler"])
    return dict(fsdp.full_state_dict(model))


def main(folder):
    ranks = distributed.setup("cpu")
    result = {
        "plain": case(ranks, folder),
        "offload": case(ranks, cpu_offload=True),
        "bf16": case(ranks, precision="bf16-mixed"),
        "from_one": from_one(ranks, folder),
    }
    torch.save(result, folder / f"rank{ranks.rank}.pt")
    distributed.cleanup()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
