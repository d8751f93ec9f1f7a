"""What the harness of the exercises of lesson 08 shares: a process whose random generators are anywhere."""

from __future__ import annotations

import itertools
import random
import sys
from typing import Any

import numpy as np
import torch

_salts = itertools.count(1)


def scramble(disturbance: int) -> None:
    """Leave every global generator where some other code might have left it. Equal numbers leave it equally.

    NumPy's and Python's hold half of a pair of Gaussian numbers for the next one who asks.
    """
    random.seed(disturbance)
    random.gauss(0.0, 1.0)
    np.random.seed(disturbance % 2**32)
    np.random.standard_normal()
    torch.manual_seed(disturbance)


def renew_hashes() -> None:
    """Give the cell the `hash()` of another interpreter: other numbers for texts, and for tuples that hold some.

    A fresh interpreter itself takes seconds to load torch.
    """
    salt, names = next(_salts), vars(sys.modules["__learner__"])

    def renewed(value: Any) -> int:
        if isinstance(value, (str, bytes)) and value:
            return hash((salt, value))
        if isinstance(value, tuple | frozenset):
            return hash((tuple if isinstance(value, tuple) else frozenset)(map(renewed, value)))
        return hash(value)

    if getattr(names.get("hash"), "__module__", renewed.__module__) == renewed.__module__:
        names["hash"] = renewed
