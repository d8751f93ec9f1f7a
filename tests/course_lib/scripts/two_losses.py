"""Run by torchrun: a loss of the caller's on several processes, copied and split models; results go into argv[1]."""

import sys
from pathlib import Path

import torch
from torch import nn

from course_lib.distributed import fsdp
from course_lib.distributed import ranks as distributed
from course_lib.training.evaluation import evaluate
from course_lib.training.loop import fit

SIZES = [5, 1, 8, 8, 3, 2, 7, 7, 7, 4, 4, 4]  # of micro-batches; six make an update
EPOCHS, MAX_NORM = 3, 0.5


class Blocks(nn.Module):
    """A dict goes in and comes out; split by blocks under FSDP2."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.blocks = nn.ModuleList([nn.Linear(6, 6, dtype=torch.float64) for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x).tanh()
        return {"prediction": x}


def loss(model, batch):
    """Some rows count nothing, so that processes have unequal numbers of items, and the first one none at first."""
    error = (model(batch["x"])["prediction"] - batch["target"]["y"]).square().sum(dim=1)
    return (error * batch["target"]["counts"]).sum(), batch["target"]["counts"].sum()


def make_batches():
    generator = torch.Generator().manual_seed(4)
    batches = []
    for number, size in enumerate(SIZES):
        x, y = torch.randn(2, size, 6, generator=generator, dtype=torch.float64)
        counts = torch.rand(size, generator=generator) < (0.0 if number == 0 else 0.7)
        batches.append({"x": x, "target": {"y": y, "counts": counts}})
    return batches


def train(ranks, wrap, grad_accum_steps=6):
    """The micro-batches of each update are dealt to the processes in turn."""
    model = wrap(Blocks())
    mine = make_batches()[ranks.rank :: ranks.world_size]
    records = fit(
        model,
        mine,
        torch.optim.Adam(model.parameters(), lr=0.01),
        loss=loss,
        validation_batches=mine,
        max_epochs=EPOCHS,
        max_norm=MAX_NORM,
        grad_accum_steps=grad_accum_steps // ranks.world_size,
    )
    return {
        "weights": {
            name: distributed.whole(part).clone()
            for name, part in distributed.unwrap(model).state_dict().items()
        },
        "losses": [record["loss"] for record in records if record["kind"] != "epoch"],
        "judged": evaluate(distributed.unwrap(model), mine, loss=loss),
    }


def main(folder):
    ranks = distributed.setup("cpu")
    result = {
        "copied": train(ranks, distributed.wrap_ddp),
        "split": train(ranks, fsdp.shard),
        "copied, one each": train(ranks, distributed.wrap_ddp, grad_accum_steps=2),
    }
    torch.save(result, folder / f"rank{ranks.rank}.pt")
    distributed.cleanup()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
