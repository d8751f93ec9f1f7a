"""Wrong solutions of 5.2 that are right in short searches in which nothing fails."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong
from autograder.lessons.lesson_05.mutants.runs import RUN

MUTANTS: tuple[Mutant, ...] = wrong(
    RUN,
    {
        "an evaluation on the way": (
            "in the mode of an evaluation before",
            "                optimizer.step()\n",
            "                optimizer.step()\n                if step % 100 == 99:\n"
            "                    judge(model, task.validation_batches())\n",
        ),
        "a tenth of the rate from step 100 on": (
            "the steps of a schedule",
            "                optimizer.step()\n",
            "                optimizer.step()\n                if step == 99:\n"
            "                    for group in optimizer.param_groups:\n                        group['lr'] /= 10\n",
        ),
        "gradients kept at every 50th step": (
            "gradients that are changed or left over",
            "                optimizer.zero_grad()\n",
            "                if step % 50 != 49:\n                    optimizer.zero_grad()\n",
        ),
        "a trial that has learnt it all is stopped": (
            "different budgets",
            "                optimizer.step()\n",
            "                optimizer.step()\n                if loss.item() < 1e-3:\n                    break\n",
        ),
        "dropout of a fixed seed": (
            "dropout is the same at every seed",
            "            model.train()\n",
            "            torch.manual_seed(0)\n            model.train()\n",
        ),
        "a seed at every step": (
            "torch is seeded at every step",
            "                batch = next(batches)\n",
            "                batch = next(batches)\n                torch.manual_seed(seed)\n",
        ),
        "a column found by its seed": (
            "or a column by its seed",
            "losses[row, column] =",
            "losses[row, seeds.index(seed)] =",
        ),
        **{
            f"an error passed over in {where}": (
                "an error is caught on the way",
                line,
                f"            {indent}try:\n    {line.rstrip()}\n"
                f"            {indent}except {error}:\n                {indent}{after}\n",
            )
            for where, error, line, indent, after in (
                (
                    "the backward pass",
                    "RuntimeError",
                    "                loss.backward()\n",
                    "    ",
                    "continue",
                ),
                ("a step", "FloatingPointError", "                optimizer.step()\n", "    ", "pass"),
                (
                    "the making of a model",
                    "ValueError",
                    "            model = task.make_model(config)\n",
                    "",
                    "continue",
                ),
                (
                    "the verdict",
                    "(ValueError, RuntimeError)",
                    "            value = judge(model, task.validation_batches())\n",
                    "",
                    "value = math.inf",
                ),
            )
        },
        "a seed for the weights alone": (
            "the seed holds for the weights alone",
            (
                "            torch.manual_seed(seed)\n            model = task.make_model(config)\n",
                "            with torch.random.fork_rng(devices=[]):\n                torch.manual_seed(seed)\n"
                "                model = task.make_model(config)\n",
            ),
        ),
        "all models of a seed before the first training": (
            "the seed holds for the weights alone",
            ("    for row, config", "    made = []\n    for row, config"),
            (
                "            torch.manual_seed(seed)\n            model = task.make_model(config)\n",
                "            for c, s in [(c, s) for c in configs for s in seeds] * (not made):\n"
                "                torch.manual_seed(s)\n                made.append(task.make_model(c))\n"
                "            model = made[row * len(seeds) + column]\n",
            ),
        ),
        "a row found by its configuration": (
            "a row is found by its configuration",
            "losses[row, column] =",
            "losses[configs.index(config), column] =",
        ),
        "a step where none is asked for": (
            "asked after a step",
            "range(num_steps)",
            "range(max(1, num_steps))",
        ),
        "an error taken for a trial that diverged": (
            "an error is caught on the way",
            (
                "            torch.manual_seed(seed)\n",
                "            torch.manual_seed(seed)\n            try:\n",
            ),
            ("            model = task", "                model = task"),
            ("            optimizer = task", "                optimizer = task"),
            ("            batches = task", "                batches = task"),
            (
                "            model.train()\n            for step in range(num_steps):\n"
                "                batch = next(batches)\n"
                "                loss = loss_of(model, batch)\n                optimizer.zero_grad()\n"
                "                loss.backward()\n                optimizer.step()\n"
                "            value = judge(model, task.validation_batches())\n",
                "                model.train()\n                for step in range(num_steps):\n"
                "                    loss = loss_of(model, next(batches))\n                    optimizer.zero_grad()\n"
                "                    loss.backward()\n                    optimizer.step()\n"
                "                value = judge(model, task.validation_batches())\n"
                "            except RuntimeError:\n                value = math.inf\n",
            ),
        ),
    },
)
