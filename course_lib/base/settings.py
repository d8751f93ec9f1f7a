"""Values as text: YAML, and the kind errors when a key is misspelt or a value is not what its field takes."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from course_lib.base.errors import UserError, require


def check_keys(values: Mapping[Any, Any], known: Sequence[str], *, source: str) -> None:
    """Raise UserError for the first key that is not known, naming the nearest."""
    for key in values:
        if key not in known:
            nearest = _nearest(str(key), known)
            raise UserError(f"{source}: unknown key {str(key)!r}; the nearest known key is {nearest!r}")


def _nearest(key: str, known: Sequence[str]) -> str:
    """`lr` -> learning_rate (initials), `batch_size` -> micro_batch_size (a part), else by spelling."""
    by_initials = [name for name in known if "".join(part[0] for part in name.split("_")) == key]
    by_part = [name for name in known if len(key) > 3 and (key in name or name in key)]
    by_initials.sort(key=len, reverse=True)  # lr: rather learning_rate than lora_rank
    return (by_initials or by_part or difflib.get_close_matches(key, known, n=1, cutoff=0.0))[0]


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file; {} for an empty one. Raises UserError naming the file and the line, also where a key
    stands twice."""
    yaml = require("yaml")
    try:
        text = Path(path).read_text(encoding="utf-8")
        _refuse_doubled(yaml.compose(text, Loader=yaml.SafeLoader), path)
        values = yaml.safe_load(text)
    except UserError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"cannot read the config {path}: {reason}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2024-99-99
        mark = getattr(error, "problem_mark", None)
        place = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise UserError(f"{place}: not valid YAML; write one 'key: value' per line") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UserError(f"{path}: a config is made of 'key: value' lines, this holds a {_kind(values)}")
    return values


def _refuse_doubled(node: Any, path: str | Path) -> None:
    """YAML takes the last of several values in silence."""
    lines: dict[str, int] = {}
    for key, _ in node.value if getattr(node, "id", "") == "mapping" else ():
        line = key.start_mark.line + 1
        if str(key.value) in lines:
            first = lines[str(key.value)]
            raise UserError(
                f"{path}, line {line}: {key.value!r} stands in line {first} already; keep one of them"
            )
        lines[str(key.value)] = line


def to_yaml(values: Mapping[str, Any]) -> str:
    """The values as YAML text, in their order."""
    text: str = require("yaml").safe_dump(dict(values), sort_keys=False, allow_unicode=True)
    return text


def as_field(field: dataclasses.Field[Any], value: Any) -> Any:
    """The value in the type of its field; what would lose information is refused.

    YAML 1.1 reads `1e-3` (no dot) as text, and everyone writes it so: text that is a number counts as one.
    """
    kind, *others = str(field.type).split(" | ")
    if (value is None and "None" in others) or (
        type(value).__name__ in {kind, *others} & {"bool", "str"} and _number(value) is None
    ):
        return value
    if kind == "str" and type(value) is str:
        return value
    number = _number(value)
    if number is not None and kind == "float":
        return number
    if number is not None and kind == "int" and number.is_integer():
        return value if isinstance(value, int) else int(number)
    wanted = {"bool": "true or false", "str": "text", "int": "a whole number", "float": "a number"}[kind]
    shown = "empty" if value is None else f"{value!r} ({_kind(value)})"
    raise UserError(f"{field.name} must be {wanted}, got {shown}")


def _number(value: Any) -> float | None:
    """The number that `value` is or spells, None when it is none (true, false and NaN are none)."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _kind(value: Any) -> str:
    names = {str: "text", bool: "true/false", int: "whole number", float: "number", list: "list"}
    return names.get(type(value), type(value).__name__)
