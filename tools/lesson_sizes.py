"""How long a lesson is to somebody who does it: `python -m tools.lesson_sizes` prints a table of the notebooks.

What is open is counted: text outside of what is folded away, and the lines of code cells that are not hidden, stubs
included. The main path ends where the part "More" begins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

RELEASE = Path(__file__).parents[1] / "notebooks" / "release"
_FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
_LINK = re.compile(r"\]\([^)\s]*\)")
_WORD = re.compile(r"\w[\w'’-]*")


@dataclass(frozen=True, kw_only=True)
class Size:
    """Of a lesson's main path.

    Attributes:
        words: of open text.
        lines: of open code, blank ones left out.
        before_exercise: cells that stand before the first exercise's stub.
        more_words, more_lines: of the part "More".
    """

    words: int
    lines: int
    before_exercise: int
    more_words: int
    more_lines: int


def size_of(notebook: NotebookNode) -> Size:
    """Count what is open in a released notebook."""
    main, more = _parted(notebook.cells)
    first = next((n for n, cell in enumerate(main) if "@exercise(" in cell.source), len(main))
    return Size(
        words=_words(main),
        lines=_lines(main),
        before_exercise=first,
        more_words=_words(more),
        more_lines=_lines(more),
    )


def _parted(cells: list[NotebookNode]) -> tuple[list[NotebookNode], list[NotebookNode]]:
    begins = (
        number
        for number, cell in enumerate(cells)
        if cell.cell_type == "markdown" and re.match(r"## More$", cell.source, re.MULTILINE)
    )
    end = next(begins, len(cells))
    return cells[:end], cells[end:]


def _words(cells: list[NotebookNode]) -> int:
    texts = (_LINK.sub("]", _FOLDED.sub("", c.source)) for c in cells if c.cell_type == "markdown")
    return sum(len(_WORD.findall(text)) for text in texts)


def _lines(cells: list[NotebookNode]) -> int:
    return sum(
        bool(line.strip())
        for cell in cells
        if cell.cell_type == "code" and not cell.metadata.get("jupyter", {}).get("source_hidden")
        for line in cell.source.splitlines()
    )


def main() -> None:
    """Print the table."""
    print("| Lesson | words | lines | cells before the first exercise | words, lines in More |")
    print("|---|---|---|---|---|")
    for path in sorted(RELEASE.glob("*/*.ipynb")):
        size = size_of(nbformat.read(path, as_version=4))
        print(
            f"| {path.stem} | {size.words:,} | {size.lines:,} | {size.before_exercise} "
            f"| {size.more_words:,}, {size.more_lines:,} |"
        )


if __name__ == "__main__":
    main()
