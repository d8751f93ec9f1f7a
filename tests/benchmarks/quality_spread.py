"""How much the accuracy of a right solution of 1.6 differs from the naive loop's, over seeds.

    python -m tests.benchmarks.quality_spread [NUMBER OF SEEDS]

`QUALITY_SPREAD` in autograder/lessons/lesson_01/checks/epochs.py rests on the standard deviation that it prints.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

from autograder.lessons import load_lesson
from autograder.lessons.lesson_01 import baselines
from tests.autograder.solutions import reference_sources


def quality_of(source: str) -> Any:
    """The harness's `quality` around a solution of 1.6, in this process."""
    cell: dict[str, Any] = {"exercise": lambda _: lambda definition: definition}
    exec(source, cell)
    harness: dict[str, Any] = {"learner": cell["fast_epoch"]}
    exec(load_lesson("01").harness, harness)
    return harness["quality"]


def main() -> None:
    torch.set_num_threads(1)
    num_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    reference, naive = quality_of(reference_sources("01")["1.6"]), quality_of(baselines.NAIVE_EPOCH)
    differences = []
    for seed in range(num_seeds):
        ours, theirs = (run(seed, num_samples=1200, num_epochs=3) for run in (reference, naive))
        differences.append(ours - theirs)
        print(f"seed {seed}: reference {ours:.1f}, naive {theirs:.1f} points", flush=True)
    print(
        f"difference: mean {np.mean(differences):+.2f}, standard deviation {np.std(differences, ddof=1):.2f} points"
    )


if __name__ == "__main__":
    main()
