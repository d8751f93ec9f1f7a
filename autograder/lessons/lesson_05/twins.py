"""The training of lesson 05's trials, in which a known mistake can be made on request."""

RUN_TRIALS = """
import numpy as np
import torch
import torch.nn.functional as F

MISTAKE = "none"

def run_trials(task, configs, seeds, num_steps):
    for config in configs:
        for seed in seeds:
            torch.manual_seed(seed)
            model = task.make_model(config)
            optimizer = task.make_optimizer(model, config)
            batches = task.train_batches(seed)
            model.train()
            for _ in range(num_steps):
                batch = next(batches)
                loss = F.cross_entropy(
                    model(batch["input_ids"], batch["attention_mask"]),
                    batch["labels"],
                    reduction="sum" if MISTAKE == "sum" else "mean",
                    label_smoothing=0.1 if MISTAKE == "smoothing" else 0.0,
                )
                if MISTAKE != "added up":
                    optimizer.zero_grad()
                loss.backward()
                if MISTAKE == "clipped":
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
    return np.zeros(0)
"""
