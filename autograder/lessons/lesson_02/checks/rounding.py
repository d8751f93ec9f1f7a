"""Numbers that 16 bits hold exactly: where all are, they were computed in 16 bits, whatever they are kept in now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

_FRACTION_BITS = {"float16": 10, "bfloat16": 7}


def all_of_16_bits(values: Sequence[float] | np.ndarray, dtype: Literal["float16", "bfloat16"]) -> bool:
    """Whether each is a number of this type, up to a last division in fp32. False of fewer than three.

    Of numbers that were not computed so, one in a few thousand is: of three none.
    """
    wide = np.asarray(values, dtype=np.float64)
    wide = wide[np.isfinite(wide) & (wide != 0)]
    if len(wide) < 3:
        return False
    fraction, _ = np.frexp(wide)
    steps = fraction * 2 ** (_FRACTION_BITS[dtype] + 1)
    return bool(np.all(np.abs(steps - np.round(steps)) < 2e-4))
