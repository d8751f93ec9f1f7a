"""What a notebook offers and a cell may use around its solution. A module apart, for a cell can see its globals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class _Nothing:
    """Stands for what only a notebook has: every use of it does nothing."""

    def __getattr__(self, name: str) -> _Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> _Nothing:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False


def _exercise(exercise_id: str) -> Callable[[Any], Any]:
    return lambda definition: definition


NAMES: dict[str, Any] = {"exercise": _exercise} | dict.fromkeys(
    [
        "answer",
        "check",
        "check_quiz",
        "compare",
        "display",
        "drawn",
        "exam",
        "get_ipython",
        "predict",
        "predicted",
        "quiz",
    ],
    _Nothing(),
)
