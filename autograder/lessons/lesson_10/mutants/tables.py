"""Wrong solutions of 10.1."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_PREPARE = """
import csv
import random

@exercise("10.1")
def prepare(path, validation=0.2, seed=0):
    with open(path, newline="", encoding="utf-8") as file:
        rows = [(row["text"].strip(), row["label"].strip()) for row in csv.DictReader(file)]
    good = [row for row in rows if row[0] and row[1]]
    generator = random.Random(seed)
    by_label = {}
    for text, label in good:
        by_label.setdefault(label, []).append(text)
    held_out = set()
    for texts in by_label.values():
        texts = list(dict.fromkeys(texts))
        generator.shuffle(texts)
        held_out.update(texts[: round(validation * len(texts))])
    return {
        "train": [row for row in good if row[0] not in held_out],
        "validation": [row for row in good if row[0] in held_out],
        "left_out": len(rows) - len(good),
    }
"""
_SPLIT = _PREPARE[_PREPARE.index("    held_out = set()") : _PREPARE.index("    return {")]

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "10.1": wrong(
        _PREPARE,
        {
            "repeated texts on both sides": (
                "repeated texts leak",
                (
                    _SPLIT,
                    "    order = list(range(len(good)))\n    generator.shuffle(order)\n    held = set()\n"
                    "    for label in by_label:\n        own = [i for i in order if good[i][1] == label]\n"
                    "        held.update(own[: round(validation * len(own))])\n",
                ),
                (
                    "[row for row in good if row[0] not in held_out]",
                    "[r for i, r in enumerate(good) if i not in held]",
                ),
                (
                    "[row for row in good if row[0] in held_out]",
                    "[r for i, r in enumerate(good) if i in held]",
                ),
            ),
            "not stratified": (
                "stratified",
                _SPLIT,
                "    texts = list(dict.fromkeys(text for text, _ in good))\n    generator.shuffle(texts)\n"
                "    held_out = set(texts[: round(validation * len(texts))])\n",
            ),
            "the end of a sorted table": (
                "takes one end",
                _SPLIT,
                "    texts = list(dict.fromkeys(text for text, _ in good))\n"
                "    held_out = set(texts[-round(validation * len(texts)) :])\n",
            ),
            "a generator without the seed": (
                "that the seed does not decide",
                "random.Random(seed)",
                "random.Random()",
            ),
            "the seed not used": ("the seed is not used", "        generator.shuffle(texts)\n", ""),
            "bad rows kept": ("bad rows are kept", "if row[0] and row[1]]", "if True]"),
            "lines split at commas": (
                "lines are split at commas by hand",
                '[(row["text"].strip(), row["label"].strip()) for row in csv.DictReader(file)]',
                '[(line.split(",")[-1].strip(), line.split(",")[0].strip()) for line in list(file)[1:]]',
            ),
        },
    )
}
