"""Wrong solutions of 3.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

SEARCH = """
import torch

@exercise("3.2")
def largest_micro_batch_size(try_step, budget_bytes, max_size):
    def fits(size):
        try:
            return try_step(size) <= budget_bytes
        except torch.OutOfMemoryError:
            return False
    good, bad, size = 0, max_size + 1, 1
    while good + 1 < bad:
        if fits(size):
            good = size
        else:
            bad = size
        size = min(2 * good, max_size) if bad > max_size else (good + bad) // 2
    return good
"""
_LOOP = SEARCH[SEARCH.index("    good, bad") :]

_NEXT = "size = min(2 * good, max_size) if bad > max_size else (good + bad) // 2"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "3.2": wrong(
        SEARCH,
        {
            "one size after the other": (
                "one size after the other",
                _LOOP,
                "    return next((n - 1 for n in range(1, max_size + 1) if not fits(n)), max_size)\n",
            ),
            "ends when memory runs out in the gap": (
                "ends at the out-of-memory error",
                _LOOP,
                "    good, bad, size = 0, max_size + 1, 1\n    while good + 1 < bad:\n        try:\n"
                "            good, bad = (size, bad) if try_step(size) <= budget_bytes else (good, size)\n"
                "        except torch.OutOfMemoryError:\n            if bad <= max_size:\n                break\n"
                "            bad = size\n        " + _NEXT + "\n    return good\n",
            ),
            "doubling alone": (
                "doubling alone",
                _LOOP,
                "    size = 0\n    while size < max_size and fits(min(max(1, 2 * size), max_size)):\n"
                "        size = min(max(1, 2 * size), max_size)\n    return size\n",
            ),
            "starts at the top": (
                "starts at the top",
                _LOOP,
                "    size = max_size\n    while size and not fits(size):\n        size //= 2\n    return size\n",
            ),
            "memory taken as proportional": (
                "memory taken as proportional",
                _LOOP,
                "    return min(budget_bytes // try_step(1), max_size)\n",
            ),
            "first size that does not fit": (
                "the first that does not fit",
                "return good",
                "return min(bad, max_size) if good else 0",
            ),
            "out of memory not caught": (
                "out-of-memory error is not caught",
                "torch.OutOfMemoryError",
                "ZeroDivisionError",
            ),
            "every RuntimeError taken for a full device": (
                "for a full device: what is wrong",
                "torch.OutOfMemoryError",
                "RuntimeError",
            ),
            "every error taken for a full device": (
                "for a full device: what is wrong",
                "torch.OutOfMemoryError",
                "Exception",
            ),
            "begins with two rows": (
                "begins with more than one row",
                "max_size + 1, 1",
                "max_size + 1, min(2, max_size)",
            ),
            "grows by half": (
                "grow by less than a doubling",
                "min(2 * good, max_size) if",
                "min(good + max(1, good // 2), max_size) if",
            ),
            "sizes ruled out by a line": (
                "sizes that fit are never tried",
                _LOOP,
                "    good, bad, peaks = 0, max_size + 1, {}\n    size = 1\n    while good + 1 < bad:\n"
                "        try:\n            peaks[size] = try_step(size)\n        except torch.OutOfMemoryError:\n"
                "            peaks[size] = float('inf')\n"
                "        if peaks[size] <= budget_bytes:\n            good = size\n"
                "        else:\n            bad = size\n"
                "        if len(peaks) > 3 and good > 2:\n"
                "            slope = (peaks[good] - peaks[1]) / (good - 1)\n"
                "            bad = min(bad, max(good + 1, int(good + 0.98 * (budget_bytes - peaks[good]) / slope)))\n"
                "        size = min(2 * good, max_size, bad - 1) if bad > max_size else (good + bad) // 2\n"
                "    return good\n",
            ),
            "the budget itself refused": ("`<` where `<=` is meant", "<= budget_bytes", "< budget_bytes"),
            "the budget exceeded": (
                "the first that does not fit",
                "<= budget_bytes",
                "< 1.02 * budget_bytes",
            ),
            "more than max_size tried": (
                "a size above `max_size` is tried",
                _NEXT,
                _NEXT.replace("min(2 * good, max_size)", "2 * good"),
            ),
            "no row tried": (
                "fewer rows than 1 are tried",
                "bad, size = 0, max_size + 1, 1",
                "bad, size = 0, max_size + 1, 0",
            ),
            "half a row tried": (
                "a size that is no int, as a division with `/` gives",
                _NEXT,
                _NEXT.replace("(good + bad) // 2", "(good + bad) / 2"),
            ),
            "max_size never tried": (
                "`max_size` itself is never tried",
                ("0, max_size + 1, 1", "0, max(2, max_size), 1"),
                (
                    "min(2 * good, max_size) if bad > max_size",
                    "min(2 * good, max_size - 1) if bad >= max_size",
                ),
            ),
            "ends when memory runs out": (
                "the search ends at the out-of-memory error",
                ("            return False", "            raise StopIteration"),
                (
                    "        if fits(size):\n",
                    "        try:\n            is_good = fits(size)\n        except StopIteration:\n"
                    "            return good\n        if is_good:\n",
                ),
            ),
            "a missing key taken for the end": (
                "for a full device: what is wrong",
                "except torch.OutOfMemoryError",
                "except (torch.OutOfMemoryError, LookupError)",
            ),
            "one row at least": ("the answer to that is 0", "return good", "return max(1, good)"),
            "errors raised anew": (
                "raises one of its own",
                "            return False",
                "            return False\n        except Exception as error:\n"
                '            raise RuntimeError(f"the step of {size} rows failed") from error',
            ),
            "out of memory by its words": (
                "known by its words alone",
                "        except torch.OutOfMemoryError:\n",
                "        except RuntimeError as error:\n"
                '            if "out of memory" not in str(error):\n                raise\n',
            ),
            "twenty tries at most": (
                "cut off by a count of tries",
                "    while good + 1 < bad:",
                "    for _ in range(20):\n        if good + 1 == bad:\n            break",
            ),
            "nothing where nothing fits": (
                "the function returns nothing",
                "return good",
                "return good or None",
            ),
            "every size tried twice": (
                "a size is tried again",
                "return try_step(size) <=",
                "return max(try_step(size), try_step(size)) <=",
            ),
            "gap cut by an eighth": (
                "is not halved by each try",
                "(good + bad) // 2",
                "bad - max(1, (bad - good) // 8)",
            ),
            "four times as many at once": ("more than a doubling", "2 * good", "4 * good"),
            "a line trusted": (
                "never tried itself",
                _LOOP,
                "    if not fits(1):\n        return 0\n    if max_size == 1 or not fits(2):\n        return 1\n"
                "    first, second = try_step(1), try_step(2)\n"
                "    size = 1 + (budget_bytes - first) // (second - first)\n    return min(size, max_size)\n",
            ),
        },
    ),
}
