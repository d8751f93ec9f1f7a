"""Early stopping."""

from __future__ import annotations

from course_lib.callbacks import Callback


class EarlyStopping(Callback):
    def __init__(self, monitor: str = "loss", mode: str = "min", patience: int = 3, min_delta: float = 0.0) -> None:
        pass
