"""Make the built-in corpus: `python -m tools.make_corpus [FOLDER]` writes corpus.zip and corpus_licences.txt.

The files of the installed packages and of this Python's standard library are read with `ast` and never imported.
Which packages: those that this project's own dependencies bring along and that have at least about 400 docstrings.
The same versions give the same files, byte for byte. Other versions give another corpus: then the fingerprints in
`course_lib/data/corpus.py` must be changed, and what was measured on the corpus must be measured again.
"""

from __future__ import annotations

import importlib.machinery
import json
import platform
import re
import sys
import sysconfig
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from course_lib.base.cache import installed_version
from course_lib.data import corpus
from course_lib.data.texts import Texts, normalise, text_key
from tools.corpus_licences import licences
from tools.extract import MASK, ROLES, Mask, extract, labelled_words

MIN_WORDS = 4
MIN_TEXTS_PER_LABEL = 100
# Tests say little in their docstrings, and a vendored copy belongs to another package.
_SKIPPED_FOLDERS = frozenset(
    {"test", "tests", "idlelib", "lib2to3", "ensurepip", "site-packages", "dist-packages", "__pycache__"}
    | {"_vendor", "vendor", "vendored", "_vendored", "extern", "externals", "third_party"}
)
_WORD = re.compile(r"\S*[^\W\d_]{2}\S*")  # between spaces, with two letters at least

STANDARD_LIBRARY = "stdlib"
LABELS = (
    STANDARD_LIBRARY,
    *("torch", "sympy", "scipy", "sqlalchemy", "matplotlib", "numpy", "networkx", "huggingface_hub"),
    *("ipython", "fonttools", "prompt_toolkit", "pygments", "pytest", "jupyter_server", "tornado"),
)
# Label, which is the distribution's name too → the module whose folder is read.
_MODULES = {"ipython": "IPython", "fonttools": "fontTools", "pytest": "_pytest"}
_Row = tuple[str, int, str]  # label, number of the file, text


def build_docstrings(labels: Sequence[str] = LABELS) -> Texts:
    """The docstrings of these packages. Raises SystemExit when one is absent or has too few."""
    files: list[tuple[str, Path]] = []
    modules: set[str] = set()
    for label in labels:
        inside = python_files(label)
        files += [(label, path) for path in inside]
        modules.update(parts[0].removesuffix(".py") for parts in inside.values())
    mask = Mask(modules)
    rows: list[_Row] = []
    for number, (label, path) in enumerate(tqdm(files, "Docstrings", mininterval=0.5)):
        rows += [(label, number, text) for text in extract(str(path), mask)]
    kept, notes = select(rows)
    names = tuple(dict.fromkeys(label for label, _, _ in kept))
    if absent := [label for label in labels if label not in names]:
        raise SystemExit(f"too few docstrings of {', '.join(absent)}: install what constraints.txt says")
    found, groups, texts = zip(*kept, strict=True)
    numbers = np.array([names.index(label) for label in found], dtype=np.int64)
    return Texts([*texts], numbers, names, np.array(groups, dtype=np.int64), notes=tuple(notes))


def build_source() -> Texts:
    """The standard library's source as words and their roles."""
    found: dict[int, tuple[list[str], list[int], int]] = {}
    for number, path in enumerate(tqdm(python_files(STANDARD_LIBRARY), "Source", mininterval=0.5)):
        for words, roles in labelled_words(str(path)):
            if len(words) >= MIN_WORDS:
                found.setdefault(text_key("\n".join(words)), (words, roles, number))
    texts, word_labels, groups = map(list, zip(*found.values(), strict=True))
    return Texts(texts, np.zeros(len(texts), dtype=np.int64), ROLES, np.array(groups), word_labels)


def select(rows: list[_Row]) -> tuple[list[_Row], list[str]]:
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


def python_files(label: str) -> dict[Path, tuple[str, ...]]:
    """The files that are read of a package, none if it is absent: path → its parts below the package's folder."""
    root = _folder(label)
    paths = sorted(root.rglob("*.py")) if root else []
    found = {path: path.relative_to(str(root)).parts for path in paths}
    return {path: parts for path, parts in found.items() if _SKIPPED_FOLDERS.isdisjoint(parts)}


def _folder(label: str) -> Path | None:
    """Where a package is installed; None when it is not. Imports nothing."""
    if label == STANDARD_LIBRARY:
        return Path(sysconfig.get_paths()["stdlib"])
    spec = importlib.machinery.PathFinder.find_spec(_MODULES.get(label, label))
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def versions() -> dict[str, str]:
    """Label → the installed version, without what names a build of it (`2.13.0+cpu`)."""
    packages = {label: (installed_version(label) or "absent").partition("+")[0] for label in LABELS[1:]}
    return {STANDARD_LIBRARY: platform.python_version()} | packages


def record(texts: Texts) -> dict[str, Any]:
    """What is stored of a corpus: all but its fingerprint, which is computed again when it is loaded."""
    assert texts.groups is not None
    content = vars(texts) | {"labels": texts.labels.tolist(), "groups": texts.groups.tolist()}
    del content["fingerprint"]
    return content


def main(folder: Path) -> None:
    docstrings, source = build_docstrings(), build_source()
    parts = {"docstrings": record(docstrings), "source": record(source), "versions": versions()}
    target = folder / corpus.CORPUS.name
    with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive:
        for name, part in parts.items():
            # Its date is always the same: a ZipInfo's is 1980 unless told.
            member = zipfile.ZipInfo(f"{name}.json")
            member.compress_type = zipfile.ZIP_LZMA
            archive.writestr(member, json.dumps(part, ensure_ascii=False))
    sizes = np.bincount(docstrings.labels)
    text = licences(versions(), {label: [*python_files(label)] for label in LABELS}, sizes.tolist())
    (folder / "corpus_licences.txt").write_text(text, encoding="utf-8")
    size = target.stat().st_size / 1e6
    print(f"{target}: {size:.2f} MB, {len(docstrings)} docstrings, {len(source)} pieces of source")
    print(f'DOCSTRINGS_FINGERPRINT = "{docstrings.fingerprint}"\nSOURCE_FINGERPRINT = "{source.fingerprint}"')


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else corpus.CORPUS.parent)
