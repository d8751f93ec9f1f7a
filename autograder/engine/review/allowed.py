"""The list of what a cell may reach: names of modules, of what stands in them, and of attributes.

`allowed.json` is made by `python -m tools.make_allowed` from the installed libraries. Nothing is imported here: what a
cell names is only looked up.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any


@functools.cache
def _read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("allowed.json").read_text(encoding="utf-8"))
    return found


@functools.cache
def _modules() -> dict[str, dict[str, str]]:
    """Module → name → kind of each that is allowed."""
    return {
        module: {name: kind for kind, names in kinds.items() for name in names.split()}
        for module, kinds in _read()["modules"].items()
    }


@functools.cache
def _packages() -> frozenset[str]:
    """All modules, and the packages on the way to them."""
    parts = [module.split(".") for module in _modules()]
    return frozenset(".".join(names[:end]) for names in parts for end in range(1, len(names) + 1))


@functools.cache
def names_of(key: str) -> frozenset[str]:
    """One of the lists of names: "builtins", "attributes", "methods", "hidden" (private attributes of libraries) or
    "elsewhere" (attributes of their objects that are on no list)."""
    return frozenset(_read()[key].split())


def kind_of(path: str) -> str:
    """What stands at a dotted path: "module", "functions", "classes", "fixed" (a class that nobody can change),
    "values"; "" for what is not on the list.
    """
    if path in _packages():
        return "module"
    module, _, name = path.rpartition(".")
    return _modules().get(module, {}).get(name, "")


def public_names(module: str) -> frozenset[str]:
    """What `from module import *` may bind."""
    return frozenset(_modules().get(module, ()))
