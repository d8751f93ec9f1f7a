"""Wrong solutions of 2.2 and 2.3, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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
    "2.2": (
        Mutant(
            name="no loss scaling with fp16",
            source=edited(_TRAINER, ("init_scale=init_scale,", "enabled=False,")),
            says="no loss scaling",
        ),
        Mutant(
            name="the loss is not scaled",
            source=edited(
                _TRAINER,
                ("self.scaler.scale(loss).backward()", "self.scaler.scale(loss)\n        loss.backward()"),
            ),
            says="no loss scaling",
        ),
        Mutant(
            name="clip without unscale",
            source=edited(_TRAINER, (_UNSCALE, "")),
            says="clipping without unscale",
        ),
        Mutant(
            name="update forgotten",
            source=edited(_TRAINER, (_UPDATE, "")),
            says="`update()` is missing",
        ),
        Mutant(
            name="unscale twice",
            source=edited(_TRAINER, (_CLIP, _CLIP + _UNSCALE)),
            says="unscaled twice",
        ),
        Mutant(
            name="unscale twice, the second time by hand",
            source=edited(
                _TRAINER,
                (
                    _CLIP,
                    "        for p in self.model.parameters():\n"
                    "            p.grad /= self.scaler.get_scale()\n" + _CLIP,
                ),
            ),
            says="unscaled twice",
        ),
        Mutant(
            name="half on the model",
            source=edited(
                _TRAINER, ("        self.scaler = ", "        model.half()\n        self.scaler = ")
            ),
            says="`.half()` on the model",
        ),
        Mutant(
            name="the optimizer steps by itself",
            source=edited(_TRAINER, ("self.scaler.step(self.optimizer)", "self.optimizer.step()")),
            says="a gradient that overflowed is used",
        ),
        Mutant(
            name="scaler state not saved",
            source=edited(
                _TRAINER,
                ("return self.scaler.state_dict()", "return {}"),
                ("        self.scaler.load_state_dict(state)", "        pass"),
            ),
            says="the scaler's state is not saved",
        ),
        Mutant(
            name="only the scale is saved",
            source=edited(
                _TRAINER,
                ("return self.scaler.state_dict()", 'return {"scale": self.scaler.get_scale()}'),
                (
                    "        self.scaler.load_state_dict(state)",
                    '        self.scaler.load_state_dict(self.scaler.state_dict() | {"scale": state["scale"]})',
                ),
            ),
            says="the scaler's state is not saved, or only its scale",
        ),
        Mutant(
            name="the scaler itself is saved",
            source=edited(
                _TRAINER,
                ("return self.scaler.state_dict()", 'return {"scaler": self.scaler}'),
                ("        self.scaler.load_state_dict(state)", '        self.scaler = state["scaler"]'),
            ),
            says="an object is saved",
        ),
        Mutant(
            name="the scaled loss in the report",
            source=edited(
                _TRAINER,
                (
                    "self.scaler.scale(loss).backward()",
                    "loss = self.scaler.scale(loss)\n        loss.backward()",
                ),
            ),
            says="reported while it is multiplied by the scale",
        ),
        Mutant(
            name="loss outside autocast, in fp16",
            source=edited(
                _TRAINER,
                (
                    f"loss = F.cross_entropy({_FORWARD}",
                    f"logits = {_FORWARD}\n        loss = F.cross_entropy(logits",
                ),
            ),
            says="outside autocast, from fp16 logits",
        ),
        Mutant(
            name="bf16, the default on CPUs",
            source=edited(_TRAINER, (", torch.float16)", ")")),
            says="in another type",
        ),
    ),
    "2.3": (
        Mutant(
            name="bfloat16 on the model",
            source=edited(
                _STEP,
                ("    with torch.autocast", "    model.bfloat16()\n    with torch.autocast"),
            ),
            says="on the model",
        ),
        Mutant(
            name="bfloat16 on the model, and back after the step",
            source=edited(
                _STEP,
                ("    with torch.autocast", "    model.bfloat16()\n    with torch.autocast"),
                ("    return", "    model.float()\n    return"),
            ),
            says="on the model",
        ),
        Mutant(
            name="autocast around backward",
            source=edited(
                _STEP,
                (
                    "    optimizer.zero_grad(set_to_none=True)\n    loss",
                    "        optimizer.zero_grad(set_to_none=True)\n        loss",
                ),
            ),
            says="autocast around backward",
        ),
        Mutant(
            name="loss outside autocast",
            source=edited(_STEP, (_LOSS, _LOSS[4:])),
            says="outside autocast, from bf16 logits",
        ),
        Mutant(
            name="autocast around the loss alone",
            source=edited(
                _STEP,
                (
                    '    with torch.autocast("cpu", torch.bfloat16):\n'
                    '        logits = model(batch["input_ids"], batch["attention_mask"])\n',
                    '    logits = model(batch["input_ids"], batch["attention_mask"])\n'
                    '    with torch.autocast("cpu", torch.bfloat16):\n',
                ),
            ),
            says="around the loss alone",
        ),
        Mutant(
            name="gradients never cleared",
            source=edited(_STEP, ("    optimizer.zero_grad(set_to_none=True)\n", "")),
            says="gradients of two steps",
        ),
    ),
}
