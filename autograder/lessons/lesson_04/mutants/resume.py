"""Wrong solutions of 4.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

_CHECKPOINT = """
import random
import numpy as np
import torch

@exercise("4.1")
class RunCheckpoint:
    def __init__(self, *, model, optimizer, scheduler, scaler, sampler):
        self.parts = {
            "model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler, "sampler": sampler,
        }

    def save(self, path, step):
        version, internal, gauss = random.getstate()
        name, keys, *rest = np.random.get_state()
        saved = {key: part.state_dict() for key, part in self.parts.items()}
        saved["step"] = step
        saved["python"] = [version, list(internal), gauss]
        saved["numpy"] = [name, keys.tolist(), *rest]
        saved["torch"] = torch.get_rng_state()
        torch.save(saved, path)

    def load(self, path):
        saved = torch.load(path, weights_only=True)
        for key, part in self.parts.items():
            part.load_state_dict(saved[key])
        version, internal, gauss = saved["python"]
        random.setstate((version, tuple(internal), gauss))
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        torch.set_rng_state(saved["torch"])
        return saved["step"]
"""


_LOADED = edited(
    _CHECKPOINT,
    (
        "        for key, part in self.parts.items():\n            part.load",
        "        for key, part in self.parts.items():\n            if key in FORGOTTEN:\n"
        "                continue\n            part.load",
    ),
)

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "4.1": wrong(
        _LOADED,
        {
            "model weights only": (
                "model weights only",
                "FORGOTTEN",
                "('optimizer', 'scheduler', 'scaler', 'sampler')",
            ),
            "scheduler forgotten": ("the scheduler is forgotten", "FORGOTTEN", "('scheduler',)"),
            "scaler forgotten": ("the scaler is forgotten", "FORGOTTEN", "('scaler',)"),
            "sampler position forgotten": (
                "the sampler's position is forgotten",
                "FORGOTTEN",
                "('sampler',)",
            ),
        },
    )
    + wrong(
        _CHECKPOINT,
        {
            "torch's generator forgotten": (
                "the state of torch's generator",
                '        torch.set_rng_state(saved["torch"])\n',
                "",
            ),
            "NumPy's generator forgotten": (
                "the state of NumPy's global generator",
                "        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))\n",
                "",
            ),
            "Python's generator forgotten": (
                "the state of Python's `random`",
                "        random.setstate((version, tuple(internal), gauss))\n",
                "",
            ),
            "pickled model object": (
                "whole objects are pickled",
                (
                    '        saved["step"] = step\n',
                    '        saved["step"] = step\n        saved["whole"] = self.parts["model"]\n',
                ),
                ("weights_only=True", "weights_only=False"),
            ),
            "a load that trusts any file": (
                "`weights_only=False`",
                "weights_only=True",
                "weights_only=False",
            ),
            "saving draws a number": (
                "saving draws a random number",
                "        torch.save(saved, path)\n",
                "        torch.save(saved, path)\n        torch.rand(1)\n",
            ),
        },
    )
}
