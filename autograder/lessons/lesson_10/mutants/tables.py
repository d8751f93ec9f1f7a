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
    label_of = dict(good)
    by_label = {}
    for text, label in good:
        by_label.setdefault(label_of[text], []).append(text)
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
            "spaces taken off behind the split": (
                "told apart by the spaces around them",
                ('(row["text"].strip(), row["label"].strip())', '(row["text"], row["label"].strip())'),
                ("if row[0] and row[1]]", "if row[0].strip() and row[1]]"),
                (
                    "[row for row in good if row[0] not in held_out]",
                    "[(t.strip(), n) for t, n in good if t not in held_out]",
                ),
                (
                    "[row for row in good if row[0] in held_out]",
                    "[(t.strip(), n) for t, n in good if t in held_out]",
                ),
            ),
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
            "labels without regard to case": (
                "not stratified",
                ("setdefault(label_of[text], [])", "setdefault(label_of[text].lower(), [])"),
            ),
            "long labels cut": (
                "not stratified",
                ("setdefault(label_of[text], [])", "setdefault(label_of[text][:20], [])"),
            ),
            "a line more in the table": (
                "the table is written",
                (
                    "    generator = random.Random(seed)\n",
                    '    open(path, "a").write("\\n")\n    generator = random.Random(seed)\n',
                ),
            ),
            "the table's name draws as well": (
                "the name of the file",
                ("random.Random(seed)", 'random.Random(f"{seed} {path}")'),
            ),
            "bad rows counted in words": (
                "stand in something else",
                ('"left_out": len(rows) - len(good)', '"left_out": str(len(rows) - len(good))'),
            ),
            "seeds modulo 1000": (
                "two seeds come to one",
                ("random.Random(seed)", "random.Random(seed % 1000)"),
            ),
            "a generator without the seed": (
                "that the seed does not decide",
                "random.Random(seed)",
                "random.Random()",
            ),
            "the seed not used": ("the seed is not used", "        generator.shuffle(texts)\n", ""),
            "`validation` ignored": ("`validation` is not used", "round(validation * len", "round(0.2 * len"),
            "another default share": (
                "another share than `validation`",
                "validation=0.2",
                "validation=0.3",
            ),
            "a quarter of what is asked for": (
                "another share than `validation`",
                "round(validation * len",
                "round(validation / 4 * len",
            ),
            "the share counted in rows": (
                "repeated rows are counted",
                _SPLIT,
                "    held_out = set()\n    for label, texts in by_label.items():\n"
                "        wanted = validation * len(texts)\n"
                "        order = list(dict.fromkeys(texts))\n        generator.shuffle(order)\n"
                "        for text in order:\n            if wanted >= texts.count(text) / 2:\n"
                "                held_out.add(text)\n                wanted -= texts.count(text)\n",
            ),
            "`hash()` decides": (
                "`hash()` of a text",
                "        generator.shuffle(texts)\n",
                "        texts.sort(key=lambda text: hash((seed, text)))\n",
            ),
            "the order of a set decides": (
                "the order of a set",
                "list(dict.fromkeys(texts))",
                "list(set(texts))",
            ),
            "another seed where none is given": (
                "at the same seed, which is 0",
                "seed=0):\n",
                "seed=1):\n",
            ),
            "a text of two labels on both sides": (
                "those with another label too",
                ("setdefault(label_of[text], [])", "setdefault(label, [])"),
                ("for texts in by_label.values():", "for label, texts in by_label.items():"),
                ("held_out.update(texts[:", "held_out.update((text, label) for text in texts[:"),
                ("row[0] not in held_out", "row not in held_out"),
                ("row[0] in held_out", "row in held_out"),
            ),
            "a text of two labels drawn for twice": (
                "drawn for twice",
                ("setdefault(label_of[text], [])", "setdefault(label, [])"),
            ),
            "a text of two labels held out if both draw it": (
                "more seldom than others",
                ("setdefault(label_of[text], [])", "setdefault(label, [])"),
                ("    held_out = set()\n", "    held_out, passed = set(), set()\n"),
                (
                    "        held_out.update(texts[: round(validation * len(texts))])\n",
                    "        held_out.update(texts[: round(validation * len(texts))])\n"
                    "        passed.update(texts[round(validation * len(texts)) :])\n    held_out -= passed\n",
                ),
            ),
            "a last part on no side": (
                "rows are lost",
                '"train": [row for row in good if row[0] not in held_out]',
                '"train": [row for row in good if row[0] not in held_out][15:]',
            ),
            "a repeat without a label not counted": (
                "not counted where its text has come before",
                (
                    "    good = [row for row in rows if row[0] and row[1]]\n",
                    "    first, skipped = {}, 0\n    for text, label in rows:\n        if text not in first:\n"
                    "            if text and label:\n                first[text] = label\n"
                    "            else:\n                skipped += 1\n    good = list(first.items())\n",
                ),
                ("len(rows) - len(good)", "skipped"),
            ),
            "repeats dropped before rows without a label": (
                "left out after repeats are dropped",
                "    good = [row for row in rows if row[0] and row[1]]\n",
                "    rows = list(dict(rows).items())\n    good = [row for row in rows if row[0] and row[1]]\n",
            ),
            "the first row of a text alone, labelled or not": (
                "left out after repeats are dropped",
                "    good = [row for row in rows if row[0] and row[1]]\n",
                "    rows = list(dict(rows[::-1]).items())\n    good = [row for row in rows if row[0] and row[1]]\n",
            ),
            "rows without a label are not counted": (
                "rows without a label are not counted",
                "len(rows) - len(good)",
                "sum(not text for text, _ in rows)",
            ),
            "rows without a text are not counted": (
                "rows without a text are not counted",
                "len(rows) - len(good)",
                "sum(not label for _, label in rows)",
            ),
            "a row without both counted twice": (
                "a row without both is counted twice",
                "len(rows) - len(good)",
                "sum((not text) + (not label) for text, label in rows)",
            ),
            "repeated texts counted": (
                "repeated texts are counted",
                "len(rows) - len(good)",
                "len(rows) - len({text for text, _ in good})",
            ),
            'without newline=""': ("opened without", 'newline="", ', ""),
            "lines split by splitlines": (
                "split by `str.splitlines`",
                "for row in csv.DictReader(file)]",
                "for row in csv.DictReader(file.read().splitlines(True), restval='')]",
            ),
            "words for nothing taken as nothing": (
                "such as NA or None is taken for nothing",
                "if row[0] and row[1]]",
                'if row[0] and row[1] and row[0] not in ("NA", "None", "null", "nan")]',
            ),
            "another column must not be empty": (
                "where any column is empty",
                "for row in csv.DictReader(file)]",
                'if all(v.strip() for v in row.values()) else ("", "") for row in csv.DictReader(file)]',
            ),
            "texts in lower case": (
                "texts or labels are changed",
                'row["text"].strip()',
                'row["text"].strip().lower()',
            ),
            "rare rows twice": (
                "rows are put in twice",
                '"train": [row for row in good if row[0] not in held_out]',
                '"train": [r for r in good if r[0] not in held_out for _ in range(1 + (len(by_label[r[1]]) < 20))]',
            ),
            "empty, but not blank": (
                "bad rows are kept",
                '[(row["text"].strip(), row["label"].strip())',
                '[(row["text"], row["label"])',
            ),
            "columns by their place": (
                "columns are taken by their place",
                '[(row["text"].strip(), row["label"].strip()) for row in csv.DictReader(file)]',
                "[(row[0].strip(), row[1].strip()) for row in list(csv.reader(file))[1:]]",
            ),
            "bad rows kept": ("bad rows are kept", "if row[0] and row[1]]", "if True]"),
            "lines split at commas": (
                "lines are split at commas by hand",
                '[(row["text"].strip(), row["label"].strip()) for row in csv.DictReader(file)]',
                '[(line.split(",")[-1].strip(), line.split(",")[0].strip()) for line in list(file)[1:]]',
            ),
        },
    )
}
