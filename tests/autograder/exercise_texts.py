"""What an exercise says to its learner, by sentences: the statement above its cell, and the docstrings in it."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass

import jupytext

from autograder.course import find_exercise
from tests.autograder.solutions import LESSONS, reference_sources

_NEW_UNIT = re.compile(r'\n\s*\n|\n(?=\s*(?:"\w+"|`\w+`|\w+:) )|\n(?=\s{4,}\S)')
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`\"*])")
_SOLUTION = re.compile(r"### BEGIN SOLUTION.*?### END SOLUTION", re.DOTALL)


@dataclass(frozen=True)
class ExerciseText:
    """All that is said of an exercise, and what of it has to be claimed by somebody."""

    whole: str
    """Statement and cell without its solutions, one space between words: what a claim is quoted from."""
    sentences: tuple[str, ...]
    parameters: frozenset[str]
    """Of the entry, or of its methods that have a docstring, `self` aside; and the fields of a dataclass."""
    keys: frozenset[str]
    """Words in quotation marks in its docstrings, such as the keys of a result."""
    errors: frozenset[str]
    """Names of exceptions in its docstrings."""


def one_line(text: str) -> str:
    return " ".join(text.split())


@functools.cache
def exercise_text(exercise_id: str) -> ExerciseText:
    lesson, exercise = find_exercise(exercise_id)
    source = reference_sources(lesson.id)[exercise_id]
    statement = _statement(lesson.slug, exercise_id)
    tree = ast.parse(source)
    documented = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)
    ]
    docstrings = [ast.get_docstring(node) or "" for node in documented]
    entry = next(
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == exercise.entry
    )
    functions = [node for node in ast.walk(entry) if isinstance(node, ast.FunctionDef) and node in documented]
    functions += [node for node in ast.walk(entry) if getattr(node, "name", "") == "__init__"]
    names = {
        argument.arg
        for node in functions
        if isinstance(node, ast.FunctionDef)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    }
    names |= {
        node.target.id
        for node in entry.body
        if isinstance(entry, ast.ClassDef)
        and isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
    }
    told = "\n".join(docstrings)
    return ExerciseText(
        whole=one_line(statement + " " + _SOLUTION.sub("", source)),
        sentences=tuple(_sentences([statement, *docstrings])),
        parameters=frozenset(names - {"self", "cls"}),
        keys=frozenset(re.findall(r'"(\w+)"', told)),
        errors=frozenset(re.findall(r"\b[A-Z]\w*(?:Error|Exception)\b", told)),
    )


def _statement(slug: str, exercise_id: str) -> str:
    """What stands between an exercise's heading and its hints, less the line of its difficulty."""
    cells = jupytext.read(LESSONS / f"{slug}.py")["cells"]
    cell = next(
        cell["source"]
        for cell in cells
        if re.search(rf"^### {re.escape(exercise_id)} ", cell["source"], re.M)
    )
    text = re.split(rf"^### {re.escape(exercise_id)} .*$", cell, flags=re.MULTILINE)[1]
    kept = text.partition("<details>")[0].splitlines()
    return "\n".join(line for line in kept if not line.startswith(">"))


def _sentences(texts: list[str]) -> list[str]:
    units = [unit for text in texts for unit in _NEW_UNIT.split(text)]
    sentences = [one_line(sentence) for unit in units for sentence in _SENTENCE_END.split(unit)]
    return [sentence for sentence in sentences if re.search(r"\w", sentence)]
