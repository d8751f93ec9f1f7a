"""Public names that are imported when they are first used (PEP 562), so that a package costs nothing to import.

A package lists its names once, as imports under `if TYPE_CHECKING:`, where editors and type checkers see them.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path


def attach(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for the package whose `__init__.py` is `file`."""
    statements = ast.walk(ast.parse(Path(file).read_text(encoding="utf-8")))
    imports = [node for node in statements if isinstance(node, ast.ImportFrom) and node.col_offset]
    home = {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(importlib.import_module(home[name]), name)
        setattr(sys.modules[package], name, value)  # found directly from now on
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *home}), sorted(home)
