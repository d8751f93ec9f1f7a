"""Seeds, states of every random generator, and a hash that says whether two sets of weights are equal."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def seed_everything(seed: int, *, deterministic: bool = False) -> None:
    """Seed Python, NumPy and torch (all devices).

    With `deterministic=True` torch also refuses operations that have no deterministic version, for the rest
    of the process. Raises ValueError when `seed` is not in [0, 2**32), the range that NumPy takes.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be in [0, 2**32), got {seed}")
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)  # seeds CUDA and the other accelerators too
    if deterministic:
        # cuBLAS reads this when it starts; without it, deterministic CUDA matmuls raise.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = False


def rng_state() -> dict[str, Any]:
    """State of all generators, in plain values and tensors: `torch.load(weights_only=True)` reads them."""
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    version, internal, gauss_next = random.getstate()
    return {
        "python": [version, list(internal), gauss_next],
        "numpy": [name, torch.from_numpy(np.asarray(keys, dtype=np.int64)), position, has_gauss, cached],
        "torch": torch.get_rng_state(),
        # Where CUDA is not in use, nothing has been drawn there: asking would start it.
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "mps": torch.mps.get_rng_state() if torch.backends.mps.is_available() else None,
    }


def set_rng_state(state: Mapping[str, Any]) -> None:
    """Put back what `rng_state` gave. States of GPUs are skipped where there is another number of them, and where they
    are of another kind."""
    version, internal, gauss_next = state["python"]
    random.setstate((version, tuple(internal), gauss_next))
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_initialized() and torch.cuda.device_count() == len(state["cuda"]):
        torch.cuda.set_rng_state_all(state["cuda"])
    if torch.backends.mps.is_available() and state.get("mps") is not None:
        torch.mps.set_rng_state(state["mps"])


@contextmanager
def kept_rng_state() -> Iterator[None]:
    """After the block all generators stand where they stood before it."""
    state = rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def weights_sha256(weights: nn.Module | Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and bytes of all parameters and buffers, in order of name."""
    state = weights.state_dict() if isinstance(weights, nn.Module) else weights
    digest = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
