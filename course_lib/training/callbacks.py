"""What `fit` tells the outside: where the run is, what was measured, and when saving is safe."""

from __future__ import annotations

import signal
import threading
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class TrainState:
    """Where a run is. Plain values, so that a checkpoint holds it as it is."""

    step: int = 0
    """Optimizer updates so far."""
    epoch: int = 0
    """Epochs completed."""
    step_in_epoch: int = 0
    """Updates in the current epoch; the next batch is the one after these."""
    num_samples: int = 0
    num_tokens: int = 0
    num_nonfinite: int = 0
    """Steps that a gradient scaler skipped because a gradient was infinite or NaN."""
    train_seconds: float = 0.0
    """Time in training steps, data wait included, evaluation and saving not."""
    last_validated_step: int = 0
    should_stop: bool = False
    """A callback sets this to end the run after the current step."""
    stop_reason: str = ""

    def state_dict(self) -> dict[str, Any]:
        return asdict(self)

    def stop(self, reason: str) -> None:
        self.should_stop, self.stop_reason = True, reason


class Callback:
    """What may be hung into `fit`. Every method does nothing until it is overridden.

    One that has a `name`, `state_dict` and `load_state_dict` is saved in the checkpoints of a run.
    """

    def on_step(self, state: TrainState) -> None:
        """After each update. Reading a tensor here costs a sync per step."""

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        """A record was made; `record["kind"]` is `"train"`, `"validation"` or `"epoch"`."""

    def on_safe_point(self, state: TrainState) -> None:
        """Nothing is pending: all steps are logged and checked for NaN. The moment to write a checkpoint."""

    def on_end(self, state: TrainState) -> None:
        """The run is over, also by an error or an interrupt: what was opened can be closed."""


class InterruptBetweenSteps(Callback):
    """Ctrl-C ends the run after the current step, a second one at once.

    Python raises KeyboardInterrupt between any two instructions, within a library's lock too: TensorBoard's queue
    was seen to wait for ever after one. Use it around `fit` and as the last of its callbacks.
    """

    def __init__(self) -> None:
        self.is_asked = False

    def __enter__(self) -> InterruptBetweenSteps:
        # Where Ctrl-C is ignored (nohup) or handled by another, it stays so; only the main thread may ask.
        self.is_ours = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self.is_ours:
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def on_step(self, state: TrainState) -> None:
        if self.is_asked:
            raise KeyboardInterrupt

    def _on_signal(self, _signal: int, _frame: object) -> None:
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True
