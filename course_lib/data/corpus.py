"""Real data without a download: docstrings, labelled by the package they come from; source code, by word.

The files are read with `ast` and never imported. Which packages: those that this project's own dependencies
bring along and that have at least about 400 docstrings. The sizes are left as they are: classes of unequal
size and a long tail of lengths are what real data look like, and what padding and bucketing have to cope with.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import json
import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from course_lib.data.cache import cache_dir, digest, installed_version
from course_lib.data.texts import Texts, normalise, text_key
from course_lib.errors import UserError
from course_lib.files import atomic_write_text
from tools.extract import MASK, ROLES, extract_all

# Raise these when the same packages give another corpus, of docstrings or of source.
FORMAT, SOURCE_FORMAT = "6", "7"
MIN_WORDS = 4
MIN_TEXTS_PER_LABEL = 100
# Tests say little in their docstrings, and a vendored copy belongs to another package.
_SKIPPED_FOLDERS = frozenset(
    {"test", "tests", "idlelib", "lib2to3", "ensurepip", "site-packages", "dist-packages", "__pycache__"}
    | {"_vendor", "vendor", "vendored", "_vendored", "extern", "externals", "third_party"}
)
_WORD = re.compile(r"\S*[^\W\d_]{2}\S*")  # between spaces, with two letters at least


STANDARD_LIBRARY = "stdlib"
_LABELS = (
    *("torch", "sympy", "scipy", "sqlalchemy", "matplotlib", "numpy", "networkx", "huggingface_hub"),
    *("ipython", "fonttools", "prompt_toolkit", "pygments", "pytest", "jupyter_server", "tornado"),
)
# Label, which is the distribution's name too → the module whose folder is read.
_MODULES = {"ipython": "IPython", "fonttools": "fontTools", "pytest": "_pytest"}
_PACKAGES = {label: _MODULES.get(label, label) for label in _LABELS}
_Row = tuple[str, int, str]  # label, number of the file, text


def load_docstrings(*, progress: bool = True) -> Texts:
    """The docstring corpus of this Python: built once (under a minute), then loaded from the cache.

    Args:
        progress: draw a progress bar on stdout while building.

    Returns:
        Texts whose `groups` number the source files. `notes` say which packages are absent and how
        many texts were left out: duplicates, texts found under two labels, very short ones.

    Raises:
        UserError: the cache folder cannot be written, or fewer than two packages were found.
    """
    return _cached(f"docstrings-{corpus_key()[:20]}.json", lambda: build_docstrings(progress=progress))


def load_source(*, progress: bool = True) -> Texts:
    """The standard library's own source as words, each labelled by its role (`extract.ROLES`): for token
    classification. A text begins at a `def` or `class` and ends before the next; `groups` number the files.

    Keywords, numbers and operators can be told by their spelling; which of five roles an identifier has,
    by its neighbours alone. Built once, then loaded from the cache. Strings and comments are cut to 32
    characters. Raises UserError when the cache folder cannot be written.
    """
    key = digest("source", SOURCE_FORMAT, sys.version)
    return _cached(f"source-{key[:20]}.json", lambda: build_source(progress=progress))


def build_source(*, progress: bool = True) -> Texts:
    """Read the standard library now, without the cache. Result as `load_source`."""
    found: dict[int, tuple[list[str], list[int], int]] = {}
    files = [*_python_files(_folder(STANDARD_LIBRARY))]
    for number, pieces in enumerate(extract_all(files, modules=None, progress=progress)):
        for words, roles in pieces:
            if len(words) >= MIN_WORDS:
                found.setdefault(text_key("\n".join(words)), (words, roles, number))
    texts, word_labels, groups = map(list, zip(*found.values(), strict=True))
    return Texts(texts, np.zeros(len(texts), dtype=np.int64), ROLES, np.array(groups), word_labels)


def corpus_key() -> str:
    """Changes whenever the corpus would: the Python build, the packages' versions, the rules above."""
    versions = [f"{module}={installed_version(label) or 'absent'}" for label, module in _PACKAGES.items()]
    return digest("docstrings", FORMAT, sys.version, *versions)


def build_docstrings(*, progress: bool = True) -> Texts:
    """Read all packages now, without the cache. Arguments, result and errors as `load_docstrings`."""
    files: list[tuple[str, Path]] = []
    modules: set[str] = set()
    for label in (STANDARD_LIBRARY, *_PACKAGES):
        inside = _python_files(_folder(label))
        files += [(label, path) for path in inside]
        modules.update(parts[0].removesuffix(".py") for parts in inside.values())
    extracted = extract_all([path for _, path in files], modules=sorted(modules), progress=progress)
    rows: list[_Row] = []
    for number, ((label, _), docs) in enumerate(zip(files, extracted, strict=True)):
        rows += [(label, number, text) for text in docs]
    kept, notes = _select(rows)
    names = tuple(dict.fromkeys(label for label, _, _ in kept))
    if absent := [label for label in _PACKAGES if label not in names]:
        notes.append(f"labels left out, not installed or too small: {', '.join(absent)}")
    if len(names) < 2:
        fix = "`python -m pip install --force-reinstall numpy torch`, or use your own CSV (text,label)"
        raise UserError(f"the docstring corpus needs two installed packages with docstrings at least: {fix}")
    labels, groups, texts = zip(*kept, strict=True)
    numbers = np.array([names.index(label) for label in labels], dtype=np.int64)
    return Texts([*texts], numbers, names, np.array(groups, dtype=np.int64), notes=tuple(notes))


def _select(rows: list[_Row]) -> tuple[list[_Row], list[str]]:
    """Without short texts, duplicates, contradictions and small labels; and a note of how many are left out."""
    same: dict[str, list[_Row]] = {}
    for row in rows:
        if len(_WORD.findall(row[2].replace(MASK, ""))) >= MIN_WORDS:
            same.setdefault(normalise(row[2]), []).append(row)
    kept = [equal[0] for equal in same.values() if len({label for label, _, _ in equal}) == 1]
    sizes = Counter(label for label, _, _ in kept)
    kept = [row for row in kept if sizes[row[0]] >= MIN_TEXTS_PER_LABEL]
    why = f"with fewer than {MIN_WORDS} words, repeated, under more than one label, or under a small one"
    return kept, [f"{len(rows) - len(kept)} of {len(rows)} docstrings left out: {why}"]


def _folder(label: str) -> Path | None:
    """Where a package is installed; None when it is not. Imports nothing."""
    if label == STANDARD_LIBRARY:
        return Path(sysconfig.get_paths()["stdlib"])
    spec = importlib.machinery.PathFinder.find_spec(_PACKAGES[label])
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def _python_files(root: Path | None) -> dict[Path, tuple[str, ...]]:
    """Path → its parts below `root`."""
    paths = sorted(root.rglob("*.py")) if root else []
    found = {path: path.relative_to(str(root)).parts for path in paths}
    return {path: parts for path, parts in found.items() if _SKIPPED_FOLDERS.isdisjoint(parts)}


def _cached(name: str, build: Callable[[], Texts]) -> Texts:
    path = cache_dir() / name
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # not there, or damaged
        return _read(path)
    texts = build()
    assert texts.groups is not None
    record = vars(texts) | {"labels": texts.labels.tolist(), "groups": texts.groups.tolist()}
    atomic_write_text(path, json.dumps(record, ensure_ascii=False))
    return texts


def _read(path: Path) -> Texts:
    record = json.loads(path.read_bytes())
    arrays = {name: np.array(record[name], dtype=np.int64) for name in ("labels", "groups")}
    tuples = {name: tuple(record[name]) for name in ("label_names", "notes")}
    texts = Texts(**{**record, **arrays, **tuples, "fingerprint": ""})
    if texts.fingerprint != record["fingerprint"]:
        raise ValueError(f"{path} is damaged")
    return texts
