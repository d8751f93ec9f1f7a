"""Secret tables for 10.1: a CSV as exports are."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from autograder.engine import Job
from autograder.lessons.lesson_10.harness.tables import secret_table

ODD_ENDS = ("\u2028", "\x0c", "\x85", "\x0b")
"""`str.splitlines` takes these for line ends; a CSV does not, and so puts no quotes around them."""

NUM_SHARED = 240
"""Texts that all have two labels: whoever draws for each label is far from the share, and who draws once is not."""


@dataclass(frozen=True)
class Table:
    """A CSV as exports are: sorted by label, with repeated texts and bad rows."""

    content: str
    pairs: frozenset[tuple[str, str]]
    """Different texts with their label. A few texts have two labels."""
    num_repeated: int
    """Usable rows whose text stood in one before."""
    times: Counter[str]
    """How often each text stands in a usable row."""
    sparse: frozenset[str]
    """Texts in whose rows another column is empty."""
    spaced: frozenset[str]
    """Texts that stand in another row with spaces around them."""
    num_without: dict[str, int]
    """Bad rows: without a "text", without a "label", without "both"; and without a label behind a usable row of the
    same text, "again"."""
    unlabelled: frozenset[str]
    """Texts of usable rows that stand in a row without a label, too: behind the usable one, or ahead of it."""

    @property
    def num_bad(self) -> int:
        return sum(self.num_without.values())

    @property
    def texts(self) -> set[str]:
        return {text for text, _ in self.pairs}


PLAIN = ("NA", "None", "null", "nan", "0", "007", "1.50", "-")
"""Texts like others, though a library for tables takes them for nothing, or for a number."""
CHANGES: tuple[Callable[[str], str], ...] = (
    str.upper,
    lambda text: text.replace(" ", "  ", 1),
    lambda text: unicodedata.normalize("NFD", f"{text} \u00e9"),
)


def secret_export(
    job: Job, columns: list[int], num_texts: int = 400, num_labels: int = 8, num_bad: int | None = None
) -> Table:
    """Columns in this order; sorted by label, one rare; texts of two labels, texts that come again, bad rows."""
    rng = job.rng
    texts, labels = secret_table(job.seed(), num_texts, num_labels=num_labels)
    texts = [_dressed(text, number) for number, text in enumerate(texts)]
    # Labels that look like numbers, or like none.
    others = ["01", "1.0", "1"] if num_labels < 3 else ["NA", "None"]
    names = sorted(set(labels))
    renamed = dict(zip(names, others, strict=False))
    if len(names) > 5:  # two that are told apart by their case alone, and two by the end of a long name
        long = "a name of many words, as a person gives it, "
        renamed |= {names[2]: names[3].upper(), names[4]: f"{long}1", names[5]: f"{long}2"}
    labels = [renamed.get(label, label) for label in labels]
    texts[-len(PLAIN) :] = PLAIN
    for place in (20, 21, 22):  # another text, but for the case, the spaces or how an accent is written
        texts[place + 3] = CHANGES[place % 3](texts[place])
        labels[place + 3] = labels[place]
    num_rare = int(rng.integers(5, 13))
    good = sorted(zip(texts[num_rare:], labels[num_rare:], strict=True), key=lambda row: row[1])
    doubtful = [(text, good[-1][1]) for text, label in good[:40:20] if label != good[-1][1]]
    good += [(text, "rare one" if number else "lone one") for number, text in enumerate(texts[:num_rare])]
    good += doubtful
    rows = [row for row in good for _ in range(1 + 2 * (rng.random() < 0.05))]
    rows += [good[int(index)] for index in rng.choice(len(good), size=40, replace=False)]
    # Many copies of few texts: what is counted in rows is another share of the different texts.
    copied = rng.choice(len(good), size=len(good) // 40, replace=False)
    rows += [good[int(index)] for index in copied for _ in range(6)]
    spaced = [row for row in good if row[1] == good[0][1]][: 6 if num_bad is None else 0]
    rows += [(f" {text}  ", label) for text, label in spaced]
    num_repeated = len(rows) - len({text.strip() for text, _ in rows})
    # Other numbers of each kind: they say which one was left out.
    usable, sparse = (
        Counter(text.strip() for text, _ in rows),
        frozenset(text for text, _ in good if rng.random() < 0.2),
    )
    num_bad = int(rng.integers(1, 4)) if num_bad is None else num_bad
    num_without = {"text": num_bad, "label": 2 * num_bad, "both": 4 * num_bad, "again": 8 * num_bad}
    blank = ["", " ", "\t", "  ", "\n", " \r\n"]
    unlabelled = rng.permutation(sorted(usable))[: 9 * num_bad].tolist()
    to_come = unlabelled[8 * num_bad :]  # their first row is one without a label
    for which, number in num_without.items():
        for place in range(number):
            empty = blank[int(rng.integers(len(blank)))]
            text = f"a text without a label {place}" if which == "label" else empty
            first, last = 0, len(rows)
            if which == "again":
                text = unlabelled[place]
                first = 1 + [known for known, _ in rows].index(text)
            elif which == "label" and place < len(to_come):
                text = to_come[place]
                last = [known for known, _ in rows].index(text)
            bad = (text, good[0][1] if which == "text" else empty)
            rows.insert(int(rng.integers(first, last + 1)), bad)
    return Table(
        _written(job, columns, rows, sparse),
        frozenset(good),
        num_repeated,
        usable,
        sparse,
        frozenset(text for text, _ in spaced),
        num_without,
        frozenset(unlabelled),
    )


def shared_export(job: Job, columns: list[int]) -> Table:
    """Columns in this order; texts that all have two labels, in one order or the other."""
    texts, labels = secret_table(job.seed(), NUM_SHARED, num_labels=2)
    texts = [_dressed(text, number) for number, text in enumerate(texts)]
    rows = [
        (text, label) for text, first in zip(texts, labels, strict=True) for label in _both(labels, first)
    ]
    num_without = dict.fromkeys(("text", "label", "both", "again"), 0)
    times = Counter(text for text, _ in rows)
    nothing = frozenset[str]()
    content = _written(job, columns, rows, nothing)
    return Table(content, frozenset(rows), NUM_SHARED, times, nothing, nothing, num_without, nothing)


def _both(labels: list[str], first: str) -> list[str]:
    return sorted(set(labels), key=lambda label: label != first)


def _written(job: Job, columns: list[int], rows: list[tuple[str, str]], sparse: frozenset[str]) -> str:
    """The CSV of these rows, with two columns more."""
    rng = job.rng
    remark, number_of = (str(rng.choice(some)) for some in (("remark", "old text"), ("number", "label_id")))
    names = [("text", "label", remark, number_of)[column] for column in columns]
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, names)
    writer.writeheader()
    for number, (text, label) in enumerate(rows):
        is_sparse = text in sparse or not (text.strip() or label.strip())
        more = {remark: "" if is_sparse else "a note", number_of: "" if is_sparse else number}
        writer.writerow({"text": text, "label": label} | more)
    return file.getvalue()


def _dressed(text: str, number: int) -> str:
    """The text with a number of its own and what stands in real ones: commas, quotes, line ends, odd characters."""
    if number % 7 == 3:
        return f"{text}{ODD_ENDS[number // 7 % len(ODD_ENDS)]}{number}"
    if number % 7 == 5:
        return f"Of  a Caf\u00e9, Cafe\u0301, \ufb01nally: {text} {number}"
    ends = ("\n.", "\r\n.", "", "", "")  # a line end inside quotes belongs to the text
    return f'{text}, "{number}"' + ends[number % len(ends)]
