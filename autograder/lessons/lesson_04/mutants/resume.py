"""Wrong solutions of 4.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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


def _without(*names: str) -> str:
    return edited(
        _CHECKPOINT,
        (
            "        for key, part in self.parts.items():\n            part.load",
            f"        for key, part in self.parts.items():\n            if key in {names!r}:\n"
            "                continue\n            part.load",
        ),
    )


MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "4.1": (
        Mutant(
            name="model weights only",
            source=_without("optimizer", "scheduler", "scaler", "sampler"),
            says="model weights only",
        ),
        Mutant(name="scheduler forgotten", source=_without("scheduler"), says="the scheduler is forgotten"),
        Mutant(name="scaler forgotten", source=_without("scaler"), says="the scaler is forgotten"),
        Mutant(
            name="sampler position forgotten",
            source=_without("sampler"),
            says="the sampler's position is forgotten",
        ),
        Mutant(
            name="torch's generator forgotten",
            source=edited(_CHECKPOINT, ('        torch.set_rng_state(saved["torch"])\n', "")),
            says="the state of torch's generator",
        ),
        Mutant(
            name="NumPy's generator forgotten",
            source=edited(
                _CHECKPOINT,
                ("        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))\n", ""),
            ),
            says="the state of NumPy's global generator",
        ),
        Mutant(
            name="Python's generator forgotten",
            source=edited(_CHECKPOINT, ("        random.setstate((version, tuple(internal), gauss))\n", "")),
            says="the state of Python's `random`",
        ),
        Mutant(
            name="pickled model object",
            source=edited(
                _CHECKPOINT,
                (
                    '        saved["step"] = step\n',
                    '        saved["step"] = step\n        saved["whole"] = self.parts["model"]\n',
                ),
                ("weights_only=True", "weights_only=False"),
            ),
            says="whole objects are pickled",
        ),
        Mutant(
            name="a load that trusts any file",
            source=edited(_CHECKPOINT, ("weights_only=True", "weights_only=False")),
            says="`weights_only=False`",
        ),
        Mutant(
            name="saving draws a number",
            source=edited(
                _CHECKPOINT,
                (
                    "        torch.save(saved, path)\n",
                    "        torch.save(saved, path)\n        torch.rand(1)\n",
                ),
            ),
            says="saving draws a random number",
        ),
    ),
}
