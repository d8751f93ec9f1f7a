"""Which of several cells of an exercise is judged: the same one in a kernel, by `workbook check` and in a class.

What somebody did is never dropped in silence. A stub that was copied, a draft that is no Python and a cell that only
speaks of an exercise hide no solution; a solution that lost its mark, or became a text by a key, is read as what it
was. One cell is judged, always by the same rule, and the others are named.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from autograder.engine.source.marks import definitions_in, ids_in, is_open, marked_ids, names_in
from autograder.engine.source.python import MAX_CELL, as_python, parse

_STUB = "NotImplementedError"  # what each stub raises
_DEFINITION = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_ASSIGNMENT = re.compile(r"^(\w+)[ \t]*=", re.MULTILINE)
_MOST_NAMED = 5  # cells, of those that were not judged


class Standing(IntEnum):
    """What a cell is to an exercise; of two cells the one that stands higher is judged, else the later one."""

    UNREADABLE_TEXT = 0
    """Marked, in a cell that holds no code, and no Python: most often words about the exercise."""
    STUB = 1
    BESIDE = 2
    """A definition of the name that the exercise asks for, in a cell that is marked for another one: two cells were
    merged, or it is a help."""
    WITHOUT = 3
    """Marked, without what the exercise asks for."""
    UNREADABLE = 4
    """Marked, and no Python."""
    UNMARKED = 5
    """A definition of the name that the exercise asks for, and no mark, or one for no exercise of the lesson."""
    TEXT = 6
    """Marked and whole, in a cell that holds no code: one key turned it into a text."""
    SOLVED = 7


@dataclass(frozen=True)
class Chosen:
    """The cell that is judged.

    Attributes:
        place: its index.
        others: the indices of those that hold other work on the exercise.
    """

    source: str
    place: int
    standing: Standing
    others: tuple[int, ...] = ()

    def told(self, exercise_id: str, entry: str) -> list[str]:
        """What a person should know of it, a line each."""
        lines = []
        if self.standing in (Standing.TEXT, Standing.UNREADABLE_TEXT):
            lines.append(f"{exercise_id}: cell {self.place + 1} is no code cell: read as the code it was")
        elif self.standing in (Standing.UNMARKED, Standing.BESIDE):
            lines.append(
                f'{exercise_id}: no solved cell has the line @exercise("{exercise_id}"): graded was cell '
                f"{self.place + 1}, which defines {entry}"
            )
        if self.others:
            named = ", ".join(str(place + 1) for place in self.others[:_MOST_NAMED])
            more = f" and {len(self.others) - _MOST_NAMED} more" if len(self.others) > _MOST_NAMED else ""
            cells = f"cell {named} holds" if len(self.others) == 1 else f"cells {named}{more} hold"
            lines.append(f"{exercise_id}: {cells} other work on it: graded was cell {self.place + 1}")
        return lines

    def told_in_kernel(self, exercise_id: str, entry: str) -> list[str]:
        """What the learner should know of it, a line each: there a cell has no number of its own."""
        lines = []
        if self.standing in (Standing.UNMARKED, Standing.BESIDE):
            lines.append(
                f'Checked was the cell that defines {entry}. Write @exercise("{exercise_id}") above it.'
            )
        if self.others:
            lines.append(
                f"More than one cell holds work on {exercise_id}. A solved one counts, and of several the last: keep "
                "the one that you mean."
            )
        return lines


Cells = Sequence[tuple[bool, str]]  # whether it is a code cell, and its text


def choose(cells: Cells, entries: Mapping[str, str], *, by_text: bool = False) -> dict[str, Chosen]:
    """Exercise id → the cell that is judged.

    Args:
        entries: the name that each exercise asks for. A cell may be marked for others, too: of these the last counts.
        by_text: do not ask Python, which a cell may keep busy.
    """
    found: dict[str, list[Chosen]] = {}
    for place, (is_code, source) in enumerate(cells):
        if "exercise" in source or any(entry in source for entry in entries.values()):
            cell = _ByText(source) if by_text else _Cell(source)
            marks = dict.fromkeys(cell.marks)
            is_of_lesson = any(exercise_id in entries for exercise_id in marks)
            for exercise_id in marks | dict.fromkeys(entries):
                entry, is_marked = entries.get(exercise_id, ""), exercise_id in marks
                standing = cell.standing(entry, is_code=is_code, is_marked=is_marked)
                if standing is Standing.UNMARKED and is_of_lesson:
                    standing = Standing.BESIDE
                if standing is not None:
                    found.setdefault(exercise_id, []).append(Chosen(source, place, standing))
    return {exercise_id: _best(all_of_it) for exercise_id, all_of_it in found.items()}


def _best(found: list[Chosen]) -> Chosen:
    best = max(found, key=lambda each: (each.standing, each.place))
    others = [
        each.place
        for each in found
        if each.standing not in (Standing.STUB, Standing.BESIDE)
        and each.source.strip() != best.source.strip()
    ]
    return Chosen(best.source, best.place, best.standing, tuple(others))


class _Cell:
    """A cell as Python reads it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = parse(as_python(source)) if len(source) <= MAX_CELL else None
        self.marks = marked_ids(source) if self.tree is None else ids_in(self.tree)
        self.names = names_in(self.tree) if self.tree else set[str]()
        self.definitions = definitions_in(self.tree) if self.tree else set[str]()
        self.is_readable = self.tree is not None

    def standing(self, entry: str, *, is_code: bool, is_marked: bool) -> Standing | None:
        """What it is to the exercise that asks for `entry`; None where it has nothing to do with it. `entry` is "" of
        an exercise that is not known."""
        is_whole = entry in self.names or not entry
        if not is_marked:
            is_its = is_code and entry in self.definitions and not self.is_open(entry)
            return Standing.UNMARKED if is_its else None
        if not self.is_readable:
            if is_code:
                return Standing.UNREADABLE
            return Standing.UNREADABLE_TEXT if entry in _DEFINITION.findall(self.source) else None
        if is_code:
            is_stub = bool(entry) and self.is_open(entry)
            return Standing.STUB if is_stub else Standing.SOLVED if is_whole else Standing.WITHOUT
        is_its = entry in self.names and not self.is_open(entry)
        return Standing.TEXT if is_its else None

    def is_open(self, entry: str) -> bool:
        return isinstance(self.tree, ast.Module) and is_open(self.tree, entry)


class _ByText(_Cell):
    """A cell by its text alone."""

    def __init__(self, source: str) -> None:
        self.source, self.marks, self.is_readable = source, marked_ids(source), True
        self.definitions = {*_DEFINITION.findall(source)}
        self.names = self.definitions | {*_ASSIGNMENT.findall(source)}

    def is_open(self, entry: str) -> bool:
        return _STUB in self.source
