"""How far probabilities can be believed: what was said against what came true."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

NUM_BINS = 15
SOURCE = "15 bins of equal width (Naeini et al., 2015; Guo et al., 2017)"


def calibration(probabilities: np.ndarray, is_true: np.ndarray) -> dict[str, Any]:
    """What was said with a probability, against how often it was true; both [N], the latter bool.

    `expected_calibration_error`: the mean over items of |share that was true - mean probability| of their bin, in
    [0, 1] (Guo et al., "On Calibration of Modern Neural Networks", 2017, equation 3). `overconfidence`: mean
    probability less the share that was true. `bins`: those that are not empty, each without its lower edge.
    """
    said, was = np.asarray(probabilities, dtype=np.float64), np.asarray(is_true, dtype=np.float64)
    number = np.clip(np.ceil(said * NUM_BINS).astype(np.int64) - 1, 0, NUM_BINS - 1)
    bins, error = [], 0.0
    for k in np.unique(number):
        inside = number == k
        probability, share = float(said[inside].mean()), float(was[inside].mean())
        error += float(inside.mean()) * abs(share - probability)
        edges = {"low": k / NUM_BINS, "high": (k + 1) / NUM_BINS}
        bins.append(edges | {"num_items": int(inside.sum()), "probability": probability, "share_true": share})
    return {
        "expected_calibration_error": error,
        "mean_probability": float(said.mean()),
        "overconfidence": float(said.mean() - was.mean()),
        "method": SOURCE,
        "bins": bins,
    }


def interval(hits: int, num_items: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson's score ("Probable Inference", 1927): fair for shares near 0 and 1."""
    z = 1.959964
    share, weight = hits / num_items, z * z / num_items
    middle = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / num_items + weight / (4 * num_items))
    # Rounding errors aside, an edge is 0 or 1 where nothing or everything hit.
    return max(0.0, middle - half) if hits else 0.0, min(1.0, middle + half) if hits < num_items else 1.0
