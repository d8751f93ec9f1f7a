"""Wrong solutions of 4.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_TRAIN = """
import copy
import math

@exercise("4.4")
def train_with_early_stopping(run):
    best, weights, bad = None, {}, 0
    while run.num_steps < run.max_steps and bad < 6:
        run.train(min(10, run.max_steps - run.num_steps))
        found = run.validate()
        if not math.isnan(found["loss"]) and (best is None or found["loss"] < best["loss"]):
            best, weights, bad = found, copy.deepcopy(run.model.state_dict()), 0
        else:
            bad += 1
    run.model.load_state_dict(weights)
    return {"best_step": best["step"], "loss": best["loss"]}
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "4.4": wrong(
        _TRAIN,
        {
            "best chosen on train loss": (
                "chosen on the training loss",
                'found["loss"] < best["loss"]',
                'found["train_loss"] < best["train_loss"]',
            ),
            "final report from the last, not the best": (
                "the last weights, not the best",
                "    run.model.load_state_dict(weights)\n",
                "",
            ),
            "best kept without a copy": (
                "was no copy",
                "copy.deepcopy(run.model.state_dict())",
                "run.model.state_dict()",
            ),
            "mode inverted": (
                "the worst validation is taken for the best",
                'found["loss"] < best["loss"]',
                'found["loss"] > best["loss"]',
            ),
            "never stops": ("nothing ends the loop", " and bad < 6", ""),
            "a fixed number of steps": (
                "a fixed number of steps ends the loop",
                "run.num_steps < run.max_steps and bad < 6",
                "run.num_steps < 0.6 * run.max_steps",
            ),
            "too patient": ("patience is too large", "bad < 6", "bad < 22"),
            "validated at every step": (
                "validations are too frequent",
                ("bad < 6", "bad < 120"),
                ("min(10,", "min(1,"),
            ),
            "trains beyond the end": (
                "ValueError: 3",
                "run.train(min(10, run.max_steps - run.num_steps))",
                "run.train(10)",
            ),
            "best chosen on the accuracy": (
                "chosen on the accuracy",
                'found["loss"] < best["loss"]',
                'found["accuracy"] > best["accuracy"]',
            ),
            "NaN hides the best before it": (
                "a loss that is NaN becomes the best",
                'not math.isnan(found["loss"]) and (best is None or found["loss"] < best["loss"])',
                'best is None or not found["loss"] >= best["loss"]',
            ),
            "a NaN that comes first stays the best": (
                "a loss that is NaN becomes the best",
                'not math.isnan(found["loss"]) and (best is None or found["loss"] < best["loss"])',
                'best is None or found["loss"] < best["loss"]',
            ),
            "a NaN makes it forget the best before it": (
                "a loss that is NaN becomes the best",
                (
                    'not math.isnan(found["loss"]) and (best is None or found["loss"] < best["loss"])',
                    'not (math.isnan(found["loss"]) if best is None else found["loss"] >= best["loss"])',
                ),
                ("run.num_steps < run.max_steps", "run.num_steps < 0.6 * run.max_steps"),
            ),
            "kept only when much better": (
                "a margin such as `min_delta`",
                'found["loss"] < best["loss"]',
                'found["loss"] < best["loss"] - 0.05',
            ),
            "compared with the validation before": (
                "compared with the one before it",
                ('found["loss"] < best["loss"]', 'found["loss"] < before["loss"]'),
                (
                    "        else:\n            bad += 1\n",
                    "        else:\n            bad += 1\n        before = found\n",
                ),
            ),
            "best kept in 16 bits": (
                "the right weights are kept, and rounded",
                "copy.deepcopy(run.model.state_dict())",
                "{name: value.half() for name, value in run.model.state_dict().items()}",
            ),
            "put back only where it stops early": (
                "a run that comes to `max_steps` keeps its last",
                "    run.model.load_state_dict(weights)\n",
                "    if bad >= 6:\n        run.model.load_state_dict(weights)\n",
            ),
            "kept after further steps": (
                "other weights are kept than those that were validated",
                "            best, weights, bad =",
                "            if run.num_steps < run.max_steps:\n                run.train(1)\n"
                "            best, weights, bad =",
            ),
            "only the parameters kept": (
                "the parameters alone are put back",
                (
                    "copy.deepcopy(run.model.state_dict())",
                    "{name: value.detach().clone() for name, value in run.model.named_parameters()}",
                ),
                ("load_state_dict(weights)", "load_state_dict(weights, strict=False)"),
            ),
            "kept only when better by a ten-thousandth": (
                "a margin such as `min_delta`",
                'found["loss"] < best["loss"]',
                'found["loss"] < best["loss"] - 1e-4',
            ),
            "kept only when better by a thousandth, and ended early": (
                "a margin such as `min_delta`",
                ('found["loss"] < best["loss"]', 'found["loss"] < best["loss"] - 1e-3'),
                ("run.num_steps < run.max_steps", "run.num_steps < 0.6 * run.max_steps"),
            ),
            "the first left out as a warm-up": (
                "the first validation is left out",
                ("best, weights, bad = None, {}, 0\n", "best, weights, bad, is_first = None, {}, 0, True\n"),
                ("if not math", "if not is_first and not math"),
                ("            bad += 1\n", "            bad += not is_first\n        is_first = False\n"),
            ),
            "compared in 32 bits": (
                "a margin such as `min_delta`",
                ("import math\n", "import math\nimport numpy as np\n"),
                ('found["loss"] < best["loss"]', 'np.float32(found["loss"]) < np.float32(best["loss"])'),
            ),
            "a best below a billion": (
                "Missing key(s) in state_dict",
                ("best, weights, bad = None", 'best, weights, bad = {"loss": 1e9, "step": 0}'),
                ("best is None or ", ""),
            ),
            "no loss below 0": (
                "a loss below 0 is passed over",
                'found["loss"] < best["loss"]',
                '0 <= found["loss"] < best["loss"]',
            ),
            "all kept in 32 bits": (
                "or buffers in another dtype",
                "copy.deepcopy(run.model.state_dict())",
                "{name: value.float() for name, value in copy.deepcopy(run.model.state_dict()).items()}",
            ),
            "the loss rounded": (
                "the right number is reported, and rounded",
                '"loss": best["loss"]',
                '"loss": round(best["loss"], 4)',
            ),
            "400 steps in any run": (
                "ValueError: 3",
                "run.max_steps",
                "400",
            ),
            "never trains": (
                "is never called",
                "run.train(min(10, run.max_steps - run.num_steps))",
                "bad += 1",
            ),
            "a copy of the run trained to its end": (
                "this Run cannot be copied",
                "    while run.num_steps",
                "    ahead = copy.deepcopy(run)\n    ahead.train(ahead.max_steps)\n    while run.num_steps",
            ),
            "no report": (
                "a key is missing",
                '    return {"best_step": best["step"], "loss": best["loss"]}\n',
                "",
            ),
            "the number of the validation": (
                "validations are counted, not steps",
                '"best_step": best["step"]',
                '"best_step": -(-best["step"] // 10)',
            ),
            "the training loss reported": (
                "the training loss is reported",
                '"loss": best["loss"]',
                '"loss": best["train_loss"]',
            ),
            "validated once more for the report": (
                "validated once more at the end",
                '"loss": best["loss"]',
                '"loss": run.validate()["loss"]',
            ),
            "gives up at the first bump": (
                "patience is too small",
                ("bad < 6", "bad < 1"),
                ("min(10,", "min(2,"),
            ),
            "report of another validation": (
                "of the last, not the best",
                '"loss": best["loss"]',
                '"loss": found["loss"]',
            ),
        },
    ),
}
