"""Wrong solutions of 3.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_PLAN = """
import math

@exercise("3.4")
def plan_large_batch(*, target_batch_size, max_micro_batch_size, world_size, base_batch_size,
                     base_learning_rate, max_steps, optimizer):
    steps = math.ceil(target_batch_size / (max_micro_batch_size * world_size))
    micro = math.ceil(target_batch_size / (steps * world_size))
    total = micro * steps * world_size
    growth = total / base_batch_size
    peak = base_learning_rate * (growth if optimizer == "sgd" else math.sqrt(growth))
    warmup = max(2, max_steps // 10)
    rates = [peak * min(1.0, (step + 1) / warmup) for step in range(max_steps)]
    return {"micro_batch_size": micro, "grad_accum_steps": steps, "global_batch_size": total, "learning_rates": rates}
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "3.4": wrong(
        _PLAN,
        {
            "learning rate unchanged": (
                "the learning rate is unchanged",
                '* (growth if optimizer == "sgd" else math.sqrt(growth))',
                "",
            ),
            "linear scaling for Adam too": ("the other optimizer's rule", "math.sqrt(growth))", "growth)"),
            "no warmup": ("no warmup", "max(2, max_steps // 10)", "1"),
            "accumulation rounded down": (
                "rounded down",
                (
                    "math.ceil(target_batch_size / (max_micro_batch_size * world_size))",
                    "max(1, target_batch_size // (max_micro_batch_size * world_size))",
                ),
                ("math.ceil(target_batch_size / (steps * world_size))", "max_micro_batch_size"),
            ),
            "a micro-batch that does not fit": (
                "rows that do not fit",
                "math.ceil(target_batch_size / (max_micro_batch_size * world_size))",
                "1",
            ),
            "devices forgotten": (
                "a factor is missing",
                "total = micro * steps * world_size",
                "total = micro * steps",
            ),
            "decays at once": (
                "too low for most of the run",
                "for step in range(max_steps)",
                "* 0.8 ** max(0, step - warmup) for step in range(max_steps)",
            ),
        },
    )
}
