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
            "autocast left open by an error of the loss": (
                "autocast is switched for the whole process",
                '        with torch.autocast("cpu", torch.float16):\n            loss = F.cross_entropy('
                f'{_FORWARD}, batch["labels"])\n',
                '        opened = torch.autocast("cpu", torch.float16)\n        opened.__enter__()\n'
                f"        try:\n            logits = {_FORWARD}\n"
                "        except BaseException:\n            opened.__exit__(None, None, None)\n            raise\n"
                '        loss = F.cross_entropy(logits, batch["labels"])\n'
                "        opened.__exit__(None, None, None)\n",
            ),
            "the weights in its state as well": (
                "saved in the trainer's state as well",
                (
                    "return self.scaler.state_dict()",
                    'return self.scaler.state_dict() | {"weights": [p.data.clone() for p in self.model.parameters()]}',
                ),
                (
                    "self.scaler.load_state_dict(state)",
                    'self.scaler.load_state_dict({key: state[key] for key in state if key != "weights"})',
                ),
            ),
            "the logarithm of a probability": (
                "a loss of 20 and more is cut",
                f'F.cross_entropy({_FORWARD}, batch["labels"])',
                f'-(F.softmax({_FORWARD}.float(), -1) + 1e-8).log().gather(1, batch["labels"][:, None]).mean()',
            ),
        },
    ),
}
