"""Docstrings of Python files, with names that give their package away masked; or words and their roles."""

from __future__ import annotations

import ast
import functools
import keyword
import re
import sys
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

MASK = "NAME"

# Any identifier or dotted path that contains one of these gives its label away, whoever wrote it.
_NAMES = re.compile(
    r"(?i:torch|numpy|scipy|matplotlib|sympy|networkx|python|sqlalchemy|tornado|pygments|huggingface"
    r"|fonttools|prompt_?toolkit|pytest|py\.test|jupyter|stdlib|^_?mpl)|^[hH]f_|^Hf[A-Z]|^HF_"
)
_SPACED_NAMES = re.compile(r"\b(?:hugging[\s-]+face|prompt[\s-]+toolkit|font[\s-]+tools)\b", re.IGNORECASE)
# The names under which the packages are usually imported: alone or as the root of a path …
_ALIASES = frozenset({"np", "plt", "nx", "hf"})
# … and those that are also words or variables, hence only as the root of a path: `nn.Linear`, `os.path`.
_PATH_ROOTS = frozenset({"nn", "F", "sp", "sa"}) | sys.stdlib_module_names
_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
# One package signs all its modules with these: the label could be read off the signature alone.
_SIGNATURE = re.compile(r"^[ \t]*:?(?:copyright|licen[cs]e)\b.*\n?", re.IGNORECASE | re.MULTILINE)


class Mask:
    """Replaces names and import paths that give a package away (`torch.nn.Linear`, `np.sum`, SciPy) by `NAME`.

    Every text is masked in the same way, whatever its label, so that a `NAME` says nothing either.
    """

    def __init__(self, modules: Iterable[str] = ()) -> None:
        """`modules`: the packages' own modules; a path that starts with one (`stats.norm`) is masked too."""
        self._roots = _PATH_ROOTS.union(modules)
        self._masked = functools.cache(self._mask)  # few different paths make up most of the text

    def __call__(self, text: str) -> str:
        text = _SPACED_NAMES.sub(MASK, _SIGNATURE.sub("", text))
        return _PATH.sub(lambda found: self._masked(found[0]), text)

    def _mask(self, path: str) -> str:
        root, dot, _ = path.partition(".")
        is_import = dot and (root in self._roots or (root[0] == "_" and root[1:2].isalpha()))
        return MASK if is_import or root in _ALIASES or _NAMES.search(path) else path


def docstrings(source: bytes) -> Iterator[str]:
    """The docstrings of a module, its classes and functions, in source order, dedented, as valid Unicode.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the source cannot be parsed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's invalid escapes are not the reader's concern
        tree = ast.parse(source)
    for node in _definitions(tree):
        if text := ast.get_docstring(node):
            # An escape such as "\ud800" is legal in source but is no character: tokenizers refuse it.
            yield text.encode("utf-8", "replace").decode("utf-8").strip()


def _definitions(node: ast.AST) -> Iterator[Any]:
    """The module and all classes and functions in it, outer before inner, in source order.

    Follows statements only: `ast.walk` would also visit every expression, at twice the time of parsing.
    """
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _definitions(child)


def extract(path: str, mask: Mask) -> list[str]:
    """Masked docstrings of one file; none when it cannot be read or parsed."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - thousands of opens: pathlib is not needed here
            return [mask(text) for text in docstrings(file.read())]
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []


ROLES = ("keyword", "function", "class", "call", "attribute", "name", "number", "string", "comment", "sign")
"""What a word of source code may be: a keyword; an identifier that is the name in a `def` or `class`, is called,
follows a dot, or none of these; or one of the words that are no identifiers; signs are operators and brackets."""
_KINDS = {tokenize.NUMBER: "number", tokenize.COMMENT: "comment", tokenize.OP: "sign"}
_LONGEST_WORD = 32
_Piece = tuple[list[str], list[int]]


def labelled_words(path: str) -> list[_Piece]:
    """(words, numbers of their roles) of each piece of a file; a piece begins at each `def` and `class`.
    None of them when the file cannot be read or parsed."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            tokens = [token for token in tokenize.tokenize(file.readline) if token.string.strip()]
    except (OSError, SyntaxError, ValueError, tokenize.TokenError):
        return []
    pieces: list[_Piece] = [([], [])]
    # The first token is the encoding's name: it precedes the first word.
    for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], tokens[0]], strict=False):
        role = _KINDS.get(token.type, "string")  # f-strings have kinds of their own
        if token.type == tokenize.NAME:
            role = _role_of_name(token.string, before.string, after.string)
        if token.string in ("def", "class"):
            pieces.append(([], []))
        pieces[-1][0].append(token.string[:_LONGEST_WORD])
        pieces[-1][1].append(ROLES.index(role))
    return [piece for piece in pieces if piece[0]]


def _role_of_name(name: str, before: str, after: str) -> str:
    if keyword.iskeyword(name):
        return "keyword"
    if before in ("def", "class"):
        return "function" if before == "def" else "class"
    return "call" if after == "(" else "attribute" if before == "." else "name"
