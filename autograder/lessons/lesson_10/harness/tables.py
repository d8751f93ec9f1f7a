"""Harness of 10.1, and the secret tables of 10.1 and 10.2."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from autograder.lessons.checking.harness_shared import elsewhere, learner
from course_lib.data import load_docstrings

MAX_WORDS = 150  # of a text
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


@functools.cache
def _texts_by_label() -> tuple[list[str], ...]:
    """The built-in texts of each label that has at least 300."""
    corpus = load_docstrings()
    found = []
    for label in range(len(corpus.label_names)):
        chosen = np.flatnonzero(corpus.labels == label)
        if len(chosen) >= 300:
            found.append([corpus.texts[int(index)] for index in chosen])
    return tuple(found)


def secret_table(seed: int, num_texts: int, num_labels: int = 4) -> tuple[list[str], list[str]]:
    """Texts and labels, in random order, that cannot be looked up anywhere: real docstrings of some packages, with
    another name for every word and every label."""
    rng = np.random.default_rng(seed)
    pools = _texts_by_label()
    labels = rng.integers(num_labels, size=num_texts)
    picked = [pools[int(pool)] for pool in rng.permutation(len(pools))[:num_labels]]
    orders = [rng.permutation(len(pool)) for pool in picked]
    taken = np.zeros(num_labels, dtype=np.int64)
    texts = []
    for label in labels:
        order = orders[label]
        texts.append(picked[label][int(order[taken[label] % len(order)])].lower().split()[:MAX_WORDS])
        taken[label] += 1
    names = _new_names({word for text in texts for word in text}, rng)
    classes = [f"class {letter}" for letter in rng.permutation(list("ABCDEFGHIJ"))[:num_labels]]
    return [" ".join(names[word] for word in text) for text in texts], [classes[label] for label in labels]


def _new_names(words: set[str], rng: np.random.Generator) -> dict[str, str]:
    """A pronounceable name of its own for each word: as many syllables as there are words to tell apart."""
    size = len(_SYLLABLES)
    numbers = rng.permutation(size**3)[: len(words)]
    return {
        word: "".join(_SYLLABLES[number // size**place % size] for place in range(3))
        for word, number in zip(sorted(words), numbers.tolist(), strict=True)
    }


_PREPARE_ELSEWHERE = """
import pathlib
moved = pathlib.Path("elsewhere", "copy of a table.csv")
moved.parent.mkdir(exist_ok=True)
moved.write_bytes(pathlib.Path("table.csv").read_bytes())
answers = [learner(path, **request) for path in (pathlib.Path("table.csv"), moved)]
say([[[list(pair) for pair in answer[side]] for side in ("train", "validation")] for answer in answers])
"""


def prepared(content: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the learner makes of this table in each case: its arguments, but for the path.

    "odd": what is no list of tuples, or no number; "is_kept": whether the table is afterwards what it was. A share of 0
    may be refused: then there is no "train".
    """
    path = Path("table.csv")
    found: list[dict[str, Any]] = []
    for case in cases:
        path.write_text(content, encoding="utf-8", newline="")
        try:
            answer = learner(path, **case)
        except ValueError:
            if case.get("validation", 1.0):
                raise
            found.append({})
            continue
        sides = {name: _pairs(answer[name]) for name in ("train", "validation")}
        odd = next((odd for name in sides if (odd := _what_is_odd(answer[name]))), "")
        left_out = answer["left_out"]
        if isinstance(left_out, str):
            odd = odd or f"left_out as a text, {left_out!r}"
        is_kept = path.is_file() and path.read_bytes() == content.encode()
        found.append(sides | {"left_out": int(left_out), "odd": odd, "is_kept": is_kept})
    return found


def _what_is_odd(samples: Any) -> str:
    if not isinstance(samples, list):
        return f"a {type(samples).__name__} of samples"
    return next((f"a {type(pair).__name__} in a list" for pair in samples if not isinstance(pair, tuple)), "")


def prepared_elsewhere(source: str, entry: str, case: dict[str, Any], hash_seed: int) -> list[dict[str, Any]]:
    """The two sides of the last table, split in a fresh interpreter; and those of a copy of it, under another name."""
    answers = elsewhere(_PREPARE_ELSEWHERE, source, entry, case, hash_seed)
    return [{"train": _pairs(train), "validation": _pairs(validation)} for train, validation in answers]


def _pairs(samples: Any) -> list[list[str]]:
    return [[str(text), str(label)] for text, label in samples]
