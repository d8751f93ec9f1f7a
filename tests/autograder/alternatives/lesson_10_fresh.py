# Right solutions of lesson 10 by people who knew the notebook alone.

# %%
# One walk in shuffled order; each label carries its fraction over (error diffusion), and repeats are dropped.
import csv
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from autograder import exercise


def pairs(path: Path) -> Iterator[tuple[str, str] | None]:
    """The rows' text and label; None for a row that lacks one of them."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        for row in csv.DictReader(lines, restval=""):
            text, label = row["text"], row["label"]
            is_blank = not text or text.isspace() or not label or label.isspace()
            yield None if is_blank else (text, label)


@exercise("10.1")
def prepare(path: Path, validation: float = 0.2, seed: int = 0) -> dict:
    """Read a CSV with the columns `text` and `label`, among others, and split its rows."""
    everything = list(pairs(path))
    rows = list(dict.fromkeys(row for row in everything if row is not None))
    texts = list(dict.fromkeys(text for text, _ in rows))
    labels = dict(reversed(rows))
    random.Random(seed).shuffle(texts)

    carried: Counter = Counter()
    side = {}
    for text in texts:
        label = labels[text]
        due = carried[label] + Fraction(repr(float(validation)))
        side[text] = due > Fraction(1, 2)
        carried[label] = due - side[text]
    return {
        "train": [row for row in rows if not side[row[0]]],
        "validation": [row for row in rows if side[row[0]]],
        "left_out": everything.count(None),
    }


# %%
# No gradients and no torch: an averaged passive-aggressive classifier in numpy on words weighted by rarity.
import re
from collections import Counter
from collections.abc import Callable

import numpy as np

from autograder import exercise

WORD = re.compile(r"\w+")


@exercise("10.2")
def train_classifier(
    texts: list[str], labels: list[str], *, num_epochs: int, seed: int
) -> Callable[[list[str]], list[str]]:
    """Train a classifier on these texts for `num_epochs`, starting from `seed`."""
    names = sorted(set(labels))
    answers = np.array([names.index(label) for label in labels])

    bags = [Counter(WORD.findall(text)) for text in texts]
    spread = Counter(word for bag in bags for word in bag)
    column = {word: number for number, word in enumerate(spread, start=1)}  # 0: a constant
    rarity = np.ones(len(column) + 1)
    rarity[1:] = np.log((1 + len(bags)) / np.array([spread[word] for word in column], float))

    def vector(bag: Counter) -> tuple[np.ndarray, np.ndarray]:
        """Columns and values of a row of length 1."""
        known = [(column[word], count) for word, count in bag.items() if word in column]
        ids = np.array([0, *(i for i, _ in known)])
        values = (1 + np.log([1, *(count for _, count in known)])) * rarity[ids]
        return ids, values / np.linalg.norm(values)

    rows = [vector(bag) for bag in bags]
    now = np.zeros((len(column) + 1, len(names)))
    late = np.zeros_like(now)  # each change times the step it came at: the mean without a sum
    rng, step = np.random.default_rng(seed), 1
    for _ in range(num_epochs):
        for index in rng.permutation(len(rows)):
            ids, values = rows[index]
            scores = values @ now[ids]
            right = answers[index]
            rival_scores = scores.copy()
            rival_scores[right] = -np.inf
            rival = int(rival_scores.argmax())
            missing = 1.0 - (scores[right] - rival_scores[rival])
            if missing > 0 and len(names) > 1:
                change = min(1.0, missing / 2) * values
                for label, sign in ((right, 1.0), (rival, -1.0)):
                    now[ids, label] += sign * change
                    late[ids, label] += sign * step * change
            step += 1
    mean = now - late / step

    def predict(questions: list[str]) -> list[str]:
        told = []
        for text in questions:
            ids, values = vector(Counter(WORD.findall(text)))
            told.append(names[int((values @ mean[ids]).argmax())])
        return told

    return predict


# %%
# Numpy: a matrix of configs by seeds, filled with NaN; a mean over a row with a hole is NaN and cannot win.
import numpy as np

from autograder import exercise


@exercise("10.3")
def choose(trials: list[dict]) -> dict:
    """The winner of a search."""
    rows: dict[tuple, int] = {}
    columns: dict = {}
    for trial in trials:
        rows.setdefault(tuple(sorted(trial["config"].items())), len(rows))
        columns.setdefault(trial["seed"], len(columns))

    table = np.full((len(rows), len(columns)), np.nan)
    for trial in trials:
        if trial["status"] == "completed":
            place = rows[tuple(sorted(trial["config"].items()))], columns[trial["seed"]]
            table[place] = trial["validation"]

    means = table.mean(axis=1)
    best = int(np.nanargmax(means))
    return {
        "config": dict(list(rows)[best]),
        "mean": means[best].item(),
        "num_seeds": table.shape[1],
        "num_steps": sum(trial["steps"] for trial in trials),
    }


# %%
# One F1 at a time by precision and recall in exact fractions, in small helpers; floats only at the end.
import math
from fractions import Fraction

from autograder import exercise

SECONDS_PER_HOUR = 3600


def ratio(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(0)


def f1(pairs: list[tuple[str, str]], name: str) -> Fraction:
    """Harmonic mean of one label's precision and recall; 0 where it was never hit."""
    hits = pairs.count((name, name))
    precision = ratio(hits, sum(said == name for _, said in pairs))
    recall = ratio(hits, sum(right == name for right, _ in pairs))
    return 2 * precision * recall / (precision + recall) if hits else Fraction(0)


@exercise("10.4")
def summarise(
    labels: list[str],
    predictions: list[str],
    seconds: dict[str, float],
    price_per_hour: float,
    currency: str,
) -> dict:
    """What a report says of a project."""
    pairs = list(zip(labels, predictions, strict=True))
    names = sorted(set(labels))
    scores = [f1(pairs, name) for name in names]
    total_seconds = math.fsum(seconds.values())
    try:
        utilisation = 1 - seconds.get("waiting", 0) / total_seconds
    except ZeroDivisionError:
        utilisation = 0.0  # nothing was rented
    return {
        "accuracy": float(ratio(sum(right == said for right, said in pairs), len(pairs))),
        "macro_f1": float(sum(scores) / len(scores)),
        "total_seconds": total_seconds,
        "cost": total_seconds * (price_per_hour / SECONDS_PER_HOUR),
        "cost_unit": currency,
        "utilisation": utilisation,
    }
