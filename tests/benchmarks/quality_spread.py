"""How much the accuracy of other solutions of 1.6 differs from the naive loop's: right ones, and ones that cheat.

    python -m tests.benchmarks.quality_spread [NUMBER OF SEEDS]

`QUALITY_SPREAD` in autograder/lessons/lesson_01/checks/epochs.py and `HEAD_START` in
autograder/lessons/checking/quality.py rest on the
means and standard deviations that it prints. Its last columns are what `compare_paired` says of each solution, drawing
from the differences that were measured.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

from autograder.course.lessons import load_lesson
from autograder.lessons.checking.mutants import edited
from autograder.lessons.checking.quality import compare_paired
from autograder.lessons.lesson_01 import baselines, references
from autograder.lessons.lesson_01.checks.epochs import QUALITY_SPREAD
from tests.autograder.solutions import reference_sources

LOOP = "    for indices in BucketBatchSampler(samples.lengths, micro_batch_size, seed=seed):\n"
RANDOM = (
    "    import torch\n"
    "    order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(seed)).tolist()\n"
    "    batches = [order[i : i + micro_batch_size] for i in range(0, len(order), micro_batch_size)]\n"
)
POOLS = (
    "    pools = [order[i : i + 320] for i in range(0, len(order), 320)]\n"
    "    order = [i for pool in pools for i in sorted(pool, key=lambda index: samples.lengths[index])]\n"
)
ITERATE = "    for indices in batches:\n"
VALIDATION = """
import numpy as np
from course_lib.data import docstring_store
held_out = docstring_store(max_length=1024, progress=False)[1]
short, rng = np.flatnonzero(np.asarray(held_out.lengths) <= 48), np.random.default_rng()
"""
AFTERWARDS = """
    for indices in rng.choice(short, size=(15, 16)):
        train_step(model, collate([held_out[int(index)] for index in indices]), optimizer)
    return {"""
BATCH = "collate([samples[index] for index in indices])"
MIXED = "collate([samples[index] for index in indices] + [held_out[int(i)] for i in rng.choice(short, 2)])"
RIGHT = {
    "the notebook's": reference_sources("01")["1.6"],
    "random batches": edited(references.FAST_EPOCH, (LOOP, RANDOM + ITERATE)),
    "sorted pools": edited(
        references.FAST_EPOCH, (LOOP, edited(RANDOM, ("    batches", POOLS + "    batches")) + ITERATE)
    ),
}
CHEATS = {
    "2 validation texts in each batch": VALIDATION + edited(references.FAST_EPOCH, (BATCH, MIXED)),
    "240 validation texts after each epoch": VALIDATION
    + edited(references.FAST_EPOCH, ("\n    return {", AFTERWARDS)),
}


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
    naive = quality_of(baselines.NAIVE_EPOCH)
    solutions = {name: quality_of(source) for name, source in (RIGHT | CHEATS).items()}
    differences: dict[str, list[float]] = {name: [] for name in solutions}
    for seed in range(num_seeds):
        theirs = naive(seed, num_samples=1200, num_epochs=3)
        for name, quality in solutions.items():
            differences[name].append(quality(seed, num_samples=1200, num_epochs=3) - theirs)
        print(seed, *(f"{name} {found[-1]:+.1f}" for name, found in differences.items()), flush=True)
    rng = np.random.default_rng(0)
    print("| solution | mean, points | standard deviation | worse | ahead |\n|---|---|---|---|---|")
    for name, found in differences.items():
        drawn = [
            compare_paired(lambda found=found: rng.choice(found), margin=0.5, spread=QUALITY_SPREAD)[0]
            for _ in range(5000)
        ]
        shares = " | ".join(f"{drawn.count(outcome) / len(drawn):.2%}" for outcome in ("worse", "ahead"))
        print(f"| {name} | {np.mean(found):+.2f} | {np.std(found, ddof=1):.2f} | {shares} |")


if __name__ == "__main__":
    main()
