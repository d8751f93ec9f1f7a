"""Let a module be called like the function it is named after.

`from autograder import quiz` gives the function or, once anything has imported `autograder.quiz`, the module of the
same name: Python binds a submodule on its package. Learners write `quiz("01")` and must not meet the difference.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any


def make_callable(module_name: str, function: Callable[..., Any]) -> None:
    """Make `module(...)` the same as `function(...)`."""

    class CallableModule(types.ModuleType):
        @functools.wraps(function)
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

    sys.modules[module_name].__class__ = CallableModule
