"""Real data without a download: docstrings, labelled by the package they come from; source code, by word.

Both ship in one file beside this one and are the same on every machine, whatever is installed. It was made by
`tools/make_corpus.py` of the repository; `corpus_licences.txt` says from which versions, and under which licences.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

from course_lib.base import UserError
from course_lib.data.texts import Texts

CORPUS = Path(__file__).with_name("corpus.zip")
# Measured figures, the lessons' among them, hold for the texts with these fingerprints and no others.
DOCSTRINGS_FINGERPRINT = "b0a89f7a9a5c8c6770be9ddc86a583b16a08952eee82ad7af08d3a75c5b70e5e"
SOURCE_FINGERPRINT = "0fe1d80e7702800f27ffb5a3e0e60c03a18eccc7d796a41cd661acd579e8ca2d"


def load_docstrings() -> Texts:
    """The docstrings of the standard library and of 15 packages, labelled by package.

    Names that give the package away are masked. The sizes are left as they are: classes of unequal size and a
    long tail of lengths are what real data look like, and what padding and bucketing have to cope with.

    Returns:
        Texts whose `groups` number the source files. `notes` say how many texts were left out: duplicates,
        texts found under two labels, very short ones.

    Raises:
        UserError: the file that ships with the library is missing or damaged.
    """
    return _read("docstrings.json", DOCSTRINGS_FINGERPRINT)


def load_source() -> Texts:
    """The standard library's own source (Python 3.11) as words, each labelled by its role: for token
    classification. A text begins at a `def` or `class` and ends before the next; `groups` number the files.

    The roles are `label_names`: keyword; function, class (the name in a `def`, in a `class`), call, attribute
    (after a dot) or any other name; number, string, comment, sign. Keywords, numbers and operators can be told
    by their spelling; which of five roles an identifier has, by its neighbours alone. Strings and comments are
    cut to 32 characters. Raises as `load_docstrings`.
    """
    return _read("source.json", SOURCE_FINGERPRINT)


def _read(name: str, fingerprint: str) -> Texts:
    try:
        with zipfile.ZipFile(CORPUS) as archive:
            record = json.loads(archive.read(name))
        arrays = {part: np.array(record[part], dtype=np.int64) for part in ("labels", "groups")}
        tuples = {part: tuple(record[part]) for part in ("label_names", "notes")}
        texts = Texts(**{**record, **arrays, **tuples})
        if texts.fingerprint != fingerprint:
            raise ValueError(f"the fingerprint of {name} is not the expected one")
    except (
        Exception
    ) as error:  # a damaged archive raises nearly anything: errors of zipfile, lzma, struct, json
        fix = "Install training-workbook again, with pip's --force-reinstall --no-deps; in a checkout: git restore"
        raise UserError(f"cannot read the built-in texts: {error}. {fix} {CORPUS}") from error
    return texts
