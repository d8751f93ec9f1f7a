"""The check of exercise 10.1: from a table to two sets of samples."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_repeatable
from autograder.lessons.lesson_10.checks.exports import ODD_ENDS, PLAIN, Table, secret_export, shared_export
from autograder.lessons.lesson_10.harness.tables import secret_table

DEFAULT_SHARE = 0.2


def check_prepare(job: Job) -> None:
    """10.1: every usable row once, no text on both sides, label by label, the same again at the same seed."""
    job.corpus()
    seed = 2 * int(job.rng.integers(1, 500))  # the next one is odd: half of both is one number
    # Of 1 / share nothing is lost at the other shares alone.
    share, other_share = (float(job.rng.choice(some)) for some in ((0.3, 0.35, 0.4), (0.1, 0.5, 0.7)))
    cases: list[dict[str, Any]] = [
        {},
        {"validation": share, "seed": seed},
        {"validation": share, "seed": seed},
        {"validation": other_share},
        {"validation": other_share, "seed": 0},
        *({"validation": share, "seed": seed + more} for more in (1, 2, 10**6, 2**20)),
        *({"validation": share, "seed": few} for few in (0, 1)),
        {"validation": 0.9},
        {"validation": 0.0},
    ]
    columns = job.rng.permutation(4).tolist()
    tables = (
        secret_export(job, columns, num_texts=60, num_labels=2, num_bad=0),
        shared_export(job, columns),
        secret_export(job, columns[::-1]),  # no column where it was
    )
    for table in tables:
        answers = job.learner().call("prepared", content=table.content, cases=cases)
        for case, answer in zip(cases, answers, strict=True):
            if not answer:
                continue
            _require_rows(job, answer, table)
            _require_no_leak(job, answer, table)
            _require_stratified(job, answer, table, case.get("validation", DEFAULT_SHARE))
    look = "make one generator from `seed`, and draw from it alone"
    require_repeatable(
        job,
        what="split",
        is_same=answers[1] == answers[2] and answers[3] == answers[4],
        when="at the same seed, which is 0 where none is given",
        unseeded="a random number that the seed does not decide, such as a global generator",
        look_unseeded=look,
        is_another=len(
            {str(sorted(answer["validation"])) for answer in answers[5:11]}
            | {str(sorted(answers[1]["validation"]))}
        )
        == 7,
        another="at another seed",
        fixed="the seed is not used, or two seeds come to one: the first or the last rows are taken",
        look_fixed="where does `seed` go in?",
    )
    again, moved = job.learner().call(
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
    require_repeatable(
        job,
        what="split",
        look_unseeded=look,
        is_same=moved == again,
        when="at the same seed, of a copy of the table under another name",
        unseeded="the name of the file, or its folder, has a part in the draw",
    )


def _require_rows(job: Job, answer: dict[str, Any], table: Table) -> None:
    job.require(
        answer["is_kept"],
        expected="the table as it was",
        got="a file that is another one, or none",
        likely="the table is written, where it is only to be read: whoever owns it finds it changed",
        look='open it with "r", or no mode at all; what you write belongs in a file of your own',
    )
    found = {(text.strip(), label) for side in ("train", "validation") for text, label in answer[side]}
    job.require(
        not {row for row in found if not row[0].strip() or not row[1].strip()},
        expected="rows with a text and a label only",
        got="a row in which one of them is empty",
        likely="bad rows are kept: a model would learn that no text means something",
        look="`if text.strip() and label.strip()`, and count what you leave out",
    )
    job.require(
        not answer["odd"],
        expected="lists of tuples, (text, label), and left_out as a number",
        got=answer["odd"],
        likely="the samples stand in something else: code that takes them may count, index or compare them",
        look="print `type(...)` of a side, of its first sample, and of left_out",
    )
    strange, lost = found - table.pairs, table.texts - {text for text, _ in found}
    is_cut = bool(lost) and all(any(end in text for end in ODD_ENDS) for text in lost)
    cut = "lines are split by `str.splitlines`: that also cuts at form feeds and the like, which stand inside texts"
    job.require(
        not strange,
        expected="texts and labels as they stand in the columns",
        got=f"{len(strange)} pairs that are not in the table",
        likely="texts or labels are changed: letters, accents, spaces and digits stay as they stand"
        if {_core(row) for row in strange} <= {_core(row) for row in table.pairs}
        else 'the file is opened without `newline=""`: "\\r\\n" inside a text becomes "\\n", and is another text'
        if strange <= {(text.replace("\r\n", "\n"), label) for text, label in table.pairs}
        else cut
        if is_cut
        else "the file is read in another encoding: it is UTF-8, and every character counts"
        if lost and not any(text.isascii() for text in lost)
        else "columns are taken by their place, or lines are split at commas by hand",
        look="`csv.DictReader` knows names and quotes; the documentation of `csv` says how to open a file for it",
    )
    job.require(
        not lost,
        expected=f"{len(table.texts)} different texts",
        got=f"{len(lost)} of them on no side",
        likely=cut
        if is_cut
        else "rows without a label are left out after repeats are dropped: a text whose label stands in another of its "
        "rows is gone"
        if lost <= table.unlabelled
        else "a text such as NA or None is taken for nothing: only what is empty or blank is"
        if lost <= set(PLAIN)
        else "a row is left out where any column is empty: text and label are what it needs"
        if lost <= table.sparse
        else "rows are lost: a last part that neither side takes, or a text in more than one row",
        look="what is not held out is for training",
    )
    times = Counter(text.strip() for side in ("train", "validation") for text, _ in answer[side])
    often = [text for text, number in times.items() if number > table.times[text]]
    job.require(
        not often,
        expected="each row once at most",
        got=f"{len(often)} that come more often than they stand in the table",
        likely="rows are put in twice, as for a rare label: what is drawn more often is for the sampler to decide",
        look="compare the number of samples with that of usable rows",
    )
    job.require(
        answer["left_out"] == table.num_bad,
        expected=f"left_out = {table.num_bad}: rows without a text or without a label",
        got=f"{answer['left_out']}",
        likely=_why_left_out(answer["left_out"], table),
        look="count where you skip a row",
    )


def _core(row: tuple[str, str]) -> tuple[str, str]:
    """What is left of both where letters, accents and spaces are changed; line ends stay. A number is a number."""
    text, label = (re.sub(r"[^\S\r\n]", "", unicodedata.normalize("NFKC", cell).casefold()) for cell in row)
    return "".join(c for c in text if ord(c) < 128), label.strip("0.")


def _why_left_out(got: int, table: Table) -> str:
    text, label, both, again = (table.num_without[which] for which in ("text", "label", "both", "again"))
    label += again
    known = {
        table.num_bad + both: "a row without both is counted twice: one row, one bad row",
        table.num_bad
        - again: "a row without a label is not counted where its text has come before: a repeat is dropped "
        "ahead of looking at its label",
        table.num_bad + table.num_repeated: "repeated texts are counted: they are usable rows all the same",
        text + both: "rows without a label are not counted",
        label + both: "rows without a text are not counted",
        text + label: "a row without both is not counted",
        both: "only rows without both are counted",
    }
    return known.get(got, "something else than the rows in which text or label is empty or blank is counted")


def _require_no_leak(job: Job, answer: dict[str, Any], table: Table) -> None:
    sides = [{text for text, _ in answer[side]} for side in ("train", "validation")]
    job.require(
        not sides[0] & sides[1],
        expected="no text on both sides",
        got=f"{len(sides[0] & sides[1])} texts in both",
        likely="texts are told apart by the spaces around them, which are then taken off: what comes out is one text"
        if sides[0] & sides[1] <= table.spaced
        else "repeated texts leak, those with another label too: the model is tested on what it was trained on",
        look="split the different texts, then put each row where its text went",
    )


def _require_stratified(job: Job, answer: dict[str, Any], table: Table, share: float) -> None:
    held_out = {(text.strip(), label) for text, label in answer["validation"]}
    labels_of = Counter(text for text, _ in table.pairs)
    total = len({text for text, _ in held_out}) / len(table.texts)
    if min(labels_of.values()) > 1:
        job.require(
            abs(total - share) <= share / 4 + 0.02,  # strata of few texts each, rounded up
            expected=f"about {share * len(table.texts):.0f} of {len(table.texts)} texts held out where each of them "
            f"has two labels (validation={share:g})",
            got=f"{total * len(table.texts):.0f}",
            likely="a text with two labels is drawn for twice, once for each: it has two chances to be held out"
            if total > share
            else "a text with two labels is held out more seldom than others, as where both labels have to draw it",
            look="draw once for each different text, under one of its labels; then put every row where its text went",
        )
    for label in sorted({label for _, label in table.pairs}):
        texts = [text for text, own in table.pairs if own == label]
        # Another label may decide where these go, or each way to write them counts as a text.
        doubtful = sum(labels_of[text] > 1 or text in table.spaced for text in texts)
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
