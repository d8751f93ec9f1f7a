"""Keeps a cell's objects from passing off memory of their choice as an array's.

NumPy and torch take an object's word for where its values lie: an attribute gives their address, by whatever way
Python finds it, and an array over any memory of the process reaches everything in it. So that attribute is looked up
on `object` first, and there is none: what an object holds under its name is not read, and whatever works out names as
they are asked for is not asked. Arrays, and other objects whose own class defines it, are found before.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any

_NAMES = (
    "__array_interface__",
    "__cuda_array_interface__",
)  # torch believes the latter without a GPU as well
_PLAIN = frozenset({list, tuple, dict, int, float, bool, str})
_PARTS = ("_parameters", "_buffers", "_modules")


def close(tell: Callable[..., int]) -> None:
    """Hide these attributes of all objects whose classes do not define them. Who gives one to an object is told of."""
    put(object, {name: _nowhere(name, tell) for name in _NAMES})
    for kind in (object, type):
        put(kind, {"__dir__": _without_them(kind.__dir__)})


def put(kind: type, attributes: dict[str, Any]) -> None:
    """Set attributes of a class that Python itself does not let be changed."""
    (space,) = gc.get_referents(kind.__dict__)  # the dict behind the view, which alone can be written
    space.update(attributes)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _without_them(listed: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`dir`, by which code goes through what an object has and asks for each."""

    def __dir__(self: Any) -> Any:
        return [name for name in listed(self) if name not in _NAMES]

    return __dir__


def _nowhere(name: str, tell: Callable[..., int]) -> object:
    """An attribute that no object has. As it can be set, it goes before what an object's own dict holds."""
    own_dict = object.__getattribute__

    def refuse() -> None:
        tell("flag", f"the cell gives an object `{name}`, which stands for memory of its choice")
        raise PermissionError(f"{name}: memory is not open to your code while it is checked")

    class Nowhere:
        __slots__ = ()

        def __get__(self, thing: Any, kind: type | None = None) -> Any:
            if type(thing) in _PLAIN:
                raise AttributeError(name)
            if thing is None or isinstance(thing, type):
                return _of_class(thing, name, self)
            with contextlib.suppress(AttributeError):
                if name in own_dict(thing, "__dict__"):
                    refuse()
            if hasattr(type(thing), "__getattr__") and _is_worked_out(thing, name):
                refuse()
            raise AttributeError(name)

        def __set__(self, thing: Any, value: Any) -> None:
            refuse()

        def __delete__(self, thing: Any) -> None:
            raise AttributeError(name)

    return Nowhere()


def _of_class(kind: Any, name: str, nowhere: object) -> Any:
    """What a class has, such as the property of NumPy's arrays: a class of all classes would hide it."""
    for one in type.__dict__["__mro__"].__get__(kind) if kind not in (None, type) else ():
        if one is not object and name in vars(one):
            found = vars(one)[name]
            return found.__get__(None, kind) if hasattr(found, "__get__") else found
    return nowhere  # what asks for it, as `dir` names it, gets something


def _is_worked_out(thing: Any, name: str) -> bool:
    """Whether its `__getattr__`, which Python asks next, gives it, or could do so then and not now."""
    kinds = type(thing).__mro__
    find = next((vars(kind)["__getattr__"] for kind in kinds if "__getattr__" in vars(kind)), None)
    if find is None:
        return False
    if not all(map(_is_of_library, kinds)) and not _is_steady(thing, find, kinds):
        return True
    try:
        return find(thing, name) is not None
    except Exception:
        return False


def _is_of_library(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    return kind.__module__ not in ("__learner__", "harness") and getattr(module, kind.__name__, None) is kind


def _is_steady(thing: Any, find: Any, kinds: tuple[type, ...]) -> bool:
    """Whether an object of the cell's own class answers by plain dicts alone."""
    torch = sys.modules.get("torch")
    if torch is not None and find is vars(torch.nn.Module)["__getattr__"]:
        space = object.__getattribute__(thing, "__dict__")
        return all(type(space.get(part, {})) in (dict, collections.OrderedDict) for part in _PARTS)
    own = [kind for kind in kinds if not _is_of_library(kind)]
    is_plain = not any({"__missing__", "__getitem__"} & vars(kind).keys() for kind in own)
    return is_plain and find in (dict.__getitem__, collections.OrderedDict.__getitem__)
