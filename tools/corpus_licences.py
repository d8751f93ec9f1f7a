"""The licences of the packages whose texts are in the built-in corpus, as one readable text."""

from __future__ import annotations

import importlib.metadata
import re
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

# The licence of each package's Python files, as SPDX writes it. All of them permit to pass the texts on, changed too,
# if licence, copyright and a summary of the changes go with them.
SPDX = {
    "stdlib": "PSF-2.0",
    "torch": "BSD-3-Clause",
    "sympy": "BSD-3-Clause",
    "scipy": "BSD-3-Clause",
    "sqlalchemy": "MIT",
    "matplotlib": "LicenseRef-Matplotlib",  # the PSF's licence with another name in it
    "numpy": "BSD-3-Clause",
    "networkx": "BSD-3-Clause",
    "huggingface_hub": "Apache-2.0",
    "ipython": "BSD-3-Clause",
    "fonttools": "MIT",
    "prompt_toolkit": "BSD-3-Clause",
    "pygments": "BSD-2-Clause",
    "pytest": "MIT",
    "jupyter_server": "BSD-3-Clause",
    "tornado": "Apache-2.0",
}
_INTRODUCTION = """\
The texts in corpus.zip: where they come from, and their licences
=================================================================

This file and corpus.zip were made by tools/make_corpus.py of the repository.

Taken were, of the Python files of each package below, the docstrings alone; of the standard library also the
source. Changed was this: names and import paths that give a package away were replaced by the word NAME; lines that
state a copyright or a licence were taken out of the docstrings and stand here instead; repeated docstrings,
very short ones and those that stand in two packages were left out; the source was cut into words, and each string
and comment to its first 32 characters. Nothing compiled and no data file was taken.

Each licence permits this, on terms that this file meets: it gives the licences, the copyright lines, and the
changes. The texts remain under these licences, whatever the licence of the code around them.

"""
_RULE = "=" * 100
# What wheels say of the compiled libraries inside them: no text of the corpus comes from those.
_OF_BINARIES = re.compile(
    r"^This binary distribution of \w+ (?:can )?also bundles?.*", re.MULTILINE | re.DOTALL
)
_LICENCE_FILE = re.compile(r"(?i)(?:licen[cs]e|copying|notice)(?!.*\.py$)")
_COPYRIGHT = re.compile(
    r"^\W*((?:portions |original code )?(?:(?:is|by) )?(?:\(c\) )?copyright(?=[\s:(].*(?:\d{4}|\(c\)|©|by )).*)",
    re.IGNORECASE,
)


def licences(versions: Mapping[str, str], files: Mapping[str, Sequence[Path]], sizes: Sequence[int]) -> str:
    """The whole text.

    Args:
        versions: label → version.
        files: label → the Python files that were read.
        sizes: texts of each label, in the order of `versions`.
    """
    rows = [("Label", "Version", "SPDX-License-Identifier", "Docstrings")]
    rows += [(*row, SPDX[row[0]], f"{size:,}") for row, size in zip(versions.items(), sizes, strict=True)]
    table = "".join(f"{name:<17}{version:<10}{spdx:<26}{size:>10}\n" for name, version, spdx, size in rows)
    return "".join(
        [_INTRODUCTION, table, *(_of_package(label, versions[label], files[label]) for label in versions)]
    )


def _of_package(label: str, version: str, files: Sequence[Path]) -> str:
    shown = {
        path: _without_binaries(path.read_text(encoding="utf-8")) for path in _licence_files(label, files)
    }
    sources = (path.read_text(encoding="utf-8", errors="replace") for path in files)
    stated = f"\nIts metadata say: {words}\n" if (words := _stated(label)) else ""
    parts = [f"\n{_RULE}\n{label} {version}: {SPDX[label]}\n{_RULE}\n{stated}"]
    parts += ["\nCopyright lines of its licences and of the files that were read:\n"]
    parts += [f"  {line}\n" for line in copyright_lines([*shown.values(), *sources])]
    parts += [f"\n--- {path.name} ---\n\n{text.strip()}\n" for path, text in shown.items()]
    return "".join(parts)


def _without_binaries(licence: str) -> str:
    return _OF_BINARIES.sub("[What follows concerns compiled libraries: left out.]", licence)


def copyright_lines(texts: Iterable[str]) -> list[str]:
    """Each line that states a copyright, once, without the signs of a comment around it; in order of appearance."""
    kept: dict[str, str] = {}
    for text in texts:
        for line in text.splitlines():
            if found := "opyright" in line and _COPYRIGHT.match(line):
                cleaned = " ".join(found[1].strip(" #*\"'").split())
                kept.setdefault(cleaned.casefold(), cleaned)
    return [*kept.values()]


def _stated(label: str) -> str:
    if label == "stdlib":
        return ""
    metadata = importlib.metadata.metadata(label)
    short = [*metadata.get_all("License-Expression", []), *metadata.get_all("License", [])]
    classifiers = [line for line in metadata.get_all("Classifier", []) if line.startswith("License")]
    return "; ".join([*(line for line in short if 0 < len(line) < 120), *classifiers])


def _licence_files(label: str, files: Sequence[Path]) -> list[Path]:
    """Those of the distribution itself, and those that lie beside a file that was read."""
    if label == "stdlib":
        return [Path(sysconfig.get_paths()["stdlib"], "LICENSE.txt")]
    paths = [Path(str(path.locate())) for path in importlib.metadata.files(label) or ()]
    paths = [path for path in paths if _LICENCE_FILE.match(path.name)]
    folders = {path.parent for path in files}
    own = [path for path in paths if re.fullmatch(r".*\.dist-info(/licenses)?", path.parent.as_posix())]
    return [*sorted(own), *sorted(path for path in paths if path.parent in folders)]
