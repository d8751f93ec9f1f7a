"""Docstrings of Python files, with names that give their package away masked; or words and their roles.

`extract_all` runs this file as a script in several processes, so it needs the standard library only. Plain
subprocesses rather than `multiprocessing`: nothing is forked from a kernel full of threads, and a user's
script needs no `if __name__ == "__main__"` guard.
"""

from __future__ import annotations

import ast
import json
import keyword
import os
import re
import subprocess
import sys
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

MASK = "NAME"
MAX_PROCESSES = 8
_FILES_AT_ONCE = 128

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
        # Path → what stands in its place: few different paths make up most of the text.
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        return _PATH.sub(self._replace, _SPACED_NAMES.sub(MASK, _SIGNATURE.sub("", text)))

    def _replace(self, found: re.Match[str]) -> str:
        path = found[0]
        if path not in self._known:
            self._known[path] = MASK if self._identifies(path) else path
        return self._known[path]

    def _identifies(self, path: str) -> bool:
        root, dot, _ = path.partition(".")
        if dot and (root in self._roots or (root[0] == "_" and root[1:2].isalpha())):
            return True
        return root in _ALIASES or _NAMES.search(path) is not None


def docstrings(source: bytes) -> Iterator[str]:
    """The docstrings of a module, its classes and functions, in source order, dedented, as valid Unicode.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the source cannot be parsed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's invalid escapes are not the reader's concern
        tree = ast.parse(source)
    for node in _definitions(tree):
        text = ast.get_docstring(node)
        if text:
            # An escape such as "\ud800" is legal in source but is no character: tokenizers refuse it.
            yield text.encode("utf-8", "replace").decode("utf-8").strip()


def _definitions(
    tree: ast.Module,
) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The module and all classes and functions in it, outer before inner, in source order.

    Follows statements only: `ast.walk` would also visit every expression, at twice the time of parsing.
    """
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        for block in ("cases", "finalbody", "orelse", "handlers", "body"):
            waiting += reversed(getattr(node, block, ()))


def extract(path: str, mask: Mask) -> list[str] | None:
    """Masked docstrings of one file; None when it cannot be read or parsed."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - thousands of opens: pathlib is not needed here
            return [mask(text) for text in docstrings(file.read())]
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


ROLES = (
    *("keyword", "function", "class", "parameter", "attribute", "call", "name"),
    *("number", "string", "comment", "operator"),
)
"""What a word of source code may be: a keyword; an identifier that is the name in a `def` or `class`, a
parameter in a `def`, follows a dot, is called, or none of these; or one of the words that are no identifiers."""
_ROLE = {role: number for number, role in enumerate(ROLES)}
_KINDS = {
    tokenize.NUMBER: "number",
    tokenize.STRING: "string",
    tokenize.COMMENT: "comment",
    tokenize.OP: "operator",
}
_LONGEST_WORD = 32
_Piece = tuple[list[str], list[int]]


def labelled_words(path: str) -> list[_Piece] | None:
    """(words, numbers of their roles) of each piece of a file; a piece begins at each decorator, `def` and
    `class`. None when the file cannot be read or parsed."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            tokens = [token for token in tokenize.tokenize(file.readline) if token.string.strip()][1:]
    except (OSError, SyntaxError, ValueError, tokenize.TokenError):
        return None
    pieces: list[_Piece] = [([], [])]
    role = previous = ""
    depth = signature = 0  # open brackets; how many are open between the parentheses of a `def`
    line = -1
    for token, following in zip(tokens, [*tokens[1:], tokens[-1]], strict=True) if tokens else ():
        text = token.string
        begins_line, line = token.start[0] != line and depth == 0, token.end[0]
        if begins_line and text in ("def", "class", "@", "async"):
            pieces.append(([], []))
        if token.type == tokenize.NAME:
            in_signature = depth and depth == signature and previous in ("(", ",", "*", "**")
            role = _role_of_name(text, previous, following.string, bool(in_signature))
        else:
            role, before = _KINDS.get(token.type, "string"), role  # f-strings have kinds of their own
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}")) if role == "operator" else 0
            if text == "(" and before == "function":
                signature = depth
            elif depth < signature:
                signature = 0
        pieces[-1][0].append(text[:_LONGEST_WORD])
        pieces[-1][1].append(_ROLE[role])
        previous = text
    return [piece for piece in pieces if piece[0]]


def _role_of_name(text: str, previous: str, following: str, in_signature: bool) -> str:
    if keyword.iskeyword(text):
        return "keyword"
    if previous in ("def", "class"):
        return "function" if previous == "def" else "class"
    if in_signature:
        return "parameter"
    return "call" if following == "(" else "attribute" if previous == "." else "name"


def extract_all(paths: Sequence[Path], *, modules: Sequence[str] | None, progress: bool) -> list[Any]:
    """Masked docstrings of each file, in the order of `paths`; None where a file cannot be parsed.

    `modules` are the names that `Mask` takes; None: `labelled_words` instead of docstrings. The result does
    not depend on the number of processes. Draws a progress bar on stdout.
    """
    from tqdm import tqdm

    names = [str(path) for path in paths]
    parts = [names[start : start + _FILES_AT_ONCE] for start in range(0, len(names), _FILES_AT_ONCE)]
    found: list[Any] = []
    what = "Reading source" if modules is None else "Reading docstrings"
    bar = tqdm(total=len(names), desc=what, mininterval=0.5, file=sys.stdout, disable=not progress)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pool = ThreadPoolExecutor(min(MAX_PROCESSES, cores or 1))
    try:
        with bar:
            for part, answer in zip(parts, pool.map(partial(_in_process, modules), parts), strict=True):
                # None: no process could be started, or it was killed. Slower, but the same result.
                found += _read_all(modules, part) if answer is None else answer
                bar.update(len(part))
    finally:  # also on Ctrl-C: no new process is started
        pool.shutdown(cancel_futures=True)
    return found


def _in_process(modules: Sequence[str] | None, paths: list[str]) -> Any:
    try:
        job = json.dumps([modules, paths]).encode()
        done = subprocess.run([sys.executable, "-I", __file__], input=job, capture_output=True, check=True)
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None


def _read_all(modules: Sequence[str] | None, paths: list[str]) -> list[Any]:
    if modules is None:
        return [labelled_words(path) for path in paths]
    mask = Mask(modules)
    return [extract(path, mask) for path in paths]


if __name__ == "__main__":
    print(json.dumps(_read_all(*json.load(sys.stdin))))
