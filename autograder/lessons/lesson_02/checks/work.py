"""How much is computed in matrix products: as much as the model needs, whatever share of it is in 16 bits."""

from __future__ import annotations

from collections.abc import Mapping

from autograder.engine import Job
from autograder.lessons.checking import require_no_more_work

MIN_WORK = 0.9
"""FLOPs of matrix products over those of the plain computation. A right solution computes the same ones."""


def require_products(
    job: Job, own: Mapping[str, int], plain: Mapping[str, int], *, at_most: float = 1.1, spare: int = 0
) -> None:
    """Fail where products are missing, or are more than are needed: a share of the rest would say nothing.

    Args:
        own: FLOPs by dtype; `plain` those of the same work in float32.
        spare: of `plain`, those that may as well be no matrix products.
    """
    require_no_more_work(job, dict(own), dict(plain), at_most=at_most)
    work = sum(own.values()) / max(1, sum(plain.values()) - spare)
    job.require(
        work >= MIN_WORK,
        expected=f"the matrix products of the plain computation: at least {MIN_WORK:.0%} of their FLOPs",
        got=f"{work:.0%}",
        likely="products are not computed as such, but written out, as by multiply and sum: whatever is open around "
        "them, they run in the type of their inputs, and gain nothing from 16-bit units",
        look="call the layers as they are, or `@`: autocast turns those to 16 bits",
    )
