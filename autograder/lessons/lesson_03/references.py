"""Right and fast solutions of lesson 03's timed exercises: `workbook calibrate` measures what they reach here."""

CHECKPOINT_BLOCKS = """
from course_lib.training.memory import apply_activation_checkpointing as checkpoint_blocks
"""

TRAIN_IN_BUDGET = """
from course_lib import collate, train_step

def train_in_budget(model, samples, optimizer, global_batch_size, budget_bytes, step_bytes):
    loss_sum, num_updates = 0.0, 0
    model.train()
    for start in range(0, len(samples), global_batch_size):
        # Like lengths together, and as many rows as fit: the gradients of an update do not depend on the order.
        window = sorted(samples[start : start + global_batch_size], key=lambda sample: len(sample[0]))
        micro_batches = [[]]
        for sample in window:
            if micro_batches[-1] and step_bytes(len(micro_batches[-1]) + 1, len(sample[0])) > budget_bytes:
                micro_batches.append([])
            micro_batches[-1].append(sample)
        step = train_step(model, [collate(rows) for rows in micro_batches], optimizer, max_norm=float("inf"))
        loss_sum = loss_sum + step["loss"] * len(window)
        num_updates += 1
    return {"loss": float(loss_sum) / len(samples), "num_updates": num_updates}
"""
