"""What the harness of the exercises of lesson 08 shares: a process whose random generators are anywhere, and others."""

from __future__ import annotations

import random

import numpy as np
import torch


def scramble(disturbance: int) -> None:
    """Leave every global generator where some other code might have left it. Equal numbers leave it equally.

    NumPy's and Python's hold half of a pair of Gaussian numbers for the next one who asks.
    """
    random.seed(disturbance)
    random.gauss(0.0, 1.0)
    np.random.seed(disturbance % 2**32)
    np.random.standard_normal()
    torch.manual_seed(disturbance)
