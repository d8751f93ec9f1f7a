"""What exercise 3.2 has searched: how many bytes each size takes, and what limits them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

Limits = dict[str, int]
SHAPES = ("line", "square", "root", "jump")
NUM_SMALL, NUM_MIDDLE, NUM_LARGE = 40, 40, 4
NUM_ERRORS = 34  # of the harness
LONG_SEARCH = 13  # tries: an error may come at any of them
SMALL = 16  # up to this size, all that may fit
FAR = 10**9


class Search(NamedTuple):
    """`peaks[size]` bytes, limits that let so many rows fit, and `where` the first that does not fit meets one."""

    peaks: np.ndarray
    limits: Limits
    fits: int
    where: str


def telling_searches(rng: np.random.Generator) -> list[Search]:
    """Those that tell mistakes apart."""
    return [_drawn(rng, *case) for case in _cases(rng)]


def failing_searches(rng: np.random.Generator) -> list[Search]:
    """Those in which a step ends with another error, of each class: at the first try, and at each that follows."""
    searches = []
    for fails_at, error in itertools.product(range(1, LONG_SEARCH + 1), range(NUM_ERRORS)):
        where = ("exact", "device")[(fails_at + error) % 2]
        one = _drawn(rng, int(rng.integers(100, 130)), 40 + fails_at, where)
        searches.append(one._replace(limits=one.limits | {"fails_at": fails_at, "error": error}))
    return searches


def tight_searches(rng: np.random.Generator) -> list[Search]:
    """Those in which a try too many shows: small ones, sizes about powers of two, and answers next to `max_size`."""
    sizes = [(largest, fits) for largest in range(1, SMALL + 1) for fits in range(largest + 1)]
    for power, more in itertools.product((32, 64, 256), (-1, 0, 1, 2)):
        largest = power + more
        sizes += [
            (largest, fits) for fits in (largest - 2, largest - 1, power - 1, power // 2 + 1, power // 2 - 1)
        ]
    return [_drawn(rng, largest, fits, where) for largest, fits in sizes for where in ("exact", "device")]


def far_searches(rng: np.random.Generator) -> list[Search]:
    """Those of many more sizes than anybody lists, on a line; and one with no budget at all."""
    searches = []
    for number in range(4):
        max_size = round(float(np.exp(rng.uniform(np.log(10**6), np.log(FAR)))))
        fits = (max_size, max_size - 1, int(rng.integers(max_size // 2, max_size)), max_size // 3)[number]
        first, slope = int(rng.integers(10_000, 90_000)), int(rng.integers(1_000, 9_000))
        limits = {"budget_bytes": first + slope * fits, "max_size": max_size, "most_rows": 10 * max_size}
        searches.append(Search(np.array([first, first + slope]), limits, fits, "exact"))
    nothing = _drawn(rng, 20, 0, "below")
    return [*searches, nothing._replace(limits=nothing.limits | {"budget_bytes": 0})]


def any_searches(rng: np.random.Generator) -> Iterator[Search]:
    """Sizes up to a hundred thousand, peaks that grow in any way and lie near each other, every second one moved."""
    most = [60] * NUM_SMALL + [5_000] * NUM_MIDDLE + [150_000] * NUM_LARGE
    for number, largest in enumerate(most):
        max_size = round(float(np.exp(rng.uniform(0.0, np.log(largest)))))
        if largest > 5_000:
            max_size = int(rng.integers(60_000, largest))
        of_any_size = round(float(np.exp(rng.uniform(0.0, np.log(max_size)))))
        fits = int(
            rng.choice([of_any_size, max_size, max_size - 1, max_size // 2, int(rng.integers(max_size + 1))])
        )
        where = ("exact", "below", "between", "device")[int(rng.integers(4))]
        one = _drawn(
            rng, max_size, fits, where, SHAPES[number % 4], base=int(rng.choice([0, 10**6, 8 * 10**10]))
        )
        yield one
        if fits > 1 and where != "device" and largest < 100_000:
            # The same limits, and a model that takes more: what was found for the other one does not hold.
            less = int(rng.integers(1, fits))
            peaks = np.concatenate([[0], one.peaks[1 + less :], one.peaks[-1] + 10 * np.arange(1, less + 1)])
            yield Search(peaks, one.limits, fits - less, where)


def _cases(rng: np.random.Generator) -> list[tuple[int, int, str]]:
    """(max_size, rows that fit, what limits them). The first are those that tell mistakes apart."""

    def far() -> int:
        return int(rng.integers(150, 400))

    def odd() -> int:
        return 2 * int(rng.integers(17, 30)) + 1  # neither a power of two nor next to one

    power = 2 ** int(rng.integers(2, 7))
    cases = [
        (far(), odd(), "exact"),
        (far(), odd(), "device"),
        (far(), odd(), "below"),
        (far(), odd(), "between"),
    ]
    cases += [(far(), fits, "exact") for fits in (power - 1, power, power + 1)]
    cases.append((far(), 64 + int(rng.integers(1, 4)), "exact"))  # at the lower end of a wide gap
    cases += [(far(), fits, "between") for fits in rng.integers(3, 12, size=3).tolist()]
    cases += [(size, size, where) for where in ("exact", "plenty") for size in (far(), power, odd())]
    cases += [(size, size - 1, where) for where in ("below", "device") for size in (far(), power)]
    cases += [(far(), 0, "below"), (far(), 0, "device"), (far(), 1, "exact"), (far(), 1, "device")]
    for size in (1, 2, 3, int(rng.integers(4, 9))):
        wheres = ("exact", "below", "device") if size < 3 else ("exact", "device")
        cases += [(size, fits, where) for where in wheres for fits in range(size + 1)]
    return cases


def _drawn(
    rng: np.random.Generator, max_size: int, fits: int, where: str, shape: str = "line", base: int = 0
) -> Search:
    """Peaks by size, nearly of this shape, that do not begin at 0, and limits that let `fits` rows fit.

    A "line"; its "square", as attention's scores; its "root", as where much is shared; or a line with a "jump".
    """
    slope = int(rng.integers(1_000, 9_000))
    sizes = np.arange(1, max_size + 2)
    rise = {"square": 0.1 + 8 * sizes / max_size, "root": 2 * sizes**-0.7}.get(shape, np.ones(len(sizes)))
    if shape == "jump":
        rise[int(rng.integers(len(sizes)))] = float(rng.uniform(5, 6 + 2 * max_size))
    each = np.maximum(10, slope * rise * rng.uniform(0.95, 1.05, size=len(sizes))).astype(np.int64)
    first = base + int(rng.integers(2, 9)) * slope
    peaks = np.concatenate([[first], first + np.cumsum(each)])
    where = where if fits or where == "device" else "below"
    last, beyond, all_of_it = int(peaks[fits]), int(peaks[fits + 1]), 10 * int(peaks[-1])
    budget = {
        "exact": last,
        "below": beyond - 1,
        "between": int(rng.integers(last + 1, beyond - 1)),
    }.get(where, all_of_it)
    most_rows = fits if where == "device" else 10 * max_size
    limits = {"budget_bytes": budget, "max_size": max_size, "most_rows": most_rows}
    return Search(peaks, limits, fits, where)
