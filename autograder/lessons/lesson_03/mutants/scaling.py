"""Wrong solutions of 3.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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
    "3.4": (
        Mutant(
            name="learning rate unchanged",
            source=edited(_PLAN, ('* (growth if optimizer == "sgd" else math.sqrt(growth))', "")),
            says="the learning rate is unchanged",
        ),
        Mutant(
            name="linear scaling for Adam too",
            source=edited(_PLAN, ("math.sqrt(growth))", "growth)")),
            says="the other optimizer's rule",
        ),
        Mutant(
            name="no warmup",
            source=edited(_PLAN, ("max(2, max_steps // 10)", "1")),
            says="no warmup",
        ),
        Mutant(
            name="accumulation rounded down",
            source=edited(
                _PLAN,
                (
                    "math.ceil(target_batch_size / (max_micro_batch_size * world_size))",
                    "max(1, target_batch_size // (max_micro_batch_size * world_size))",
                ),
                ("math.ceil(target_batch_size / (steps * world_size))", "max_micro_batch_size"),
            ),
            says="rounded down",
        ),
        Mutant(
            name="a micro-batch that does not fit",
            source=edited(_PLAN, ("math.ceil(target_batch_size / (max_micro_batch_size * world_size))", "1")),
            says="rows that do not fit",
        ),
        Mutant(
            name="devices forgotten",
            source=edited(_PLAN, ("total = micro * steps * world_size", "total = micro * steps")),
            says="a factor is missing",
        ),
        Mutant(
            name="decays at once",
            source=edited(
                _PLAN,
                (
                    "for step in range(max_steps)",
                    "* 0.8 ** max(0, step - warmup) for step in range(max_steps)",
                ),
            ),
            says="too low for most of the run",
        ),
    ),
}
