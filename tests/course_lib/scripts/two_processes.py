"""Run by torchrun: the library on several processes; what came out goes into the folder argv[1]."""

import sys
import time
from pathlib import Path

import torch
from small import MAX_NORM, Samples, make_batches, make_model, make_optimizer, weights
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

from course_lib.data.batching import Batches, evaluation_batches
from course_lib.data.sharding import shard_evenly
from course_lib.distributed import ranks as distributed
from course_lib.training.evaluation import evaluate
from course_lib.training.loop import fit


def train_ddp(ranks, grad_accum_steps, dtype=torch.float64, num_samples=83, optimizer="adamw", **sizes):
    """Two epochs; returns weights, all-reduces, buckets and updates."""
    model = distributed.wrap_ddp(make_model(dtype, **sizes))
    num_reduced: list[int] = []
    ends: list[int] = []

    def counting_hook(state, bucket):
        num_reduced.append(bucket.index())
        if bucket.is_last():
            ends.append(len(num_reduced))
        return allreduce_hook(state, bucket)

    model.register_comm_hook(None, counting_hook)
    batches = make_batches(ranks, grad_accum_steps, num_samples)
    records = fit(
        model,
        batches,
        make_optimizer(distributed.unwrap(model), optimizer),
        max_epochs=2,
        max_norm=MAX_NORM,
        grad_accum_steps=grad_accum_steps,
        log_every_steps=1,
    )
    return {
        "weights": weights(distributed.unwrap(model)),
        "ends": ends,  # all-reduces so far at the end of each backward that made any
        "num_buckets": len(set(num_reduced)),
        "num_steps": sum(record["kind"] == "train" for record in records),
    }


def no_sync_after_an_error(model):
    """Whether the gradients of the next update cross processes again."""
    try:
        with distributed.no_sync(model, is_last=False):
            raise ZeroDivisionError
    except ZeroDivisionError:
        return bool(model.require_backward_grad_sync)


def evaluate_shards(ranks):
    model, samples = make_model(), Samples(29, seed=1)
    whole = evaluation_batches(samples, 4)  # 8 batches, the last of one sample
    result = {}
    for processes, order in (("even", whole.order), ("uneven", whole.order[:-1])):
        mine = Batches(samples, shard_evenly(order, ranks))
        scores = evaluate(model, mine, return_predictions=True)
        parts = distributed.gather_objects((scores.pop("predictions"), scores.pop("labels")))
        result[processes] = {**scores, "predictions": torch.cat([part for part, _ in parts])}
    return result


def take_turns(ranks, folder):
    with distributed.main_process_first(ranks):
        found = (folder / "built").exists()
        if ranks.is_main_process:
            time.sleep(0.5)  # longer than the other needs to get here
            (folder / "built").touch()
    return found


def main(folder):
    ranks = distributed.setup("cpu")
    result = {
        "ranks": (ranks.rank, ranks.local_rank, ranks.world_size),
        "plain": train_ddp(ranks, 1),
        "accumulated": train_ddp(ranks, 3),
        "single": train_ddp(ranks, 1, torch.float32, num_samples=80),
        "muon": train_ddp(ranks, 1, torch.float32, num_samples=80, optimizer="muon"),
        "two_buckets": train_ddp(ranks, 3, num_samples=20, d_model=128),
        "starved": train_ddp(ranks, 2, num_samples=33),  # the last window is one sample
        "evaluation": evaluate_shards(ranks),
        "is_synced_after_error": no_sync_after_an_error(distributed.wrap_ddp(make_model())),
        "found_built": take_turns(ranks, folder),
        "gathered": distributed.gather_objects({"rank": ranks.rank}),
        "from_main": distributed.from_main_process(f"rank {ranks.rank}"),
        "sum": distributed.sum_across_ranks(torch.tensor(ranks.rank + 1)).item(),
    }
    torch.save(result, folder / f"rank{ranks.rank}.pt")
    distributed.cleanup()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
