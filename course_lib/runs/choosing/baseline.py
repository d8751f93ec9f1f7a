"""What a plain linear model reaches on the same parts of the data: a figure that any other has to beat."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from typing import Any

import numpy as np

from course_lib.base import UserError, atomic_write_text, cache_dir, digest, require
from course_lib.data import Parts, Texts
from course_lib.training import confusion_matrix, macro_f1

NAME = "TF-IDF of words and pairs of words, LinearSVC (scikit-learn)"
MAX_TEXTS = 100_000
_FORMAT = "1"


def linear_baseline(data: Parts, task: str) -> dict[str, Any]:
    """`name`, and on the validation part `accuracy` and `macro_f1`; `cpu_seconds` that it took, or took when it was
    made for another run of the same data. Without a figure `reason` says why: another task, more than `MAX_TEXTS`
    texts, no scikit-learn.
    """
    if task != "classification":
        return {"name": NAME, "reason": f"it is made for classification, not for {task}"}
    if len(data.train) > MAX_TEXTS:
        return {"name": NAME, "reason": f"it is made for {MAX_TEXTS:,} texts to train on at most"}
    key = digest(data.fingerprint, *(rows.tobytes() for _, rows in data.sources.values()), NAME, _FORMAT)
    kept = cache_dir() / f"baseline-{key[:20]}.json"
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return found
    try:
        require("sklearn", extra="baseline")
    except UserError as error:
        return {"name": NAME, "reason": str(error)}
    made = {"name": NAME, **_trained(data)}
    with contextlib.suppress(UserError, OSError):  # a cache that cannot be written: made again next time
        atomic_write_text(kept, json.dumps(made))
    return made


def _trained(data: Parts) -> dict[str, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC

    (texts, labels), (held_out, truth) = (_part(*data.sources[name]) for name in ("train", "validation"))
    start = time.process_time()
    if len(np.unique(labels)) < 2:
        return {"reason": "there is one label alone to train on"}
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    try:
        model = LinearSVC(random_state=0).fit(vectorizer.fit_transform(texts), labels)
    except ValueError as error:  # no text has a word
        return {"reason": str(error).partition("\n")[0]}
    predictions = model.predict(vectorizer.transform(held_out))
    seconds = time.process_time() - start
    names = data.train.label_names
    scores = {
        "accuracy": float((predictions == truth).mean()),
        "macro_f1": macro_f1(confusion_matrix(truth, predictions, names)),
    }
    return scores | {"cpu_seconds": seconds}


def _part(texts: Texts, rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    is_mine = np.zeros(len(texts), dtype=bool)
    is_mine[rows] = True
    return [*itertools.compress(texts.texts, is_mine)], texts.labels[is_mine]
