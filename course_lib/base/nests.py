"""Nests: tensors in dicts, lists, tuples and dataclasses, in one another, as data loaders make them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import fields, is_dataclass
from typing import Any


def leaves(nest: Any) -> Iterator[Any]:
    """What a nest holds that is no nest itself, from left to right."""
    parts = _parts(nest)
    if parts is None:
        yield nest
    else:
        for part in parts:
            yield from leaves(part)


def map_leaves(function: Callable[[Any], Any], nest: Any) -> Any:
    """A nest of the same form with `function(leaf)` in the place of each leaf. The given one stays as it is.

    Mappings, lists, tuples, named tuples and instances of dataclasses keep their type; a mapping that cannot be
    changed becomes a dict.
    """
    parts = _parts(nest)
    if parts is None:
        return function(nest)
    made = [map_leaves(function, part) for part in parts]
    if isinstance(nest, MutableMapping) and type(nest) is not dict:
        same = copy.copy(nest)  # such a type may hold more than its items: a default, an encoding
        same.update(zip(nest, made, strict=True))
        return same
    if isinstance(nest, Mapping):
        return dict(zip(nest, made, strict=True))
    if isinstance(nest, list | tuple):
        return type(nest)(*made) if hasattr(nest, "_fields") else type(nest)(made)
    twin = copy.copy(nest)
    for field, part in zip(fields(nest), made, strict=True):
        object.__setattr__(twin, field.name, part)  # a frozen one lets nobody else
    return twin


def is_nest(value: Any) -> bool:
    """Whether `value` is a mapping, list, tuple or dataclass, and no leaf: what has a method `to` is one."""
    return _parts(value) is not None


def _parts(nest: Any) -> list[Any] | None:
    """What stands directly in a nest; None for a leaf."""
    kind = type(nest)  # the usual ones first: each step asks for all parts of its batch several times
    if kind is dict:
        return list(nest.values())
    if kind is list or kind is tuple:
        return list(nest)
    if isinstance(nest, Mapping):
        return list(nest.values())
    if hasattr(nest, "to"):  # a tensor, and a packed sequence, which is a tuple too
        return None
    if isinstance(nest, list | tuple):
        return list(nest)
    if is_dataclass(nest) and not isinstance(nest, type):
        return [getattr(nest, field.name) for field in fields(nest)]
    return None
