"""A right and fast solution of lesson 06's timed exercise: `workbook calibrate` measures what it reaches here."""

TRAIN_IN_PARALLEL = """
import torch.distributed as dist
import torch.nn.functional as F

from course_lib.distributed.ranks import wrap_ddp

def train_in_parallel(model, batches, optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model.train()
    ddp = wrap_ddp(model)
    for batch in batches:
        share = {name: tensor[rank::world_size] for name, tensor in batch.items()}
        logits = ddp(share["input_ids"], share["attention_mask"])
        loss = F.cross_entropy(logits, share["labels"], reduction="sum") * world_size / len(batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
"""
