"""The frozen baselines of lesson 03's timed exercises. They never change with the library."""

NO_CHECKPOINTS = '''
def checkpoint_blocks(model):
    """Everything that the forward pass makes is kept for the backward pass."""
    return model
'''

# Micro-batches of 4 in the order of the samples.
MICRO_BATCHES_OF_4 = """
import torch
import torch.nn.functional as F
from course_lib.data import collate

def train_in_budget(model, samples, optimizer, global_batch_size, budget_bytes, step_bytes):
    model.train()
    loss_sum, updates = torch.zeros(()), 0
    for start in range(0, len(samples), global_batch_size):
        window = samples[start : start + global_batch_size]
        optimizer.zero_grad(set_to_none=True)
        for first in range(0, len(window), 4):
            batch = collate(window[first : first + 4])
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
            (loss / len(window)).backward()
            loss_sum += loss.detach()
        optimizer.step()
        updates += 1
    return {"loss": float(loss_sum) / len(samples), "num_updates": updates}
"""

# For a worker in which our own steps are measured; nothing calls it.
SEARCH = """
def largest_micro_batch_size(try_step, budget_bytes, max_size):
    raise NotImplementedError
"""
