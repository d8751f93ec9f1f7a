"""What is kept of a model while a harness calls the learner: the modes of its parts, what is frozen, its forwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from autograder.lessons.lesson_06.harness.shared import Watch


class ModeWatch(Watch):
    """Also whether a part of the model was in another mode than at first, in a forward or after the call."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._modes, self._is_changed = _modes(model), False
        super().__init__(model)

    def note(self, module: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        super().note(module, inputs, named)
        self._is_changed |= self.are_changed(module)

    def are_changed(self, model: torch.nn.Module) -> bool:
        return _modes(model) != self._modes

    def begin_anew(self, model: torch.nn.Module) -> None:
        """From now on the modes are as they are now."""
        self._modes, self._is_changed, self.has_evaluated = _modes(model), False, False

    def report(self) -> dict[str, bool]:
        return super().report() | {"modes_changed": self._is_changed}


@dataclass
class _Forward:
    """One that gradients can go back through, and the slope that backward has brought to its logits."""

    random_state: torch.Tensor
    inputs: tuple[Any, ...]
    named: dict[str, Any]
    logits: torch.Tensor
    slope: torch.Tensor | None = None

    def ids(self) -> list[torch.Tensor]:
        """Row by row; none where they come in another dtype."""
        tensors: list[torch.Tensor] = [*self.inputs, *self.named.values()]
        return [row for tensor in tensors if tensor.dtype == torch.int64 for row in tensor]


class Forwards:
    """The forwards of a model until `end`, of which `used` gives those that backward has gone through."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._all: list[_Forward] = []
        self._begun: tuple[torch.Tensor, tuple[Any, ...], dict[str, Any]] = torch.get_rng_state(), (), {}
        self._hooks = [
            model.register_forward_pre_hook(self._begin, with_kwargs=True),
            model.register_forward_hook(self._note),
        ]

    def _begin(self, _: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._begun = torch.get_rng_state(), inputs, named

    def _note(self, _: Any, inputs: Any, logits: Any) -> None:
        if not (isinstance(logits, torch.Tensor) and logits.requires_grad):
            return
        forward = _Forward(*self._begun, logits.detach().clone())

        def keep(slope: torch.Tensor) -> None:
            slope = slope.detach().clone()
            forward.slope = slope if forward.slope is None else forward.slope + slope

        logits.register_hook(keep)
        self._all.append(forward)

    def end(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def used(self) -> list[_Forward]:
        return [forward for forward in self._all if forward.slope is not None]


def gradients_again(twin: torch.nn.Module, forwards: list[_Forward]) -> list[torch.Tensor] | None:
    """Of each forward the gradients that its slope gives in a model with the same weights, all in one row.

    None where such a model does not come to the same logits from the same random state: nothing is said of those.
    """
    found, trained = [], [weight for weight in twin.parameters() if weight.requires_grad]
    for forward in forwards:
        torch.set_rng_state(forward.random_state)
        logits = twin(*forward.inputs, **forward.named)
        if forward.slope is None or not torch.allclose(logits, forward.logits.to(logits.dtype), rtol=1e-3):
            return None
        rows = torch.autograd.grad(logits, trained, forward.slope.to(logits.dtype), allow_unused=True)
        pairs = zip(rows, trained, strict=True)
        found.append(torch.cat([(torch.zeros_like(w) if row is None else row).flatten() for row, w in pairs]))
    return found


def _modes(model: torch.nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


def frozen_of(model: Any) -> list[torch.Tensor]:
    """The values of the frozen parameters, as they are now."""
    return [parameter.detach().clone() for parameter in model.parameters() if not parameter.requires_grad]
