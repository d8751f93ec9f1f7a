# Right solutions of lesson 10 by people who knew the notebook alone: a second round.

# %%
# Texts and labels as integer codes; ranks within each label come of one lexsort, without a loop over labels.
import csv
from collections import defaultdict
from itertools import count
from pathlib import Path

import numpy as np

from autograder import exercise


def encode(values: list[str]) -> np.ndarray:
    """A number for each different value, 0, 1, 2, … in the order in which they come."""
    codes: defaultdict = defaultdict(count().__next__)
    return np.array([codes[value] for value in values], dtype=np.int64)


@exercise("10.1")
def prepare(path: Path, validation: float = 0.2, seed: int = 0) -> dict:
    """Read a CSV with the columns `text` and `label`, among others, and split its rows."""
    with path.open(newline="", encoding="utf-8") as file:
        table = [(row.get("text"), row.get("label")) for row in csv.DictReader(file)]
    samples = [pair for pair in table if all(value and not value.isspace() for value in pair)]
    text_codes = encode([text for text, _ in samples])
    label_codes = encode([label for _, label in samples])
    _, first_rows = np.unique(text_codes, return_index=True)
    label_of_text = label_codes[first_rows]

    lottery = np.random.default_rng(seed).random(len(label_of_text))
    order = np.lexsort((lottery, label_of_text))  # label by label, within each at random
    sizes = np.bincount(label_of_text)
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - starts[label_of_text[order]]
    is_held_out = rank < np.rint(validation * sizes)[label_of_text]

    found: dict = {"train": [], "validation": [], "left_out": len(table) - len(samples)}
    for sample, held_out in zip(samples, is_held_out[text_codes].tolist(), strict=True):
        found["validation" if held_out else "train"].append(sample)
    return found


# %%
# A perceptron on a dense matrix of hashed word counts, trained inside fork_rng: the caller's random state stays.
import re
import zlib
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import nn

from autograder import exercise

WIDTH = 8192


def matrix_of(texts: list[str]) -> torch.Tensor:
    """One row a text: logarithms of the counts of hashed words, with length sqrt(WIDTH) / 8."""
    counts = np.zeros((len(texts), WIDTH), dtype=np.float32)
    for row, text in zip(counts, texts, strict=True):
        for word in re.findall(r"\w+|[^\w\s]", text):
            row[zlib.crc32(word.encode("utf-8", errors="surrogatepass")) % WIDTH] += 1
    rows = torch.from_numpy(counts).log1p_()
    return nn.functional.normalize(rows, dim=1) * (WIDTH**0.5 / 8)


@torch.inference_mode()
def predict(model: nn.Module, names: list[str], texts: list[str]) -> list[str]:
    answers: list[str] = []
    for start in range(0, len(texts), 512):  # a part at a time: the matrix is wide
        logits = model(matrix_of(texts[start : start + 512]))
        answers += [names[i] for i in logits.argmax(dim=-1).tolist()]
    return answers


@exercise("10.2")
def train_classifier(
    texts: list[str], labels: list[str], *, num_epochs: int, seed: int
) -> Callable[[list[str]], list[str]]:
    """Train a classifier on these texts for `num_epochs`, starting from `seed`."""
    names = list(dict.fromkeys(labels))  # in the order in which they come
    targets = torch.tensor([names.index(label) for label in labels])
    features = matrix_of(texts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential(
            nn.Dropout(0.2), nn.Linear(WIDTH, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, len(names))
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
        model.train()
        for _ in range(num_epochs):
            for rows in torch.randperm(len(texts)).split(16):
                optimizer.zero_grad(set_to_none=True)
                nn.functional.cross_entropy(model(features[rows]), targets[rows]).backward()
                optimizer.step()
    model.eval()
    return partial(predict, model, names)


# %%
# No hashing at all: configs are compared with ==, and the candidates are made by a generator.
from collections.abc import Iterator
from operator import itemgetter

from autograder import exercise


def candidates(trials: list[dict]) -> Iterator[dict]:
    """One entry for each config whose every seed was completed."""
    all_seeds = {trial["seed"] for trial in trials}
    different: list[dict] = []
    for trial in trials:
        if trial["config"] not in different:
            different.append(trial["config"])
    for config in different:
        done = [t for t in trials if t["config"] == config and t["status"] == "completed"]
        if {t["seed"] for t in done} == all_seeds:
            mean = sum(t["validation"] for t in done) / len(done)
            yield {"config": config, "mean": mean, "num_seeds": len(all_seeds)}


@exercise("10.3")
def choose(trials: list[dict]) -> dict:
    """The winner of a search."""
    winner = max(candidates(trials), key=itemgetter("mean"))
    return winner | {"num_steps": sum(map(itemgetter("steps"), trials))}
