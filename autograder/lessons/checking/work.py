"""How much is computed in matrix products: as much as the model needs, whatever share of it is in 16 bits."""

from __future__ import annotations

from collections.abc import Mapping

from autograder.engine import Job

MIN_WORK = 0.9
"""FLOPs of matrix products over those of the plain computation. A right solution computes the same ones."""


def require_no_more_work(
    job: Job, own: Mapping[str, int], plain: Mapping[str, int], *, at_most: float = 1.1
) -> None:
    """Fail where there are products that no step needs: with enough of them, any share of the FLOPs is in any type.

    Args:
        own: FLOPs by dtype; `plain` those of the same work without a trick.
    """
    work = sum(own.values()) / max(1, sum(plain.values()))
    job.require(
        work <= at_most,
        expected=f"about as many FLOPs as the plain computation has: at most {at_most:g} times as many",
        got=f"{work:.2f} times",
        likely="something is computed that nobody needs, such as a second forward, or products of other matrices",
        look="one forward and one backward for each batch",
    )


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


def require_used(job: Job, share: float) -> None:
    """Fail where products are for show: `share` of the FLOPs that are needed is in those that the output hangs on."""
    job.require(
        share >= MIN_WORK,
        expected=f"logits that hang on the products: on at least {MIN_WORK:.0%} of their FLOPs",
        got=f"{share:.0%}: other results of the rest change nothing",
        likely="products are computed for nothing, beside a model that is written out, as by multiply and sum",
        look="call each layer once, as it is, and use what it gives",
    )
