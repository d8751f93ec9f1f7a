"""A process for foreign code, and its end."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.engine.sandbox.memory import LeastMemory, is_machines
    from autograder.engine.sandbox.start import LEVELS, Level, probe
    from autograder.engine.sandbox.stopping import KILLED, CheckStopped, Stop, Stopped, on_interrupt
    from autograder.engine.sandbox.watch import MACHINE_IS_FULL

__getattr__, __dir__, __all__ = attach(__name__, __file__)
