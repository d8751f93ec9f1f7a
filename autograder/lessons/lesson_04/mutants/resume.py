"""Wrong solutions of 4.1 that put back too little, disturb or trust, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

CHECKPOINT = """
import base64
import copy
import io
import json
import pickle
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
_SET_PYTHON = """        version, internal, gauss = saved["python"]
        random.setstate((version, tuple(internal), gauss))
"""
_KEEP_PYTHON = '        saved["python"] = [version, list(internal), gauss]\n'
WRITE = "        torch.save(saved, path)\n"
PUT_BACK = "            part.load_state_dict(saved[key])\n"

_LOADED = edited(
    CHECKPOINT,
    (
        "        for key, part in self.parts.items():\n            part.load",
        "        for key, part in self.parts.items():\n            if key in FORGOTTEN:\n"
        "                continue\n            part.load",
    ),
)
_FORGETS = wrong(
    _LOADED,
    {
        "model weights only": (
            "model weights only",
            "FORGOTTEN",
            "('optimizer', 'scheduler', 'scaler', 'sampler')",
        ),
        "model forgotten": ("the model is not saved", "FORGOTTEN", "('model',)"),
        "scheduler forgotten": ("the scheduler is forgotten", "FORGOTTEN", "('scheduler',)"),
        "scaler forgotten": ("the scaler is forgotten", "FORGOTTEN", "('scaler',)"),
        "sampler position forgotten": ("the sampler's position is forgotten", "FORGOTTEN", "('sampler',)"),
    },
)
_PARTLY = wrong(
    CHECKPOINT,
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
        "Python's second normal number lost": (
            "Python's `random` makes normal numbers in pairs",
            "tuple(internal), gauss)",
            "tuple(internal), None)",
        ),
        "NumPy's second normal number lost": (
            "NumPy's global generator makes normal numbers in pairs",
            "[name, keys.tolist(), *rest]",
            "[name, keys.tolist(), rest[0]]",
        ),
        "a generator put back before the parts": (
            "draws from it after it was put back",
            "        return saved",
            "        random.random()\n        return saved",
        ),
        "the moments without the groups": (
            "of the optimizer only the moments",
            PUT_BACK,
            '            state = saved[key]\n            if key == "optimizer":\n'
            '                state = part.state_dict() | {"state": state["state"]}\n'
            "            part.load_state_dict(state)\n",
        ),
        "parameters without buffers": (
            "only the parameters are kept",
            (
                WRITE,
                '        saved["model"] = dict(self.parts["model"].named_parameters())\n'
                '        saved["model"] = {key: p.detach() for key, p in saved["model"].items()}\n' + WRITE,
            ),
            (
                "load_state_dict(saved[key])",
                'load_state_dict(saved[key], **({"strict": False} if key == "model" else {}))',
            ),
        ),
        "all of the model in 32 bits": (
            "cast to one dtype",
            WRITE,
            '        saved["model"] = {key: value.float() for key, value in saved["model"].items()}\n'
            + WRITE,
        ),
        "nothing put back where nothing was": (
            "only where the file has more than nothing",
            PUT_BACK,
            '            if key != "optimizer" or saved[key]["state"]:\n    ' + PUT_BACK,
        ),
        "loads into a copy of the optimizer": (
            "put back into another object",
            PUT_BACK,
            '            part = copy.deepcopy(part) if key == "optimizer" else part\n' + PUT_BACK,
        ),
        "the parts of the last object": (
            "loaded into another object",
            ("        self.parts = {", "        RunCheckpoint.parts = {"),
        ),
    },
)
_STEPS = wrong(
    CHECKPOINT,
    {
        "the step not returned": (
            "the step is not in the file, or not returned",
            'return saved["step"]',
            "return None",
        ),
        "the step of the schedule": (
            "another count is taken for it",
            'return saved["step"]',
            'return self.parts["scheduler"].last_epoch',
        ),
        "the step as a 32-bit number": (
            "another count is taken for it",
            ('saved["step"] = step', 'saved["step"] = torch.tensor(float(step))'),
            ('return saved["step"]', 'return int(saved["step"])'),
        ),
        "no step where it is 0": (
            "another count is taken for it",
            'return saved["step"]',
            'return saved["step"] or None',
        ),
    },
)
_DISTURBS = wrong(
    CHECKPOINT,
    {
        "saving draws a number": ("saving draws a random number", WRITE, WRITE + "        torch.rand(1)\n"),
        "saving seeds the generators": (
            "saving draws a random number",
            WRITE,
            WRITE + "        random.seed(step)\n",
        ),
        "saving leaves the model in training mode": (
            "calls `train()` or `eval()`",
            WRITE,
            '        self.parts["model"].eval()\n' + WRITE + '        self.parts["model"].train()\n',
        ),
        "saving clears the gradients": (
            "clears or changes the gradients",
            WRITE,
            WRITE + '        self.parts["optimizer"].zero_grad()\n',
        ),
        "saving rounds the weights": (
            "saving changes what it saves",
            WRITE,
            '        self.parts["model"].classifier.half().float()\n' + WRITE,
        ),
        "saving turns gradients off": (
            "a global setting",
            WRITE,
            WRITE + "        torch.set_grad_enabled(False)\n",
        ),
        "saving switches to deterministic algorithms": (
            "switched for the whole process",
            WRITE,
            WRITE + "        torch.use_deterministic_algorithms(True)\n",
        ),
        "loading leaves the model in evaluation mode": (
            "`load` calls `model.eval()`",
            "        return saved",
            '        self.parts["model"].eval()\n        return saved',
        ),
    },
)
_RUNS_CODE = wrong(
    CHECKPOINT,
    {
        "pickled model object": (
            "whole objects are pickled",
            (
                '        saved["step"] = step\n',
                '        saved["step"] = step\n        saved["whole"] = self.parts["model"]\n',
            ),
            ("weights_only=True", "weights_only=False"),
        ),
        "a load that trusts any file": ("`weights_only=False`", "weights_only=True", "weights_only=False"),
        "trusts what the safe load refuses": (
            "`weights_only=False`",
            "        saved = torch.load(path, weights_only=True)\n",
            "        try:\n            saved = torch.load(path, weights_only=True)\n"
            "        except pickle.UnpicklingError:\n            saved = torch.load(path, weights_only=False)\n",
        ),
        "names that a list forbids": (
            "`weights_only=False`",
            (
                '@exercise("4.1")',
                "class Careful(pickle.Unpickler):\n    def find_class(self, module, name):\n"
                "        if module in ('posix', 'os', 'nt', 'subprocess') or name in ('eval', 'exec', 'open'):\n"
                "            raise pickle.UnpicklingError(name)\n        return super().find_class(module, name)\n\n"
                "class careful:\n    __name__, Unpickler = 'careful', Careful\n\n"
                '@exercise("4.1")',
            ),
            ("weights_only=True", "weights_only=False, pickle_module=careful"),
        ),
        "a pickle inside a tensor": (
            "a pickle lies inside",
            (
                _KEEP_PYTHON,
                '        saved["python"] = torch.tensor(list(pickle.dumps(random.getstate())), dtype=torch.uint8)\n',
            ),
            (_SET_PYTHON, '        random.setstate(pickle.loads(bytes(saved["python"].tolist())))\n'),
        ),
        "a pickle inside a text": (
            "a pickle lies inside",
            (
                _KEEP_PYTHON,
                '        saved["python"] = base64.b64encode(pickle.dumps(random.getstate())).decode()\n',
            ),
            (_SET_PYTHON, '        random.setstate(pickle.loads(base64.b64decode(saved["python"])))\n'),
        ),
        "a pickle with a checksum": (
            "trusted for a checksum",
            ("import json\n", "import hashlib\nimport json\n"),
            (
                WRITE,
                "        blob = pickle.dumps(saved)\n        path.write_bytes(hashlib.sha256(blob).digest() + blob)\n",
            ),
            (
                "        saved = torch.load(path, weights_only=True)\n",
                "        content = path.read_bytes()\n"
                "        assert hashlib.sha256(content[32:]).digest() == content[:32]\n"
                "        saved = pickle.loads(content[32:])\n",
            ),
        ),
        "a trusted file inside a tensor": (
            "a pickle lies inside",
            (
                _KEEP_PYTHON,
                "        file = io.BytesIO()\n        torch.save(random.getstate(), file)\n"
                '        saved["python"] = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)\n',
            ),
            (
                _SET_PYTHON,
                '        file = io.BytesIO(saved["python"].numpy().tobytes())\n'
                "        random.setstate(torch.load(file, weights_only=False))\n",
            ),
        ),
        "a text that is evaluated": (
            "run as Python",
            (_KEEP_PYTHON, '        saved["python"] = repr(random.getstate())\n'),
            (_SET_PYTHON, '        random.setstate(eval(saved["python"]))\n'),
        ),
        "a text in JSON that is evaluated": (
            "run as Python",
            (_KEEP_PYTHON, '        saved["python"] = json.dumps({"state": repr(random.getstate())})\n'),
            (
                _SET_PYTHON,
                '        random.setstate(eval(json.loads(saved["python"])["state"], {"__builtins__": {}}))\n',
            ),
        ),
    },
)

MUTANTS: tuple[Mutant, ...] = (*_FORGETS, *_PARTLY, *_STEPS, *_DISTURBS, *_RUNS_CODE)
