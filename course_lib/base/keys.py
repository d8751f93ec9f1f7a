"""The keys of a config, from the class that holds them: what each means, may be, and is unless it is set.

The class is the one source: its fields, the docstring under each, and headings, which are comments of one line between
blank ones. The help of a command, `help()` of the class and the page in `docs` are made of it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 100
_INT32 = 2**31 - 1
_DEFAULTS = {
    repr(dataclasses.MISSING): "required",
    "''": "empty",
    "None": "not set",
    "True": "true",
    "False": "false",
}
_KINDS = {"str": "text", "bool": "true or false", "int": "a whole number", "float": "a number"}
_HEADING = re.compile(r"(?<=\n\n) {4}# (.+)(?=\n\n)")


@dataclass(frozen=True, kw_only=True)
class Key:
    """One key of a config.

    Attributes:
        section: the heading above it in the class.
        default: as YAML has it; `required` where there is none, `not set` for None.
        values: what it may be, in words.
        meaning: its docstring, on one line; `None:` reads `Not set:`.
    """

    name: str
    section: str
    default: str
    values: str
    meaning: str


def read_keys(
    owner: type,
    choices: Mapping[str, Sequence[str]],
    ranges: Mapping[str, tuple[float, float, str]],
) -> list[Key]:
    """The fields of a dataclass in their order.

    `choices`: the only values of a key. `ranges`: lowest and highest value, and both in words, as an error says them.
    """
    source = inspect.getsource(owner)
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    headings = [(source.count("\n", 0, at.start()) + 1, at[1]) for at in _HEADING.finditer(source)]
    fields = {field.name: field for field in dataclasses.fields(owner)}
    found = list[Key]()
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        field = fields[node.target.id]
        found.append(
            Key(
                name=field.name,
                section=next((words for line, words in reversed(headings) if line < node.lineno), ""),
                default=_DEFAULTS.get(repr(field.default), str(field.default)),
                values=_values(field, choices.get(field.name), ranges.get(field.name)),
                meaning=_docstring(after),
            )
        )
    return found


class KeysDoc:
    """The `__doc__` of a config class: what it says itself, then its keys, read when somebody asks."""

    def __init__(self, own: str | None, *told: Any) -> None:
        """`told`: choices and ranges, as `read_keys` takes them."""
        self.own, self.told = own, told

    def __get__(self, instance: object, owner: type) -> str:
        try:
            return f"{self.own}\n\n{keys_text(read_keys(owner, *self.told))}"
        except OSError:  # there is no source to read
            return self.own or ""


def keys_text(keys: Sequence[Key]) -> str:
    """For a terminal: a heading, then each key with its default, and below what it means and may be."""
    lines = list[str]()
    for at, key in enumerate(keys):
        if key.section != keys[at - 1].section or not at:
            lines += ["", f"{key.section}:"]
        default = "" if key.default == "required" else f" = {key.default}"
        lines += textwrap.wrap(f"{key.name}{default}  ({key.values})", WIDTH, **_hanging(2))
        lines += textwrap.wrap(key.meaning, WIDTH, **_hanging(6))
    return "\n".join(lines).lstrip("\n")


def keys_page(keys: Sequence[Key]) -> str:
    """The same as tables in Markdown, one for each heading."""
    lines = list[str]()
    for at, key in enumerate(keys):
        if key.section != keys[at - 1].section or not at:
            lines += [
                "",
                f"## {key.section}",
                "",
                "| Key | Default | Values | Meaning |",
                "|---|---|---|---|",
            ]
        cells = (f"`{key.name}`", key.default, key.values, key.meaning)
        lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return "\n".join(lines).lstrip("\n") + "\n"


def _hanging(by: int) -> Any:
    return {"initial_indent": " " * by, "subsequent_indent": " " * 6, "break_on_hyphens": False}


def _docstring(node: ast.stmt | None) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    value = node.value.value if is_text else ""  # type: ignore[union-attr]
    return " ".join(value.split()).replace("None:", "Not set:") if isinstance(value, str) else ""


def _values(
    field: dataclasses.Field[Any], choices: Sequence[str] | None, allowed: tuple[float, float, str] | None
) -> str:
    """`a whole number, at least 1 and at most 9, or none`."""
    kinds = str(field.type).split(" | ")
    if choices:
        words = ", ".join(choices[:-1]) + f" or {choices[-1]}"
    else:
        words = _KINDS[next(kind for kind in ("int", "float", "bool", "str") if kind in kinds)]
        if allowed:
            says = allowed[2].removesuffix(f" and at most {_INT32}")  # a limit of machines, not of training
            words += f" {says}" if says.startswith(("above", "between")) else f", {says}"
        if {"int", "str"} <= {*kinds}:
            words += " or auto"
    return words
