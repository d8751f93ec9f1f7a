"""Wrong solutions of 2.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_TRAINER = """
import torch
import torch.nn.functional as F

@exercise("2.2")
class Fp16Trainer:
    def __init__(self, model, optimizer, *, max_norm=1.0, init_scale=2.0**16, growth_interval=2000):
        self.model, self.optimizer, self.max_norm = model, optimizer, max_norm
        self.scaler = torch.amp.GradScaler("cpu", init_scale=init_scale, growth_interval=growth_interval)

    def train_step(self, batch):
        with torch.autocast("cpu", torch.float16):
            loss = F.cross_entropy(self.model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return {"loss": loss.detach(), "grad_norm": norm, "scale": self.scaler.get_scale()}

    def state_dict(self):
        return self.scaler.state_dict()

    def load_state_dict(self, state):
        self.scaler.load_state_dict(state)
"""
_FORWARD = 'self.model(batch["input_ids"], batch["attention_mask"])'
_UNSCALE = "        self.scaler.unscale_(self.optimizer)\n"
_CLIP = "        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)\n"
_UPDATE = "        self.scaler.update()\n"

_BACKWARD = "        self.scaler.scale(loss).backward()\n"
_STEP = "        self.scaler.step(self.optimizer)\n"
_CLEAR = "        self.optimizer.zero_grad(set_to_none=True)\n"
_MASK = 'batch["attention_mask"]'

# The scaler by hand: what it looks at, counts and saves is in plain sight, and can be wrong.
_BY_HAND = """
import torch
import torch.nn.functional as F

@exercise("2.2")
class Fp16Trainer:
    def __init__(self, model, optimizer, *, max_norm=1.0, init_scale=2.0**16, growth_interval=2000):
        self.model, self.optimizer, self.max_norm = model, optimizer, max_norm
        self.scale, self.growth_interval, self.num_good = init_scale, growth_interval, 0

    def train_step(self, batch):
        with torch.autocast("cpu", torch.float16):
            logits = self.model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"])
        self.optimizer.zero_grad()
        (loss * self.scale).backward()
        gradients = [p.grad.div_(self.scale) for p in self.model.parameters()]
        is_finite = all(torch.isfinite(g).all() for g in gradients)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        if is_finite:
            self.optimizer.step()
            self.num_good += 1
            if self.num_good == self.growth_interval:
                self.scale, self.num_good = 2 * self.scale, 0
        else:
            self.scale, self.num_good = self.scale / 2, 0
        return {"loss": loss.detach(), "grad_norm": norm, "scale": self.scale}

    def state_dict(self):
        return {"scale": self.scale, "num_good": self.num_good}

    def load_state_dict(self, state):
        self.scale, self.num_good = state["scale"], state["num_good"]
"""
_IN_A_DICT = (
    (
        "        self.scale, self.growth_interval, self.num_good = init_scale, growth_interval, 0\n",
        '        self.growth_interval, self.state = growth_interval, {"scale": init_scale, "num_good": 0}\n',
    ),
    ("self.num_good += 1", 'self.state["num_good"] += 1'),
    ("if self.num_good ==", 'if self.state["num_good"] =='),
    (
        "self.scale, self.num_good = 2 * self.scale, 0",
        'self.state["scale"], self.state["num_good"] = 2 * self.state["scale"], 0',
    ),
    (
        "self.scale, self.num_good = self.scale / 2, 0",
        'self.state["scale"], self.state["num_good"] = self.state["scale"] / 2, 0',
    ),
    ('{"scale": self.scale, "num_good": self.num_good}', "dict(self.state)"),
    ('self.scale, self.num_good = state["scale"], state["num_good"]', "self.state = state"),
    ("self.scale)", 'self.state["scale"])'),
    ("self.scale}", 'self.state["scale"]}'),
)
_IS_FINITE = "all(torch.isfinite(g).all() for g in gradients)"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "2.2": wrong(
        _TRAINER,
        {
            "no loss scaling with fp16": ("no loss scaling", "init_scale=init_scale,", "enabled=False,"),
            "the loss is not scaled": (
                "no loss scaling",
                "self.scaler.scale(loss).backward()",
                "self.scaler.scale(loss)\n        loss.backward()",
            ),
            "clip without unscale": ("clipping without unscale", _UNSCALE, ""),
            "update forgotten": ("`update()` is missing", _UPDATE, ""),
            "unscale twice": ("unscaled twice", _CLIP, _CLIP + _UNSCALE),
            "unscale twice, the second time by hand": (
                "unscaled twice",
                _CLIP,
                "        for p in self.model.parameters():\n"
                "            p.grad /= self.scaler.get_scale()\n" + _CLIP,
            ),
            "half on the model": (
                "`.half()` on the model",
                "        self.scaler = ",
                "        model.half()\n        self.scaler = ",
            ),
            "the optimizer steps by itself": (
                "a gradient that overflowed is used",
                "self.scaler.step(self.optimizer)",
                "self.optimizer.step()",
            ),
            "scaler state not saved": (
                "the scaler's state is not saved",
                ("return self.scaler.state_dict()", "return {}"),
                ("        self.scaler.load_state_dict(state)", "        pass"),
            ),
            "only the scale is saved": (
                "the scaler's state is not saved, or only its scale",
                ("return self.scaler.state_dict()", 'return {"scale": self.scaler.get_scale()}'),
                (
                    "        self.scaler.load_state_dict(state)",
                    '        self.scaler.load_state_dict(self.scaler.state_dict() | {"scale": state["scale"]})',
                ),
            ),
            "the scaler itself is saved": (
                "an object is saved",
                ("return self.scaler.state_dict()", 'return {"scaler": self.scaler}'),
                ("        self.scaler.load_state_dict(state)", '        self.scaler = state["scaler"]'),
            ),
            "the scaled loss in the report": (
                "reported while it is multiplied by the scale",
                "self.scaler.scale(loss).backward()",
                "loss = self.scaler.scale(loss)\n        loss.backward()",
            ),
            "loss outside autocast, in fp16": (
                "outside autocast, from fp16 logits",
                f"loss = F.cross_entropy({_FORWARD}",
                f"logits = {_FORWARD}\n        loss = F.cross_entropy(logits",
            ),
            "bf16, the default on CPUs": ("in another type", ", torch.float16)", ")"),
            "the sum for the mean": (
                "the sum over the batch",
                'batch["labels"])',
                'batch["labels"], reduction="sum")',
            ),
            "log_softmax in fp16": (
                "by operations that autocast leaves in fp16",
                f'F.cross_entropy({_FORWARD}, batch["labels"])',
                f'-F.log_softmax({_FORWARD}, -1).gather(1, batch["labels"][:, None]).mean()',
            ),
            "labels smoothed": (
                "another loss than the cross-entropy",
                'batch["labels"])',
                'batch["labels"], label_smoothing=0.1)',
            ),
            "the mask ignored": ("does not get the attention mask", _MASK, f"torch.ones_like({_MASK})"),
            "a mask made of the ids": ("the mask is made of the ids", _MASK, 'batch["input_ids"] != 0'),
            "gradients never cleared": ("gradients left over from the step before", _CLEAR, ""),
            "never clipped": (
                "the gradients are not clipped",
                "model.parameters(), self.max_norm",
                'model.parameters(), float("inf")',
            ),
            "max_norm ignored": (
                "gradients of another loss",
                "parameters(), self.max_norm",
                "parameters(), 0.3",
            ),
            "clipped by value": (
                "each number is clipped by itself",
                _CLIP,
                "        norm = torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters()])\n"
                "        torch.nn.utils.clip_grad_value_(self.model.parameters(), self.max_norm)\n",
            ),
            "short gradients made longer": (
                "shorter than `max_norm` are made longer",
                _CLIP,
                _CLIP + "        for p in self.model.parameters():\n"
                "            p.grad *= self.max_norm / norm.clamp(max=self.max_norm)\n",
            ),
            "the norm after clipping": (
                "the norm after clipping",
                _CLIP,
                _CLIP
                + "        norm = torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters()])\n",
            ),
            "the norm of scaled gradients": (
                "the norm of gradients that are still multiplied by the scale",
                (
                    _UNSCALE,
                    "        scaled = torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters()])\n"
                    + _UNSCALE,
                ),
                ('"grad_norm": norm', '"grad_norm": scaled'),
            ),
            "init_scale ignored": ("whatever `init_scale` is", "init_scale=init_scale, ", ""),
            "growth_interval ignored": ("the scale never doubles", ", growth_interval=growth_interval", ""),
            "the scale from before": (
                "from before this step is reported",
                (_STEP, "        before = self.scaler.get_scale()\n" + _STEP),
                ('"scale": self.scaler.get_scale()', '"scale": before'),
            ),
            "no state": ("begin anew", "        self.scaler.load_state_dict(state)", "        pass"),
            "another scale by default": (
                "the defaults of `__init__`",
                "init_scale=2.0**16",
                "init_scale=2.0**15",
            ),
            "gradients cleared after the step": (
                "or from another backward",
                (_CLEAR, ""),
                (_UPDATE, _UPDATE + _CLEAR),
            ),
            "a step whose loss is NaN left out": (
                "the scale never hears of it",
                _BACKWARD,
                "        if not torch.isfinite(loss):\n"
                '            return {"loss": loss, "grad_norm": loss, "scale": self.scaler.get_scale()}\n'
                + _BACKWARD,
            ),
            "a loss that is NaN replaced in the report": (
                "a broken step looks like a good one",
                '"loss": loss.detach()',
                '"loss": torch.nan_to_num(loss.detach())',
            ),
            "each group of the optimizer clipped by itself": (
                "clipped by itself, and not the norm of all",
                _CLIP,
                "        norm = torch.stack([torch.nn.utils.clip_grad_norm_(group['params'], self.max_norm)\n"
                "            for group in self.optimizer.param_groups]).norm()\n",
            ),
            "one group of the optimizer clipped": (
                "clipped by itself, and not the norm of all",
                "clip_grad_norm_(self.model.parameters(),",
                'clip_grad_norm_(self.optimizer.param_groups[0]["params"],',
            ),
            "autocast switched by hand": (
                "autocast is switched for the whole process",
                '        with torch.autocast("cpu", torch.float16):\n            loss = F.cross_entropy('
                f'{_FORWARD}, batch["labels"])\n',
                '        torch.set_autocast_dtype("cpu", torch.float16)\n'
                '        torch.set_autocast_enabled("cpu", True)\n'
                f'        loss = F.cross_entropy({_FORWARD}, batch["labels"])\n'
                '        torch.set_autocast_enabled("cpu", False)\n        torch.clear_autocast_cache()\n',
            ),
            "no key for the norm": ("a key is missing", '"grad_norm": norm, ', ""),
            "a scale of 1 at least": (
                "kept above a limit",
                _UPDATE,
                _UPDATE + "        if self.scaler.get_scale() < 1:\n            self.scaler.update(1.0)\n",
            ),
            "the scaler's own tensor in the report": (
                "the next step writes into it",
                '"scale": self.scaler.get_scale()',
                '"scale": self.scaler._scale',
            ),
            "the device that the machine has": (
                "what the machine has",
                'torch.autocast("cpu"',
                'torch.autocast("cuda" if torch.cuda.is_available() else "cpu"',
            ),
            "the logarithm of a probability": (
                "a loss of 20 and more is cut",
                f'F.cross_entropy({_FORWARD}, batch["labels"])',
                f'-(F.softmax({_FORWARD}.float(), -1) + 1e-8).log().gather(1, batch["labels"][:, None]).mean()',
            ),
        },
    )
    + wrong(
        _BY_HAND,
        {
            "infinities only": (
                "infinities are looked for, and NaN passes",
                _IS_FINITE,
                "not any(torch.isinf(g).any() for g in gradients)",
            ),
            "NaN only": (
                "a gradient that overflowed is used",
                _IS_FINITE,
                "not any(torch.isnan(g).any() for g in gradients)",
            ),
            "the last gradient only": (
                "some gradients are looked at",
                _IS_FINITE,
                "bool(torch.isfinite(gradients[-1]).all())",
            ),
            "the first gradient only": (
                "a gradient that overflowed is used",
                _IS_FINITE,
                "bool(torch.isfinite(gradients[0]).all())",
            ),
            "the loss instead of its gradient": (
                "a gradient that overflowed is used",
                _IS_FINITE,
                "bool(torch.isfinite(loss * self.scale))",
            ),
            "a bad step does not halve the scale": (
                "it stays as it is",
                "self.scale / 2, 0",
                "self.scale, 0",
            ),
            "no norm of a bad step": (
                "the norm of a bad step is replaced",
                '"grad_norm": norm',
                '"grad_norm": norm if is_finite else 0.0',
            ),
            "a scale of 2 to the 24 at most": (
                "kept below a limit",
                "self.scale, self.num_good = 2 * self.scale, 0",
                "self.scale, self.num_good = min(2 * self.scale, 2.0**24), 0",
            ),
            "a lower learning rate after a bad step": (
                "its momentum or its learning rate are changed",
                "            self.scale, self.num_good = self.scale / 2, 0",
                "            self.scale, self.num_good = self.scale / 2, 0\n"
                '            self.optimizer.param_groups[0]["lr"] *= 0.5',
            ),
            "the count goes on after a bad step": (
                "a bad one in between must set their number back to 0",
                "            self.scale, self.num_good = self.scale / 2, 0",
                "            self.scale = self.scale / 2",
            ),
            "doubled one step late": (
                "one good step too late",
                "self.num_good == self.growth_interval",
                "self.num_good > self.growth_interval",
            ),
            "doubled one step early": (
                "one good step too early",
                "self.num_good == self.growth_interval",
                "self.num_good + 1 == self.growth_interval",
            ),
            "the count is never set back": (
                "counted from 0 again",
                ("self.num_good == self.growth_interval", "self.num_good >= self.growth_interval"),
                ("self.scale, self.num_good = 2 * self.scale, 0", "self.scale = 2 * self.scale"),
            ),
            "the count outside the state": (
                "or only its scale",
                ('{"scale": self.scale, "num_good": self.num_good}', '{"scale": self.scale}'),
                (
                    'self.scale, self.num_good = state["scale"], state["num_good"]',
                    'self.scale = state["scale"]',
                ),
            ),
            "the count outside the state, in a global": (
                "or only its scale",
                ("@exercise", "COUNT = {}\n\n@exercise"),
                (
                    "init_scale, growth_interval, 0\n",
                    "init_scale, growth_interval, 0\n        COUNT[id(self)] = 0\n",
                ),
                ("self.num_good += 1", "COUNT[id(self)] += 1"),
                ("if self.num_good ==", "if COUNT[id(self)] =="),
                (
                    "self.scale, self.num_good = 2 * self.scale",
                    "self.scale, COUNT[id(self)] = 2 * self.scale",
                ),
                (
                    "self.scale, self.num_good = self.scale / 2",
                    "self.scale, COUNT[id(self)] = self.scale / 2",
                ),
            ),
            "the state that was loaded is trained on": (
                "hold the same dict",
                *_IN_A_DICT,
                ("return dict(self.state)", "return dict(self.state)"),
            ),
            "its own state handed out": (
                "hold the same dict",
                *_IN_A_DICT,
                ("return dict(self.state)", "return self.state"),
                ("self.state = state", "self.state = dict(state)"),
            ),
            "the scale outside the state": (
                "the scale is not loaded",
                'self.scale, self.num_good = state["scale"], state["num_good"]',
                'self.num_good = state["num_good"]',
            ),
            "one count for all trainers": (
                "counts in the same place",
                ("def __init__", "num_good = 0\n\n    def __init__"),
                (
                    "growth_interval, self.num_good = init_scale, growth_interval, 0",
                    "growth_interval = init_scale, growth_interval",
                ),
                ("self.num_good += 1", "Fp16Trainer.num_good += 1"),
                (
                    "self.scale, self.num_good = 2 * self.scale",
                    "self.scale, Fp16Trainer.num_good = 2 * self.scale",
                ),
                (
                    "self.scale, self.num_good = self.scale / 2",
                    "self.scale, Fp16Trainer.num_good = self.scale / 2",
                ),
                (
                    'self.scale, self.num_good = state["scale"]',
                    'self.scale, Fp16Trainer.num_good = state["scale"]',
                ),
            ),
            "one scale for all trainers": (
                "have one scale",
                ("self.scale, self.growth_interval,", "Fp16Trainer.scale, self.growth_interval,"),
                ("self.scale, self.num_good = 2", "Fp16Trainer.scale, self.num_good = 2"),
                (
                    "self.scale, self.num_good = self.scale / 2",
                    "Fp16Trainer.scale, self.num_good = self.scale / 2",
                ),
                (
                    'self.scale, self.num_good = state["scale"]',
                    'Fp16Trainer.scale, self.num_good = state["scale"]',
                ),
            ),
        },
    ),
}
