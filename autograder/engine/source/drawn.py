"""Whose values a cell is written for: `STUDENT = "ada"` in it."""

from __future__ import annotations

import ast

from autograder.engine.source.python import MAX_CELL, as_python, parse

NAME = "STUDENT"


def student_in(source: str) -> str:
    """The id that a cell names, by the last such line; "" where it names none or is no Python."""
    tree = parse(as_python(source)) if NAME in source and len(source) <= MAX_CELL else None
    found = ""
    for node in tree.body if tree else []:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text)))
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text)))
            ) if name == NAME:
                found = text.strip()
    return found
