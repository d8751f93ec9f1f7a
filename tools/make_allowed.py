"""`python -m tools.make_allowed`: the list of what a solution's cell may reach, from the libraries that are installed.

Written to `autograder/engine/review/allowed.json`, which the reader of cells works from: it imports no library, least
of all because a cell names it. Run it anew after an update of torch, NumPy or SciPy and look at the difference: a new
name is a new means until somebody has said that it is none.
"""

from __future__ import annotations

import builtins
import dis
import importlib
import inspect
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course_lib.base import installed_version
from tools import ordinary
from tools.allowed_modules import (
    BEHIND,
    BUILTINS,
    CLOSED,
    INSTANCES,
    LATER,
    MODULES,
    MORE,
    OF_WORKBOOK,
    PLAIN,
    Rule,
)

TARGET = Path(__file__).parents[1] / "autograder" / "engine" / "review" / "allowed.json"
_PLAIN = (int, float, complex, str, bytes, bool, type(None), tuple, frozenset)
_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: no attribute of such a class can be replaced


def main() -> None:
    """Write the list."""
    TARGET.write_text(json.dumps(made(), indent=1) + "\n", encoding="utf-8")


def made_with() -> dict[str, str]:
    """The versions that decide what is on the list."""
    versions = {
        name: str(installed_version(name))
        for name in ("torch", "numpy", "scipy", "tokenizers", "pyyaml", "tqdm")
    }
    return {"python": ".".join(map(str, sys.version_info[:2])), **versions}


def made() -> dict[str, Any]:
    """The list, of the libraries that are installed."""
    modules: dict[str, dict[str, str]] = {}
    found_here = {name: getattr(builtins, name, None) for name in BUILTINS}
    classes = {name: value for name, value in found_here.items() if isinstance(value, type)}
    for name, rule in sorted(MODULES.items()):
        found = _permitted(name, rule)
        kinds: dict[str, list[str]] = {}
        for key, value in sorted(found.items()):
            kinds.setdefault(_kind(value), []).append(key)
            if isinstance(value, type):
                classes[f"{name}.{key}"] = value
        modules[name] = {kind: " ".join(names) for kind, names in sorted(kinds.items())}
    for name, later in LATER.items():
        known = " ".join(modules[name].values()).split()
        more = [key for key in later.split() if key not in known]
        modules[name]["functions"] = " ".join(sorted([*modules[name].get("functions", "").split(), *more]))
    modules["autograder"] = {"functions": " ".join(sorted(OF_WORKBOOK))}
    seen = [*classes.values(), *_layers()]
    closed = CLOSED | _unusual(seen)
    shown, hidden, methods = _attributes(seen)
    shown = (shown | MORE) - closed
    lists = {
        "attributes": shown,
        "methods": methods - closed,
        "hidden": hidden,
        "elsewhere": _elsewhere() - shown - PLAIN | closed,
    }
    text: dict[str, Any] = {
        "made with": made_with(),
        "builtins": " ".join(sorted(BUILTINS)),
        "modules": modules,
    }
    return text | {key: " ".join(sorted(names)) for key, names in lists.items()}


def _permitted(name: str, rule: Rule) -> dict[str, Any]:
    """What of a module is on the list: all its own public functions, classes and constants, or those that are named."""
    module = importlib.import_module(name)
    names = rule.only or getattr(module, "__all__", None) or dir(module)
    if rule.every:
        names = dir(module)
    found = {}
    for key in names:
        if key.startswith("_") or key in rule.but:
            continue
        value = getattr(module, key, module)
        is_named = key in rule.only
        if isinstance(value, types.ModuleType):
            continue
        if is_named or _is_own(value, name, rule):
            found[key] = value
    return found


def _is_own(value: Any, name: str, rule: Rule) -> bool:
    """Whether a module's value is defined in its library, and is no container that could be changed."""
    if isinstance(value, _PLAIN):
        return True
    if isinstance(value, dict | list | set):
        return False
    if not rule.every and "__all__" in vars(importlib.import_module(name)):
        return True
    home = getattr(value, "__module__", None) or type(value).__module__
    root = name.partition(".")[0]
    return str(home).partition(".")[0].lstrip("_") in (root, *rule.homes) or home == "builtins"


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return "fixed" if value.__flags__ & _IMMUTABLE else "classes"
    return "functions" if callable(value) else "values"


def _attributes(classes: list[type]) -> tuple[set[str], set[str], set[str]]:
    """The public attributes of all classes on the list and of what they make, all others, and those that are called."""
    shown: set[str] = set()
    hidden: set[str] = set()
    methods: set[str] = set()
    for one in [*classes, *map(type, INSTANCES())]:
        for parent in one.__mro__:
            for key, value in vars(parent).items():
                (hidden if key.startswith("_") else shown).add(key)
                is_theirs = parent.__module__.startswith(("torch", "course_lib"))
                if is_theirs and (callable(value) or isinstance(value, classmethod | staticmethod)):
                    methods.add(key)
                if key == "__init__" and inspect.isfunction(value):
                    for step in dis.get_instructions(value):
                        if step.opname == "STORE_ATTR":
                            (hidden if step.argval.startswith("_") else shown).add(step.argval)
            for key in inspect.get_annotations(parent):
                (hidden if key.startswith("_") else shown).add(key)
    for one in INSTANCES():
        for key in getattr(one, "__dict__", ()):
            (hidden if key.startswith("_") else shown).add(key)
    return (
        shown,
        {name for name in hidden if not name.startswith("__")},
        {name for name in methods if not name.startswith("_")},
    )


def _layers() -> list[type]:
    """Classes of objects that models hand to cells, whether a cell may name them or not."""
    import torch

    homes = (torch.nn, torch.optim, torch.optim.lr_scheduler)
    return [value for home in homes for value in vars(home).values() if isinstance(value, type)]


def _unusual(classes: list[type]) -> set[str]:
    """What tensors have that no solution is made of, and no other class has."""
    import torch

    usual = ordinary.OF_TENSORS | ordinary.OPERATORS | {f"{name}_" for name in ordinary.OPERATORS}
    of_tensors = (torch.Tensor, *(one for one in classes if type(one).__name__ == "tensortype"))
    others = [one for one in [*classes, *map(type, INSTANCES())] if not issubclass(one, of_tensors)]
    of_others = {key for one in others for parent in one.__mro__ for key in vars(parent)}
    found = {key for parent in torch.Tensor.__mro__ for key in vars(parent)}
    return {name for name in found - usual - of_others if not name.startswith("_")}


def _elsewhere() -> set[str]:
    """The public attributes of all classes of the modules that a cell does not name, and what their methods set."""
    found: set[str] = set()
    for name in BEHIND.split():
        module = importlib.import_module(name)
        for one in list(vars(module).values()):
            if isinstance(one, type) and one.__module__ == name:
                found |= vars(one).keys() | inspect.get_annotations(one).keys()
                found |= {key for value in list(vars(one).values()) for key in _set_by(value)}
    return {name for name in found if not name.startswith("_")}


def _set_by(method: Any) -> Iterator[str]:
    """The attributes that a method, or a property, and the functions within it set."""
    method = method.fget if isinstance(method, property) else getattr(method, "__func__", method)
    waiting = [method.__code__] if inspect.isfunction(method) else []
    while waiting:
        code = waiting.pop()
        waiting += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        yield from (step.argval for step in dis.get_instructions(code) if step.opname == "STORE_ATTR")


if __name__ == "__main__":
    main()
