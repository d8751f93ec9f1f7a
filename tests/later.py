"""Modules that take seconds to import are imported by the test that first needs them: every run collects every file."""

from __future__ import annotations

import importlib
from typing import Any


class Later:
    """Stands for a module, which is imported when one of its names is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks for its own at everything that a test file holds
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)
