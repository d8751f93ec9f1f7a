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
