"""Wrong solutions of 2.2 and 2.3, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_TRAINER = """
import torch
import torch.nn.functional as F

@exercise("2.2")
class Fp16Trainer:
    def __init__(self, model, optimizer, *, max_norm, init_scale=2.0**16, growth_interval=2000):
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

_STEP = """
import torch
import torch.nn.functional as F

@exercise("2.3")
def mixed_step(model, batch, optimizer, max_norm):
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits, batch["labels"])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return {"loss": loss.detach(), "grad_norm": norm}
"""
_LOSS = "        loss = F.cross_entropy"

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
        },
    ),
    "2.3": wrong(
        _STEP,
        {
            "bfloat16 on the model": (
                "on the model",
                "    with torch.autocast",
                "    model.bfloat16()\n    with torch.autocast",
            ),
            "bfloat16 on the model, and back after the step": (
                "on the model",
                ("    with torch.autocast", "    model.bfloat16()\n    with torch.autocast"),
                ("    return", "    model.float()\n    return"),
            ),
            "autocast around backward": (
                "autocast around backward",
                "    optimizer.zero_grad(set_to_none=True)\n    loss",
                "        optimizer.zero_grad(set_to_none=True)\n        loss",
            ),
            "loss outside autocast": ("outside autocast, from bf16 logits", _LOSS, _LOSS[4:]),
            "autocast around the loss alone": (
                "around the loss alone",
                '    with torch.autocast("cpu", torch.bfloat16):\n'
                '        logits = model(batch["input_ids"], batch["attention_mask"])\n',
                '    logits = model(batch["input_ids"], batch["attention_mask"])\n'
                '    with torch.autocast("cpu", torch.bfloat16):\n',
            ),
            "gradients never cleared": (
                "gradients of two steps",
                "    optimizer.zero_grad(set_to_none=True)\n",
                "",
            ),
        },
    ),
}
