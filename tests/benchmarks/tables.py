"""Accuracy and CPU seconds of the default of `course_lib` on real tables, beside two linear models of scikit-learn.

    python -m tests.benchmarks.tables FOLDER [--seeds 0 1 2] [--set KEY=VALUE ...]

Nothing is fetched: FOLDER holds the files that `TABLES` names, each found where `source` says; a table whose files are
not there is left out. Test texts are never seen in training: every choice is made on the part that a run holds out.
CPU seconds of `course_lib` are those of `run_training` from the table to the last update, choice of the model
included, and in brackets until the report is written; those of the others are of `fit`. Imports are in neither. Each
model runs in a process of its own, on one thread; the linear ones once, for a seed changes next to nothing in them.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class RealTable:
    """Files of a table; without `test`, a fifth of `train` is to test on, the same share of each label, seed 0."""

    train: str
    test: str | None = None
    text: str
    label: str
    encoding: str = "utf-8"
    source: str


TABLES = {
    "Banking77": RealTable(
        train="banking77_train.csv",
        test="banking77_test.csv",
        text="text",
        label="category",
        source="PolyAI-LDN/task-specific-datasets, CC BY 4.0",
    ),
    "CLINC150 + oos": RealTable(
        train="clinc150_train.csv",
        test="clinc150_test.csv",
        text="text",
        label="label",
        source="clinc/oos-eval, CC BY 3.0",
    ),
    "SMS spam": RealTable(
        train="sms_spam.csv",
        text="v2",
        label="v1",
        encoding="latin-1",
        source="UCI SMS Spam Collection, CC BY 4.0",
    ),
    "waimai_10k": RealTable(
        train="waimai_10k.csv", text="review", label="label", source="SophonPlus/ChineseNlpCorpus"
    ),
    "BBC": RealTable(
        train="bbc.csv", text="text", label="category", source="D. Greene, P. Cunningham, BBC news, 2006"
    ),
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MODELS = ("course_lib", "TF-IDF + LR", "word + char LinearSVC")
Rows = tuple[list[str], list[str]]


def read_parts(folder: Path, table: RealTable) -> tuple[Rows, Rows]:
    """Texts and labels to train on and to test on."""
    train = _read(folder / table.train, table)
    if table.test is not None:
        return train, _read(folder / table.test, table)
    from sklearn.model_selection import train_test_split

    texts, labels = train
    parts = train_test_split(texts, labels, test_size=0.2, stratify=labels, random_state=0)
    return (parts[0], parts[2]), (parts[1], parts[3])


def _read(path: Path, table: RealTable) -> Rows:
    with path.open(encoding=table.encoding, newline="") as file:
        rows = [(row[table.text], row[table.label]) for row in csv.DictReader(file)]
    return [text for text, _ in rows], [label for _, label in rows]


def run_course_lib(train: Rows, test: Rows, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    from course_lib import Predictor, TrainConfig, run_training
    from course_lib.training import Callback, TrainState

    class End(Callback):
        cpu_seconds = 0.0

        def on_end(self, state: TrainState) -> None:
            self.cpu_seconds = time.process_time()

    with tempfile.TemporaryDirectory() as folder:
        path, out, end = Path(folder) / "train.csv", Path(folder) / "run", End()
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *zip(*train, strict=True)])
        config = TrainConfig.from_dict({"data": str(path), "seed": seed, **settings})
        start = time.process_time()
        record = run_training(config, out, progress=False, callbacks=[end])
        whole = time.process_time() - start
        said = [label for label, _ in Predictor.load(out).predict(test[0])]
    return {
        "accuracy": float(np.mean(np.array(said) == np.array(test[1]))),
        "cpu_seconds": end.cpu_seconds - start,
        "whole_seconds": whole,
        "validation": record["validation"]["accuracy"],
        "model": record["resolved"]["model"],
    }


def run_linear(name: str, train: Rows, test: Rows, seed: int) -> dict[str, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    if name == "TF-IDF + LR":
        model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000, random_state=seed))
    else:
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
        model = make_pipeline(make_union(words, characters), LinearSVC(random_state=seed))
    start = time.process_time()
    model.fit(*train)
    seconds = time.process_time() - start
    return {
        "accuracy": float(np.mean(model.predict(test[0]) == np.array(test[1]))),
        "cpu_seconds": seconds,
    }


def measure(folder: Path, table: str, model: str, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One model, in this process."""
    train, test = read_parts(folder, TABLES[table])
    if model == "course_lib":
        return run_course_lib(train, test, seed, settings)
    return run_linear(model, train, test, seed)


def _in_own_process(*arguments: Any) -> dict[str, Any]:
    """`measure`, with nothing kept from runs before."""
    code = (
        "import json, pathlib, sys, torch; torch.set_num_threads(1)\n"
        "import contextlib, course_lib.runs.train, matplotlib.figure, sklearn.svm, tokenizers\n"
        "with contextlib.suppress(ImportError): import torch.utils.tensorboard\n"
        "from tests.benchmarks.tables import measure\n"
        "folder, *rest = json.loads(sys.argv[1])\n"
        "print(json.dumps(measure(pathlib.Path(folder), *rest)))"
    )
    command = [sys.executable, "-c", code, json.dumps([str(arguments[0]), *arguments[1:]])]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, **dict.fromkeys(THREADS, "1"), "COURSE_LIB_CACHE": cache}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(folder: Path, seeds: Sequence[int], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """A row per table whose files are in `folder`: what each model reached, seed by seed."""
    rows = []
    for name, table in TABLES.items():
        files = [file for file in (table.train, table.test) if file]
        if not all((folder / file).exists() for file in files):
            print(f"{name}: {', '.join(files)} not in {folder}; from {table.source}", file=sys.stderr)
            continue
        row: dict[str, Any] = {"table": name}
        for model in MODELS:
            mine = seeds if model == "course_lib" else seeds[:1]
            row[model] = []
            for seed in mine:
                found = _in_own_process(folder, name, model, seed, settings)
                row[model].append(found)
                told = f"{found['accuracy']:.4f}, {found['cpu_seconds']:.1f} s of CPU"
                print(f"{name}, {model}, seed {seed}: {told}", file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def as_markdown(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| Test accuracy, mean and range over seeds (CPU s) | "
        + " | ".join(MODELS)
        + " | CPU / LinearSVC's |",
        "|---" * (2 + len(MODELS)) + "|",
    ]
    for row in rows:
        cells = []
        for model in MODELS:
            values = [found["accuracy"] for found in row[model]]
            spread = f" ({min(values):.4f} to {max(values):.4f})" if max(values) > min(values) else ""
            whole = [found["whole_seconds"] for found in row[model] if "whole_seconds" in found]
            brackets = f" [{np.mean(whole):.1f}]" if whole else ""
            cells.append(f"{np.mean(values):.4f}{spread}; {_seconds(row[model]):.1f} s{brackets}")
        ratio = _seconds(row["course_lib"]) / _seconds(row["word + char LinearSVC"])
        lines.append(f"| {row['table']} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    lines += ["", *(f"{row['table']}: {TABLES[row['table']].source}." for row in rows)]
    return "\n".join(lines)


def _seconds(found: Sequence[dict[str, Any]]) -> float:
    return float(np.mean([one["cpu_seconds"] for one in found]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    from course_lib.cli.common import parse_settings

    rows = compare(arguments.folder, arguments.seeds, parse_settings(arguments.set))
    if not rows:
        raise SystemExit(f"no table is in {arguments.folder}")
    print(as_markdown(rows))
    print(f"\ncourse_lib: {rows[-1]['course_lib'][-1]['model']}")


if __name__ == "__main__":
    main()
