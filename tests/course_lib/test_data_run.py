"""The data of a run, for each task and each kind of file; and a corpus that does not fit the memory."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from course_lib.base.errors import UserError
from course_lib.data import load_docstrings, save_tokenizer, train_tokenizer
from course_lib.data.batching import IGNORE
from course_lib.runs.components import load_data
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from tests.benchmarks import larger_than_memory

SIZE = 48 * 2**20


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, request):
    if "docstrings" not in request.node.name:
        monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def table(tmp_path):
    words = ["red", "green", "blue", "large", "small", "thing", "house"]
    rng = np.random.default_rng(0)
    rows = [{"text": " ".join(rng.choice(words, 8)), "label": ["a", "b"][i % 2]} for i in range(300)]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def load(table, tmp_path, **values):
    config = TrainConfig(data=str(table), vocab_size=300, max_length=16, **values)
    return load_data(config, RunFolder(tmp_path / "run"), progress=False)


@pytest.mark.parametrize("task", ["classification", "language-modelling"])
def test_a_table_becomes_two_stores_that_share_no_text(table, tmp_path, task):
    data = load(table, tmp_path, task=task)
    assert len(data.train) + len(data.validation) == 300
    assert len(data.validation) == pytest.approx(30, abs=4)
    assert data.train.directory == data.validation.directory
    texts = [{tuple(store[i][0]) for i in range(len(store))} for store in (data.train, data.validation)]
    assert not texts[0] & texts[1]
    assert data.train.label_names == (("a", "b") if task == "classification" else ())
    if task == "classification":
        assert np.bincount(data.validation.labels).tolist() == [15, 15]
    again = load(table, tmp_path, task=task)
    assert (again.fingerprint, again.train.fingerprint) == (data.fingerprint, data.train.fingerprint)
    other = load(table, tmp_path, task=task, seed=1)
    assert other.train.fingerprint == data.train.fingerprint, "all seeds are judged on the same texts"


def test_the_tokenizer_of_the_run_folder_or_of_a_checkpoint_is_used(table, tmp_path):
    trained = train_tokenizer(["red green blue large"] * 4, vocab_size=270)
    for place, values in (("run", {}), ("model", {"hf_model": str(tmp_path / "model")})):
        (tmp_path / place).mkdir()
        save_tokenizer(trained, tmp_path / place / "tokenizer.json")
        data = load(table, tmp_path, **values)
        assert data.train.load_tokenizer().to_str() == trained.to_str()
        assert data.train.vocab_size == trained.get_vocab_size()
    (tmp_path / "run" / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=r"hf_model=.*absent"):
        load(table, tmp_path, hf_model=str(tmp_path / "absent"))


def test_a_hugging_face_tokenizer_keeps_its_own_special_tokens(table, tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    words = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "red": 3, "green": 4, "[PAD]": 5}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.enable_truncation(512)
    tokenizer.enable_padding(length=20)
    (tmp_path / "model").mkdir()
    tokenizer.save(str(tmp_path / "model" / "tokenizer.json"))
    (tmp_path / "model" / "config.json").write_text("{}")
    config = TrainConfig(data=str(table), max_length=6, hf_model=str(tmp_path / "model"))
    data = load_data(config, RunFolder(tmp_path / "run"), progress=False)
    ids, _ = data.train[0]
    assert (ids[0], ids[-1], len(ids)) == (1, 2, 6), "cut inside, not at its last special token"
    assert (data.train.pad_id, data.train.vocab_size) == (5, 6)
    assert data.train.num_truncated == 300 and "300 of 300 texts were cut" in data.notes[-1]


def test_token_classification_of_a_table_needs_columns_of_lists(table, tmp_path):
    with pytest.raises(UserError, match=r"no one column 'label'|is no list: task=token-classification takes"):
        load(table, tmp_path, task="token-classification")


@pytest.mark.further
@pytest.mark.parametrize("task", ["classification", "token-classification", "language-modelling"])
def test_every_task_has_data_without_a_file_docstrings(tmp_path, task):
    data = load_data(TrainConfig(data="docstrings", task=task), RunFolder(tmp_path / "run"), progress=False)
    assert len(data.train) > 9 * len(data.validation) * 0.9 > 1000
    batch = data.train.batch([0, 1, 2])
    if task == "classification":
        assert batch["labels"].shape == (3,)
    else:
        assert batch["labels"].shape == batch["input_ids"].shape
        real = batch["labels"][batch["attention_mask"]]
        assert (
            (real == IGNORE) | (real < (data.train.vocab_size if task != "token-classification" else 11))
        ).all()
    assert len(load_docstrings()) > 0


@pytest.mark.further
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA limits private memory on Linux alone")
def test_a_corpus_larger_than_the_memory_it_may_use(tmp_path):
    """In small what `tests/benchmarks/larger_than_memory.py` does in large."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 15)) for _ in range(1000)]  # long: quickly tokenised
    path = tmp_path / "corpus.jsonl"
    with path.open("w") as file:
        for i in range(SIZE // 2**10):
            file.write(json.dumps({"text": " ".join(rng.choice(words, 62)), "label": "ab"[i % 2]}) + "\n")
    found = larger_than_memory.run_limited(path, headroom=40 * 2**20, steps=0)
    assert found["corpus_bytes"] > 0.9 * SIZE
    assert found["num_texts"] == SIZE // 2**10
