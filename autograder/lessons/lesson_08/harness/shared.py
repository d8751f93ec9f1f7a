"""What the harness of the exercises of lesson 08 shares: a process whose random generators are anywhere, and others."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import elsewhere


def scramble(disturbance: int) -> None:
    """Leave every global generator where some other code might have left it. Equal numbers leave it equally.

    NumPy's and Python's hold half of a pair of Gaussian numbers for the next one who asks.
    """
    random.seed(disturbance)
    random.gauss(0.0, 1.0)
    np.random.seed(disturbance % 2**32)
    np.random.standard_normal()
    torch.manual_seed(disturbance)


def same_elsewhere(code: str, source: str, entry: str, request: Any) -> dict[str, Any]:
    """Whether two fresh interpreters, which hash texts otherwise, print the same; else what one said in "trouble"."""
    try:
        one, two = [elsewhere(code, source, entry, request, hash_seed) for hash_seed in (1, 8)]
    except RuntimeError as error:
        return {"is_same": False, "trouble": str(error)}
    return {"is_same": one == two, "trouble": ""}
