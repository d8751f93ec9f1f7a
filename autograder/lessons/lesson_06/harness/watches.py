"""What is kept of a model's parts while a harness calls the learner: their modes, and what is frozen."""

from __future__ import annotations

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


def _modes(model: torch.nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


def frozen_of(model: Any) -> list[torch.Tensor]:
    """The values of the frozen parameters, as they are now."""
    return [parameter.detach().clone() for parameter in model.parameters() if not parameter.requires_grad]
