"""Docstrings of Python files, with names that give their package away masked.

Stands alone (standard library only), so that `corpus.py` can run it as a plain script in several processes:
a JSON list of paths on stdin; one JSON line `[index, docstrings or null]` per file on stdout.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import warnings
from collections.abc import Iterator

MASK = "NAME"

# Any identifier or dotted path that contains one of these gives its label away, whoever wrote it.
_NAMES = re.compile(
    r"(?i:torch|numpy|scipy|matplotlib|sympy|networkx|python|sqlalchemy|tornado|pygments|huggingface"
    r"|fonttools|prompt[_-]?toolkit|pytest|py\.test|jupyter|stdlib)|^[hH]f_|^Hf[A-Z]|^HF_"
)
_SPACED_NAMES = re.compile(r"\b(?:hugging\s+face|prompt\s+toolkit|font\s+tools)\b", re.IGNORECASE)
# The names under which the packages are usually imported: alone or as the root of a path …
_ALIASES = frozenset({"np", "plt", "mpl", "nx", "hf"})
# … and those that are also words or variables, hence only as the root of a path: `nn.Linear`, `os.path`.
_PATH_ROOTS = frozenset({"nn", "F", "sp", "sa"}) | sys.stdlib_module_names
_PATH = re.compile(r"[^\W\d][\w-]*(?:\.[^\W\d][\w-]*)*")


class _Masks(dict[str, str]):
    """Path → what stands in its place. A dictionary, because few paths make up most of the text."""

    def __missing__(self, path: str) -> str:
        root, dot, _ = path.partition(".")
        identifying = _NAMES.search(path) or root in _ALIASES or (dot and root in _PATH_ROOTS)
        self[path] = masked = MASK if identifying else path
        return masked


_masks = _Masks()


def mask(text: str) -> str:
    """Replace every name or import path of a labelled package (`torch.nn.Linear`, `np.sum`, SciPy) by `NAME`."""
    return _PATH.sub(lambda found: _masks[found[0]], _SPACED_NAMES.sub(MASK, text))


def docstrings(source: bytes) -> Iterator[str]:
    """The docstrings of a module, its classes and functions, in source order, dedented, as valid Unicode.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the source cannot be parsed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's invalid escapes are not the reader's concern
        tree = ast.parse(source)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                found.append((node.body[0].lineno, text))
    for _, text in sorted(found, key=lambda item: item[0]):
        # An escape such as "\ud800" is legal in source but is no character: tokenizers refuse it.
        yield text.encode("utf-8", "replace").decode("utf-8").strip()


def extract(path: str) -> list[str] | None:
    """Masked docstrings of one file; None when it cannot be read or parsed."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - 2,000 opens: pathlib is not needed here
            return [mask(text) for text in docstrings(file.read())]
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def main() -> None:
    for index, path in enumerate(json.load(sys.stdin)):
        print(json.dumps([index, extract(path)]), flush=True)


if __name__ == "__main__":
    main()
