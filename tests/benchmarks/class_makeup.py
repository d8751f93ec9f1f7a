"""A made class: submissions that differ as those of real students do, and what each of them is due.

Shares, of 100: 30 perfect, 45 partial (some cells right, some with a named mistake, the rest open), 9 empty, 10 broken
files and 6 hostile ones. No two students write the same cell: each has names, remarks and a line of code of their own,
so that neither the grader's results by content nor its record by family of code saves anything that a real class would
not. What nobody touched is equal, as in a real class.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jupytext
from nbformat import NotebookNode

from autograder.course.lessons import Exercise, load_lesson
from autograder.engine.source.notebook import exercise_sources
from autograder.lessons.checking.mutants import load_mutants
from tests.autograder import malformed
from tests.autograder.nbgrader_course import Course, cell, right_answers
from tests.autograder.solutions import reference_sources
from tests.exploits.all_cases import EXPLOITS, HONEST
from tests.exploits.forged_nbgrader import FORGERIES

SHARES = {"perfect": 30, "partial": 45, "empty": 9, "broken": 10, "hostile": 6}
BROKEN = (
    *("cut-3", "flipped-1", "encoding-utf-16", "no-marks", "doubled", "large-outputs", "empty", "format-3"),
    *("one-id", "old-schema", "merge-conflict", "encoding-cp1252", "cell-metadata-0", "html", "reversed"),
)
FORGED = ("a check that is a number", "points in the metadata", "no check at all", "checks skipped")
_ALTERNATIVES = Path(malformed.__file__).with_name("alternatives")
_TRIED = ("first try", "works on my laptop", "from the lecture", "shorter now", "after a night's sleep")


@dataclass
class Made:
    """One student's submission.

    Attributes:
        due: exercise id → the points that its work is worth by construction.
        sources: exercise id → the cell that was handed in, unless it was left as it came.
        what: what is broken, or what is forged.
    """

    student: str
    lesson_id: str
    kind: str
    due: dict[str, float] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    what: str = ""


def make_class(course: Course, lesson_ids: list[str], number: int, seed: int) -> list[Made]:
    """Write `number` submissions, lesson by lesson in turn, into a course that has these lessons."""
    chance, made = random.Random(seed), []
    for index, kind in enumerate(_in_turn(number, len(lesson_ids), chance)):
        student = f"student{index:03}"
        made.append(_make(course, Made(student, lesson_ids[index % len(lesson_ids)], kind), chance))
    return made


def _in_turn(number: int, num_lessons: int, chance: random.Random) -> list[str]:
    """The kind of each submission, such that each lesson, which takes every n-th, has its share of each kind."""
    ordered = [kind for kind, share in SHARES.items() for _ in range(max(1, round(number * share / 100)))]
    ordered = (ordered + ["partial"] * number)[:number]
    starts = list(range(0, number - number % num_lessons, num_lessons))
    chance.shuffle(starts)
    rest = ordered[number - number % num_lessons :]
    return [kind for start in starts for kind in ordered[start : start + num_lessons]] + rest


def _make(course: Course, made: Made, chance: random.Random) -> Made:
    lesson = load_lesson(made.lesson_id)
    notebook = course.notebook("release", lesson.slug)
    stops_at = chance.randint(1, len(lesson.exercises))  # of the partial: what follows stays open more often
    for index, exercise in enumerate(lesson.exercises):
        made.due[exercise.id] = 0.0
        if made.kind in ("perfect", "broken") or (made.kind != "empty" and chance.random() < 0.55):
            made.due[exercise.id] = float(exercise.max_score)
            source = chance.choice(right_sources(exercise))
        elif made.kind != "empty" and (index < stops_at or chance.random() < 0.3):
            source = chance.choice([mutant.source for mutant in load_mutants(made.lesson_id)[exercise.id]])
        else:
            continue
        _put(notebook, made, exercise, own(source, made.student, chance))
    answers = right_answers(made.lesson_id) if made.kind != "empty" else {}
    chosen = {
        question: key if made.kind == "perfect" else chance.choice("abcd")
        for question, key in answers.items()
    }
    if made.kind == "hostile":
        _forge(notebook, made, chance)
    course.submit(made.student, lesson.slug, notebook, chosen)
    if made.kind == "broken":
        made.what = BROKEN[chance.randrange(len(BROKEN))]
        path = course.root / "submitted" / made.student / lesson.slug / f"{lesson.slug}.ipynb"
        path.write_bytes(_broken(json.loads(path.read_text(encoding="utf-8")), made.what))
    return made


def _put(notebook: NotebookNode, made: Made, exercise: Exercise, source: str) -> None:
    cell(notebook, f"exercise-{exercise.id.replace('.', '-')}").source = source
    made.sources[exercise.id] = source


def _broken(notebook: dict[str, Any], name: str) -> bytes:
    return next(data for found, data in malformed.corpus(notebook) if found == name)


def _forge(notebook: NotebookNode, made: Made, chance: random.Random) -> None:
    """A cell from the exploits, where the lesson has some; else the checks' own cells are forged."""
    exercises = {exercise.id: exercise for exercise in load_lesson(made.lesson_id).exercises}
    cells = [each for each in EXPLOITS if each.source and each.exercise in exercises]
    if cells and chance.random() < 0.7:
        exploit = chance.choice(cells)
        made.what, made.due[exploit.exercise] = exploit.name, exploit.fair
        _put(notebook, made, exercises[exploit.exercise], exploit.source)
        return
    made.what = chance.choice(FORGED)
    for exercise_id in exercises:
        name = f"check-{exercise_id.replace('.', '-')}"
        for target in [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name]:
            if made.what == "a check that is a number":
                target.source = "10.0"
            elif made.what == "points in the metadata":
                target.metadata.nbgrader.points = 1000
            elif made.what == "checks skipped":
                target.source = f"%%script false\n{target.source}"
            else:
                notebook.cells.remove(target)
    assert made.what in FORGERIES


def right_sources(exercise: Exercise) -> list[str]:
    """Right solutions by different people: ours, another's, and those that honest oddities are tried with."""
    lesson_id = exercise.id.partition(".")[0].zfill(2)
    found = [reference_sources(lesson_id)[exercise.id]]
    if (path := _ALTERNATIVES / f"lesson_{lesson_id}.py").exists():
        found.append(exercise_sources(jupytext.read(path))[exercise.id])
    oddities = [
        each.source
        for each in HONEST
        if each.exercise == exercise.id and each.due == "pass" and not each.may_be_flagged
    ]
    return found + [
        source for source in oddities if "\t" not in source and not source.lstrip().startswith("%")
    ]


def own(source: str, student: str, chance: random.Random) -> str:
    """The same solution as this student would have written it: a line, a remark and often names of their own."""
    tree = ast.parse(source)
    if chance.random() < 0.6:
        ends = chance.choice(("_", "2", "_now", "s_", "_here"))
        for name in sorted(_plain_locals(tree)):
            _rename(tree, name, f"{name}{ends}")
        source = ast.unparse(tree)  # without the remarks of the one it came from
        tree = ast.parse(source)
    first = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    body = first.body[1:] if ast.get_docstring(first, clean=False) is not None else first.body
    lines = source.splitlines()
    at = (body or first.body)[0]
    if at.lineno > first.lineno:  # not a function on one line
        remark = f"{' ' * at.col_offset}note = {student + ': ' + chance.choice(_TRIED)!r}"
        lines.insert(at.lineno - 1 - bool(getattr(at, "decorator_list", ())), remark)
    return "\n".join([f"# {student}, {chance.choice(_TRIED)}", *lines])


def _plain_locals(tree: ast.Module) -> set[str]:
    """Names that functions assign and nothing else has: no argument, import, attribute of a class, global."""
    stored, other = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            stored |= {
                n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
        other |= set(_bound_otherwise(node))
    top = [n for n in tree.body if not isinstance(n, ast.FunctionDef | ast.ClassDef)]
    other |= {n.id for statement in top for n in ast.walk(statement) if isinstance(n, ast.Name)}
    return stored - other


def _bound_otherwise(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=asname):
            yield asname or name.partition(".")[0]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.ExceptHandler(name=str(name)):
            yield name
        case _:
            pass
    if isinstance(node, ast.ClassDef):
        for statement in node.body:
            if not isinstance(statement, ast.FunctionDef):
                yield from (n.id for n in ast.walk(statement) if isinstance(n, ast.Name))


def _rename(tree: ast.Module, name: str, new: str) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name:
            node.id = new
