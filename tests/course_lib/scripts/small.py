"""What the scripts that run on two processes, and the tests that start them, train: the same model and data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from course_lib.data.batching import Batches, BucketBatchSampler
from course_lib.data.sharding import ShardedOrder
from course_lib.distributed.ranks import Ranks
from course_lib.models.transformers import ModelConfig, TextClassifier
from course_lib.training.optim import make_optimizer as make_by_name

NUM_CLASSES, MICRO_BATCH_SIZE, MAX_NORM, LEARNING_RATE = 4, 8, 0.5, 1e-2
NUM_PEER_SAMPLES, PEER_ACCUM_STEPS = 96, 3  # no ragged window: the other libraries have no answer to one
SCRIPTS = Path(__file__).parent


class Samples(list):
    """Texts whose label is written in their tokens, of uneven lengths. 83 of them: a ragged last window."""

    def __init__(self, num_samples=83, seed=0):
        rng = np.random.default_rng(seed)
        for _ in range(num_samples):
            label = int(rng.integers(NUM_CLASSES))
            ids = rng.integers(10, 60, size=int(rng.integers(3, 30)))
            ids[: 1 + len(ids) // 3] = 3 + label
            self.append((ids, label))
        self.lengths = np.array([len(ids) for ids, _ in self])


def make_model(dtype=torch.float64, **sizes):
    torch.manual_seed(7)
    sizes = {"d_model": 16, "num_layers": 2, "dropout": 0.0, **sizes}
    config = ModelConfig(vocab_size=60, num_classes=NUM_CLASSES, max_length=32, **sizes)
    return TextClassifier(config).to(dtype)


def make_optimizer(model, name="adamw"):
    if name == "muon":
        return make_by_name(model, name, learning_rate=LEARNING_RATE)
    return torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01)


def make_batches(ranks: Ranks, grad_accum_steps: int, num_samples=83):
    samples = Samples(num_samples)
    sampler = BucketBatchSampler(samples.lengths, MICRO_BATCH_SIZE, seed=3)
    return Batches(samples, ShardedOrder(sampler, ranks, grad_accum_steps))


def weights(model):
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def torchrun_command(*arguments, processes=2, options=()):
    """Under torchrun, on a port that the system chooses unless `options` say where to meet."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    if not any("rdzv" in str(option) for option in options):
        command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    return [*command, *map(str, options), *map(str, arguments)]


def torchrun(*arguments, env=None, check=True, timeout=120, **how):
    """Run a script or `-m module` under torchrun; gives the finished process."""
    done = subprocess.run(
        torchrun_command(*arguments, **how),
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(SCRIPTS.parents[2]), **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done
