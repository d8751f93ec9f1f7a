"""Run by torchrun: what DDP sends in a step of models with buffers; what was counted goes into the folder argv[1]."""

import sys
from collections import Counter
from pathlib import Path

import torch
import torch.distributed as dist
from small import make_model
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from course_lib.distributed import ranks as distributed
from course_lib.models import add_lora, quantize_frozen
from course_lib.training.loop import fit

STEPS = 3


def low_bit():
    return quantize_frozen(add_lora(make_model(torch.float32, d_model=64), rank=2))


def with_batch_norm():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))


def plain_ddp(model):
    return DistributedDataParallel(model, gradient_as_bucket_view=True)


def texts(rank):
    generator = torch.Generator().manual_seed(rank)
    ids = torch.randint(3, 60, (6, 12), generator=generator)
    return {"input_ids": ids, "attention_mask": ids > 0, "labels": ids[:, 0] % 4}


def points(rank):
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(6, 4, generator=generator), torch.tensor([0, 1, 0, 1, 0, 1])


def train(make, wrap, batch):
    """Bytes that travel in `STEPS` steps, by kind, and the model's buffers behind them."""
    sent = Counter()
    model = wrap(make())

    def counting_hook(state, bucket):
        sent["gradients"] += bucket.buffer().nbytes
        return allreduce_hook(state, bucket)

    model.register_comm_hook(None, counting_hook)
    broadcast = dist._broadcast_coalesced  # what DDP sends buffers by

    def counting_broadcast(group, tensors, *rest):
        sent["buffers"] += sum(tensor.nbytes for tensor in tensors)
        return broadcast(group, tensors, *rest)

    dist._broadcast_coalesced = counting_broadcast
    learns = [parameter for parameter in model.parameters() if parameter.requires_grad]
    try:
        fit(model, [batch] * STEPS, torch.optim.SGD(learns, lr=0.01), max_epochs=1)
    finally:
        dist._broadcast_coalesced = broadcast
    inner = distributed.unwrap(model)
    return {
        "sent": dict(sent),
        "learns": STEPS * sum(parameter.nbytes for parameter in learns),
        "held": STEPS * sum(buffer.nbytes for buffer in inner.buffers()),
        "buffers": [buffer.clone() for buffer in inner.buffers()],
        "weights": [parameter.detach().clone() for parameter in learns],
    }


def first_buffers(rank):
    """Those of a frozen base that the processes hold different at first."""
    model = low_bit()
    for buffer in model.buffers():
        buffer.add_(rank)
    return [buffer.clone() for buffer in distributed.unwrap(distributed.wrap_ddp(model)).buffers()]


def shared(rank):
    model = with_batch_norm()
    model[1].running_mean.fill_(rank)
    distributed.share_buffers(model)
    return model[1].running_mean.clone()


def main(folder):
    ranks = distributed.setup("cpu")
    result = {
        "low bit": train(low_bit, distributed.wrap_ddp, texts(ranks.rank)),
        "low bit, plain": train(low_bit, plain_ddp, texts(ranks.rank)),
        "batch norm": train(with_batch_norm, distributed.wrap_ddp, points(ranks.rank)),
        "batch norm, plain": train(with_batch_norm, plain_ddp, points(ranks.rank)),
        "first": first_buffers(ranks.rank),
        "shared": shared(ranks.rank),
    }
    torch.save(result, folder / f"rank{ranks.rank}.pt")
    distributed.cleanup()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
