"""Harness of 6.6: the same training on one process and on two, which stay between the segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner, small, weights_of
from autograder.lessons.lesson_06.harness.shared import Crew, Parted
from course_lib.data import collate
from course_lib.measuring import count_events
from course_lib.models import ModelConfig, TextClassifier

GLOBAL_BATCH_SIZE = 48
_crews: dict[int, Crew] = {}


def parallel_segment(seed: int, num_steps: int, processes: int = 0) -> dict[str, Any]:
    """`num_steps` updates on secret batches. The baseline names its one process; solutions get two."""
    processes = processes or min(2, int(getattr(learner, "num_processes", 2)))
    if processes not in _crews:
        _crews[processes] = Crew(processes)
    try:
        ranks = _crews[processes].call("parallel_rank", seed=seed, num_steps=num_steps)
    except Parted as error:
        _crews.pop(processes).close()
        return {"parted": str(error)}
    first = ranks[0]["weights"]
    return {
        "parted": "",
        "weights": first,
        "largest_difference": max(float(np.abs(rank["weights"] - first).max()) for rank in ranks),
        "rows": [rank["rows"] for rank in ranks],
        "steps": [rank["steps"] for rank in ranks],
    }


def parallel_rank(rank: int, world_size: int, seed: int, num_steps: int) -> dict[str, Any]:
    model, batches = _parallel_task(seed, num_steps)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with count_events(model, operators=False) as counts:
        learner(model, batches, optimizer)
    return {"weights": weights_of(model), "rows": counts.num_rows, "steps": counts.num_optimizer_steps}


def _parallel_task(seed: int, num_steps: int) -> tuple[TextClassifier, list[dict[str, torch.Tensor]]]:
    """Texts of much the same length: what is measured is the work of two, not how well it is dealt out."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(small(seed))
    sizes = ModelConfig(
        vocab_size=400, num_classes=5, max_length=48, d_model=64, num_layers=2, num_heads=2, dropout=0.0
    )
    batches = []
    for number in range(num_steps):
        rows = GLOBAL_BATCH_SIZE - 1 if number == num_steps - 1 else GLOBAL_BATCH_SIZE  # the last is uneven
        ids = rng.integers(3, 400, size=(rows, 48))
        lengths, labels = rng.integers(40, 49, size=rows), rng.integers(5, size=rows)
        batches.append(collate([(ids[i, : lengths[i]], int(labels[i])) for i in range(rows)]))
    return TextClassifier(sizes), batches
