"""Wrong solutions of 3.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

PLAN = """
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
        PLAN,
        {
            "learning rate unchanged": (
                "the learning rate is unchanged",
                '* (growth if optimizer == "sgd" else math.sqrt(growth))',
                "",
            ),
            "the peak never reached": (
                "no update has the peak rate",
                "[peak * min(1.0, (step + 1) / warmup) for step in range(max_steps)]",
                "[peak * (step / warmup if step < warmup else 0.99 - 0.2 * (step - warmup) / max_steps)\n"
                "             for step in range(max_steps)]",
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
            "rate of the target": (
                "the batch that was wished for",
                "growth = total /",
                "growth = target_batch_size /",
            ),
            "rate of one device": (
                "the rows of one device",
                "growth = total /",
                "growth = total / world_size /",
            ),
            "rate of the accumulation": ("the accumulation steps alone", "total / base_batch_size", "steps"),
            "growth in whole numbers": (
                "one rounded to a whole number",
                "total / base_batch_size",
                "total // base_batch_size",
            ),
            "square root for SGD too": (
                "the other optimizer's rule",
                'growth if optimizer == "sgd" else ',
                "",
            ),
            "micro-batches of one row": (
                "micro-batches smaller than memory allows",
                "max_micro_batch_size * world_size)",
                "world_size)",
            ),
            "devices left out of the steps": (
                "the devices are forgotten",
                "(max_micro_batch_size * world_size)",
                "max_micro_batch_size",
            ),
            "half a row": (
                "a division that is not rounded",
                "math.ceil(target_batch_size / (steps * world_size))",
                "target_batch_size / (steps * world_size)",
            ),
            "a rate less": ("one for each update", "range(max_steps)", "range(max_steps - 1)"),
            "rates per micro-batch": ("one for each update", "range(max_steps)", "range(max_steps * steps)"),
            "short warmup": ("the warmup is too short", "max_steps // 10", "max_steps // 40"),
            "warmup from the base rate": (
                "at the recipe's rate, which is above half the peak",
                "peak * min(1.0, (step + 1) / warmup)",
                "base_learning_rate + (peak - base_learning_rate) * min(1.0, step / warmup)",
            ),
            "warmup rounded down": (
                "a share of them that is rounded to none",
                ("max(2, max_steps // 10)", "max_steps // 20"),
                ("(step + 1) / warmup", "(step + 1) / (warmup + 1)"),
            ),
            "target hit exactly": (
                "steps are added until the target is hit exactly",
                "    micro = ",
                "    while math.ceil(target_batch_size / world_size) % steps:\n        steps += 1\n    micro = ",
            ),
            "warmup from high": (
                "the warmup begins too high",
                "(step + 1) / warmup",
                "0.6 + 0.4 * (step + 1) / warmup",
            ),
            "a jump in place of a warmup": (
                "a jump in place",
                "min(1.0, (step + 1) / warmup)",
                "(1.0 if step >= warmup else 0.5)",
            ),
            "rises too late": (
                "too low for most of the run",
                "min(1.0, (step + 1) / warmup)",
                "((step + 1) / max_steps) ** 6",
            ),
            "rates in an array": (
                "an array, a tensor or a generator in place of a list",
                ("import math\n", "import math\nimport numpy as np\n"),
                ('"learning_rates": rates', '"learning_rates": np.array(rates)'),
            ),
            "sizes as floats": (
                "is a float all the same",
                '"micro_batch_size": micro,',
                '"micro_batch_size": float(micro),',
            ),
            "no learning rates": ("a key is missing", ', "learning_rates": rates', ""),
            "nothing returned": ("a `return` is missing", "    return {", "    plan = {"),
        },
    )
}
