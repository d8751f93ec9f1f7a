"""Several labels, a number, and labels per word: read from tables, kept in a store, split and collated."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch

from course_lib.base.errors import UserError
from course_lib.data import Batches, TokenStore, collate, load_table, train_tokenizer
from course_lib.data.batching import Filler
from course_lib.data.texts import Texts, split


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))


def lines_of(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def sets_of(texts):
    bits = np.unpackbits(texts.targets, axis=1, count=len(texts.label_names))
    return [{name for name, bit in zip(texts.label_names, row, strict=True) if bit} for row in bits]


SETS = [{"a"}, {"a", "b"}, {"c"}, {"b", "c", "long name"}, {"a", "c"}] * 4


@pytest.mark.parametrize(
    ("form", "note"),
    [
        *(("|".join, 'separated by "|"'), (";".join, 'separated by ";"'), ("; ".join, 'separated by ";"')),
        *((",".join, 'separated by ","'), (json.dumps, "labels are lists"), (str, "labels are lists")),
    ],
)
def test_several_labels_in_a_cell_are_found_and_said(tmp_path, form, note):
    path = tmp_path / "data.csv"
    cells = [form(sorted(labels)).replace('"', '""') for labels in SETS]
    path.write_text("text,tags\n" + "".join(f'text {i},"{cell}"\n' for i, cell in enumerate(cells)))
    texts = load_table(path, task="multi-label")
    assert texts.label_names == ("a", "b", "c", "long name")
    assert sets_of(texts) == SETS
    assert note in texts.notes[1] and texts.notes[2] == "4 labels, 1 to 3 a text, 1.8 on average"


def test_a_column_of_lists_may_hold_none_many_and_doubled_labels(tmp_path):
    rows = [
        {"text": f"t{i}", "labels": labels}
        for i, labels in enumerate([[], [3, 10], [3, 3], None, ["", " 3 "]])
    ]
    texts = load_table(lines_of(tmp_path / "a.jsonl", rows), task="multi-label")
    assert texts.label_names == ("3", "10")
    assert sets_of(texts) == [set(), {"3", "10"}, {"3"}, {"3"}]
    assert "1 texts without a label left out, the first: row 4" in texts.notes
    with pytest.raises(UserError, match="holds no label"):
        load_table(lines_of(tmp_path / "b.jsonl", rows[:1]), task="multi-label")
    with pytest.raises(UserError, match=r"row 1: '\[\]' is neither text nor a number.*task=multi-label"):
        load_table(tmp_path / "a.jsonl")


def test_many_labels_are_packed_as_they_are(tmp_path):
    rng = np.random.default_rng(0)
    wanted = [sorted({*rng.integers(0, 37, rng.integers(0, 6)).tolist()}) for _ in range(9000)]
    rows = [{"text": f"text {i}", "label": labels} for i, labels in enumerate(wanted)]
    texts = load_table(lines_of(tmp_path / "a.jsonl", rows), task="multi-label")
    assert texts.targets.shape == (9000, 5)
    assert [sorted(map(int, labels)) for labels in sets_of(texts)] == wanted
    counts = np.bincount(np.concatenate(wanted).astype(int), minlength=37)
    rarest = [min(labels, key=lambda i: (counts[i], i)) if labels else 37 for labels in wanted]
    assert texts.labels.tolist() == rarest


def test_a_split_of_several_labels_leaves_each_on_both_sides(tmp_path):
    rows = [{"text": f"text {i}", "label": ["all", "rare"] if i % 50 == 0 else ["all"]} for i in range(200)]
    texts = load_table(lines_of(tmp_path / "a.jsonl", rows), task="multi-label")
    train, validation = split(texts)
    assert sum("rare" in sets_of(texts)[i] for i in validation) == 1
    assert len(validation) == 21 and len(train) == 179


def numbers_table(tmp_path, cells, name="a.csv"):
    path = tmp_path / name
    path.write_text("text,label\n" + "".join(f"text {i},{cell}\n" for i, cell in enumerate(cells)))
    return path


def test_numbers_are_read_as_they_are_and_split_over_their_range(tmp_path):
    numbers = np.random.default_rng(0).normal(1e6, 3.0, 400)
    texts = load_table(numbers_table(tmp_path, [*numbers, ""]), task="regression")
    assert texts.targets.dtype == np.float64 and texts.targets.tolist() == numbers.tolist()
    assert texts.label_names == () and texts.notes == (
        "1 texts without a label left out, the first: row 402",
    )
    _, validation = split(texts)
    assert len(validation) == 40
    tenths = np.searchsorted(np.quantile(numbers, np.arange(1, 10) / 10), numbers[validation])
    assert np.bincount(tenths).tolist() == [4] * 10


def test_few_numbers_are_split_by_the_share_asked_for(tmp_path):
    texts = load_table(numbers_table(tmp_path, range(30)), task="regression")
    assert [len(part) for part in split(texts)] == [27, 3]


@pytest.mark.parametrize("cell", ["good", "nan", "inf", "1e999", "1 2"])
def test_what_is_no_number_is_told_with_its_row(tmp_path, cell):
    path = numbers_table(tmp_path, [1, 2.5, cell, "-3e2"])
    with pytest.raises(UserError, match=f"a.csv: row 4: '{cell}' is no number, which task=regression needs"):
        load_table(path, task="regression")
    with pytest.raises(UserError, match=r"column 'label' has the one value '7\.0' in all 2 usable rows"):
        load_table(numbers_table(tmp_path, [7, 7.0]), task="regression")


WORDS = [(["a", "red", "house"], ["O", "COL", "O"]), (["go"], ["O"]), (["red", "blue"], ["COL", "COL"])] * 3


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_labels_per_word_come_from_two_columns_of_lists(tmp_path, name):
    path = tmp_path / name
    if name == "a.csv":
        rows = [";".join([str(i), str(words), str(tags)]) for i, (words, tags) in enumerate(WORDS)]
        path.write_text("\n".join(["id;tokens;ner_tags", *rows]))
    else:
        lines_of(path, [{"id": i, "tokens": w, "ner_tags": t} for i, (w, t) in enumerate(WORDS)])
    texts = load_table(path, task="token-classification")
    assert [*texts.texts] == [words for words, _ in WORDS]
    assert texts.label_names == ("COL", "O")
    for _ in range(2):  # read again each time
        assert [[texts.label_names[i] for i in tags] for tags in texts.word_labels] == [
            tags for _, tags in WORDS
        ]
    assert texts.columns == {"text": "tokens", "label": "ner_tags"}
    assert 'text = "tokens": a usual name' in texts.notes
    if name == "a.jsonl":
        with pytest.raises(
            UserError, match=r"row 1: .* is neither text nor a number.*task=token-classification"
        ):
            load_table(path)
    else:  # a cell of a CSV is a text, whatever stands in it
        assert "labels are lists: is it task=multi-label?" in load_table(path).notes


def test_words_and_labels_that_do_not_fit_are_told_with_their_row(tmp_path):
    rows = [{"text": ["a", "b"], "label": ["x", "y"]}, {"text": ["a", "b"], "label": ["x"]}]
    with pytest.raises(UserError, match=r"a.jsonl: row 2 has 2 words and 1 labels: give each word one"):
        load_table(lines_of(tmp_path / "a.jsonl", rows), task="token-classification")
    rows[1]["text"] = "no list"
    with pytest.raises(UserError, match=r"row 2: 'no list' is no list: task=token-classification takes"):
        load_table(lines_of(tmp_path / "a.jsonl", rows), task="token-classification")
    flat = [{"text": "a b", "label": "x y"}]
    with pytest.raises(UserError, match=r"is no list|no one column"):
        load_table(lines_of(tmp_path / "b.jsonl", flat), task="token-classification")


def test_another_table_shares_the_labels_of_the_first(tmp_path):
    first = load_table(lines_of(tmp_path / "a.jsonl", [{"text": "p", "label": i} for i in "xyz"]))
    second = lines_of(tmp_path / "b.jsonl", [{"text": "q", "label": "z"}, {"text": "r", "label": "x"}])
    assert load_table(second, like=first).labels.tolist() == [2, 0]
    assert load_table(second, like=first).label_names == ("x", "y", "z")
    lines_of(second, [{"text": "q", "label": "z"}, {"text": "r", "label": "new"}])
    with pytest.raises(
        UserError, match="row 2: the label 'new' is none of the training table's: 'x', 'y', 'z'"
    ):
        load_table(second, like=first)
    one = lines_of(tmp_path / "c.jsonl", [{"text": "q", "label": "z"}])
    assert load_table(one, like=first).labels.tolist() == [2], "one value is enough to be judged by"


@pytest.fixture
def tokenizer():
    return train_tokenizer(["some words to begin with"] * 3, vocab_size=270)


def test_a_store_keeps_sets_and_numbers_and_collates_them(tmp_path, tokenizer):
    rows = [{"text": "t " * (1 + i), "label": sorted(labels)} for i, labels in enumerate(SETS)]
    texts = load_table(lines_of(tmp_path / "a.jsonl", rows), task="multi-label")
    store = TokenStore.build(texts, tokenizer, max_length=9, task="multi-label", progress=False)
    wanted = [[float(name in labels) for name in texts.label_names] for labels in SETS]
    batch = store.batch([4, 0, 3])
    assert batch["labels"].dtype == torch.float32 and batch["labels"].tolist() == [
        wanted[i] for i in (4, 0, 3)
    ]
    part = pickle.loads(pickle.dumps(store.subset([7, 4, 0])))
    assert torch.equal(part.batch([1, 2])["labels"], batch["labels"][:2])
    same = collate([store[i] for i in (4, 0, 3)], pad_id=store.pad_id)
    assert all(torch.equal(same[name], batch[name]) for name in batch)

    numbers = load_table(numbers_table(tmp_path, [1.5, -2, 1e6, 7]), task="regression")
    store = TokenStore.build(numbers, tokenizer, max_length=9, task="regression", progress=False)
    batch = store.batch([2, 0])
    assert batch["labels"].dtype == torch.float32 and batch["labels"].tolist() == [1e6, 1.5]
    assert torch.equal(collate([store[2], store[0]])["labels"], batch["labels"])
    assert store.labels.dtype == np.float64
    (filled,) = Batches(store, [Filler([0, 1])])
    assert filled["labels"].isnan().all()


def test_a_store_refuses_labels_of_another_task(tmp_path, tokenizer):
    numbers = load_table(numbers_table(tmp_path, [1.5, -2]), task="regression")
    classes = load_table(numbers_table(tmp_path, [1.5, -2]))
    with pytest.raises(UserError, match="task=classification does not fit: give load_table the task, too"):
        TokenStore.build(numbers, tokenizer, max_length=9, progress=False)
    with pytest.raises(UserError, match="task=regression does not fit"):
        TokenStore.build(classes, tokenizer, max_length=9, task="regression", progress=False)


def test_the_fingerprint_is_of_the_targets_too():
    def texts(targets):
        return Texts(["a", "b"], np.zeros(2, dtype=np.int64), (), targets=np.array(targets))

    assert texts([1.0, 2.0]).fingerprint == texts([1.0, 2.0]).fingerprint != texts([1.0, 2.5]).fingerprint
