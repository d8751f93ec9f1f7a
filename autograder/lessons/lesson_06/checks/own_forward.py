"""What 6.2 says of dropout: the loss that is returned and the gradients that are left belong to one forward."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job

ANOTHER = 1e-3  # of the length of all gradients: other numbers for dropout are hundreds of times that


def require_its_own_loss(job: Job, seen: list[dict[str, Any]]) -> None:
    """With dropout two forwards have two losses."""
    if any(one["own_sum"] is None for one in seen):
        return
    mean = sum(one["own_sum"] for one in seen) / sum(one["rows"] for one in seen)
    for rank, one in enumerate(seen):
        job.require(
            math.isclose(one["loss"], mean, rel_tol=1e-4) or math.isnan(mean),
            expected=f"with dropout, the mean loss of the forwards that give the gradients, {mean:.7g}, on rank {rank}",
            got=f"{one['loss']:.7g}",
            likely="the loss that is returned is that of another forward: with dropout it is not the one whose "
            "gradients are there",
            look="one forward for a batch: from its logits come the loss and the gradients",
        )


def require_its_own_gradients(job: Job, seen: list[dict[str, Any]]) -> None:
    """They are made of those of the forwards, each with the numbers that it drew, by whatever factors."""
    if any(one["of_forwards"] is None for one in seen):
        return
    of_forwards = np.array([row for one in seen for row in one["of_forwards"]], dtype=np.float64)
    for rank, one in enumerate(seen):
        got = one["gradients"].astype(np.float64)
        if of_forwards.shape[1:] != got.shape or not (
            np.isfinite(of_forwards).all() and np.isfinite(got).all()
        ):
            continue
        factors = np.linalg.lstsq(of_forwards.T, got, rcond=None)[0]
        away = float(np.linalg.norm(factors @ of_forwards - got) / np.linalg.norm(got))
        job.require(
            away <= ANOTHER,
            expected=f"with dropout, the gradients of the forward whose loss is returned, on rank {rank}",
            got=f"gradients that are {away:.2g} of their length away from those",
            likely="the gradients are those of another forward: backward computes it anew and draws other numbers for "
            "dropout, as activation checkpointing without the random state does",
            look="one forward for a batch; a `checkpoint` keeps the random state where `preserve_rng_state` is left as "
            "it is",
        )
