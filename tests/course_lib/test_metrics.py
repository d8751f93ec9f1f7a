"""Records reach their files; scores are those of their definitions."""

import hashlib
import itertools
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.base.files import to_json
from course_lib.runs.folder import RunFolder
from course_lib.runs.record import RecordWriter
from course_lib.training.callbacks import TrainState
from course_lib.training.scores import (
    classification_table,
    confusion_matrix,
    evaluation_summary,
    length_slices,
    macro_f1,
    perplexity,
)

NAMES = ("a", "b", "c")
ANSWERS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 40)), min_size=1, max_size=60
)


@given(ANSWERS)
def test_scores_are_those_counted_by_hand(answers):
    labels, predictions, _ = (np.array(column) for column in zip(*answers, strict=True))
    table = classification_table(confusion_matrix(labels, predictions, NAMES), NAMES)
    pairs = [(label, prediction) for label, prediction, _ in answers]
    for k, row in enumerate(table):
        hits = pairs.count((k, k))
        said, true = sum(p == k for _, p in pairs), sum(label == k for label, _ in pairs)
        assert row["num_samples"] == true
        assert row["precision"] == (hits / said if said else 0)
        assert row["recall"] == (hits / true if true else 0)
        harmonic = 2 / (1 / row["precision"] + 1 / row["recall"]) if hits else 0
        assert row["f1"] == pytest.approx(harmonic)
        wrong = {NAMES[p]: pairs.count((k, p)) for p in range(3) if p != k}
        if row["mistaken_for"] is None:
            assert not any(wrong.values())
        else:
            assert wrong[row["mistaken_for"]] == max(wrong.values()) > 0
    assert confusion_matrix(labels, predictions, NAMES).tolist() == [
        [pairs.count((i, j)) for j in range(3)] for i in range(3)
    ]
    occurring = [row["f1"] for row in table if row["num_samples"]]
    assert macro_f1(confusion_matrix(labels, predictions, NAMES)) == pytest.approx(
        sum(occurring) / len(occurring)
    )


@given(ANSWERS)
def test_length_slices_part_the_texts_and_keep_their_answers(answers):
    labels, predictions, lengths = (np.array(column) for column in zip(*answers, strict=True))
    rows = length_slices(lengths, labels, predictions, NAMES)
    assert sum(row["num_samples"] for row in rows) == len(labels)
    hits = sum(row["accuracy"] * row["num_samples"] for row in rows)
    assert hits == pytest.approx((labels == predictions).sum())
    bounds = [tuple(int(part) for part in row["slice"].split("–")) for row in rows]
    assert all(low <= high for low, high in bounds)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(bounds))
    for row, (low, high) in zip(rows, bounds, strict=True):
        inside = (lengths >= low) & (lengths <= high)
        assert row["num_samples"] == inside.sum()
        assert row["macro_f1"] == macro_f1(confusion_matrix(labels[inside], predictions[inside], NAMES))
    if len(set(lengths.tolist())) == len(lengths) >= 8:
        assert len(rows) == 4
        assert max(row["num_samples"] for row in rows) - min(row["num_samples"] for row in rows) <= 1


def test_the_summary_of_a_classification_is_json_and_names_the_confusions():
    rng = np.random.default_rng(0)
    labels, lengths = rng.integers(0, 25, 2000), rng.integers(1, 200, 2000)
    predictions = np.where((labels == 3) & (rng.random(2000) < 0.7), 4, labels)
    names = [f"class {k}" for k in range(25)]
    summary = evaluation_summary("classification", labels, predictions, lengths, names)
    assert json.loads(to_json(summary)) == summary
    mistaken = {row["label"]: row["mistaken_for"] for row in summary["per_class"] if row["mistaken_for"]}
    assert mistaken == {"class 3": "class 4"}
    assert summary["confusion"] is None  # 25 columns cannot be read
    small = evaluation_summary("classification", labels % 3, predictions % 3, lengths, NAMES)
    assert np.sum(small["confusion"]) == 2000
    assert len(summary["slices"]["length"]) == 4


def test_the_summary_of_tokens_counts_tokens_and_that_of_language_modelling_has_perplexity():
    labels, predictions = np.array([0, 1, 1, 2]), np.array([0, 1, 2, 2])
    tokens = evaluation_summary("token-classification", labels, predictions, np.array([2, 2, 9, 9]), NAMES)
    assert sum(row["num_samples"] for row in tokens["per_class"]) == 4
    assert [row["accuracy"] for row in tokens["slices"]["length"]] == [1.0, 0.5]
    next_words = evaluation_summary("language-modelling", labels, predictions, labels + 1, ())
    assert next_words["per_class"] == [] and next_words["confusion"] is None
    assert [set(row) for row in next_words["slices"]["length"]] == [{"slice", "num_samples", "accuracy"}] * 3
    assert perplexity(math.log(50)) == pytest.approx(50)
    assert perplexity(1e6) == math.inf and "null" in to_json({"perplexity": perplexity(1e6)})


def test_records_are_written_to_json_lines_and_tensorboard_and_cut_on_resume(tmp_path):
    folder, state = RunFolder(tmp_path), TrainState()
    writer = RecordWriter(folder)
    for step in (1, 2, 3):
        writer.on_record(state, {"kind": "train", "step": step, "loss": 1 / step})
    writer.on_record(state, {"kind": "validation", "step": 3, "loss": math.nan})
    writer.close()
    assert [row["loss"] for row in folder.read_metrics()] == [1, 0.5, 1 / 3, None]
    with folder.metrics.open("a") as file:
        file.write('{"kind": "tra')  # a kill in the middle of a line
    assert len(folder.read_metrics()) == 4

    for events in (
        folder.tensorboard.iterdir()
    ):  # TensorBoard reads in the order of names: as if begun a second earlier
        prefix, second, rest = re.fullmatch(r"(.*tfevents\.)(\d+)(\..*)", events.name).groups()
        events.rename(events.with_name(f"{prefix}{int(second) - 1}{rest}"))

    resumed = RecordWriter(folder, num_records=2, purge_step=3)
    resumed.on_record(state, {"kind": "train", "step": 3, "loss": 0.25})
    resumed.close()
    assert [row["loss"] for row in folder.read_metrics()] == [1, 0.5, 0.25]
    assert resumed.num_records == 3

    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = event_accumulator.EventAccumulator(str(folder.tensorboard)).Reload()
    assert [(event.step, event.value) for event in events.Scalars("train/loss")] == [
        (1, 1),
        (2, 0.5),
        (3, 0.25),
    ]


def test_artifacts_are_all_files_with_size_and_hash(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create()
    folder.last.write_bytes(b"weights")
    folder.write_record({"status": "finished"})
    expected = {"num_bytes": 7, "sha256": hashlib.sha256(b"weights").hexdigest()}
    assert folder.artifacts() == {"checkpoints/last.pt": expected}
    with pytest.raises(UserError, match="already holds a run"):
        folder.create()
