"""Wrong solutions of 2.2 that scale by hand, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

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
            "the state taken apart by loading": (
                "loading takes the state apart",
                'state["scale"], state["num_good"]',
                'state.pop("scale"), state.pop("num_good")',
            ),
            "the state read at the next step": (
                "the scale is not loaded",
                (
                    'self.scale, self.num_good = state["scale"], state["num_good"]',
                    "self.waiting = dict(state)",
                ),
                (
                    "        with torch.autocast",
                    '        if "scale" in getattr(self, "waiting", {}):\n'
                    '            self.scale, self.num_good = self.waiting.pop("scale"), self.waiting.pop("num_good")\n'
                    "        with torch.autocast",
                ),
            ),
            "the count loaded as a flag": (
                "the number of good steps is lost",
                'state["scale"], state["num_good"]',
                'state["scale"], int(state["num_good"] > 0)',
            ),
            "another scale than the one in the report": (
                "that one never moves",
                ("(loss * self.scale)", "(loss * 1e4)"),
                ("div_(self.scale)", "div_(1e4)"),
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
