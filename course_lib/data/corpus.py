"""Real data without a download: docstrings, labelled by the package they come from; source code, by word.

The files are read with `ast` and never imported. Which packages: those that this project's own dependencies
bring along and that have at least about 400 docstrings. The sizes are left as they are: classes of unequal
size and a long tail of lengths are what real data look like, and what padding and bucketing have to cope with.
"""

from __future__ import annotations

import importlib.machinery
import json
import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from course_lib.data.cache import cache_dir, digest, installed_version
from course_lib.data.extract import MASK, ROLES, extract_all
from course_lib.data.texts import Texts, normalise, text_key
from course_lib.errors import UserError
from course_lib.files import atomic_write_text

FORMAT = "6"  # raise it when the same packages give a different corpus
MIN_WORDS = 4
MIN_TEXTS_PER_LABEL = 100
# Tests say little in their docstrings, and a vendored copy belongs to another package.
_SKIPPED_FOLDERS = frozenset(
    {"test", "tests", "idlelib", "lib2to3", "ensurepip", "site-packages", "dist-packages", "__pycache__"}
    | {"_vendor", "vendor", "vendored", "_vendored", "extern", "externals", "third_party"}
)
_WORD = re.compile(r"\S*[^\W\d_]{2}\S*")  # between spaces, with two letters at least


STANDARD_LIBRARY = "stdlib"
# Label, which is the distribution's name too → the module whose folder is read.
_MODULES = {"ipython": "IPython", "fonttools": "fontTools", "pytest": "_pytest"}
_PACKAGES = {
    label: _MODULES.get(label, label)
    for label in (
        *("torch", "sympy", "scipy", "sqlalchemy", "matplotlib", "numpy", "networkx", "huggingface_hub"),
        *("ipython", "fonttools", "prompt_toolkit", "pygments", "pytest", "jupyter_server", "tornado"),
    )
}


def load_docstrings(*, progress: bool = True) -> Texts:
    """The docstring corpus of this Python: built once (under a minute), then loaded from the cache.

    Args:
        progress: draw a progress bar on stdout while building.

    Returns:
        Texts whose `groups` number the source files. `notes` say which packages are absent and what was
        left out: duplicates, texts found under two labels, very short ones, files that cannot be parsed.

    Raises:
        UserError: the cache folder cannot be written, or fewer than two packages were found.
    """
    return _cached(f"docstrings-{corpus_key()[:20]}.json", partial(build_docstrings, progress=progress))


def load_source(*, progress: bool = True) -> Texts:
    """The standard library's own source as words, each labelled by its role (`extract.ROLES`): for token
    classification. A text is a function, a class's head or the statements between; `groups` number the files.

    Keywords, numbers and operators can be told by their spelling; which of seven roles an identifier has,
    by its neighbours alone. Built once, then loaded from the cache. Strings and comments are cut to 32
    characters. Raises UserError when the cache folder cannot be written.
    """
    key = digest("source", FORMAT, sys.version)
    return _cached(f"source-{key[:20]}.json", partial(build_source, progress=progress))


def build_source(*, progress: bool = True) -> Texts:
    """Read the standard library now, without the cache. Result as `load_source`."""
    _, root = next(_roots())
    assert root is not None
    files = list(_python_files(root))
    words: list[list[str]] = []
    word_labels: list[list[int]] = []
    groups = []
    seen = set()
    read = extract_all(files, modules=None, progress=progress)
    for number, pieces in enumerate(read):
        for piece, labels in pieces or ():
            key = text_key("\n".join(piece))
            if len(piece) >= MIN_WORDS and key not in seen:
                seen.add(key)
                words.append(piece)
                word_labels.append(labels)
                groups.append(number)
    notes = (
        f"{sum(map(len, filter(None, read))) - len(words)} pieces left out: repeated, or under {MIN_WORDS} words",
    )
    zeros = np.zeros(len(words), dtype=np.int64)
    return Texts(words, zeros, ROLES, np.array(groups, dtype=np.int64), word_labels, notes=notes)


def corpus_key() -> str:
    """Changes whenever the corpus would: the Python build, the packages' versions, the rules above."""
    versions = [f"{module}={installed_version(label) or 'absent'}" for label, module in _PACKAGES.items()]
    return digest("docstrings", FORMAT, sys.version, *versions)


def build_docstrings(*, progress: bool = True) -> Texts:
    """Read all packages now, without the cache. Arguments, result and errors as `load_docstrings`."""
    files: list[tuple[str, Path]] = []
    absent = []
    modules: set[str] = set()
    for label, root in _roots():
        inside = _python_files(root) if root else {}
        files += [(label, path) for path in inside]
        modules.update(parts[0].removesuffix(".py") for parts in inside.values())
        if not inside:
            absent.append(label)
    extracted = extract_all([path for _, path in files], modules=sorted(modules), progress=progress)
    rows = [
        (label, number, text)
        for number, ((label, _), docs) in enumerate(zip(files, extracted, strict=True))
        for text in docs or ()
    ]
    kept, notes = _select(rows)
    if absent:
        notes.insert(0, f"labels left out because the package is not installed: {', '.join(absent)}")
    unread = sum(docs is None for docs in extracted)
    if unread:
        notes.append(f"{unread} of {len(files)} files could not be parsed and were passed over")
    names = tuple(dict.fromkeys(label for label, _, _ in kept))
    if len(names) < 2:
        raise UserError(
            "the docstring corpus needs at least two installed packages with docstrings: run "
            "`python -m pip install --force-reinstall numpy torch`, or use your own CSV (text,label)"
        )
    number_of = {name: number for number, name in enumerate(names)}
    return Texts(
        texts=[text for _, _, text in kept],
        labels=np.array([number_of[label] for label, _, _ in kept], dtype=np.int64),
        label_names=names,
        groups=np.array([number for _, number, _ in kept], dtype=np.int64),
        notes=tuple(notes),
    )


def _select(rows: list[tuple[str, int, str]]) -> tuple[list[tuple[str, int, str]], list[str]]:
    """Drop short texts, duplicates and contradictions, and say how many of each."""
    labels_of: dict[str, set[str]] = {}
    long_enough = []
    for row in rows:
        if len(_WORD.findall(row[2].replace(MASK, ""))) >= MIN_WORDS:
            long_enough.append((normalise(row[2]), row))
            labels_of.setdefault(long_enough[-1][0], set()).add(row[0])
    kept, seen, ambiguous = [], set(), 0
    for key, row in long_enough:
        if len(labels_of[key]) > 1:
            ambiguous += 1
        elif key not in seen:
            seen.add(key)
            kept.append(row)
    sizes = Counter(label for label, _, _ in kept)
    small = sorted(label for label, size in sizes.items() if size < MIN_TEXTS_PER_LABEL)
    notes = [
        f"{len(rows) - len(long_enough)} docstrings with fewer than {MIN_WORDS} words left out",
        f"{len(long_enough) - ambiguous - len(kept)} duplicates left out",
        f"{ambiguous} docstrings found under more than one label left out",
    ]
    if small:
        notes.append(f"labels left out for having fewer than {MIN_TEXTS_PER_LABEL} texts: {', '.join(small)}")
    return [row for row in kept if row[0] not in small], notes


def _roots() -> Iterator[tuple[str, Path | None]]:
    """Label and folder of each package; None for one that is not installed. Imports nothing."""
    yield STANDARD_LIBRARY, Path(sysconfig.get_paths()["stdlib"])
    for label, module in _PACKAGES.items():
        spec = importlib.machinery.PathFinder.find_spec(module)
        where = list(spec.submodule_search_locations or ()) if spec is not None else []
        yield label, Path(where[0]) if where else None


def _python_files(root: Path) -> dict[Path, tuple[str, ...]]:
    found = {path: path.relative_to(root).parts for path in sorted(root.rglob("*.py"))}
    return {path: parts for path, parts in found.items() if _SKIPPED_FOLDERS.isdisjoint(parts)}


def _cached(name: str, build: Callable[[], Texts]) -> Texts:
    path = cache_dir() / name
    texts = _read(path)
    if texts is None:
        texts = build()
        _write(path, texts)
    return texts


def _write(path: Path, texts: Texts) -> None:
    assert texts.groups is not None
    record = vars(texts) | {"labels": texts.labels.tolist(), "groups": texts.groups.tolist()}
    atomic_write_text(path, json.dumps(record, ensure_ascii=False))


def _read(path: Path) -> Texts | None:
    """The cached corpus; None when there is none or it is damaged, so that the caller builds it again."""
    try:
        record = json.loads(path.read_bytes())
        arrays = {name: np.array(record[name], dtype=np.int64) for name in ("labels", "groups")}
        tuples = {name: tuple(record[name]) for name in ("label_names", "notes")}
        texts = Texts(**{**record, **arrays, **tuples, "fingerprint": ""})
        return texts if texts.fingerprint == record["fingerprint"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
