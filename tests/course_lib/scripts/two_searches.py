"""Run by torchrun: the search for a micro-batch where the processes have unequal memory; answers go into argv[1]."""

import copy
import sys
from pathlib import Path

import torch
from small import make_model
from two_fsdp import case

from course_lib.base import UserError
from course_lib.distributed import fsdp
from course_lib.distributed import ranks as distributed
from course_lib.training import micro_batch
from course_lib.training.optim import make_optimizer
from course_lib.training.reproducibility import weights_sha256

LIMITS = (6_000_000, 6_900_000)
"""Bytes that a step may take on the processes: their answers differ."""


def make_batch(size):
    return {
        "input_ids": torch.zeros(size, 30, dtype=torch.int64),
        "attention_mask": torch.ones(size, 30, dtype=torch.bool),
        "labels": torch.zeros(size, dtype=torch.int64),
    }


def wide_model():
    """Its weights count beside what it computes."""
    return make_model(torch.float32, d_model=64)


def search(limit, place=None, model=None, **options):
    """The answer, or the one line that says why there is none."""
    try:
        return micro_batch.largest_micro_batch_size(
            model or wide_model(), make_batch, memory_limit_bytes=limit, place=place, **options
        )
    except UserError as error:
        return 0, str(error)


def out_of_memory_on(rank, size):
    """Steps of `size` samples or more fail on the process of this rank, in the middle of a backward."""

    def place(model):
        model = distributed.wrap_ddp(model)

        def fail(module, inputs, output):
            if torch.distributed.get_rank() == rank and len(inputs[0]) >= size:
                output.register_hook(lambda _: (_ for _ in ()).throw(torch.OutOfMemoryError("out of memory")))

        model.register_forward_hook(fail)
        return model

    return place


def rehearsed(place):
    """What a model is once it is placed: its kind, its own share of the weights, and whether a step runs alone."""
    with distributed.rehearsal():
        model = place(make_model(torch.float32))
        own = sum(getattr(p, "to_local", lambda p=p: p)().numel() for p in model.parameters())
        if torch.distributed.get_rank() == 0:  # the other takes no part
            optimizer = make_optimizer(distributed.unwrap(model))
            for _ in range(2):
                micro_batch.train_step(model, make_batch(4), optimizer)
        return type(model).__name__, own


def main(folder):
    ranks = distributed.setup("cpu")
    limit, model = LIMITS[ranks.rank], wide_model()
    before = copy.deepcopy(model.state_dict())
    result = {
        "alone": search_alone(limit),
        "ddp": search(limit, model=model),
        "fsdp": search(limit, place=fsdp.shard),
        "accumulated": search(limit, place=fsdp.shard, grad_accum_steps=4),
        "fails": search(10**9, place=out_of_memory_on(1, 5), max_size=16),
        "too little": search((LIMITS[0], 1000)[ranks.rank]),
        "is as it was": weights_sha256(model) == weights_sha256(before),
        "gradients": [parameter.grad is None for parameter in model.parameters()],
        "rehearsed": {"ddp": rehearsed(distributed.wrap_ddp), "fsdp": rehearsed(fsdp.shard)},
        "world_size": distributed.world_size(),
        # Of what torch noted in rehearsals nothing must reach the run.
        "trained": case(ranks)["weights"],
        "sum": int(distributed.sum_across_ranks(torch.tensor(ranks.rank + 1))),  # they hear each other again
    }
    torch.save(result, folder / f"rank{ranks.rank}.pt")
    distributed.cleanup()


def search_alone(limit):
    """What this process would answer if nobody else was asked."""
    real, micro_batch.gather_objects = micro_batch.gather_objects, lambda found: [found]
    try:
        return search(limit)
    finally:
        micro_batch.gather_objects = real


if __name__ == "__main__":
    main(Path(sys.argv[1]))
