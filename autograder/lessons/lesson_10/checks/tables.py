"""The check of exercise 10.1: from a table to two sets of samples."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_repeatable
from autograder.lessons.lesson_10.harness.tables import secret_table

DEFAULT_SHARE = 0.2
ODD_ENDS = ("\u2028", "\x0c", "\x85", "\x0b")
"""`str.splitlines` takes these for line ends; a CSV does not, and so puts no quotes around them."""


@dataclass(frozen=True)
class Table:
    """A CSV as exports are: sorted by label, with repeated texts and bad rows."""

    content: str
    pairs: frozenset[tuple[str, str]]
    """Different texts with their label. A few texts have two labels."""
    num_repeated: int
    """Usable rows whose text stood in one before."""
    num_without: dict[str, int]
    """Bad rows: without a "text", without a "label", without "both"."""

    @property
    def num_bad(self) -> int:
        return sum(self.num_without.values())

    @property
    def texts(self) -> set[str]:
        return {text for text, _ in self.pairs}


def check_prepare(job: Job) -> None:
    """10.1: every usable row once, no text on both sides, label by label, the same again at the same seed."""
    job.corpus()
    seeds = [job.seed() % 1000, job.seed() % 1000 + 1000]
    share, other_share = (float(share) for share in job.rng.permutation([0.1, 0.3, 0.4, 0.5])[:2])
    cases: list[dict[str, Any]] = [
        {},
        {"validation": share, "seed": seeds[0]},
        {"validation": share, "seed": seeds[0]},
        {"validation": share, "seed": seeds[1]},
        {"validation": other_share},
        {"validation": other_share, "seed": 0},
    ]
    for table in (_table(job, num_texts=60, num_labels=2, num_bad=0), _table(job)):
        answers = job.learner().call("prepared", content=table.content, cases=cases)
        for case, answer in zip(cases, answers, strict=True):
            _require_rows(job, answer, table)
            _require_no_leak(job, answer)
            _require_stratified(job, answer, table, case.get("validation", DEFAULT_SHARE))
    look = "make one generator from `seed`, and draw from it alone"
    require_repeatable(
        job,
        what="split",
        is_same=answers[1] == answers[2] and answers[4] == answers[5],
        when="at the same seed, which is 0 where none is given",
        unseeded="a random number that the seed does not decide, such as a global generator",
        look_unseeded=look,
        is_another=sorted(answers[1]["validation"]) != sorted(answers[3]["validation"]),
        another="at another seed",
        fixed="the seed is not used: the first or the last rows are taken",
        look_fixed="where does `seed` go in?",
    )
    again = job.learner().call(
        "prepared_elsewhere",
        source=job.source,
        entry=job.entry,
        case=cases[1],
        hash_seed=int(job.rng.integers(1, 2**31)),
    )
    require_repeatable(
        job,
        what="split",
        look_unseeded=look,
        is_same=again == {side: answers[1][side] for side in again},
        when="at the same seed in another process",
        unseeded="`hash()` of a text, or the order of a set of texts: both are new each time Python starts",
    )


def _table(job: Job, num_texts: int = 400, num_labels: int = 8, num_bad: int | None = None) -> Table:
    """Sorted by label, with a rare label, a few texts of two labels, repeated texts near and far, bad rows anywhere."""
    rng = job.rng
    texts, labels = secret_table(job.seed(), num_texts, num_labels=num_labels)
    ends = ("\n.", "\r\n.", "", "", "")  # a line end inside quotes belongs to the text
    texts = [
        f"{text}{ODD_ENDS[number // 7 % len(ODD_ENDS)]}{number}"
        if number % 7 == 3
        else f'{text}, "{number}"' + ends[number % len(ends)]
        for number, text in enumerate(texts)
    ]
    num_rare = int(rng.integers(5, 13))
    good = sorted(zip(texts[num_rare:], labels[num_rare:], strict=True), key=lambda row: row[1])
    doubtful = [(text, good[-1][1]) for text, label in good[:40:20] if label != good[-1][1]]
    good += [(text, "rare one") for text in texts[:num_rare]] + doubtful
    rows = [row for row in good for _ in range(1 + 2 * (rng.random() < 0.05))]
    rows += [good[int(index)] for index in rng.choice(len(good), size=40, replace=False)]
    # Many copies of few texts: what is counted in rows is another share of the different texts.
    copied = rng.choice(len(good), size=len(good) // 40, replace=False)
    rows += [good[int(index)] for index in copied for _ in range(6)]
    num_repeated = len(rows) - len({text for text, _ in rows})
    # Other numbers of each kind: they say which one was left out.
    num_bad = int(rng.integers(1, 4)) if num_bad is None else num_bad
    num_without = {"text": num_bad, "label": 2 * num_bad, "both": 4 * num_bad}
    blank = ["", " ", "\t", "  "]
    for which, number in num_without.items():
        for place in range(number):
            empty = blank[int(rng.integers(len(blank)))]
            bad = (
                f"a text without a label {place}" if which == "label" else empty,
                good[0][1] if which == "text" else empty,
            )
            rows.insert(int(rng.integers(len(rows))), bad)
    names = rng.permutation(["text", "label", "remark", "number"]).tolist()
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, names)
    writer.writeheader()
    writer.writerows(
        {"text": text, "label": label, "remark": "a note", "number": number}
        for number, (text, label) in enumerate(rows)
    )
    return Table(file.getvalue(), frozenset(good), num_repeated, num_without)


def _require_rows(job: Job, answer: dict[str, Any], table: Table) -> None:
    found = {tuple(row) for side in ("train", "validation") for row in answer[side]}
    job.require(
        not {row for row in found if not row[0].strip() or not row[1].strip()},
        expected="rows with a text and a label only",
        got="a row in which one of them is empty",
        likely="bad rows are kept: a model would learn that no text means something",
        look="`if text.strip() and label.strip()`, and count what you leave out",
    )
    strange, lost = found - table.pairs, table.texts - {text for text, _ in found}
    is_cut = bool(lost) and all(any(end in text for end in ODD_ENDS) for text in lost)
    cut = "lines are split by `str.splitlines`: that also cuts at form feeds and the like, which stand inside texts"
    job.require(
        not strange,
        expected="texts and labels as they stand in the columns",
        got=f"{len(strange)} pairs that are not in the table",
        likely='the file is opened without `newline=""`: "\\r\\n" inside a text becomes "\\n", and is another text'
        if strange <= {(text.replace("\r\n", "\n"), label) for text, label in table.pairs}
        else cut
        if is_cut
        else "columns are taken by their place, or lines are split at commas by hand",
        look="`csv.DictReader` knows names and quotes; the documentation of `csv` says how to open a file for it",
    )
    job.require(
        not lost,
        expected=f"{len(table.texts)} different texts",
        got=f"{len(lost)} of them on no side",
        likely=cut
        if is_cut
        else "rows are lost: a last part that neither side takes, or a text in more than one row",
        look="what is not held out is for training",
    )
    job.require(
        answer["left_out"] == table.num_bad,
        expected=f"left_out = {table.num_bad}: rows without a text or without a label",
        got=f"{answer['left_out']}",
        likely=_why_left_out(answer["left_out"], table),
        look="count where you skip a row",
    )


def _why_left_out(got: int, table: Table) -> str:
    text, label, both = (table.num_without[which] for which in ("text", "label", "both"))
    known = {
        table.num_bad + both: "a row without both is counted twice: one row, one bad row",
        table.num_bad + table.num_repeated: "repeated texts are counted: they are usable rows all the same",
        text + both: "rows without a label are not counted",
        label + both: "rows without a text are not counted",
        text + label: "a row without both is not counted",
        both: "only rows without both are counted",
    }
    return known.get(got, "something else than the rows in which text or label is empty or blank is counted")


def _require_no_leak(job: Job, answer: dict[str, Any]) -> None:
    sides = [{text for text, _ in answer[side]} for side in ("train", "validation")]
    job.require(
        not sides[0] & sides[1],
        expected="no text on both sides",
        got=f"{len(sides[0] & sides[1])} texts in both",
        likely="repeated texts leak, those with another label too: the model is tested on what it was trained on",
        look="split the different texts, then put each row where its text went",
    )


def _require_stratified(job: Job, answer: dict[str, Any], table: Table, share: float) -> None:
    held_out = {tuple(row) for row in answer["validation"]}
    labels_of = Counter(text for text, _ in table.pairs)
    total = len({text for text, _ in held_out}) / len(table.texts)
    for label in sorted({label for _, label in table.pairs}):
        texts = [text for text, own in table.pairs if own == label]
        doubtful = sum(labels_of[text] > 1 for text in texts)  # another label may decide where these go
        got = sum(own == label for _, own in held_out)
        wanted = share * len(texts)
        if got == 0 and wanted >= 3:
            likely = "a label is missing from validation: the table is sorted, and the split takes one end"
        elif share != DEFAULT_SHARE and abs(total - DEFAULT_SHARE) < 0.02:
            likely = f"`validation` is not used: {DEFAULT_SHARE:g} is held out, whatever is asked for"
        elif abs(total - share) > 0.05:
            likely = "another share than `validation` is held out, or repeated rows are counted, not different texts"
        else:
            likely = (
                "not stratified: the split does not look at labels; or repeated rows are counted, not texts"
            )
        job.require(
            abs(got - wanted) <= 1 + doubtful and (got > 0 or wanted < 1),
            expected=f"about {wanted:.0f} of the {len(texts)} texts of each label held out (validation={share:g})",
            got=f"{got} of {label!r}",
            likely=likely,
            look="split each label's texts on its own, then join the parts",
        )


def secret_split(
    job: Job, num_train: int, num_unseen: int
) -> tuple[list[str], list[str], list[str], np.ndarray]:
    """Texts and labels to train on, texts to be judged on, and their labels, which stay here."""
    texts, labels = secret_table(job.seed(), num_train + num_unseen)
    return texts[:num_train], labels[:num_train], texts[num_train:], np.array(labels[num_train:])
