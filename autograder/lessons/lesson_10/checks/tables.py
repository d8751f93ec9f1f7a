"""The check of exercise 10.1: from a table to two sets of samples."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_repeatable
from autograder.lessons.lesson_10.harness.tables import secret_table

SHARE = 0.2
NUM_BAD_ROWS = 9


def check_prepare(job: Job) -> None:
    """10.1: every usable row once, no text on both sides, label by label, the same again at the same seed."""
    job.corpus()
    content, rows = _table(job)
    seeds = [job.seed() % 1000, job.seed() % 1000 + 1000]
    first, again, other = job.learner().call(
        "prepared", content=content, validation=SHARE, seeds=[seeds[0], seeds[0], seeds[1]]
    )
    for answer in (first, other):
        _require_rows(job, answer, rows)
        _require_no_leak(job, answer)
        _require_stratified(job, answer, rows)
    require_repeatable(
        job,
        what="split",
        is_same=first == again,
        when="at the same seed",
        unseeded="a random number that the seed does not decide: a global generator, or the order of a set",
        look_unseeded="make one generator from `seed`, and draw from it alone",
        is_another=sorted(first["validation"]) != sorted(other["validation"]),
        another="at another seed",
        fixed="the seed is not used: the first or the last rows are taken",
        look_fixed="where does `seed` go in?",
    )


def _table(job: Job) -> tuple[str, list[tuple[str, str]]]:
    """A CSV sorted by label, as exports are, with a rare label, repeated texts and bad rows; and its good rows."""
    texts, labels = secret_table(job.seed(), 400, num_labels=8)
    texts, labels = [f'{text}, "{number}"' for number, text in enumerate(texts)], list(labels)
    rare = texts[:10]
    good = sorted(zip(texts[10:], labels[10:], strict=True), key=lambda row: row[1])
    good += [(text, "rare one") for text in rare]
    repeated = [good[int(index)] for index in job.rng.choice(len(good), size=40, replace=False)]
    rows = [[label, "note", text] for text, label in good + repeated * 2]
    for number in range(NUM_BAD_ROWS):
        bad = ["", "note", f"a text without a label {number}"] if number % 2 else [good[0][1], "note", "  "]
        rows.insert(int(job.rng.integers(len(rows))), bad)
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["label", "remark", "text"], *rows])
    return file.getvalue(), good


def _require_rows(job: Job, answer: dict[str, Any], rows: list[tuple[str, str]]) -> None:
    found = {tuple(row) for side in ("train", "validation") for row in answer[side]}
    expected = set(rows)
    job.require(
        not {row for row in found if not row[0].strip() or not row[1].strip()},
        expected="rows with a text and a label only",
        got="a row in which one of them is empty",
        likely="bad rows are kept: a model would learn that no text means something",
        look="`if text.strip() and label.strip()`, and count what you leave out",
    )
    job.require(
        found == expected,
        expected=f"{len(expected)} different pairs of text and label, as they stand in the columns",
        got=f"{len(found & expected)} of them, and {len(found - expected)} that are not in the table",
        likely="columns are taken by their place, lines are split at commas by hand, or rows are lost",
        look="`csv.DictReader` knows names and quotes",
    )
    job.require(
        answer["left_out"] == NUM_BAD_ROWS,
        expected=f"left_out = {NUM_BAD_ROWS}: rows without a text or without a label",
        got=f"{answer['left_out']}",
        likely="only one kind of bad row is counted, or repeated texts are counted too",
        look="count where you skip a row",
    )


def _require_no_leak(job: Job, answer: dict[str, Any]) -> None:
    sides = [{text for text, _ in answer[side]} for side in ("train", "validation")]
    job.require(
        not sides[0] & sides[1],
        expected="no text on both sides",
        got=f"{len(sides[0] & sides[1])} texts in both",
        likely="repeated texts leak: the model is tested on what it was trained on",
        look="split the different texts, then put each row where its text went",
    )


def _require_stratified(job: Job, answer: dict[str, Any], rows: list[tuple[str, str]]) -> None:
    held_out = {tuple(row) for row in answer["validation"]}
    for label in sorted({label for _, label in rows}):
        size = sum(own == label for _, own in rows)
        got = sum(own == label for _, own in held_out)
        job.require(
            abs(got - SHARE * size) <= 1 and (0 < got < size),
            expected=f"about {SHARE * size:.0f} of the {size} texts of each label held out",
            got=f"{got} of {label!r}",
            likely="not stratified: the split looks at rows, not at labels"
            if got
            else "a label is missing from validation: the table is sorted, and the split takes one end",
            look="split each label's texts on its own, then join the parts",
        )


def secret_split(
    job: Job, num_train: int, num_unseen: int
) -> tuple[list[str], list[str], list[str], np.ndarray]:
    """Texts and labels to train on, texts to be judged on, and their labels, which stay here."""
    texts, labels = secret_table(job.seed(), num_train + num_unseen)
    return texts[:num_train], labels[:num_train], texts[num_train:], np.array(labels[num_train:])
